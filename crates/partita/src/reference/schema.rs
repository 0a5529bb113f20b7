//! The JSON schema of system files, by which editors check and complete them.

use abi::keys::{Note, Row, Scope, Takes, Without, of};
use serde_json::{Map, Value, json};
use system::keys::{takes, without};

/// The schema (JSON Schema, draft 7, which editors' TOML plug-ins know).
pub fn schema() -> Value {
    let mut root = table(Scope::System);
    if let Some(object) = root.as_object_mut() {
        object.insert(
            String::from("$schema"),
            json!("http://json-schema.org/draft-07/schema#"),
        );
        object.insert(
            String::from("title"),
            json!("A system of virtual machines for Partita"),
        );
    }
    root
}

fn table(scope: Scope) -> Value {
    let properties: Map<String, Value> = of(scope)
        .map(|(row, note)| (String::from(row.name), value(row, note, scope)))
        .collect();
    let required: Vec<&str> = of(scope)
        .filter(|(row, _)| row.without == Without::Required)
        .map(|(row, _)| row.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn value(row: &Row, note: &Note, scope: Scope) -> Value {
    let list = |items: Value| json!({ "type": "array", "items": items });
    let text = || json!({ "type": "string" });
    let mut value = match row.takes {
        Takes::Number { min, max, .. } => {
            json!({ "type": "integer", "minimum": min, "maximum": max })
        }
        Takes::Word(words) => json!({ "type": "string", "enum": words }),
        Takes::Size { .. } | Takes::Time { .. } => {
            json!({ "type": "string", "pattern": "^[0-9]+ *[A-Za-z]+$" })
        }
        Takes::Name | Takes::Text(_) | Takes::File => text(),
        Takes::Flag => json!({ "type": "boolean" }),
        Takes::Harts => {
            let last = abi::system::MAX_HARTS - 1;
            list(json!({ "type": "integer", "minimum": 0, "maximum": last }))
        }
        Takes::Paths => list(json!({ "type": "string", "pattern": "^/[^ ]+$" })),
        Takes::Extensions => list(json!({ "type": "string", "enum": abi::system::HIDEABLE })),
        Takes::NamesOr(scope) => list(json!({ "anyOf": [text(), table(scope)] })),
        Takes::Tables(scopes) => {
            let either: Vec<Value> = scopes.iter().map(|scope| table(*scope)).collect();
            list(json!({ "anyOf": either }))
        }
        Takes::Table(scope) => table(scope),
        Takes::Named(scopes) => {
            let value = match scopes {
                [scope] => table(*scope),
                _ => {
                    let either: Vec<Value> = scopes.iter().map(|scope| table(*scope)).collect();
                    json!({ "anyOf": either })
                }
            };
            let mut named = json!({ "type": "object", "additionalProperties": value });
            if let ([Scope::Vm], Some(object)) = (scopes, named.as_object_mut()) {
                object.insert(String::from("minProperties"), json!(1));
                let most = abi::system::MAX_VMS;
                object.insert(String::from("maxProperties"), json!(most));
            }
            named
        }
    };
    if let Some(object) = value.as_object_mut() {
        let text = format!(
            "{} Takes {}. Without it: {}. Example: {} = {}",
            note.text.trim(),
            takes(row),
            without(row, scope),
            row.name,
            note.example
        );
        object.insert(String::from("description"), json!(text.replace('`', "")));
    }
    value
}
