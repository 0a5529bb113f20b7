//! The JSON schema of the control socket's requests and answers, made of one value of each kind.

use runner::protocol::{Answer, ErrorCode, MAX_COMMAND, Request, VERSION};
use runner::report::Report;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// Requests, each with its effect.
fn requests() -> [(&'static str, Request); 4] {
    let line = String::new();
    [
        ("Asks for the protocol's version.", Request::Version {}),
        (
            "Says a line of printable characters at the operator's prompt.",
            Request::Command { line },
        ),
        (
            "Powers every VM off, which ends the run.",
            Request::PowerOff {},
        ),
        (
            "Asks for all lines of guests and of the hypervisor from here on; the connection takes no further requests.",
            Request::Events {},
        ),
    ]
}

/// Answers, each with its meaning.
fn answers() -> [(&'static str, Answer); 6] {
    let text = String::new;
    let report = Report {
        seconds: 0.0,
        vms: Vec::new(),
        harts: Vec::new(),
        own_memory: None,
    };
    [
        (
            "Version of the protocol, and of Partita.",
            Answer::Version {
                protocol: VERSION,
                partita: text(),
            },
        ),
        (
            "What the hypervisor answered to a command; for the command stats the performance monitor's report too, as `monitor` of `run \
             --json` has it.",
            Answer::Command {
                command: text(),
                lines: Vec::new(),
                report: Some(Box::new(report)),
            },
        ),
        ("The VMs are being powered off.", Answer::PowerOff {}),
        ("Events follow.", Answer::Events {}),
        (
            "A line of the VM that source names, or of the hypervisor, whose name is partita.",
            Answer::Event {
                source: text(),
                text: text(),
            },
        ),
        (
            "The request was not carried out: why, for programs and for people.",
            Answer::error(ErrorCode::BadRequest, ""),
        ),
    ]
}

/// The schema (JSON Schema, draft 7) of a line that a client sends and of a line that it gets.
pub fn schema() -> Value {
    let requests = requests();
    let requests = requests
        .iter()
        .map(|(about, value)| kind(about, "request", value));
    let answers = answers();
    let answers = answers
        .iter()
        .map(|(about, value)| kind(about, "answer", value));
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": format!("Control socket of a run of Partita, version {VERSION} of the protocol"),
        "definitions": {
            "request": { "oneOf": requests.collect::<Vec<_>>() },
            "answer": { "oneOf": answers.collect::<Vec<_>>() },
        },
        "anyOf": [{ "$ref": "#/definitions/request" }, { "$ref": "#/definitions/answer" }],
    })
}

/// Schema of one kind of request or answer, whose name stands under the key `tag`.
fn kind(about: &str, tag: &str, value: &impl Serialize) -> Value {
    let value = serde_json::to_value(value).unwrap_or_default();
    let members = value.as_object().cloned().unwrap_or_default();
    let required: Vec<&String> = members.keys().filter(|key| *key != "report").collect();
    let properties: Map<String, Value> = members
        .iter()
        .map(|(key, value)| (key.clone(), member(key, value, key == tag)))
        .collect();
    json!({
        "type": "object",
        "description": about,
        "properties": properties,
        "required": required,
        "additionalProperties": tag == "answer",
    })
}

fn member(key: &str, value: &Value, is_name: bool) -> Value {
    match (key, value) {
        (_, name) if is_name => json!({ "const": name }),
        ("code", _) => json!({ "enum": ErrorCode::ALL }),
        ("line", _) => json!({ "type": "string", "minLength": 1, "maxLength": MAX_COMMAND }),
        (_, Value::String(_)) => json!({ "type": "string" }),
        (_, Value::Number(_)) => json!({ "type": "integer" }),
        (_, Value::Array(_)) => json!({ "type": "array", "items": { "type": "string" } }),
        _ => json!({ "type": "object" }),
    }
}
