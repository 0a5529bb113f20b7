//! The reference says what the code does, and the page says what the reference does.

use super::keys::{CARD, DISK, ROOT, SHARED_DISK, SLICE, SWITCH, TERMINALS, VM};
use super::*;
use crate::reference::keys::Kind;
use std::collections::BTreeSet;
use std::path::Path;
use system::{Document, Duration, System};

const TABLES: [&str; 8] = [ROOT, VM, DISK, SLICE, SHARED_DISK, SWITCH, CARD, TERMINALS];

/// The least system, with one more line in the table; the root's keys come first.
fn with(table: &str, line: &str) -> String {
    let (root, vm, disk, terminals) = match table {
        ROOT => (line, "", "", ""),
        VM => ("", line, "", ""),
        DISK => ("", "", line, ""),
        TERMINALS => ("", "", "", line),
        _ => ("", "", "", ""),
    };
    let key = line.split(" = ").next().unwrap_or_default();
    let without = |text: &str| -> String {
        let own = if table == ROOT && text.starts_with("harts")
            || table == VM && text.starts_with("vcpus")
        {
            key
        } else {
            ""
        };
        text.lines()
            .filter(|other| other.split(" = ").next() != Some(own))
            .map(|line| format!("{line}\n"))
            .collect()
    };
    let root_lines = without("harts = 8\nmemory = \"2 GiB\"");
    let allocation = if key == "dedicated-harts" {
        ""
    } else {
        "\nshare = 1"
    };
    let vm_lines = without(&format!(
        "vcpus = 2\nmemory = \"64 MiB\"\nkernel = \"image:debian/kernel\"{allocation}"
    ));
    let mut text = format!("{root}\n{root_lines}[vm.a]\n{vm}\n{vm_lines}");
    if !disk.is_empty() {
        let file = if key == "file" {
            ""
        } else {
            "file = \"image:debian/disk\", "
        };
        text += &format!("disks = [{{ {file}{disk} }}]\n");
    }
    if table == SLICE || table == SHARED_DISK {
        let (slice, shared) = match table {
            SLICE => (format!(", {line}"), ""),
            _ => (String::new(), line),
        };
        let of = if key == "slice-of" {
            ""
        } else {
            "slice-of = \"disk0\""
        };
        let slice = format!("{of}{slice}");
        let slice = slice.trim_start_matches(", ");
        let file = match (table, key) {
            (SHARED_DISK, "file") => "",
            _ => "file = \"image:debian/disk\"\n",
        };
        text += &format!("disks = [{{ {slice} }}]\n[disk.disk0]\n{file}{shared}\n");
    }
    if table == SWITCH {
        text += &format!("network = [\"lan\"]\n[switch.lan]\n{line}\n");
    }
    if table == CARD {
        let on = if key == "network" {
            ""
        } else {
            "network = \"lan\", "
        };
        text += &format!("network = [{{ {on}{line} }}]\n");
    }
    if !terminals.is_empty() {
        let rest: Vec<&str> = ["count = 1", "transactions = 1", "think = \"1 s\""]
            .into_iter()
            .filter(|other| other.split(" = ").next() != Some(key))
            .collect();
        text += &format!("terminals = {{ {}, {terminals} }}\n", rest.join(", "));
    }
    text
}

fn mistakes(text: &str) -> Vec<String> {
    let document = match Document::new(Path::new("a.toml"), String::from(text), &[]) {
        Ok(document) => document,
        Err(mistakes) => {
            return mistakes
                .problems()
                .iter()
                .map(ToString::to_string)
                .collect();
        }
    };
    match System::read(&document) {
        Ok(_) => Vec::new(),
        Err(mistakes) => mistakes
            .problems()
            .iter()
            .map(ToString::to_string)
            .collect(),
    }
}

/// The keys that reading a table knows, by what it says of one that it does not know.
fn known(table: &str) -> BTreeSet<String> {
    let found = mistakes(&with(table, "qqqqqqqq = 1"));
    let listed = found
        .iter()
        .find_map(|mistake| mistake.split_once("the keys here are "));
    let (_, names) = listed.unwrap_or_else(|| panic!("{table:?}: {found:?}"));
    names.split(", ").map(String::from).collect()
}

#[test]
fn every_key_that_is_read_is_in_the_reference_and_no_other() {
    for table in TABLES {
        let own: BTreeSet<String> = keys()
            .iter()
            .filter(|key| key.table == table)
            .map(|key| String::from(key.name))
            .collect();
        let mut read = known(table);
        read.remove("vm");
        // A table of tables, as the VMs', has its own keys; the shared disks' are `SHARED_DISK`.
        if table == ROOT {
            assert!(read.remove("disk") && read.remove("switch"));
        }
        assert_eq!(own, read, "{table:?}");
    }
}

#[test]
fn examples_and_limits_are_those_of_reading() {
    for key in keys() {
        let (table, name) = (key.table, key.name);
        let takes = |value: &str| {
            let text = with(table, &format!("{name} = {value}"));
            // What does not go with the rest of the system is another matter.
            let own = format!("{name} = ");
            mistakes(&text)
                .into_iter()
                .filter(|mistake| {
                    mistake.contains(&own)
                        && (mistake.contains("out of range")
                            || mistake.contains("no such word")
                            || mistake.contains("is wanted"))
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            takes(key.example),
            Vec::<String>::new(),
            "{name} = {}",
            key.example
        );
        let refused =
            |value: String| assert!(!takes(&value).is_empty(), "{name} = {value} is taken");
        let taken =
            |value: String| assert_eq!(takes(&value), Vec::<String>::new(), "{name} = {value}");
        match key.kind {
            Kind::Integer(low, high) => {
                taken(low.to_string());
                taken(high.to_string());
                refused((high + 1).to_string());
                if low > 0 {
                    refused((low - 1).to_string());
                }
            }
            Kind::Time(low, high) => {
                taken(format!("\"{} us\"", low));
                taken(format!("\"{}\"", Duration(high)));
                refused(format!("\"{} us\"", low - 1));
                refused(format!("\"{} us\"", high + 1));
            }
            Kind::Word(words) => {
                for word in words {
                    taken(format!("\"{word}\""));
                }
                refused(String::from("\"qqq\""));
            }
            Kind::Boolean => {
                taken(String::from("true"));
                taken(String::from("false"));
                refused(String::from("1"));
            }
            Kind::Integers(_, high) => refused(format!("[{}]", high + 1)),
            _ => {}
        }
    }
}

#[test]
fn the_page_and_the_schema_are_those_of_the_code() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    let is = |name: &str| std::fs::read_to_string(docs.join(name)).unwrap_or_default();
    assert!(
        is("reference.md") == page(),
        "partita reference > docs/reference.md makes the page anew"
    );
    let schema = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
    assert!(
        is("system.schema.json") == schema,
        "partita reference --schema > docs/system.schema.json makes the schema anew"
    );
}
