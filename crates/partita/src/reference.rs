//! What can be written and said: the system file, the operator's prompt, the exerciser's workloads.
//!
//! All of it is made of what the code itself reads by, so that the page (`docs/reference.md`) and the schema
//! (`docs/system.schema.json`) that come of it can be held to it by a test.

mod keys;
mod schema;
#[cfg(test)]
mod tests;

pub use keys::{Key, keys};
pub use schema::schema;

use abi::operator::{HELP, KEYS};
use exerciser::workload::{self, Takes};
use keys::{CARD, DISK, ROOT, SHARED_DISK, SLICE, SWITCH, TERMINALS, VM};
use std::fmt::Write;

/// The page, in Markdown.
pub fn page() -> String {
    let mut text = String::from(
        "# Reference\n\nMade by `partita reference` from the code; a test holds this page to it. Editors check and complete system \
         files by [system.schema.json](system.schema.json), which `partita reference --schema` writes.\n\n\
         ## The system file\n\nTOML. `--set KEY=VALUE` changes a key for a run (`--set vm.web.share=30`), `--vary` and `--over` of \
         `compare` and `sweep` go through its values. `partita check` finds every mistake.\n",
    );
    for (table, heading) in [
        (ROOT, "The file's own keys"),
        (VM, "`[vm.NAME]`: a virtual machine, one to sixteen of them"),
        (DISK, "`disks = [{ file = ... }]`: a disk of the VM's own"),
        (
            SLICE,
            "`disks = [{ slice-of = ... }]`: a part of a disk that VMs share",
        ),
        (SHARED_DISK, "`[disk.NAME]`: a disk that VMs share"),
        (
            SWITCH,
            "`[switch.NAME]`: a network that is a switch between VMs",
        ),
        (CARD, "`network = [{ ... }]`: a network card of the VM"),
        (TERMINALS, "`terminals = { ... }`"),
    ] {
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\n### {heading}\n\n| key | what it is | takes | without it | example |\n|---|---|---|---|---|\n"
        );
        for key in keys().iter().filter(|key| key.table == table) {
            let Key {
                name,
                what,
                example,
                ..
            } = key;
            let default = key.default.as_deref().unwrap_or("must be given");
            let _ = writeln!(
                text,
                "| `{name}` | {what} | {} | {default} | `{name} = {example}` |",
                key.takes()
            );
        }
    }
    text += "\n## The operator's prompt\n\n`Ctrl-]` is the escape key of a run's terminal; ";
    let _ = writeln!(
        text,
        "{KEYS}. At the prompt:\n\n| command | what it does |\n|---|---|"
    );
    for line in HELP.lines() {
        match line.split_once("  ") {
            Some((command, what)) => {
                let _ = writeln!(text, "| `{command}` | {} |", what.trim_start());
            }
            None => {
                let _ = writeln!(text, "\n{line}");
            }
        }
    }
    text += "\n## The exerciser's workload\n\nWords of the command line of `exercise=work`, each `NAME=VALUE`; numbers take `k`, `m`, `g` \
             (powers of 1024) and `0x`. In `compare` and `sweep`, `guest.NAME` is one of them. The other exercises are in \
             [its own page](../crates/exerciser/README.md).\n\n| word | what it is | takes | without it |\n|---|---|---|---|\n";
    for parameter in &workload::REFERENCE {
        let (takes, default) = match parameter.takes {
            Takes::Number {
                default,
                low,
                high: u64::MAX,
            } => (format!("{low} or more"), default.to_string()),
            Takes::Number { default, low, high } => {
                (format!("{low} to {high}"), default.to_string())
            }
            Takes::Word(words) => {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                let first = words.first().cloned().unwrap_or_default();
                (words.join(", "), first)
            }
        };
        let _ = writeln!(
            text,
            "| `{}` | {} | {takes} | {default} |",
            parameter.name, parameter.what
        );
    }
    text
}
