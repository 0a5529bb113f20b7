//! The JSON schema of system files, by which editors check and complete them.

use super::keys::{DISK, Key, Kind, ROOT, SHARED_DISK, SLICE, SWITCH, VM, keys};
use serde_json::{Map, Value, json};

/// The schema (JSON Schema, draft 7, which editors' TOML plug-ins know).
pub fn schema() -> Value {
    let all = keys();
    let mut root = table(&all, ROOT);
    if let Some(object) = root.as_object_mut() {
        let names = json!({
            "type": "object",
            "description": "virtual machines by their names",
            "additionalProperties": table(&all, VM),
            "minProperties": 1,
            "maxProperties": abi::system::MAX_VMS,
        });
        if let Some(properties) = object.get_mut("properties").and_then(Value::as_object_mut) {
            properties.insert(String::from("vm"), names);
            let shared = json!({
                "type": "object",
                "description": "disks that VMs share, by their names",
                "additionalProperties": table(&all, SHARED_DISK),
            });
            properties.insert(String::from("disk"), shared);
            let switches = json!({
                "type": "object",
                "description": "switches between VMs, by the names of their networks",
                "additionalProperties": table(&all, SWITCH),
            });
            properties.insert(String::from("switch"), switches);
        }
        if let Some(required) = object.get_mut("required").and_then(Value::as_array_mut) {
            required.push(json!("vm"));
        }
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

fn table(all: &[Key], name: &str) -> Value {
    let own = || all.iter().filter(|key| key.table == name);
    let properties: Map<String, Value> = own()
        .map(|key| (String::from(key.name), value(all, key)))
        .collect();
    let required: Vec<&str> = own()
        .filter(|key| key.default.is_none())
        .map(|key| key.name)
        .collect();
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

fn value(all: &[Key], key: &Key) -> Value {
    let mut value = match &key.kind {
        Kind::Integer(low, high) => json!({ "type": "integer", "minimum": low, "maximum": high }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Size | Kind::Time(..) => {
            json!({ "type": "string", "pattern": "^[0-9]+ *[A-Za-z]+$" })
        }
        Kind::Text | Kind::File => json!({ "type": "string" }),
        Kind::Boolean => json!({ "type": "boolean" }),
        Kind::Integers(low, high) => {
            json!({ "type": "array", "items": { "type": "integer", "minimum": low, "maximum": high } })
        }
        Kind::Names => json!({ "type": "array", "items": { "type": "string" } }),
        Kind::NamesOr(name) => {
            let either = [json!({ "type": "string" }), table(all, name)];
            json!({ "type": "array", "items": { "anyOf": either } })
        }
        Kind::Tables(DISK) => {
            let either = [table(all, DISK), table(all, SLICE)];
            json!({ "type": "array", "items": { "anyOf": either } })
        }
        Kind::Tables(name) => json!({ "type": "array", "items": table(all, name) }),
        Kind::Table(name) => table(all, name),
    };
    if let Some(object) = value.as_object_mut() {
        let default = key.default.as_deref().unwrap_or("must be given");
        let text = format!(
            "{}: {}. Without it: {default}. Example: {} = {}",
            key.what,
            key.takes(),
            key.name,
            key.example
        );
        object.insert(String::from("description"), json!(text.replace('`', "")));
    }
    value
}
