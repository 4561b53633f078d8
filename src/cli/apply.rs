//! Creating and replacing jobs from definitions, and telling what came of each.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::RawValue;

use crate::cli::address::JobAddress;
use crate::cli::error::CliError;
use crate::client::error::ClientError;
use crate::client::jobs::Precondition;
use crate::client::transport::Client;
use crate::wire::job::{Job, JobSpec};

/// A job as a file defines it.
#[derive(Clone, Debug)]
pub struct JobDraft {
    pub address: JobAddress,
    pub spec: JobSpec,
}

/// What became of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Applied {
    Created,
    Updated,
    Unchanged,
}

impl Applied {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Applied::Created => "created",
            Applied::Updated => "updated",
            Applied::Unchanged => "unchanged",
        }
    }
}

/// Reads one definition, or a list of them.
///
/// # Errors
/// [`CliError::Usage`] says which one is wrong, and how.
pub fn read_drafts(json: &[u8]) -> Result<Vec<JobDraft>, CliError> {
    let wrong = |error: serde_json::Error| CliError::Usage(format!("this is not JSON: {error}"));
    let is_list = json.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'[');
    let objects: Vec<Box<RawValue>> = if is_list {
        serde_json::from_slice(json).map_err(wrong)?
    } else {
        vec![serde_json::from_slice(json).map_err(wrong)?]
    };
    let drafts = objects.iter().enumerate().map(|(i, object)| {
        read_draft(object).map_err(|why| CliError::Usage(format!("job {}: {why}", i + 1)))
    });
    drafts.collect()
}

/// Name and group stand beside the definition's own fields, which refuse what they do not know.
fn read_draft(object: &RawValue) -> Result<JobDraft, String> {
    let fields: Result<BTreeMap<String, Box<RawValue>>, _> = serde_json::from_str(object.get());
    let mut fields =
        fields.map_err(|error| format!("a job is a JSON object: {}", without_place(&error)))?;
    let mut text = |field: &str| -> Result<Option<String>, String> {
        let Some(raw) = fields.remove(field) else {
            return Ok(None);
        };
        let text = serde_json::from_str(raw.get());
        text.map(Some).map_err(|_| format!("its {field} is to be a text"))
    };
    let name = text("name")?.ok_or("it has no name")?;
    let group = text("group")?.unwrap_or_else(|| "default".to_owned());
    let address: JobAddress =
        format!("{group}/{name}").parse().map_err(|error| format!("{group}/{name}: {error}"))?;
    let rest = serde_json::to_string(&fields).map_err(|error| error.to_string())?;
    let spec = serde_json::from_str(&rest)
        .map_err(|error| format!("{address}: {}", without_place(&error)))?;
    Ok(JobDraft { address, spec })
}

/// The place is one in our copy of the definition, which nobody sees.
fn without_place(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// Creates or replaces one job. The same definition again leaves its revision as it is.
///
/// # Errors
/// [`ClientError`].
pub async fn apply(client: &Client, draft: &JobDraft) -> Result<(Applied, u64), ClientError> {
    let JobAddress { group, name } = &draft.address;
    let before = match client.job(group, name).await {
        Ok(job) => Some(revisions(&job)),
        Err(error) if error.status() == Some(404) => None,
        Err(error) => return Err(error),
    };
    let job = client.put_job(group, name, &draft.spec, Precondition::Any).await?;
    let applied = match before {
        None => Applied::Created,
        Some(before) if before == revisions(&job) => Applied::Unchanged,
        Some(_) => Applied::Updated,
    };
    Ok((applied, job.revision))
}

/// The job's revision and those of its triggers, which count on their own.
fn revisions(job: &Job) -> (u64, Vec<(String, u64)>) {
    let triggers = job.triggers.iter().map(|(name, status)| (name.clone(), status.revision));
    (job.revision, triggers.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_job_or_a_list_of_them_is_read() {
        let one = r#" {"name": "a", "executor": {"worker": {}}, "payload": {"n": 1.50}}"#;
        let drafts = read_drafts(one.as_bytes()).unwrap();
        assert_eq!(drafts[0].address.to_string(), "default/a");
        // Payloads pass through as they were written.
        assert_eq!(drafts[0].spec.payload.as_ref().unwrap().get(), "{\"n\": 1.50}");
        let list = format!("[{one}, {}]", one.replace("\"a\"", "\"b\", \"group\": \"g\""));
        let drafts = read_drafts(list.as_bytes()).unwrap();
        assert_eq!(drafts[1].address.to_string(), "g/b");
    }

    #[test]
    fn what_is_wrong_is_said_with_the_job_and_the_field() {
        let table = [
            ("", "not JSON"),
            ("{", "not JSON"),
            ("[1]", "job 1: a job is a JSON object"),
            ("{\"executor\": {\"worker\": {}}}", "it has no name"),
            ("{\"name\": 1}", "its name is to be a text"),
            ("{\"name\": \"a/b\"}", "default/a/b"),
            ("{\"name\": \"a\"}", "default/a: missing field `executor`"),
            ("{\"name\": \"a\", \"executor\": {\"worker\": {}}, \"polo\": 1}", "`polo`"),
        ];
        for (json, part) in table {
            let error = read_drafts(json.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{json}: {error}");
            assert!(json.is_empty() || json == "{" || !error.contains(" at line "), "{error}");
        }
    }
}
