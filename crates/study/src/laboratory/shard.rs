//! A series that several computers share: each makes the runs of its shard, and the files of results are put together.

use super::{Entry, Outcome, Store, StoreError};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Most shards of a series.
const MAX_SHARDS: usize = 100_000;

/// One computer's part of a series. Shards are counted from 1, as the tasks of an array job mostly are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which, from 1.
    number: usize,
    /// Of how many.
    of: usize,
}

/// Text that is no shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("give NUMBER/ALL, such as 2/4 for the second of four")]
pub struct NoShard;

impl Shard {
    /// Which part it is, from 0, and of how many.
    pub const fn part(self) -> (u64, u64) {
        (self.number as u64 - 1, self.of as u64)
    }
}

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (number, of) = text.split_once('/').ok_or(NoShard)?;
        let number = number.parse().map_err(|_| NoShard)?;
        let of = of.parse().map_err(|_| NoShard)?;
        if (1..=MAX_SHARDS).contains(&of) && (1..=of).contains(&number) {
            Ok(Self { number, of })
        } else {
            Err(NoShard)
        }
    }
}

impl std::fmt::Display for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "shard {} of {}", self.number, self.of)
    }
}

impl Shard {
    /// The points that this shard runs. Neighbours go to different shards, as they take about the same time.
    pub fn of<T>(self, points: Vec<T>) -> Vec<T> {
        let mine = |index: usize| index % self.of == self.number - 1;
        let points = points.into_iter().enumerate();
        points
            .filter(|(index, _)| mine(*index))
            .map(|(_, point)| point)
            .collect()
    }
}

/// Why files of results cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// One run has two outcomes.
    #[error(
        "{path}: seed {seed} {changes}: another file has other figures for the same run, made by the same files; one of \
         the two is damaged, or a computer has erred: `partita rerun` says which", path = path.display()
    )]
    Contradiction {
        /// The later file.
        path: PathBuf,
        /// The run's seed.
        seed: u64,
        /// The run's changes.
        changes: String,
    },
}

/// Result of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Merged {
    /// Runs that were added, or took the place of a failed one.
    pub added: usize,
    /// Runs that were there already.
    pub known: usize,
}

/// Adds the runs of `sources` to `target`. A run that finished takes the place of one that failed.
///
/// # Errors
/// [`MergeError`]. What was added before the error stays.
pub fn merge(sources: &[PathBuf], target: &mut Store) -> Result<Merged, MergeError> {
    let mut merged = Merged::default();
    for path in sources {
        for entry in Store::read(path)? {
            match better(path, target.get(&entry.id), &entry)? {
                true => {
                    target.add(entry)?;
                    merged.added += 1;
                }
                false => merged.known += 1,
            }
        }
    }
    Ok(merged)
}

/// Returns whether a run is to be added beside what is known of it.
fn better(path: &Path, known: Option<&Entry>, entry: &Entry) -> Result<bool, MergeError> {
    let Some(known) = known else { return Ok(true) };
    match (&known.outcome, &entry.outcome) {
        (Outcome::Failed(_), Outcome::Finished { .. }) => Ok(true),
        (Outcome::Finished { report }, Outcome::Finished { report: other })
            if report.measures != other.measures =>
        {
            Err(MergeError::Contradiction {
                path: path.to_owned(),
                seed: entry.point.seed,
                changes: entry.point.changes.join(" "),
            })
        }
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::{Computer, MadeBy, Point};
    use runner::measures::{Figures, Measure};
    use std::collections::BTreeMap;

    fn entry(seed: u64, etr: Option<f64>) -> Entry {
        let point = Point {
            system: PathBuf::from("a.toml"),
            changes: Vec::new(),
            computer: Computer::Machine { profile: None },
            seed,
            ..Point::default()
        };
        let made_by = MadeBy {
            partita: String::new(),
            system: String::new(),
            profile: None,
            files: BTreeMap::new(),
        };
        let finished = |etr| Outcome::of_figures(Figures::from([(Measure::Throughput, etr)]));
        Entry {
            id: point.identity(&made_by),
            point,
            made_by,
            outcome: etr.map_or_else(|| Outcome::Failed(String::from("lost")), finished),
        }
    }

    fn file(folder: &Path, name: &str, entries: &[Entry]) -> PathBuf {
        let path = folder.join(name);
        let mut store = Store::open(&path).unwrap();
        for entry in entries {
            store.add(entry.clone()).unwrap();
        }
        path
    }

    #[test]
    fn each_point_is_in_one_shard() {
        let all: Vec<u32> = (0..23).collect();
        for of in 1..=5 {
            let mut found = Vec::new();
            for number in 1..=of {
                let shard: Shard = format!("{number}/{of}").parse().unwrap();
                let mine = shard.of(all.clone());
                assert!(mine.len().abs_diff(23 / of) <= 1, "{shard}: {mine:?}");
                found.extend(mine);
            }
            found.sort_unstable();
            assert_eq!(found, all);
        }
        for wrong in ["", "1", "0/4", "5/4", "1/0", "a/4", "1/4/2", "-1/4"] {
            assert_eq!(wrong.parse::<Shard>(), Err(NoShard), "{wrong}");
        }
    }

    #[test]
    fn merged_shards_lose_no_run() {
        let folder = tempfile::tempdir().unwrap();
        let sources = [
            file(
                folder.path(),
                "one",
                &[entry(0, Some(1.0)), entry(2, Some(3.0)), entry(3, None)],
            ),
            file(
                folder.path(),
                "two",
                &[
                    entry(1, Some(2.0)),
                    entry(2, Some(3.0)),
                    entry(3, Some(4.0)),
                ],
            ),
        ];
        let target = folder.path().join("all");
        let mut store = Store::open(&target).unwrap();
        let merged = merge(&sources, &mut store).unwrap();
        assert_eq!(merged, Merged { added: 5, known: 1 });
        // Doing it again adds nothing: a failure does not push a finished run out.
        let again = merge(&sources, &mut store).unwrap();
        assert_eq!(again, Merged { added: 0, known: 6 });
        drop(store);
        let mut etr: Vec<f64> = Store::read(&target)
            .unwrap()
            .iter()
            .filter_map(|entry| entry.outcome.figures()?.get(Measure::Throughput))
            .collect();
        etr.sort_by(f64::total_cmp);
        assert_eq!(etr, [1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn differing_figures_of_run_are_contradiction() {
        let folder = tempfile::tempdir().unwrap();
        let sources = [
            file(folder.path(), "one", &[entry(7, Some(1.0))]),
            file(folder.path(), "two", &[entry(7, Some(1.5))]),
        ];
        let mut store = Store::open(&folder.path().join("all")).unwrap();
        let error = merge(&sources, &mut store).unwrap_err().to_string();
        assert!(error.contains("two: seed 7"), "{error}");
    }
}
