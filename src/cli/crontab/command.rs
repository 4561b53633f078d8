//! The command part of a crontab line: what the shell gets, and what its standard input gets.

/// A command as cron would start it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CronCommand {
    /// Handed to `SHELL -c`.
    pub shell_text: String,
    /// What follows the first bare `%`, with later ones as line ends; `None` when there is none.
    pub stdin: Option<String>,
}

/// Splits a command at its first bare `%`. `\%` is a plain `%`; every other backslash stays as it
/// is, also before another backslash, as in cronie.
#[must_use]
pub fn split_command(raw: &str) -> CronCommand {
    let mut shell_text = String::with_capacity(raw.len());
    let mut escaped = false;
    for (at, c) in raw.char_indices() {
        if escaped {
            if c == '%' {
                shell_text.pop();
            }
            shell_text.push(c);
            escaped = false;
        } else if c == '%' {
            return CronCommand { shell_text, stdin: Some(standard_input(&raw[at + 1..])) };
        } else {
            shell_text.push(c);
            escaped = c == '\\';
        }
    }
    CronCommand { shell_text, stdin: None }
}

/// The text after the first `%`: each further one ends a line, and so does the end.
fn standard_input(raw: &str) -> String {
    let mut text = String::with_capacity(raw.len() + 1);
    let mut chars = raw.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\\' if chars.peek() == Some(&'%') => {
                chars.next();
                text.push('%');
            }
            '%' => text.push('\n'),
            _ => text.push(c),
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_signs_end_the_command_and_then_its_lines() {
        let table = [
            ("date", "date", None),
            ("date +\\%F", "date +%F", None),
            ("mail -s hi bob%one%two", "mail -s hi bob", Some("one\ntwo\n")),
            ("cat%100\\% sure%", "cat", Some("100% sure\n")),
            ("cat%", "cat", Some("")),
            ("printf 'a\\nb'", "printf 'a\\nb'", None),
            ("echo \\\\%x", "echo \\\\", Some("x\n")),
            ("echo \\\\\\%x", "echo \\\\%x", None),
        ];
        for (raw, shell_text, stdin) in table {
            let got = split_command(raw);
            assert_eq!(got.shell_text, shell_text, "{raw}");
            assert_eq!(got.stdin.as_deref(), stdin, "{raw}");
        }
    }
}
