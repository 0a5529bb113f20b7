//! Words that can be written and said: the system file, the operator's prompt, the exerciser's workloads.
//!
//! All of it is made of what the code itself reads by, so that the page (`docs/reference.md`) and the schema
//! (`docs/system.schema.json`) that come of it can be held to it by a test.

mod control;
mod schema;
#[cfg(test)]
mod tests;

pub use control::schema as control_schema;
pub use schema::schema;

use abi::keys::{PapersMethod, ROWS, Row, Scope, Takes as KeyTakes, of};
use abi::operator::{HELP, KEYS};
use exerciser::workload::{self, Takes};
use std::fmt::Write;
use system::keys::{takes, without};

/// Heading of a scope's table.
const fn heading(scope: Scope) -> &'static str {
    match scope {
        Scope::System => "Keys of the file itself",
        Scope::Experiment => "`[experiment]`: parameters for experiments",
        Scope::Vm => "`[vm.NAME]`: a virtual machine",
        Scope::VmExperiment => "`[vm.NAME.experiment]`: parameters for experiments, of one VM",
        Scope::Disk => "`disks = [{ file = ... }]`: a disk of the VM's own",
        Scope::Slice => "`disks = [{ slice-of = ... }]`: a part of a shared disk",
        Scope::ServedDisk => "`[disk.NAME]` with `served-by`: a disk that a VM serves to others",
        Scope::SharedDisk => "`[disk.NAME]`: a disk that VMs share",
        Scope::Switch => "`[switch.NAME]`: a network that is a switch between VMs",
        Scope::Card => "`network = [{ ... }]`: a network card of the VM",
        Scope::Terminals => "`terminals = { ... }`: terminals with simulated users",
    }
}

/// The page, in Markdown.
pub fn page() -> String {
    let mut text = String::from(
        "# Reference\n\nMade by `partita reference` from the code; a test holds this page to it. Editors check and complete system \
         files by [system.schema.json](system.schema.json), which `partita reference --schema` writes.\n\n\
         ## The system file\n\nTOML. `--set KEY=VALUE` changes a key for one run (`--set vm.web.share=30`, `--set experiment.affinity=0`). \
         `compare` and `sweep` go through several values of a key with `--vary` and `--over`. `partita check` finds every mistake.\n",
    );
    for scope in Scope::ALL {
        // Writing to a String does not fail.
        let _ = write!(
            text,
            "\n### {}\n\n| key | meaning | takes | without it | example |\n|---|---|---|---|---|\n",
            heading(scope)
        );
        for (row, note) in of(scope) {
            let (name, example) = (row.name, note.example);
            let _ = writeln!(
                text,
                "| `{name}` | {} | {} | {} | `{name} = {example}` |",
                note.text.trim(),
                takes(row),
                without(row, scope)
            );
        }
    }
    text += &builds();
    text += "\n## The operator's prompt\n\n`Ctrl-]` is the escape key of a run's terminal; ";
    let _ = writeln!(
        text,
        "{KEYS}. At the prompt:\n\n| command | effect |\n|---|---|"
    );
    for line in HELP.lines() {
        match line.split_once("  ") {
            Some((command, effect)) => {
                let _ = writeln!(text, "| `{command}` | {} |", effect.trim_start());
            }
            None => {
                let _ = writeln!(text, "\n{line}");
            }
        }
    }
    text += "\n## The exerciser's workload\n\nWords of the command line of `exercise=work`, each `NAME=VALUE`; numbers take `k`, `m`, `g` \
             (powers of 1024) and `0x`. In `compare` and `sweep`, `guest.NAME` is one of them. The other exercises are in \
             [its own page](../crates/exerciser/README.md).\n\n| word | meaning | takes | without it |\n|---|---|---|---|\n";
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

/// Section on the hypervisor's feature `papers`, with the values that need it.
fn builds() -> String {
    let mut text = String::from(
        "\n## Builds of the hypervisor\n\nThe hypervisor has the Cargo feature `papers`, which is on by default. A build without it, such as the \
         package's `hypervisor-product` for boards, has the default methods and the papers' best alone. `partita check --hypervisor FILE`, \
         `partita board` and that hypervisor refuse the other values:\n\n| key | values that need `papers` |\n|---|---|\n",
    );
    for row in &ROWS {
        let words = papers_words(row);
        if !words.is_empty() {
            let within = match row.is_in(Scope::Experiment) {
                true => "experiment.",
                false => "",
            };
            // Writing to a String does not fail.
            let _ = writeln!(text, "| `{within}{}` | {} |", row.name, words.join(", "));
        }
    }
    text
}

/// Words of a key that need the feature `papers`.
fn papers_words(row: &'static Row) -> Vec<String> {
    let KeyTakes::Word(words) = row.takes else {
        return Vec::new();
    };
    let methods = (0..words.len() as u64).filter_map(|value| PapersMethod::of(row, value));
    methods.map(|method| format!("`{}`", method.word)).collect()
}
