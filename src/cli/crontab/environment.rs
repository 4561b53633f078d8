//! Lines of the form `NAME = value`, and what has been set up to a line.

use std::collections::BTreeMap;

/// One setting, quotes removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub name: String,
    pub value: String,
}

/// Why a line that looks like a setting is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    #[error("the quote {quote} is never closed")]
    OpenQuote { quote: char },
    #[error("nothing may follow the closing quote of the value, but {rest:?} does")]
    AfterQuote { rest: String },
    #[error("a setting needs a name before its equals sign")]
    NoName,
}

/// Reads `NAME = value`. `None`: the line is no setting, but perhaps a schedule.
/// Name and value may each stand in single or double quotes; nothing is expanded.
#[must_use]
pub fn read_setting(line: &str) -> Option<Result<Setting, SettingError>> {
    let line = line.trim();
    let (name, rest) = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let (name, rest) = line[1..].split_once(quote)?;
            (name, rest.trim_start())
        }
        _ => {
            let end = line.find(|c: char| c == '=' || c.is_whitespace())?;
            (&line[..end], line[end..].trim_start())
        }
    };
    let value = rest.strip_prefix('=')?.trim_start();
    if name.is_empty() {
        return Some(Err(SettingError::NoName));
    }
    Some(unquoted(value).map(|value| Setting { name: name.to_owned(), value }))
}

fn unquoted(value: &str) -> Result<String, SettingError> {
    let Some(quote @ ('"' | '\'')) = value.chars().next() else {
        return Ok(value.to_owned());
    };
    let inner = &value[1..];
    let Some((inside, rest)) = inner.split_once(quote) else {
        return Err(SettingError::OpenQuote { quote });
    };
    if !rest.trim().is_empty() {
        return Err(SettingError::AfterQuote { rest: rest.trim().to_owned() });
    }
    Ok(inside.to_owned())
}

/// What became of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingFate {
    /// It holds for the lines below.
    Taken,
    /// It is kept, but does not do what it did under cron: why.
    Changed(String),
    /// It has no counterpart: why.
    Refused(String),
}

/// The settings in force at a line. Later lines override earlier ones, as cron reads them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    /// What the command is started by.
    pub shell: String,
    /// The folder the command starts in, when it was set.
    pub home: Option<String>,
    /// The zone the schedule is read in, when `CRON_TZ` was set.
    pub zone: Option<String>,
    /// Who got mail; empty: nobody did.
    pub mail_to: Option<String>,
    /// Handed to the command.
    pub variables: BTreeMap<String, String>,
}

impl Default for Environment {
    fn default() -> Environment {
        Environment {
            shell: "/bin/sh".to_owned(),
            home: None,
            zone: None,
            mail_to: None,
            variables: BTreeMap::new(),
        }
    }
}

impl Environment {
    pub fn set(&mut self, setting: Setting) -> SettingFate {
        let Setting { name, value } = setting;
        match name.as_str() {
            "CRON_TZ" => {
                self.zone = (!value.is_empty()).then_some(value);
                SettingFate::Taken
            }
            "MAILTO" => {
                self.mail_to = Some(value);
                let says = "no mail is sent: it is kept as the label mailto, \
                            output is kept with each fire";
                SettingFate::Changed(says.to_owned())
            }
            "RANDOM_DELAY" => SettingFate::Refused(
                "there is no random delay: spread the schedules instead".to_owned(),
            ),
            "MAILFROM" | "CONTENT_TYPE" | "CONTENT_TRANSFER_ENCODING" => {
                SettingFate::Refused("no mail is sent".to_owned())
            }
            "LOGNAME" | "USER" => SettingFate::Refused(format!(
                "{name} follows from the user that the command runs as"
            )),
            _ => self.set_variable(name, value),
        }
    }

    fn set_variable(&mut self, name: String, value: String) -> SettingFate {
        let is_zone = name == "TZ";
        match name.as_str() {
            "SHELL" if value.is_empty() => {
                return SettingFate::Refused("SHELL needs the path of a shell".to_owned());
            }
            "SHELL" => self.shell.clone_from(&value),
            "HOME" if value.is_empty() => {
                return SettingFate::Refused("HOME needs the path of a folder".to_owned());
            }
            "HOME" => self.home = Some(value.clone()),
            _ => {}
        }
        self.variables.insert(name, value);
        if is_zone {
            let says = "TZ reaches the command only, as in cronie: \
                        CRON_TZ says in which zone the schedule is read";
            return SettingFate::Changed(says.to_owned());
        }
        SettingFate::Taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_read_as_cron_reads_them() {
        let table = [
            ("PATH=/usr/bin:/bin", "PATH", "/usr/bin:/bin"),
            ("A = b c ", "A", "b c"),
            ("A=", "A", ""),
            ("A=\"  x  \"", "A", "  x  "),
            ("'A B'='it is'", "A B", "it is"),
            ("A=$HOME/x", "A", "$HOME/x"),
            ("A=b=c # d", "A", "b=c # d"),
        ];
        for (line, name, value) in table {
            let expected = Setting { name: name.to_owned(), value: value.to_owned() };
            assert_eq!(read_setting(line), Some(Ok(expected)), "{line}");
        }
    }

    #[test]
    fn schedules_are_no_settings() {
        for line in ["* * * * * A=b cmd", "@daily A=b cmd", "0 5 * * 1 x", "nonsense", ""] {
            assert_eq!(read_setting(line), None, "{line}");
        }
    }

    #[test]
    fn broken_settings_say_what_is_wrong() {
        let table = [
            ("A=\"b", SettingError::OpenQuote { quote: '"' }),
            ("A='b' c", SettingError::AfterQuote { rest: "c".to_owned() }),
            ("=b", SettingError::NoName),
        ];
        for (line, error) in table {
            assert_eq!(read_setting(line), Some(Err(error)), "{line}");
        }
    }
}
