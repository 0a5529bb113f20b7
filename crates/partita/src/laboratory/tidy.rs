//! Every figure of every run as a line of its own (tidy data), for programs that draw and compute.

use super::{Entry, Outcome};
use crate::measures;
use std::collections::{BTreeMap, BTreeSet};

/// The word of a command line by which a start phase reaches an exerciser.
const SEED: &str = " seed=";

/// Comma-separated values (RFC 4180) of all runs: what was run, with a column for each key that is not the same in all of them, then
/// the measure, its unit and its value. A run that failed has one line, whose measure is `failed`.
pub fn tidy(entries: &[Entry]) -> String {
    let all: Vec<BTreeMap<String, String>> = entries.iter().map(changes).collect();
    let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
    let varies = |key: &&String| {
        let values: BTreeSet<Option<&String>> = all.iter().map(|own| own.get(*key)).collect();
        values.len() > 1
    };
    let keys: Vec<&String> = keys.into_iter().filter(varies).collect();
    let mut text = String::from("system,computer,kind,seed,steady,");
    for key in &keys {
        text += &field(key);
        text.push(',');
    }
    text += "measure,unit,value\n";
    for (entry, changes) in entries.iter().zip(&all) {
        let point = &entry.point;
        let kind = match (point.native, point.kvm) {
            (true, _) => "native",
            (_, true) => "kvm",
            _ => "partita",
        };
        let system = point.system.file_name().unwrap_or_default();
        let mut head = format!(
            "{},{},{kind},{},{},",
            field(&system.to_string_lossy()),
            field(&point.computer.to_string()),
            point.seed,
            u8::from(point.window.is_some())
        );
        for key in &keys {
            head += &field(changes.get(*key).map_or("", String::as_str));
            head.push(',');
        }
        match &entry.outcome {
            Outcome::Failed(_) => text += &format!("{head}failed,,1\n"),
            Outcome::Finished { figures, .. } => {
                for (measure, value) in figures {
                    let unit = measures::find(measure).map_or("", |measure| measure.unit);
                    text += &format!("{head}{},{},{value}\n", field(measure), field(unit));
                }
            }
        }
    }
    text
}

/// The changes of a run by their keys, without the seeds of start phases.
fn changes(entry: &Entry) -> BTreeMap<String, String> {
    let each = entry.point.changes.iter().map(|change| {
        let change = without_seed(change);
        let (key, value) = change.split_once('=').unwrap_or((&change, ""));
        (String::from(key.trim()), String::from(value.trim()))
    });
    each.collect()
}

/// A change without the seed that a start phase gave an exerciser.
pub(super) fn without_seed(change: &str) -> String {
    match change.rsplit_once(SEED) {
        Some((before, seed)) if seed.trim_end_matches('"').parse::<u64>().is_ok() => {
            let end = if seed.ends_with('"') { "\"" } else { "" };
            format!("{before}{end}")
        }
        _ => String::from(change),
    }
}

/// A field of comma-separated values (RFC 4180 §2).
pub fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        String::from(text)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Computer, Figures, Fingerprint, MadeBy, Point};
    use super::*;

    fn entry(changes: &[&str], seed: u64, outcome: Outcome) -> Entry {
        Entry {
            id: Fingerprint::of(b""),
            point: Point {
                system: "folder/a.toml".into(),
                changes: changes.iter().copied().map(String::from).collect(),
                computer: Computer::Qemu,
                seed,
                ..Point::default()
            },
            made_by: MadeBy {
                partita: String::new(),
                system: String::new(),
                profile: None,
                files: BTreeMap::new(),
            },
            outcome,
        }
    }

    #[test]
    fn each_figure_of_each_run_is_a_line() {
        let finished = |etr| Outcome::Finished {
            figures: Figures::from([(String::from("etr"), etr)]),
            report: serde_json::Value::Null,
        };
        let entries = [
            entry(
                &["spin=wapd", "harts=2", "vm.a.command-line=\"x seed=1\""],
                0,
                finished(2.5),
            ),
            entry(
                &["spin=rslp", "harts=2", "vm.a.command-line=\"x seed=2\""],
                1,
                finished(3.0),
            ),
            entry(&["spin=\"a,b\""], 2, Outcome::Failed(String::from("lost"))),
        ];
        // harts and the command line are no columns of the first two alone: their values are the same there.
        assert_eq!(
            tidy(&entries[..2]),
            "system,computer,kind,seed,steady,spin,measure,unit,value\n\
             a.toml,QEMU,partita,0,0,wapd,etr,ends/s,2.5\n\
             a.toml,QEMU,partita,1,0,rslp,etr,ends/s,3\n"
        );
        let all = tidy(&entries);
        let last = all.lines().last().unwrap();
        assert_eq!(last, "a.toml,QEMU,partita,2,0,,\"\"\"a,b\"\"\",,failed,,1");
    }

    #[test]
    fn seeds_of_start_phases_are_left_out_and_nothing_else() {
        for (change, expected) in [
            (
                "vm.a.command-line=\"a=1 seed=7\"",
                "vm.a.command-line=\"a=1\"",
            ),
            (
                "vm.a.command-line=\"a=1 seed=x\"",
                "vm.a.command-line=\"a=1 seed=x\"",
            ),
            ("spin=wapd", "spin=wapd"),
        ] {
            assert_eq!(without_seed(change), expected);
        }
    }
}
