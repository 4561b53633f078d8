//! The jobs and one-shots that the workloads are made of.

use std::collections::BTreeMap;

use horolog::wire::job::{AllowOverlap, Executor, JobSpec, Overlap, WorkerExecutor};
use horolog::wire::trigger::{Cron, Dialect, Every, Misfire, MisfirePolicy, Schedule, TriggerSpec};
use serde_json::value::RawValue;

use crate::clock::format_us;
use crate::error::{Error, Result};
use crate::load::Template;

/// Where a job of these workloads lives.
pub fn job_path(name: &str) -> String {
    format!("/v1/tenants/default/jobs/bench/{name}")
}

/// The definition of a job for pulling workers whose fires may run side by side.
pub fn job(payload: Option<&str>) -> Result<JobSpec> {
    Ok(JobSpec {
        description: None,
        executor: Executor::Worker(WorkerExecutor {}),
        payload: payload.map(text).transpose()?,
        pool: None,
        priority: None,
        overlap: Some(Overlap::Allow(AllowOverlap::default())),
        retry: None,
        timeout: None,
        lease: None,
        history: None,
        labels: BTreeMap::new(),
        triggers: None,
    })
}

/// A job as a body of exactly this many bytes, with a number in its payload that changes.
///
/// # Errors
/// When the definition alone is larger.
pub fn job_template(bytes: usize) -> Result<Template> {
    filled(bytes, |payload| to_json(&job(Some(payload))?))
}

/// A one-shot after `delay` as a body of exactly this many bytes, with a payload of its own.
///
/// # Errors
/// When the request alone is larger.
pub fn delayed_template(bytes: usize, delay: &str) -> Result<Template> {
    filled(bytes, |payload| Ok(format!("{{\"delay\":\"{delay}\",\"payload\":\"{payload}\"}}")))
}

/// A one-shot at an instant with a payload of this many bytes.
///
/// # Errors
/// When the instant is none.
pub fn one_shot(at_us: i64, payload_bytes: usize) -> Result<String> {
    let payload = "x".repeat(payload_bytes);
    Ok(format!("{{\"at\":\"{}\",\"payload\":\"{payload}\"}}", format_us(at_us)?))
}

/// The period of a recurring job, in microseconds.
pub const PERIOD_US: i64 = 10_000_000;

/// When recurring jobs fire.
#[derive(Clone, Copy, Debug)]
pub struct Recurring {
    pub jobs: usize,
    /// A whole number of periods since 1970.
    pub from_us: i64,
    pub to_us: Option<i64>,
}

impl Recurring {
    /// The `i`th job: by turns one that fires by cron on a whole second, and one that fires by
    /// interval, its phase spread over the period by milliseconds. Each fires once a period.
    ///
    /// # Errors
    /// When an instant is none.
    pub fn job(&self, i: usize) -> Result<String> {
        let schedule = match i % 2 {
            0 => Schedule::Cron(Cron {
                expression: format!("{}/10 * * * * ?", i / 2 % 10),
                dialect: Some(Dialect::Quartz),
                ..Cron::default()
            }),
            _ => {
                let phase_ms = i * (PERIOD_US / 1_000) as usize / self.jobs;
                let anchor_us = self.from_us + phase_ms as i64 * 1_000;
                let anchor = Some(format_us(anchor_us)?);
                Schedule::Every(Every { interval: "10s".to_owned(), anchor })
            }
        };
        let trigger = TriggerSpec {
            description: None,
            schedule,
            start_at: Some(format_us(self.from_us)?),
            // The last millisecond of the span: its end itself belongs to the next.
            end_at: self.to_us.map(|to_us| format_us(to_us - 1_000)).transpose()?,
            misfire: Some(Misfire { policy: Some(MisfirePolicy::FireAll), ..Misfire::default() }),
            payload: None,
        };
        let mut spec = job(Some("recurring"))?;
        spec.triggers = Some(BTreeMap::from([("main".to_owned(), trigger)]));
        to_json(&spec)
    }
}

/// A job that fires once a day, with a payload of 256 bytes: one of many that wait.
///
/// # Errors
/// Never, as the definition is always JSON.
pub fn daily_job(i: usize) -> Result<String> {
    let expression = format!("{} {} * * *", i % 60, i / 60 % 24);
    let trigger = TriggerSpec {
        description: None,
        schedule: Schedule::Cron(Cron { expression, ..Cron::default() }),
        start_at: None,
        end_at: None,
        misfire: None,
        payload: None,
    };
    let mut spec = job(Some(&"x".repeat(256)))?;
    spec.triggers = Some(BTreeMap::from([("main".to_owned(), trigger)]));
    to_json(&spec)
}

fn filled(bytes: usize, make: impl Fn(&str) -> Result<String>) -> Result<Template> {
    let bare = make(Template::MARK)?;
    let missing = bytes.checked_sub(bare.len());
    let too_small = || Error::Wrong(format!("{bytes} bytes do not hold {bare}"));
    let filler = "x".repeat(missing.ok_or_else(too_small)?);
    Template::new(&make(&format!("{}{filler}", Template::MARK))?)
}

fn text(text: &str) -> Result<Box<RawValue>> {
    serde_json::value::to_raw_value(text).map_err(Error::json("payload"))
}

/// # Errors
/// Never, as a definition is always JSON.
pub fn to_json(spec: &JobSpec) -> Result<String> {
    serde_json::to_string(spec).map_err(Error::json("job"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_have_the_size_they_are_named_by() {
        let job = job_template(1_024).unwrap().with(7);
        assert_eq!(job.len(), 1_024);
        assert!(serde_json::from_slice::<JobSpec>(&job).is_ok());
        let shot = delayed_template(512, "1h").unwrap().with(8);
        assert_eq!(shot.len(), 512);
        assert_ne!(shot, delayed_template(512, "1h").unwrap().with(9));
        assert!(job_template(16).is_err());
    }

    #[test]
    fn phases_of_intervals_stay_inside_the_period() {
        let recurring = Recurring { jobs: 10_000, from_us: 0, to_us: Some(60_000_000) };
        let last = recurring.job(9_999).unwrap();
        assert!(last.contains("\"1970-01-01T00:00:09.999Z\""), "{last}");
        assert!(last.contains("\"1970-01-01T00:00:59.999Z\""), "{last}");
    }
}
