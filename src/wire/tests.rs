//! What the shapes promise: names, spellings, and JSON that is carried as it came.

use serde_json::{Value, from_str, json, to_value};

use crate::wire::fire::FireRequest;
use crate::wire::job::{AllowOverlap, JobSpec, Overlap};
use crate::wire::worker::AnswerRequest;

#[test]
fn overlap_has_four_spellings_and_reads_back_what_it_writes() {
    let table = [
        (json!("skip"), Overlap::Skip),
        (json!("buffer_one"), Overlap::BufferOne),
        (json!("allow"), Overlap::Allow(AllowOverlap { max: None })),
        (json!({"allow": {}}), Overlap::Allow(AllowOverlap { max: None })),
        (json!({"allow": {"max": 3}}), Overlap::Allow(AllowOverlap { max: Some(3) })),
    ];
    for (text, overlap) in table {
        assert_eq!(from_str::<Overlap>(&text.to_string()).unwrap(), overlap, "{text}");
        let written = to_value(overlap).unwrap();
        assert_eq!(from_str::<Overlap>(&written.to_string()).unwrap(), overlap, "{written}");
    }
    for text in ["\"forbid\"", "{}", "{\"allow\": {\"most\": 1}}", "{\"skip\": {}}", "3", "null"] {
        assert!(from_str::<Overlap>(text).is_err(), "{text}");
    }
}

#[test]
fn a_misspelt_field_is_refused_by_name_at_every_depth() {
    let table = [
        json!({"executor": {"worker": {}}, "concurency": "forbid"}),
        json!({"executor": {"worker": {"concurency": 1}}}),
        json!({"executor": {"worker": {}}, "retry": {"concurency": 1}}),
        json!({"executor": {"worker": {}},
            "triggers": {"a": {"schedule": {"cron": {"expression": "@daily", "concurency": 1}}}}}),
    ];
    for body in table {
        let error = from_str::<JobSpec>(&body.to_string()).unwrap_err().to_string();
        assert!(error.contains("`concurency`"), "{error}");
    }
}

#[test]
fn a_job_reads_back_what_it_writes() {
    let body = json!({
        "description": "d",
        "executor": {"command": {"argv": ["/bin/true"], "env": {"A": "b"}}},
        "payload": {"deep": [1, 2.50, {"x": null}]},
        "overlap": "buffer_one",
        "retry": {"attempts": 5, "factor": 1.5},
        "triggers": {"n": {"schedule": {"every": {"interval": "5m"}}, "payload": [1]}},
    });
    let spec: JobSpec = from_str(&body.to_string()).unwrap();
    assert_eq!(to_value(&spec).unwrap(), body);
}

#[test]
fn payloads_are_carried_as_they_were_written() {
    let request: FireRequest = from_str(r#"{"payload": {"n":1.000,  "a":2}}"#).unwrap();
    assert_eq!(request.payload.unwrap().get(), r#"{"n":1.000,  "a":2}"#);
    let answers: AnswerRequest = from_str(
        r#"{"answers": [{"run": "1-1.1", "token": 18446744073709551615, "outcome": "succeeded",
            "result": {"rows": 1e3}}]}"#,
    )
    .unwrap();
    assert_eq!(answers.answers[0].token, u64::MAX);
    assert_eq!(answers.answers[0].result.as_ref().unwrap().get(), r#"{"rows": 1e3}"#);
    let _: Value = to_value(&answers).unwrap();
}
