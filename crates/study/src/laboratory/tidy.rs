//! Every figure of every run as a line of its own (tidy data), for programs that draw and compute.

mod parquet;

pub use parquet::ParquetError;

use super::{Computer, Entry, Outcome, Point};
use std::collections::{BTreeMap, BTreeSet};

/// The word of a command line by which a start phase reaches an exerciser.
const SEED: &str = " seed=";

/// Every figure of every run: what was run, then the measure, its unit and its value. A run that failed has one line, whose measure
/// is `failed`.
#[derive(Debug, Clone, PartialEq)]
pub struct Tidy {
    /// The keys that are not the same in all runs. Each is a column.
    pub keys: Vec<String>,
    /// The lines, run by run.
    pub lines: Vec<Line>,
}

/// A figure of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    /// The hash by which the run is known in files of results, in hexadecimal: `partita rerun` repeats the run by it.
    pub run: String,
    /// The system file's name.
    pub system: String,
    /// The computer that it ran on.
    pub computer: String,
    /// Software below the guests: `partita`, `native` or `kvm`.
    pub kind: &'static str,
    /// The start phase.
    pub seed: u64,
    /// Set if the figure is of the steady window alone.
    pub is_steady: bool,
    /// Settings of the keys, in their order. A run that leaves a key as the system file has it has none.
    pub settings: Vec<Option<String>>,
    /// The measure.
    pub measure: String,
    /// Its unit; empty for a pure number.
    pub unit: String,
    /// Its value.
    pub value: f64,
}

impl Tidy {
    /// Of all runs, with the changes that were made to the system file.
    pub fn of(entries: &[Entry]) -> Self {
        let made = entries.iter().map(|entry| (entry, &entry.point));
        Self::of_each(&made.collect::<Vec<_>>())
    }

    /// Of all runs, with the keys as they were asked for, such as `vms`: those that stand for several are not written out. `asked` are the points
    /// of the runs, in the same order.
    pub fn as_asked(entries: &[Entry], asked: &[Point]) -> Self {
        Self::of_each(&entries.iter().zip(asked).collect::<Vec<_>>())
    }

    fn of_each(runs: &[(&Entry, &Point)]) -> Self {
        let all: Vec<BTreeMap<String, String>> =
            runs.iter().map(|(_, point)| changes(point)).collect();
        let keys: BTreeSet<&String> = all.iter().flat_map(BTreeMap::keys).collect();
        let varies = |key: &&String| {
            let values: BTreeSet<Option<&String>> = all.iter().map(|own| own.get(*key)).collect();
            values.len() > 1
        };
        let keys: Vec<String> = keys.into_iter().filter(varies).cloned().collect();
        let mut lines = Vec::new();
        for ((entry, point), changes) in runs.iter().zip(&all) {
            let settings: Vec<_> = keys.iter().map(|key| changes.get(key).cloned()).collect();
            lines.extend(of_run(entry, &point.computer, &settings));
        }
        Self { keys, lines }
    }

    /// As comma-separated values (RFC 4180), with a line of names before them.
    pub fn csv(&self) -> String {
        let mut text = String::from("run,system,computer,kind,seed,steady,");
        for key in &self.keys {
            text += &field(key);
            text.push(',');
        }
        text += "measure,unit,value\n";
        for line in &self.lines {
            text += &format!(
                "{},{},{},{},{},{},",
                line.run,
                field(&line.system),
                field(&line.computer),
                line.kind,
                line.seed,
                u8::from(line.is_steady)
            );
            for setting in &line.settings {
                text += &field(setting.as_deref().unwrap_or(""));
                text.push(',');
            }
            let (measure, unit) = (field(&line.measure), field(&line.unit));
            text += &format!("{measure},{unit},{}\n", line.value);
        }
        text
    }
}

fn of_run(entry: &Entry, computer: &Computer, settings: &[Option<String>]) -> Vec<Line> {
    let point = &entry.point;
    let line = |measure: &str, unit: &str, value| Line {
        run: entry.id.to_string(),
        system: (point.system.file_name().unwrap_or_default())
            .to_string_lossy()
            .into_owned(),
        computer: computer.to_string(),
        kind: match (point.native, point.kvm) {
            (true, _) => "native",
            (_, true) => "kvm",
            _ => "partita",
        },
        seed: point.seed,
        is_steady: point.window.is_some(),
        settings: settings.to_vec(),
        measure: String::from(measure),
        unit: String::from(unit),
        value,
    };
    match &entry.outcome {
        Outcome::Failed(_) => vec![line("failed", "", 1.0)],
        Outcome::Finished { report } => {
            let each = (report.measures.iter())
                .map(|(measure, value)| line(measure.as_str(), measure.measure().unit(), value));
            each.collect()
        }
    }
}

/// The changes of a run by their keys, without the seeds of start phases.
fn changes(point: &Point) -> BTreeMap<String, String> {
    let each = point.changes.iter().map(|change| {
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
    use super::super::MadeBy;
    use super::*;
    use runner::measures::{Figures, Measure};
    use system::fingerprint::Fingerprint;

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
    fn each_figure_is_a_line() {
        let finished = |etr| Outcome::of_figures(Figures::from([(Measure::Throughput, etr)]));
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
        let run = Fingerprint::of(b"");
        // harts and the command line are no columns of the first two alone: their values are the same there.
        assert_eq!(
            Tidy::of(&entries[..2]).csv(),
            format!(
                "run,system,computer,kind,seed,steady,spin,measure,unit,value\n\
                 {run},a.toml,QEMU,partita,0,0,wapd,throughput,completions/s,2.5\n\
                 {run},a.toml,QEMU,partita,1,0,rslp,throughput,completions/s,3\n"
            )
        );
        let all = Tidy::of(&entries).csv();
        let last = all.lines().last().unwrap();
        let expected = format!("{run},a.toml,QEMU,partita,2,0,,\"\"\"a,b\"\"\",,failed,,1");
        assert_eq!(last, expected);
    }

    #[test]
    fn short_keys_are_columns() {
        let finished = Outcome::of_figures(Figures::from([(Measure::Throughput, 2.5)]));
        let made = ["vm.b.autostart=false", "when-idle=\"power-off\""];
        let entries = [entry(&made, 0, finished.clone()), entry(&[], 0, finished)];
        let asked = ["vms=1", "vms=2"].map(|change| Point {
            changes: vec![String::from(change)],
            computer: Computer::Machine {
                profile: Some(String::from("p")),
            },
            ..Point::default()
        });
        let tidy = Tidy::as_asked(&entries, &asked);
        assert_eq!(tidy.keys, ["vms"]);
        let lines = tidy.lines.iter();
        let found: Vec<_> = lines
            .map(|line| (&*line.system, &line.settings[0]))
            .collect();
        let value = |value: &str| Some(String::from(value));
        assert_eq!(found, [("a.toml", &value("1")), ("a.toml", &value("2"))]);
        assert_eq!(tidy.lines[0].computer, "the machine, p");
    }

    #[test]
    fn only_phase_seeds_are_left_out() {
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
