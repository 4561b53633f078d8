//! `horolog cron`: what an expression means, worked out on this machine.

use crate::base::clock::{Clock, SystemClock};
use crate::base::time::{Span, Timestamp};
use crate::cli::args::{CronCommand, CronDialect, CronNextArgs};
use crate::cli::error::CliError;
use crate::cli::output::Output;
use crate::cli::table::Table;
use crate::model::schedule::{Bounds, CronSource, Dialect, DstGap, DstOverlap, Schedule};
use crate::recurrence::preview::next_times;
use crate::recurrence::zone::Zone;
use crate::recurrence::{Compiled, ScheduleError, validate};

/// # Errors
/// [`CliError::Usage`] with the reason when the expression or the zone is refused.
pub fn run(command: &CronCommand, output: &Output) -> Result<(), CliError> {
    match command {
        CronCommand::Next(args) => next(args, output),
    }
}

/// Reads an expression, and refuses what a node would refuse.
///
/// # Errors
/// [`ScheduleError`] says which part is at fault.
pub fn compile(
    expression: &str,
    dialect: Dialect,
    zone: &str,
    job: &str,
) -> Result<Compiled, ScheduleError> {
    let schedule = Schedule::Cron(CronSource {
        text: expression.to_owned(),
        dialect,
        zone: zone.to_owned(),
        dst_gap: DstGap::default(),
        dst_overlap: DstOverlap::default(),
    });
    validate(&schedule, &Bounds::default(), job)?;
    Compiled::new(&schedule, &Bounds::default(), job)
}

fn next(args: &CronNextArgs, output: &Output) -> Result<(), CliError> {
    let dialect = match args.dialect {
        CronDialect::Unix => Dialect::Unix,
        CronDialect::Quartz => Dialect::Quartz,
    };
    let compiled =
        compile(&args.expression, dialect, &args.tz, args.job.as_deref().unwrap_or_default())
            .map_err(|error| CliError::Usage(error.to_string()))?;
    let after = args.after.unwrap_or_else(|| SystemClock.now());
    let times = next_times(&compiled, after, args.count as usize);
    if output.is_json() {
        let texts: Vec<String> = times.iter().map(Timestamp::to_string).collect();
        return output.json(&texts);
    }
    let zone = Zone::named(&args.tz).map_err(|_| CliError::Usage(args.tz.clone()))?;
    let mut table = Table::new(&["UTC", "LOCAL"]);
    for time in &times {
        let local = local_text(*time, zone.offset_at(*time));
        table.row(vec![time.to_string().into(), local.into()]);
    }
    output.table(&table)?;
    if times.is_empty() {
        output.message("it does not fire any more");
    }
    Ok(())
}

/// The wall clock's time with its offset, such as `2026-03-29T03:00:00+02:00`.
fn local_text(at: Timestamp, offset_seconds: i64) -> String {
    let shift = Span::from_secs(offset_seconds.abs());
    let (local, sign) =
        if offset_seconds < 0 { (at.minus(shift), '-') } else { (at.plus(shift), '+') };
    let minutes = offset_seconds.abs() / 60;
    let wall = local.to_string();
    format!("{}{sign}{:02}:{:02}", wall.trim_end_matches('Z'), minutes / 60, minutes % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn local_times_carry_their_offset() {
        let at: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
        assert_eq!(local_text(at, 7_200), "2026-03-29T03:00:00+02:00");
        assert_eq!(local_text(at, -12_600), "2026-03-28T21:30:00-03:30");
        assert_eq!(local_text(at, 0), "2026-03-29T01:00:00+00:00");
    }
}
