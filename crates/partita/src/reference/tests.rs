//! The reference says what the code does, and the page says what the reference does.

use super::*;
use abi::keys::{self, Row, Takes};
use std::path::Path;
use system::{Document, Duration, System};

/// A good system with one more line in a table of `scope`, where its own line of the same key is left out.
fn with(scope: Scope, line: &str) -> String {
    let key = line.split(" = ").next().unwrap_or_default();
    let lines = |own: Scope, lines: &[&str], between: &str| -> String {
        let others = lines.iter().copied().filter(|other| {
            let other = other.split(" = ").next().unwrap_or_default();
            // Of share and dedicated harts there is one, and of kernel and firmware.
            let replaced = [("share", "dedicated-harts"), ("kernel", "firmware")];
            scope != own || other != key && !replaced.contains(&(other, key))
        });
        let added = Some(line).filter(|_| scope == own);
        let all: Vec<&str> = others.chain(added).collect();
        all.join(between)
    };
    let mut text = lines(Scope::System, &["harts = 8", "memory = \"2 GiB\""], "\n");
    let own = [
        "vcpus = 2",
        "memory = \"64 MiB\"",
        "kernel = \"image:debian/kernel\"",
        "share = 1",
    ];
    text += &format!("\n[vm.a]\n{}\n", lines(Scope::Vm, &own, "\n"));
    let file = "file = \"image:debian/disk\"";
    match scope {
        Scope::Disk => text += &format!("disks = [{{ {} }}]\n", lines(scope, &[file], ", ")),
        Scope::Slice | Scope::SharedDisk => {
            let slice = lines(Scope::Slice, &["slice-of = \"disk0\""], ", ");
            let disk = lines(Scope::SharedDisk, &[file], "\n");
            text += &format!("disks = [{{ {slice} }}]\n[disk.disk0]\n{disk}\n");
        }
        Scope::ServedDisk => {
            let own = ["served-by = \"storage\"", "size = \"1 GiB\""];
            let disk = lines(scope, &own, "\n");
            text += "disks = [{ slice-of = \"disk0\" }]\n[vm.storage]\nvcpus = 2\n";
            text += "memory = \"64 MiB\"\nkernel = \"image:debian/kernel\"\nshare = 1\n";
            text += &format!("[disk.disk0]\n{disk}\n");
        }
        Scope::Switch => text += &format!("network = [\"lan\"]\n[switch.lan]\n{line}\n"),
        Scope::Card => {
            let card = lines(scope, &["network = \"lan\""], ", ");
            text += &format!("network = [{{ {card} }}]\n");
        }
        Scope::Terminals => {
            let own = ["count = 1", "transactions = 1", "think-time = \"1 s\""];
            text += &format!("terminals = {{ {} }}\n", lines(scope, &own, ", "));
        }
        Scope::Experiment => text += &format!("[experiment]\n{line}\n"),
        Scope::VmExperiment => text += &format!("[vm.a.experiment]\n{line}\n"),
        Scope::System | Scope::Vm => {}
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

#[test]
fn unknown_keys_are_refused_in_every_table() {
    for scope in Scope::ALL {
        let found = mistakes(&with(scope, "qqqqqqqq = 1"));
        let listed = found
            .iter()
            .any(|mistake| mistake.contains("the keys here are "));
        assert!(listed, "{scope:?}: {found:?}");
    }
}

/// The mistakes that a value of a key is told by itself; those with the rest of the system are another matter.
fn refusals(scope: Scope, row: &Row, value: &str) -> Vec<String> {
    let own = format!("{} = ", row.name);
    let of_value = ["out of range", "no such word", "is wanted", "no such key"];
    let found = mistakes(&with(scope, &format!("{own}{value}")));
    let is_own = |mistake: &String| {
        mistake.contains(&own) && of_value.iter().any(|words| mistake.contains(words))
    };
    found.into_iter().filter(is_own).collect()
}

#[test]
fn examples_and_limits_are_read() {
    for (scope, row, note) in Scope::ALL
        .into_iter()
        .flat_map(|scope| of(scope).map(move |(row, note)| (scope, row, note)))
    {
        // A table of tables is in the other tables' tests.
        if matches!(row.takes, keys::Takes::Named(_) | keys::Takes::Table(_))
            && scope == Scope::System
        {
            continue;
        }
        let taken = |value: String| {
            let refusals = refusals(scope, row, &value);
            assert_eq!(refusals, Vec::<String>::new(), "{} = {value}", row.name);
        };
        let refused = |value: String| {
            let refusals = refusals(scope, row, &value);
            assert!(!refusals.is_empty(), "{} = {value} is taken", row.name);
        };
        taken(String::from(note.example));
        match row.takes {
            Takes::Number { min, max, .. } => {
                taken(min.to_string());
                taken(max.to_string());
                refused((u64::from(max) + 1).to_string());
                refused((i64::from(min) - 1).to_string());
            }
            Takes::Time { min, max } => {
                taken(format!("\"{min} us\""));
                taken(format!("\"{}\"", Duration(max)));
                refused(format!("\"{} us\"", min - 1));
                refused(format!("\"{} us\"", max + 1));
            }
            Takes::Word(words) => {
                for word in words {
                    taken(format!("\"{word}\""));
                }
                refused(String::from("\"qqq\""));
            }
            Takes::Flag => {
                taken(String::from("true"));
                taken(String::from("false"));
                refused(String::from("1"));
            }
            Takes::Harts => refused(format!("[{}]", abi::system::MAX_HARTS)),
            _ => {}
        }
    }
}

#[test]
fn page_and_schema_are_the_codes() {
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
    let control = serde_json::to_string_pretty(&control_schema()).unwrap() + "\n";
    assert!(
        is("control.schema.json") == control,
        "partita reference --control > docs/control.schema.json makes the schema anew"
    );
}
