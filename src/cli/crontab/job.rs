//! From a line of a crontab to the definition of a job that does what cron did.
//!
//! As cron would: nothing is tried again, a run may overlap the one before, and an occurrence that
//! was missed by more than a few minutes does not run.

use std::collections::BTreeMap;

use crate::base::bounded::clip;
use crate::base::limits::TEXT_BYTES_MAX;
use crate::cli::crontab::read::Entry;
use crate::wire::job::{AllowOverlap, CommandExecutor, Executor, JobSpec, Overlap, Retry};
use crate::wire::trigger::{Cron, Dialect, Misfire, MisfirePolicy, Schedule, TriggerSpec};

/// The name of the one trigger of an imported job.
pub const TRIGGER: &str = "cron";
/// Long enough for a change of leader, short enough to be cron's "missed is missed".
const GRACE: &str = "5m";

/// What holds for all jobs of one import.
#[derive(Clone, Debug)]
pub struct ImportSettings {
    /// The crontab's name without its folder.
    pub file: String,
    pub pool: String,
    /// The zone of lines that no `CRON_TZ` stands above.
    pub zone: String,
}

impl ImportSettings {
    /// The zone in which a line's schedule is read.
    #[must_use]
    pub fn zone_of<'a>(&'a self, entry: &'a Entry) -> &'a str {
        entry.environment.zone.as_deref().unwrap_or(&self.zone)
    }
}

/// The job of one line; `text` is the line as it stands.
#[must_use]
pub fn job_of(entry: &Entry, text: &str, settings: &ImportSettings) -> JobSpec {
    let environment = &entry.environment;
    let command = CommandExecutor {
        argv: vec![environment.shell.clone(), "-c".to_owned(), entry.command.shell_text.clone()],
        env: environment.variables.clone(),
        folder: environment.home.clone(),
        stdin: entry.command.stdin.clone(),
        user: entry.user.clone(),
    };
    let mut labels = BTreeMap::from([("crontab".to_owned(), settings.file.clone())]);
    if let Some(mail_to) = environment.mail_to.as_ref().filter(|text| !text.is_empty()) {
        labels.insert("mailto".to_owned(), clip(mail_to, TEXT_BYTES_MAX).to_owned());
    }
    let trigger = TriggerSpec {
        description: None,
        schedule: Schedule::Cron(Cron {
            expression: entry.schedule.clone(),
            dialect: Some(Dialect::Unix),
            timezone: Some(settings.zone_of(entry).to_owned()),
            dst_gap: None,
            dst_overlap: None,
        }),
        start_at: None,
        end_at: None,
        misfire: Some(Misfire {
            policy: Some(MisfirePolicy::Skip),
            grace: Some(GRACE.to_owned()),
            window: None,
            count: None,
        }),
        payload: None,
    };
    JobSpec {
        description: Some(clip(text, TEXT_BYTES_MAX).to_owned()),
        executor: Executor::Command(command),
        payload: None,
        pool: Some(settings.pool.clone()),
        priority: None,
        overlap: Some(Overlap::Allow(AllowOverlap::default())),
        retry: Some(Retry { attempts: Some(1), ..Retry::default() }),
        timeout: None,
        lease: None,
        history: None,
        labels,
        triggers: Some(BTreeMap::from([(TRIGGER.to_owned(), trigger)])),
    }
}

/// What a line means here that it did not mean under cron.
#[must_use]
pub fn changes_of(entry: &Entry) -> Vec<String> {
    let mut changes = entry.changes.clone();
    let fields: Vec<&str> = entry.schedule.split(' ').collect();
    if let [_, _, day_of_month, _, day_of_week] = fields.as_slice() {
        let begins_with_star = |field: &str| field.starts_with('*') && field != "*";
        let is_limited = |field: &str| field != "*";
        let mixed = begins_with_star(day_of_month) && is_limited(day_of_week)
            || begins_with_star(day_of_week) && is_limited(day_of_month);
        if mixed {
            let says = format!(
                "with {day_of_month:?} and {day_of_week:?} cron asks for days that match both, \
                 here one of them is enough"
            );
            changes.push(says);
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::crontab::read::{Content, Form, read_crontab};

    fn first_entry(text: &str, form: Form) -> Entry {
        let lines = read_crontab(text, form).into_iter();
        let mut entries = lines.filter_map(|line| match line.content {
            Content::Entry(entry) => Some(*entry),
            Content::Setting(_) | Content::Malformed(_) => None,
        });
        entries.next().unwrap()
    }

    #[test]
    fn a_line_becomes_the_job_that_cron_would_have_run() {
        let text = "SHELL=/bin/bash\nHOME=/srv\nMAILTO=ops@example.org\nA=b\nCRON_TZ=Asia/Tokyo\n\
                    5 4 * * 1 www report --day \\%d%in";
        let entry = first_entry(text, Form::System);
        let settings = ImportSettings {
            file: "crontab".to_owned(),
            pool: "db".to_owned(),
            zone: "UTC".to_owned(),
        };
        let job = serde_json::to_value(job_of(&entry, "the line", &settings)).unwrap();
        let expected = serde_json::json!({
            "description": "the line",
            "executor": { "command": {
                "argv": ["/bin/bash", "-c", "report --day %d"],
                "env": { "SHELL": "/bin/bash", "HOME": "/srv", "A": "b" },
                "folder": "/srv",
                "stdin": "in\n",
                "user": "www",
            } },
            "pool": "db",
            "overlap": { "allow": {} },
            "retry": { "attempts": 1 },
            "labels": { "crontab": "crontab", "mailto": "ops@example.org" },
            "triggers": { "cron": {
                "schedule": { "cron": {
                    "expression": "5 4 * * 1", "dialect": "unix", "timezone": "Asia/Tokyo",
                } },
                "misfire": { "policy": "skip", "grace": "5m" },
            } },
        });
        assert_eq!(job, expected);
    }

    #[test]
    fn days_that_cron_joins_by_and_are_reported() {
        let table = [
            ("0 0 */2 * 1 x", true),
            ("0 0 1 * */2 x", true),
            ("0 0 */2 * * x", false),
            ("0 0 1 * 1 x", false),
            ("@daily x", false),
        ];
        for (line, is_changed) in table {
            let changes = changes_of(&first_entry(line, Form::User));
            assert_eq!(!changes.is_empty(), is_changed, "{line}");
        }
    }
}
