//! From the text of a crontab to its lines, each with its verdict.

use crate::cli::crontab::command::{CronCommand, split_command};
use crate::cli::crontab::environment::{Environment, SettingFate, read_setting};

/// Whether a line names the user its command runs as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// What `crontab -l` shows: five fields and a command.
    User,
    /// `/etc/crontab` and the files of `/etc/cron.d`: a user stands before the command.
    System,
}

impl Form {
    /// The form that cron itself would read this file in.
    #[must_use]
    pub fn guess(path: &str) -> Form {
        let is_system = path == "/etc/crontab" || path.starts_with("/etc/cron.d/");
        if is_system { Form::System } else { Form::User }
    }

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Form::User => "user",
            Form::System => "system",
        }
    }
}

/// A line that says something: comments and blank lines are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Counted from 1.
    pub number: usize,
    /// As it stands in the file.
    pub text: String,
    pub content: Content,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Setting(SettingFate),
    Entry(Box<Entry>),
    /// Neither a setting nor an entry: why.
    Malformed(String),
}

/// A schedule and its command, with the settings in force at its line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Five fields with one space between them, or a macro such as `@daily`.
    pub schedule: String,
    pub user: Option<String>,
    pub command: CronCommand,
    pub environment: Environment,
    /// What differs from cron's way with this line.
    pub changes: Vec<String>,
}

/// Reads every line of a crontab.
#[must_use]
pub fn read_crontab(text: &str, form: Form) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut environment = Environment::default();
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    for (i, line) in text.lines().enumerate() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        let content = read_line(trimmed, form, &mut environment);
        lines.push(Line { number: i + 1, text: trimmed.to_owned(), content });
    }
    lines
}

fn read_line(line: &str, form: Form, environment: &mut Environment) -> Content {
    if line.contains(char::REPLACEMENT_CHARACTER) {
        return Content::Malformed("the line is not UTF-8".to_owned());
    }
    if line.contains('\0') {
        return Content::Malformed("the line holds a NUL byte".to_owned());
    }
    match read_setting(line) {
        Some(Ok(setting)) => return Content::Setting(environment.set(setting)),
        Some(Err(error)) => return Content::Malformed(error.to_string()),
        None => {}
    }
    match read_entry(line, form, environment) {
        Ok(entry) => Content::Entry(Box::new(entry)),
        Err(reason) => Content::Malformed(reason),
    }
}

fn read_entry(line: &str, form: Form, environment: &Environment) -> Result<Entry, String> {
    let mut changes = Vec::new();
    let unlogged = line.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    if unlogged.is_some() {
        changes.push("the leading '-' (no log line) has no counterpart".to_owned());
    }
    let (schedule, rest) = split_schedule(unlogged.unwrap_or(line))?;
    let (user, command) = match form {
        Form::User => (None, rest),
        Form::System => {
            let (user, command) = split_word(rest);
            (Some(user.to_owned()), command)
        }
    };
    if user.as_deref() == Some("") {
        return Err("the user and the command are missing after the schedule".to_owned());
    }
    if command.is_empty() {
        return Err(match form {
            Form::User => "the command is missing after the schedule".to_owned(),
            Form::System => "the command is missing after the user; \
                             is this a user's crontab? then leave --system out"
                .to_owned(),
        });
    }
    if form == Form::User && split_word(command).0 == "root" {
        let says = "the command begins with the word root: if that is the user column of a system \
                    crontab, import it with --system";
        changes.push(says.to_owned());
    }
    let command = split_command(command);
    if command.shell_text.trim().is_empty() {
        return Err("the command is empty before its first %".to_owned());
    }
    let environment = environment.clone();
    Ok(Entry { schedule, user, command, environment, changes })
}

/// The schedule in one spelling, and what follows it.
fn split_schedule(line: &str) -> Result<(String, &str), String> {
    if line.starts_with('@') {
        let (word, rest) = split_word(line);
        return Ok((known_macro(word)?, rest));
    }
    let mut fields = Vec::new();
    let mut rest = line;
    for _ in 0..5 {
        let (field, tail) = split_word(rest);
        if field.is_empty() {
            return Err(format!(
                "a schedule has 5 fields (minute, hour, day of month, month, day of week), \
                 this line has {}",
                fields.len()
            ));
        }
        if let Some(c) = field.chars().find(|&c| !is_field_character(c)) {
            return Err(format!(
                "field {} of the schedule is {field:?}, and {c:?} belongs into no field",
                fields.len() + 1
            ));
        }
        fields.push(field);
        rest = tail;
    }
    if let Some(field) = fields.iter().find(|field| field.contains('~')) {
        return Err(format!(
            "the field {field:?} asks for a random time, which would differ from node to node: \
             choose a time, or write H for one that follows from the job's name"
        ));
    }
    Ok((fields.join(" "), rest))
}

fn is_field_character(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '*' | '/' | ',' | '-' | '~' | '?' | '#')
}

fn known_macro(word: &str) -> Result<String, String> {
    let lower = word.to_ascii_lowercase();
    match lower.as_str() {
        "@yearly" | "@annually" | "@monthly" | "@weekly" | "@daily" | "@midnight" | "@hourly" => {
            Ok(lower)
        }
        "@reboot" => Err("a cluster does not boot: start it from the machine's own service \
                          manager, or fire a job by hand"
            .to_owned()),
        _ => Err(format!(
            "{word} is not one of @yearly, @annually, @monthly, @weekly, @daily, @midnight, @hourly"
        )),
    }
}

/// The first word, and the rest without the blanks between.
fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim_start();
    match text.find(char::is_whitespace) {
        Some(end) => (&text[..end], text[end..].trim_start()),
        None => (text, ""),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str, form: Form) -> Vec<Entry> {
        let lines = read_crontab(text, form).into_iter();
        lines
            .filter_map(|line| match line.content {
                Content::Entry(entry) => Some(*entry),
                Content::Setting(_) | Content::Malformed(_) => None,
            })
            .collect()
    }

    fn malformed(line: &str, form: Form) -> String {
        match read_crontab(line, form).remove(0).content {
            Content::Malformed(reason) => reason,
            other @ (Content::Setting(_) | Content::Entry(_)) => panic!("{line}: {other:?}"),
        }
    }

    #[test]
    fn both_forms_split_where_cron_splits() {
        let user = &entries("5\t4 * *   mon-fri\t/bin/x  a  b\r\n", Form::User)[0];
        assert_eq!(user.schedule, "5 4 * * mon-fri");
        assert_eq!(user.command.shell_text, "/bin/x  a  b");
        assert_eq!(user.user, None);
        let system = &entries("@Daily root /bin/x a", Form::System)[0];
        assert_eq!(system.schedule, "@daily");
        assert_eq!(system.user.as_deref(), Some("root"));
        assert_eq!(system.command.shell_text, "/bin/x a");
    }

    #[test]
    fn settings_hold_for_the_lines_below_them_only() {
        let text = "0 1 * * * a\nSHELL=/bin/bash\nCRON_TZ=Europe/Berlin\n0 2 * * * b\n\
            CRON_TZ=\n0 3 * * * c";
        let shells: Vec<_> = entries(text, Form::User)
            .into_iter()
            .map(|entry| (entry.environment.shell, entry.environment.zone))
            .collect();
        let berlin = Some("Europe/Berlin".to_owned());
        let bash = "/bin/bash".to_owned();
        assert_eq!(shells, [("/bin/sh".to_owned(), None), (bash.clone(), berlin), (bash, None)]);
    }

    #[test]
    fn what_cannot_be_taken_says_why_and_the_next_line_goes_on() {
        let table = [
            ("@reboot x", Form::User, "does not boot"),
            ("@fortnightly x", Form::User, "is not one of"),
            ("* * * *", Form::User, "this line has 4"),
            ("* * * * *", Form::User, "command is missing"),
            ("* * * * * root", Form::System, "missing after the user"),
            ("* * * * *", Form::System, "user and the command"),
            ("0~59 3 * * * x", Form::User, "random time"),
            ("run me! now a b c", Form::User, "belongs into no field"),
            ("* * * * * %in", Form::User, "empty before"),
            ("A='b", Form::User, "never closed"),
        ];
        for (line, form, part) in table {
            let reason = malformed(line, form);
            assert!(reason.contains(part), "{line}: {reason}");
        }
        assert_eq!(entries("@reboot x\n@daily y\nA='b\n@daily z", Form::User).len(), 2);
    }

    #[test]
    fn line_numbers_count_comments_and_blank_lines() {
        let lines = read_crontab("# a\n\n  # b\n@daily x\n", Form::User);
        assert_eq!(lines.len(), 1);
        assert_eq!(lines[0].number, 4);
    }

    #[test]
    fn forms_are_guessed_from_cron_s_own_places() {
        for (path, form) in [
            ("/etc/crontab", Form::System),
            ("/etc/cron.d/php", Form::System),
            ("crontab", Form::User),
            ("/var/spool/cron/crontabs/root", Form::User),
        ] {
            assert_eq!(Form::guess(path), form, "{path}");
        }
    }
}
