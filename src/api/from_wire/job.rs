//! Jobs and requests to fire them.

use axum::http::Uri;

use crate::api::from_wire::fields::{Fields, escape};
use crate::api::from_wire::trigger::trigger_draft;
use crate::base::bounded::Name;
use crate::base::limits;
use crate::base::time::Span;
use crate::model::job::{CommandSpec, Executor, HttpMethod, HttpSpec, JobSpec, Payload};
use crate::model::policy::{Overlap, RetryPolicy, TimeoutPolicy};
use crate::service::error::ServiceError;
use crate::service::fires::{FireDraft, FireTime};
use crate::service::jobs::JobDraft;
use crate::wire;

/// The largest factor of a retry policy.
const FACTOR_MAX: f64 = 100.0;

pub(in crate::api) fn job_draft(body: &wire::job::JobSpec) -> Result<JobDraft, ServiceError> {
    let mut fields = Fields::default();
    let executor = executor(&mut fields, &body.executor);
    let spec = JobSpec {
        description: fields.text(
            "/description",
            body.description.as_deref().unwrap_or_default(),
            limits::TEXT_BYTES_MAX,
        ),
        executor,
        payload: match &body.payload {
            Some(json) => fields.payload("/payload", json),
            None => Payload::null(),
        },
        pool: match &body.pool {
            Some(pool) => fields.name("/pool", pool),
            None => Name::default_name(),
        },
        priority: priority(&mut fields, body.priority),
        overlap: overlap(&mut fields, body.overlap),
        retry: retry(&mut fields, body.retry.as_ref()),
        timeout: TimeoutPolicy {
            start_to_finish: body
                .timeout
                .as_ref()
                .map(|text| fields.span("/timeout", text, Span::from_secs(1), limits::DELAY_MAX)),
        },
        lease_ttl: match &body.lease {
            Some(text) => fields.span("/lease", text, limits::LEASE_TTL_MIN, limits::LEASE_TTL_MAX),
            None => limits::LEASE_TTL_DEFAULT,
        },
        history_count: match body.history {
            Some(count) => fields.number("/history", count, 1, limits::HISTORY_COUNT_MAX),
            None => limits::HISTORY_COUNT_DEFAULT,
        },
        labels: fields.labels(&body.labels),
    };
    let triggers = body.triggers.as_ref().map(|triggers| {
        fields.count("/triggers", triggers.len(), limits::TRIGGERS_PER_JOB_MAX);
        let mut drafts = Vec::new();
        for (key, trigger) in triggers.iter().take(limits::TRIGGERS_PER_JOB_MAX) {
            let pointer = format!("/triggers/{}", escape(key));
            let name = fields.name(pointer.clone(), key);
            drafts.push((name, trigger_draft(&mut fields, &pointer, trigger)));
        }
        drafts
    });
    fields.finish(JobDraft { spec, triggers })
}

fn priority(fields: &mut Fields, priority: Option<u32>) -> u8 {
    let Some(priority) = priority else {
        return JobSpec::PRIORITY_DEFAULT;
    };
    let taken = fields.number("/priority", priority, 0, u32::from(JobSpec::PRIORITY_MAX));
    u8::try_from(taken).unwrap_or(JobSpec::PRIORITY_MAX)
}

fn overlap(fields: &mut Fields, overlap: Option<wire::job::Overlap>) -> Overlap {
    match overlap.unwrap_or_default() {
        wire::job::Overlap::Skip => Overlap::Skip,
        wire::job::Overlap::BufferOne => Overlap::BufferOne,
        wire::job::Overlap::Allow(allow) => {
            let most = u32::try_from(limits::OPEN_FIRES_PER_JOB_MAX).unwrap_or(u32::MAX);
            let max = allow.max.map(|max| fields.number("/overlap/allow/max", max, 1, most));
            Overlap::Allow { max }
        }
    }
}

fn retry(fields: &mut Fields, retry: Option<&wire::job::Retry>) -> RetryPolicy {
    let mut policy = RetryPolicy::default();
    let Some(retry) = retry else {
        return policy;
    };
    if let Some(attempts) = retry.attempts {
        policy.attempts_max = fields.number("/retry/attempts", attempts, 1, limits::ATTEMPTS_MAX);
    }
    if let Some(text) = &retry.first_delay {
        policy.first_delay = fields.span("/retry/first_delay", text, Span::ZERO, limits::DELAY_MAX);
    }
    if let Some(text) = &retry.max_delay {
        policy.delay_max = fields.span("/retry/max_delay", text, Span::ZERO, limits::DELAY_MAX);
    }
    if let Some(factor) = retry.factor {
        if (1.0..=FACTOR_MAX).contains(&factor) {
            policy.factor_percent = percent(factor);
        } else {
            let detail = format!("{factor} lies outside 1 to {FACTOR_MAX}");
            fields.over("/retry/factor", detail, 100);
        }
    }
    policy
}

/// The factor in whole hundredths; it was found between 1 and [`FACTOR_MAX`].
fn percent(factor: f64) -> u32 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 100 and 10,000"
    )]
    let percent = (factor * 100.0).round() as u32;
    percent
}

fn executor(fields: &mut Fields, executor: &wire::job::Executor) -> Executor {
    match executor {
        wire::job::Executor::Worker(_) => Executor::Worker,
        wire::job::Executor::Command(command) => Executor::Command(command_spec(fields, command)),
        wire::job::Executor::Http(http) => Executor::Http(http_spec(fields, http)),
    }
}

fn command_spec(fields: &mut Fields, command: &wire::job::CommandExecutor) -> CommandSpec {
    let at = "/executor/command";
    if command.argv.first().is_none_or(String::is_empty) {
        fields.refuse(format!("{at}/argv"), "its first item names the program to start");
    }
    fields.count(format!("{at}/argv"), command.argv.len(), limits::ENTRIES_MAX);
    fields.count(format!("{at}/env"), command.env.len(), limits::ENTRIES_MAX);
    let mut spec = CommandSpec {
        argv: Vec::new(),
        env: command.env.clone(),
        folder: None,
        stdin: command.stdin.clone(),
        user: None,
    };
    for (index, argument) in command.argv.iter().enumerate() {
        spec.argv.push(fields.program_text(format!("{at}/argv/{index}"), argument));
    }
    for (key, value) in &command.env {
        let pointer = format!("{at}/env/{}", escape(key));
        if key.is_empty() || key.contains('=') {
            fields.refuse(pointer.clone(), "the name of a variable is not empty and holds no '='");
        }
        fields.program_text(pointer.clone(), key);
        fields.program_text(pointer, value);
    }
    if let Some(folder) = &command.folder {
        spec.folder = Some(fields.program_text(format!("{at}/folder"), folder));
    }
    if let Some(user) = &command.user {
        spec.user = Some(fields.program_text(format!("{at}/user"), user));
    }
    spec
}

fn http_spec(fields: &mut Fields, http: &wire::job::HttpExecutor) -> HttpSpec {
    let at = "/executor/http";
    let url = fields.text(format!("{at}/url"), &http.url, limits::URL_BYTES_MAX);
    let parsed = url.parse::<Uri>().ok();
    let has_scheme = |uri: &Uri| matches!(uri.scheme_str(), Some("http" | "https"));
    if !url.is_empty() && !parsed.is_some_and(|uri| has_scheme(&uri) && uri.host().is_some()) {
        fields.refuse(format!("{at}/url"), "it is not a URL such as https://example.com/path");
    }
    if http.url.is_empty() {
        fields.refuse(format!("{at}/url"), "it must not be empty");
    }
    fields.count(format!("{at}/headers"), http.headers.len(), limits::ENTRIES_MAX);
    for (name, value) in &http.headers {
        let name_fits = axum::http::HeaderName::try_from(name.as_str()).is_ok();
        let value_fits = axum::http::HeaderValue::try_from(value.as_str()).is_ok();
        if !name_fits || !value_fits {
            let pointer = format!("{at}/headers/{}", escape(name));
            fields.refuse(pointer, "it is not a header that HTTP can carry");
        }
    }
    let method = match http.method {
        wire::job::HttpMethod::Get => HttpMethod::Get,
        wire::job::HttpMethod::Post => HttpMethod::Post,
        wire::job::HttpMethod::Put => HttpMethod::Put,
        wire::job::HttpMethod::Patch => HttpMethod::Patch,
        wire::job::HttpMethod::Delete => HttpMethod::Delete,
    };
    HttpSpec { method, url, headers: http.headers.clone() }
}

pub(in crate::api) fn fire_draft(
    body: &wire::fire::FireRequest,
) -> Result<FireDraft, ServiceError> {
    let mut fields = Fields::default();
    let when = match (&body.at, &body.delay) {
        (None, None) => FireTime::Now,
        (Some(at), None) => FireTime::At(fields.time("/at", at)),
        (None, Some(delay)) => {
            FireTime::After(fields.span("/delay", delay, Span::ZERO, limits::DELAY_MAX))
        }
        (Some(_), Some(_)) => {
            fields.refuse("/delay", "give either at or delay, not both");
            FireTime::Now
        }
    };
    let payload = body.payload.as_ref().map(|json| fields.payload("/payload", json));
    fields.finish(FireDraft { when, payload, allow_overlap: body.allow_overlap })
}
