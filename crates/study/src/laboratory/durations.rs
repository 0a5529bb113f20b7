//! How long runs took on this computer, so that a series can say beforehand how long it will take.
//!
//! This is the host's time. It is kept in a file of its own beside the results, and is in no result.

use super::{Outcome, Point, Runner};
use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;
use system::fingerprint::Fingerprint;

/// The file, in the folder of the results.
const FILE: &str = "took";
/// Bytes of the file that are read: its newest lines.
const NEWEST: usize = 20_000;

/// Durations of the runs of a kind, in seconds each: all runs that differ in their start phase alone are of one kind, whatever made them.
#[derive(Debug)]
pub struct Durations {
    path: PathBuf,
    known: BTreeMap<String, (f64, u32)>,
}

/// Estimate of a series.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Forecast {
    /// How many runs it has.
    pub all: usize,
    /// How many of them are to be made.
    pub missing: usize,
    /// How long that takes in seconds, one at a time; `None` if no such run was ever timed.
    pub seconds: Option<f64>,
}

impl Durations {
    /// Durations beside a file of results. A file that cannot be read is as good as none: nothing but an estimate depends on it.
    pub fn beside(results: &Path) -> Self {
        let path = results.with_file_name(FILE);
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let mut known: BTreeMap<String, (f64, u32)> = BTreeMap::new();
        for line in text.lines().rev().take(NEWEST) {
            let Some((kind, seconds)) = line.split_once(' ') else {
                continue;
            };
            let seconds = seconds.parse().ok();
            if let Some(seconds) = seconds.filter(|one: &f64| one.is_finite() && *one >= 0.0) {
                let (sum, count) = known.entry(String::from(kind)).or_default();
                *sum += seconds;
                *count += 1;
            }
        }
        Self { path, known }
    }

    /// How long the missing of `all` runs take. Those of a kind that was never timed take as long as the others in the mean.
    pub fn ahead<'a>(&self, all: usize, missing: impl Iterator<Item = &'a Point>) -> Forecast {
        let (mut count, mut timed, mut seconds) = (0, 0, 0.0);
        for point in missing {
            count += 1;
            if let Some((sum, runs)) = self.known.get(&kind(point)) {
                timed += 1;
                seconds += sum / f64::from(*runs);
            }
        }
        Forecast {
            all,
            missing: count,
            seconds: (timed > 0).then(|| seconds / timed as f64 * count as f64),
        }
    }

    fn add(&self, point: &Point, seconds: f64) {
        let file = OpenOptions::new()
            .append(true)
            .create(true)
            .open(&self.path);
        // Without it there is no estimate the next time, and nothing else.
        let _ = file.and_then(|mut file| {
            file.write_all(format!("{} {seconds:.3}\n", kind(point)).as_bytes())
        });
    }
}

impl Forecast {
    /// Both together.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        let known = [(self.missing, self.seconds), (other.missing, other.seconds)];
        let seconds: Vec<f64> = known.iter().filter_map(|(_, seconds)| *seconds).collect();
        let timed = known.iter().filter(|(_, seconds)| seconds.is_some());
        let timed: usize = timed.map(|(missing, _)| missing).sum();
        let missing = self.missing + other.missing;
        let sum: f64 = seconds.iter().sum();
        Self {
            all: self.all + other.all,
            missing,
            seconds: (timed > 0).then(|| sum / timed as f64 * missing as f64),
        }
    }

    /// In words, for so many runs at a time.
    pub fn words(&self, jobs: usize) -> String {
        let Self { all, missing, .. } = self;
        let known = match all - missing {
            0 => String::new(),
            known => format!(", {known} known already"),
        };
        let long = match self.seconds.map(|seconds| seconds / jobs.max(1) as f64) {
            _ if *missing == 0 => String::new(),
            None => String::from(
                "; none of them was timed here before, so how long they take is told as they end",
            ),
            Some(seconds) if seconds < 90.0 => {
                format!("; about {seconds:.0} s, as such runs took before")
            }
            Some(seconds) => {
                format!(
                    "; about {:.0} min, as such runs took before",
                    seconds / 60.0
                )
            }
        };
        format!("{missing} runs to make{known}{long}")
    }
}

/// A runner whose runs are timed.
#[derive(Debug)]
pub struct Timed<'a, R> {
    /// Runner of the points.
    pub runner: R,
    /// Where it is written.
    pub took: &'a Durations,
}

impl<R: Runner> Runner for Timed<'_, R> {
    fn run(&self, point: &Point) -> Option<Outcome> {
        let begun = Instant::now();
        let outcome = self.runner.run(point)?;
        if outcome.figures().is_some() {
            self.took.add(point, begun.elapsed().as_secs_f64());
        }
        Some(outcome)
    }
}

/// Key that runs share which differ in their start phase alone.
fn kind(point: &Point) -> String {
    let whole = (
        point
            .system
            .file_name()
            .unwrap_or_default()
            .to_string_lossy(),
        point
            .changes
            .iter()
            .map(|change| without_seed(change))
            .collect::<Vec<_>>(),
        &point.computer,
        (point.native, point.kvm, point.exit_latency),
        point.start.as_ref().map(|start| (&start.text, start.span)),
    );
    // Text keys and plain values alone: this cannot fail.
    let fingerprint = Fingerprint::of(&serde_json::to_vec(&whole).unwrap_or_default());
    String::from(fingerprint.short())
}

/// The words of a change but those that give a guest its seed, and without the quote that may have stood at the seed's end.
fn without_seed(change: &str) -> String {
    let words = change.split(' ').filter(|word| !word.starts_with("seed="));
    words
        .collect::<Vec<_>>()
        .join(" ")
        .trim_end_matches('"')
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Ended;
    impl Runner for Ended {
        fn run(&self, point: &Point) -> Option<Outcome> {
            match point.seed {
                7 => Some(Outcome::Failed(String::from("odd"))),
                _ => Some(Outcome::of_figures(runner::measures::Figures::new())),
            }
        }
    }

    fn point(system: &str, seed: u64) -> Point {
        Point {
            system: PathBuf::from(system),
            changes: vec![format!("vm.a.command-line=\"exercise=work seed={seed}\"")],
            seed,
            ..Point::default()
        }
    }

    #[test]
    fn runs_take_as_long_as_earlier() {
        let folder = tempfile::tempdir().unwrap();
        let took = Durations::beside(&folder.path().join("a.jsonl"));
        let missing = [point("a.toml", 3), point("b.toml", 1), point("c.toml", 1)];
        assert_eq!(took.ahead(5, missing.iter()).seconds, None);
        for (system, seed, seconds) in
            [("a.toml", 1, 2.0), ("x/a.toml", 2, 4.0), ("b.toml", 1, 1.0)]
        {
            took.add(&point(system, seed), seconds);
        }
        // 3 seconds and 1, and the third as long as these in the mean.
        let took = Durations::beside(&folder.path().join("a.jsonl"));
        let ahead = took.ahead(5, missing.iter());
        assert_eq!((ahead.all, ahead.missing, ahead.seconds), (5, 3, Some(6.0)));
        assert_eq!(
            ahead.words(2),
            "3 runs to make, 2 known already; about 3 s, as such runs took before"
        );
        let unknown = Forecast {
            all: 3,
            missing: 3,
            seconds: None,
        };
        assert_eq!(ahead.and(unknown).seconds, Some(12.0));
        assert!(unknown.words(2).contains("none of them was timed"));
    }

    #[test]
    fn what_failed_is_not_timed() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("a.jsonl");
        let took = Durations::beside(&results);
        let timed = Timed {
            runner: Ended,
            took: &took,
        };
        for seed in [7, 1] {
            assert!(timed.run(&point("a.toml", seed)).is_some());
        }
        let written = std::fs::read_to_string(folder.path().join(FILE)).unwrap();
        assert_eq!(written.lines().count(), 1);
        std::fs::write(folder.path().join(FILE), "x\nkind NaN\nkind -1\n").unwrap();
        assert!(Durations::beside(&results).known.is_empty());
    }
}
