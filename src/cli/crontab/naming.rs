//! Names of imported jobs: the same file gives the same names, so that a second import finds its
//! jobs.

use std::collections::BTreeSet;

use crate::base::hash::stable_hash;

/// Longest readable part of a name, in bytes.
const SLUG_BYTES_MAX: usize = 40;

/// Hands out names inside one file, none of them twice.
#[derive(Debug)]
pub struct Namer {
    file: String,
    used: BTreeSet<String>,
}

impl Namer {
    /// `file` is the file's name without its folder: the same crontab may be read from another
    /// place.
    #[must_use]
    pub fn new(file: &str) -> Namer {
        Namer { file: file.to_owned(), used: BTreeSet::new() }
    }

    /// A slug of the command, and a hash of all that tells this line from others. Line numbers
    /// stay out: a comment added above must not rename a job.
    pub fn name(&mut self, schedule: &str, user: Option<&str>, command: &str) -> String {
        let user = user.unwrap_or("");
        let parts =
            [self.file.as_bytes(), schedule.as_bytes(), user.as_bytes(), command.as_bytes()];
        let short_hash = stable_hash(&parts) >> 32;
        let base = format!("{}-{short_hash:08x}", slug(command));
        let mut name = base.clone();
        let mut copy = 2;
        while !self.used.insert(name.clone()) {
            name = format!("{base}-{copy}");
            copy += 1;
        }
        name
    }
}

/// Letters and digits of the command's beginning, with folders of paths left out: `/usr/bin/php
/// a.php` becomes `php-a.php`.
fn slug(command: &str) -> String {
    let mut slug = String::new();
    for word in command.split_whitespace() {
        let base = word.trim_end_matches('/').rsplit('/').next().unwrap_or(word);
        let plain: String = base
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || matches!(c, '.' | '_') { c } else { '-' })
            .collect();
        let words: Vec<&str> = plain.split('-').filter(|word| !word.is_empty()).collect();
        let plain = words.join("-");
        let plain = plain.trim_matches(|c| matches!(c, '-' | '.' | '_'));
        if plain.is_empty() {
            continue;
        }
        let is_first = slug.is_empty();
        if !is_first && slug.len() + 1 + plain.len() > SLUG_BYTES_MAX {
            break;
        }
        if !is_first {
            slug.push('-');
        }
        slug.push_str(&plain[..plain.len().min(SLUG_BYTES_MAX)]);
    }
    if slug.is_empty() { "job".to_owned() } else { slug.to_ascii_lowercase() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::bounded::Name;

    #[test]
    fn slugs_are_readable_and_names() {
        let table = [
            ("/usr/bin/php /srv/app/cron.php --all", "php-cron.php-all"),
            (
                "test -x /usr/sbin/anacron || run-parts /etc/cron.daily",
                "test-x-anacron-run-parts-cron.daily",
            ),
            ("pg_dump shop > /b/shop-$(date +%F).gz", "pg_dump-shop-shop-date-f-.gz"),
            ("夜间对账", "job"),
            ("[ -d /x ] && find /x", "d-x-find-x"),
            (&"a".repeat(300), &"a".repeat(40)),
        ];
        for (command, expected) in table {
            assert_eq!(slug(command), expected);
            assert!(Name::new(&slug(command)).is_ok());
        }
    }

    #[test]
    fn equal_lines_get_different_names_and_the_same_ones_each_time() {
        let names = |file: &str| {
            let mut namer = Namer::new(file);
            [
                namer.name("@daily", None, "backup"),
                namer.name("@daily", None, "backup"),
                namer.name("@hourly", None, "backup"),
                namer.name("@daily", Some("www"), "backup"),
            ]
        };
        let first = names("crontab");
        assert_eq!(first, names("crontab"));
        assert_ne!(first, names("other"));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 4);
        assert!(first[1].ends_with("-2"));
    }
}
