//! What an import made of each line, for people and for programs.

use serde::Serialize;

use crate::cli::table::{Cell, Table, shortened, state_cell};

/// The verdict on one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// It does here what it did under cron.
    Taken,
    /// It is taken, with a difference that is named.
    Changed,
    /// It is not taken, for the reason that is named.
    Refused,
}

impl Verdict {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Taken => "taken",
            Verdict::Changed => "changed",
            Verdict::Refused => "refused",
        }
    }
}

#[derive(Clone, Debug, Serialize)]
pub struct ReportLine {
    /// Counted from 1.
    pub line: usize,
    pub verdict: Verdict,
    pub text: String,
    /// With a line that is a job: its address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// What became of the job: `created`, `updated`, `unchanged`; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Report {
    pub file: String,
    /// `user` or `system`.
    pub form: &'static str,
    /// The zone of lines that no `CRON_TZ` stands above.
    pub default_timezone: String,
    pub dry_run: bool,
    pub lines: Vec<ReportLine>,
    pub taken: usize,
    pub changed: usize,
    pub refused: usize,
}

impl Report {
    pub fn count(&mut self) {
        let of = |verdict| self.lines.iter().filter(|line| line.verdict == verdict).count();
        let counts = (of(Verdict::Taken), of(Verdict::Changed), of(Verdict::Refused));
        (self.taken, self.changed, self.refused) = counts;
    }

    /// One row for each line; each note on a row of its own below it.
    #[must_use]
    pub fn table(&self) -> Table {
        let mut table = Table::new(&["LINE", "VERDICT", "RESULT", "JOB", "SCHEDULE", "ZONE"]);
        for line in &self.lines {
            let shown = line.job.clone().unwrap_or_else(|| shortened(&line.text, 50));
            let cells: Vec<Cell> = vec![
                line.line.to_string().into(),
                state_cell(line.verdict.as_str()),
                state_cell(line.result.unwrap_or_default()),
                shown.into(),
                line.schedule.clone().unwrap_or_default().into(),
                line.timezone.clone().unwrap_or_default().into(),
            ];
            table.row(cells);
        }
        table
    }

    /// The notes, each with its line.
    #[must_use]
    pub fn notes(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            for note in &line.notes {
                text.push_str(&format!("line {}: {note}\n", line.line));
            }
        }
        text
    }

    #[must_use]
    pub fn summary(&self) -> String {
        let Report { file, form, default_timezone, taken, changed, refused, .. } = self;
        let mode = if self.dry_run { "; a dry run, nothing was changed" } else { "" };
        format!(
            "{file} ({form} crontab): {taken} taken, {changed} changed, {refused} refused; \
             lines without CRON_TZ are read in {default_timezone}{mode}"
        )
    }
}
