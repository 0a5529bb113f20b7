//! Two files of results beside each other: what differs, and how surely.

use super::record::Recorded;
use super::statistics::{Summary, paired_ratio, ratios};
use super::verdict::{Answer, Evidence, correction, decide, refusal};
use runner::table::Table;
use runner::table::number;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A measure of the same runs in both files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Settings that the runs share, without their start phases.
    pub runs: String,
    /// The measure.
    pub measure: String,
    /// The second file's as a part of the first's, start phase by start phase.
    pub ratio: Option<Summary>,
    /// Verdict of the phases.
    pub answer: Answer,
}

/// Comparison of two files.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Diff {
    /// Differences of the makers of the runs, by name.
    pub makers: Vec<String>,
    /// Runs that one file has alone, and which of the two.
    pub alone: Vec<(usize, String)>,
    /// Measures that one file alone has of runs that both have, and which of the two.
    pub unmatched: Vec<(usize, String)>,
    /// Measures that are the same to the last digit in all runs.
    pub equal: usize,
    /// The others.
    pub compared: Vec<Compared>,
}

/// Runs by what they have in common and by seed.
type Groups = BTreeMap<String, BTreeMap<u64, BTreeMap<String, f64>>>;

/// Compares two files. Measures without a name in `wanted` have no part, unless it is empty; `smallest` is the smallest effect
/// that counts, as a part.
pub fn diff(first: &[Recorded], second: &[Recorded], wanted: &[String], smallest: f64) -> Diff {
    let (one, other) = (groups(first, wanted), groups(second, wanted));
    let keys = |groups: &Groups| groups.keys().cloned().collect::<BTreeSet<String>>();
    let (ours, theirs) = (keys(&one), keys(&other));
    let alone = [(1, ours.difference(&theirs)), (2, theirs.difference(&ours))];
    let alone = alone
        .into_iter()
        .flat_map(|(file, names)| names.map(move |name| (file, name.clone())))
        .collect();
    let mut makers: Vec<String> = first
        .iter()
        .zip(second)
        .flat_map(|(one, other)| one.made_by.differences(&other.made_by))
        .collect();
    makers.sort();
    makers.dedup();
    let mut unmatched = BTreeSet::new();
    let mut equal = 0;
    let (mut compared, mut evidence) = (Vec::new(), Vec::new());
    for name in ours.intersection(&theirs) {
        let (Some(one), Some(other)) = (one.get(name), other.get(name)) else {
            continue;
        };
        let (before, after) = (measures(one), measures(other));
        let alone = |file: usize, names: &BTreeSet<String>, others: &BTreeSet<String>| {
            let names = names.difference(others).cloned();
            names.map(|name| (file, name)).collect::<Vec<_>>()
        };
        unmatched.extend(alone(1, &before, &after));
        unmatched.extend(alone(2, &after, &before));
        for (measure, pairs) in paired(one, other) {
            if pairs.iter().all(|(before, after)| before == after) {
                equal += 1;
                continue;
            }
            evidence.push(Evidence::of_ratio(&ratios(&flipped(&pairs)), smallest));
            compared.push(Compared {
                runs: name.clone(),
                measure,
                ratio: paired_ratio(&flipped(&pairs)),
                answer: Answer::Open,
            });
        }
    }
    for (compared, answer) in compared.iter_mut().zip(decide(&evidence)) {
        compared.answer = answer;
    }
    Diff {
        makers,
        alone,
        unmatched: unmatched.into_iter().collect(),
        equal,
        compared,
    }
}

fn flipped(pairs: &[(f64, f64)]) -> Vec<(f64, f64)> {
    pairs
        .iter()
        .map(|(before, after)| (*after, *before))
        .collect()
}

fn groups(runs: &[Recorded], wanted: &[String]) -> Groups {
    let mut groups = Groups::new();
    for run in runs {
        let figures = run.report.measures.iter();
        let figures = figures.map(|(name, value)| (String::from(name.as_str()), value));
        let figures = figures.filter(|(name, _)| wanted.is_empty() || wanted.contains(name));
        let own = groups.entry(name(run)).or_default();
        own.insert(run.point.seed, figures.collect());
    }
    groups
}

/// Settings that a run shares with those of other start phases. The seed that a start phase gives an exerciser is left out.
fn name(run: &Recorded) -> String {
    let point = &run.point;
    let system = point.system.file_name().unwrap_or_default();
    let mut words = vec![system.to_string_lossy().into_owned()];
    let kinds = [(point.native, "native"), (point.kvm, "kvm")];
    words.extend(
        kinds
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, kind)| String::from(*kind)),
    );
    words.push(format!("on {}", point.computer));
    words.extend(
        point
            .changes
            .iter()
            .map(|change| super::tidy::without_seed(change)),
    );
    words.join(" ")
}

/// Names of the measures of a group of runs.
fn measures(runs: &BTreeMap<u64, BTreeMap<String, f64>>) -> BTreeSet<String> {
    runs.values()
        .flat_map(|figures| figures.keys().cloned())
        .collect()
}

/// The pairs of each measure that both have, seed by seed.
fn paired(
    one: &BTreeMap<u64, BTreeMap<String, f64>>,
    other: &BTreeMap<u64, BTreeMap<String, f64>>,
) -> BTreeMap<String, Vec<(f64, f64)>> {
    let mut pairs: BTreeMap<String, Vec<(f64, f64)>> = BTreeMap::new();
    for (seed, figures) in one {
        let Some(after) = other.get(seed) else {
            continue;
        };
        for (measure, before) in figures {
            if let Some(after) = after.get(measure) {
                let all = pairs.entry(measure.clone()).or_default();
                all.push((*before, *after));
            }
        }
    }
    pairs
}

impl Diff {
    /// For people.
    pub fn show(&self) -> String {
        let mut text = String::new();
        if !self.makers.is_empty() {
            text += &format!("not made by the same: {}\n", self.makers.join(", "));
        }
        for (file, name) in &self.alone {
            let which = if *file == 1 { "first" } else { "second" };
            text += &format!("in the {which} alone: {name}\n");
        }
        for (file, which) in [(1, "first"), (2, "second")] {
            let own = self.unmatched.iter().filter(|(of, _)| *of == file);
            let names: Vec<&str> = own.map(|(_, name)| name.as_str()).collect();
            if !names.is_empty() {
                text += &format!("measures in the {which} alone: {}\n", names.join(", "));
            }
        }
        let mut last = "";
        let mut table = Table::new(["measure", "second / first", "interval", "verdict"]);
        for (index, one) in self.compared.iter().enumerate() {
            if one.runs != last {
                last = &one.runs;
                if index > 0 {
                    text += &table.to_string();
                    table = Table::new(["measure", "second / first", "interval", "verdict"]);
                }
                text += &format!("{last}\n");
            }
            let verdict = match one.answer {
                Answer::Above => String::from("more"),
                Answer::Below => String::from("less"),
                Answer::Within => String::from("equal"),
                Answer::Open => String::from("undecided"),
                Answer::Refused { phases, needed } => refusal(phases, needed),
            };
            let of = |show: &dyn Fn(&Summary) -> String| {
                one.ratio.as_ref().map_or_else(|| String::from("-"), show)
            };
            table.row([
                one.measure.clone(),
                of(&|ratio| format!("{:.4}", ratio.median)),
                of(&|ratio| format!("{} .. {}", number(ratio.low), number(ratio.high))),
                verdict,
            ]);
        }
        if !self.compared.is_empty() {
            text += &table.to_string();
            text += &format!("{}\n", correction(self.compared.len()));
        }
        text + &format!(
            "{} measures are equal to the last digit in all runs\n",
            self.equal
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Computer, MadeBy, Point};
    use super::*;
    use runner::document::RunDocument;
    use runner::measures::{Figures, Measure};
    use system::fingerprint::Fingerprint;

    fn run(change: &str, seed: u64, etr: f64, maker: &str) -> Recorded {
        let line = format!("vm.a.command-line=\"exercise=work seed={}\"", seed + 1);
        Recorded {
            point: Point {
                system: "a.toml".into(),
                changes: vec![String::from(change), line],
                computer: Computer::Machine { profile: None },
                seed,
                ..Point::default()
            },
            made_by: MadeBy {
                partita: String::new(),
                system: String::new(),
                profile: None,
                files: BTreeMap::from([(
                    String::from("hypervisor"),
                    Fingerprint::of(maker.as_bytes()),
                )]),
            },
            report: RunDocument::of_figures(Figures::from([
                (Measure::Throughput, etr),
                (Measure::Completions, 5.0),
            ])),
        }
    }

    #[test]
    fn differences_are_judged_phase_by_phase() {
        let file = |factor: f64, maker: &str| -> Vec<Recorded> {
            let phase = |seed: u64| (seed + 1) as f64 * factor;
            (0..6)
                .map(|seed| run("spin=wapd", seed, phase(seed), maker))
                .collect()
        };
        let (first, second) = (file(1.0, "a"), file(1.1, "b"));
        let found = diff(&first, &second, &[], 0.01);
        assert_eq!(found.makers, ["hypervisor"]);
        // Six phases of one group, though each has a seed of its own in its command line.
        let [one] = &found.compared[..] else {
            panic!("{found:?}")
        };
        assert_eq!(
            (one.measure.as_str(), one.answer),
            ("throughput", Answer::Above)
        );
        assert!((one.ratio.unwrap().median - 1.1).abs() < 1e-9);
        assert_eq!(found.equal, 1);
        let text = found.show();
        for told in ["more", "1.1000", "not made by the same", "1 comparison"] {
            assert!(text.contains(told), "{text}");
        }
        // The other way about, and with too few phases.
        let back = diff(&second, &first, &[], 0.01);
        assert_eq!(back.compared[0].answer, Answer::Below);
        let few = diff(&first[..3], &second[..3], &[], 0.01);
        assert!(matches!(
            few.compared[0].answer,
            Answer::Refused { phases: 3, .. }
        ));
        // The same file does not differ.
        let same = diff(&first, &first, &[], 0.01);
        assert_eq!(
            (same.compared.len(), same.equal, same.makers.len()),
            (0, 2, 0)
        );
    }

    #[test]
    fn measures_of_one_file_are_told() {
        let first = [run("spin=wapd", 0, 1.0, "a")];
        let mut second = first.clone();
        second[0].report.measures =
            Figures::from([(Measure::Throughput, 1.0), (Measure::Elapsed, 2.0)]);
        let found = diff(&first, &second, &[], 0.0);
        let (completions, elapsed) = (String::from("completions"), String::from("elapsed"));
        assert_eq!(found.unmatched, [(1, completions), (2, elapsed)]);
        let text = found.show();
        assert!(
            text.contains("measures in the second alone: elapsed"),
            "{text}"
        );
    }

    #[test]
    fn runs_of_one_file_alone_are_told() {
        let first = [run("spin=wapd", 0, 1.0, "a")];
        let second = [run("spin=wapd", 0, 1.0, "a"), run("spin=rslp", 0, 1.0, "a")];
        let found = diff(&first, &second, &[String::from("throughput")], 0.0);
        assert_eq!((found.alone.len(), found.equal), (1, 1));
        assert!(
            found
                .show()
                .contains("in the second alone: a.toml on the machine")
        );
    }
}
