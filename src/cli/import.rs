//! `horolog import`: jobs out of what another scheduler reads.

use crate::base::bounded::Name;
use crate::cli::address::JobAddress;
use crate::cli::apply::{JobDraft, apply};
use crate::cli::args::{ImportCommand, ImportCrontabArgs};
use crate::cli::cron_next::compile;
use crate::cli::crontab::environment::SettingFate;
use crate::cli::crontab::job::{ImportSettings, changes_of, job_of};
use crate::cli::crontab::naming::Namer;
use crate::cli::crontab::read::{Content, Entry, Form, Line, read_crontab};
use crate::cli::crontab::report::{Report, ReportLine, Verdict};
use crate::cli::error::{CliError, FAILED};
use crate::cli::input::read_input;
use crate::cli::output::Output;
use crate::client::transport::Client;
use crate::model::schedule::Dialect;
use crate::recurrence::zone::Zone;

/// # Errors
/// [`CliError`]; exit code 1 when a line was refused.
pub async fn run(client: &Client, command: ImportCommand, output: &Output) -> Result<(), CliError> {
    match command {
        ImportCommand::Crontab(args) => crontab(client, args, output).await,
    }
}

async fn crontab(
    client: &Client,
    args: ImportCrontabArgs,
    output: &Output,
) -> Result<(), CliError> {
    for name in [&args.group, &args.pool] {
        Name::new(name).map_err(|error| CliError::Usage(format!("{name:?}: {error}")))?;
    }
    if Zone::named(&args.tz).is_err() {
        let says = format!("{:?} is neither an IANA name nor an offset such as +05:30", args.tz);
        return Err(CliError::Usage(says));
    }
    let bytes = read_input(&args.file).await?;
    let text = String::from_utf8_lossy(&bytes);
    let (mut report, drafts) = plan(&text, &args, client.tenant());
    if !args.dry_run {
        for (at, draft) in drafts {
            match apply(client, &draft).await {
                Ok((applied, _)) => report.lines[at].result = Some(applied.as_str()),
                Err(error) if error.is_unavailable() => return Err(error.into()),
                Err(error) => {
                    report.lines[at].verdict = Verdict::Refused;
                    report.lines[at].notes.push(error.to_string());
                }
            }
        }
    }
    report.count();
    if output.is_json() {
        output.json(&report)?;
    } else {
        output.table(&report.table())?;
        let notes = report.notes();
        if !notes.is_empty() {
            output.text("")?;
            output.text(&notes)?;
        }
        output.message(&report.summary());
    }
    if report.refused > 0 { Err(CliError::Said(FAILED)) } else { Ok(()) }
}

/// What would be made of a crontab: the report, and the jobs with the index of their line in it.
#[must_use]
pub fn plan(
    text: &str,
    args: &ImportCrontabArgs,
    tenant: &str,
) -> (Report, Vec<(usize, JobDraft)>) {
    let form = if args.system { Form::System } else { Form::guess(&args.file) };
    let file = match args.file.as_str() {
        "-" => "stdin".to_owned(),
        path => path.rsplit('/').next().unwrap_or(path).to_owned(),
    };
    let (pool, zone) = (args.pool.clone(), args.tz.clone());
    let settings = ImportSettings { file: file.clone(), pool, zone };
    let mut namer = Namer::new(&file);
    let mut lines = Vec::new();
    let mut drafts = Vec::new();
    for line in read_crontab(text, form) {
        let (verdict, notes) = match &line.content {
            Content::Malformed(reason) => (Verdict::Refused, vec![reason.clone()]),
            Content::Setting(fate) => judge_setting(fate),
            Content::Entry(entry) => {
                let command = &entry.command.shell_text;
                let name = namer.name(&entry.schedule, entry.user.as_deref(), command);
                let address = JobAddress { group: args.group.clone(), name };
                let job = format!("{tenant}/{address}");
                let (reported, is_taken) = judge_entry(&line, entry, &settings, &job);
                if is_taken {
                    let spec = job_of(entry, &line.text, &settings);
                    drafts.push((lines.len(), JobDraft { address: address.clone(), spec }));
                }
                lines.push(ReportLine { job: Some(address.to_string()), ..reported });
                continue;
            }
        };
        lines.push(report_line(&line, verdict, notes));
    }
    let mut report = Report {
        file: args.file.clone(),
        form: form.as_str(),
        default_timezone: args.tz.clone(),
        dry_run: args.dry_run,
        lines,
        taken: 0,
        changed: 0,
        refused: 0,
    };
    report.count();
    (report, drafts)
}

fn judge_setting(fate: &SettingFate) -> (Verdict, Vec<String>) {
    match fate {
        SettingFate::Taken => (Verdict::Taken, Vec::new()),
        SettingFate::Changed(why) => (Verdict::Changed, vec![why.clone()]),
        SettingFate::Refused(why) => (Verdict::Refused, vec![why.clone()]),
    }
}

/// Asks the same evaluator that the nodes use, so that nothing is refused later that is taken here.
fn judge_entry(
    line: &Line,
    entry: &Entry,
    settings: &ImportSettings,
    job: &str,
) -> (ReportLine, bool) {
    let zone = settings.zone_of(entry);
    let (verdict, notes) = match compile(&entry.schedule, Dialect::Unix, zone, job) {
        Err(error) => (Verdict::Refused, vec![error.to_string()]),
        Ok(_) => {
            let changes = changes_of(entry);
            let verdict = if changes.is_empty() { Verdict::Taken } else { Verdict::Changed };
            (verdict, changes)
        }
    };
    let reported = ReportLine {
        schedule: Some(entry.schedule.clone()),
        timezone: Some(zone.to_owned()),
        ..report_line(line, verdict, notes)
    };
    (reported, verdict != Verdict::Refused)
}

fn report_line(line: &Line, verdict: Verdict, notes: Vec<String>) -> ReportLine {
    ReportLine {
        line: line.number,
        verdict,
        text: line.text.clone(),
        job: None,
        schedule: None,
        timezone: None,
        result: None,
        notes,
    }
}
