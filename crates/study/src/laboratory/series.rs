//! Many points, on all of the computer's cores.

use super::{Entry, MadeBy, Outcome, Point, Runner, Store, StoreError};
use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Something that is told how far a series is.
pub trait Progress: Sync {
    /// `done` of `all` points have a result; `known` of them had one before.
    fn at(&self, done: usize, known: usize, all: usize);
}

/// A bar with an estimate on a terminal; a line for each tenth elsewhere.
#[derive(Debug)]
pub struct Bar {
    bar: ProgressBar,
    begun: Instant,
}

impl Bar {
    /// A bar on standard error.
    pub fn new() -> Self {
        let bar = ProgressBar::new(0);
        let template = "{bar:30} {pos} of {len} runs, {elapsed} gone, {eta} to go {msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(Duration::from_millis(500));
        Self {
            bar,
            begun: Instant::now(),
        }
    }
}

impl Default for Bar {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Bar {
    fn at(&self, done: usize, known: usize, all: usize) {
        if done == known {
            self.bar.set_length((all - known) as u64);
            if known > 0 {
                self.bar.set_message(format!("({known} known already)"));
            }
            self.bar.reset_eta();
        }
        self.bar.set_position((done - known) as u64);
        let tenth = all.div_ceil(10).max(1);
        if self.bar.is_hidden() && (done.is_multiple_of(tenth) || done == all) {
            let rest = estimate(self.begun.elapsed(), done - known, all - done);
            eprintln!("partita: {done} of {all} runs{rest}");
        }
    }
}

/// How long the rest takes if it goes on like this, in words to follow a count.
fn estimate(gone: Duration, done: usize, left: usize) -> String {
    if done == 0 || left == 0 {
        return String::new();
    }
    let seconds = gone.as_secs_f64() / done as f64 * left as f64;
    match seconds.round() {
        seconds if seconds < 120.0 => format!(", about {seconds} s to go"),
        seconds => format!(", about {} min to go", (seconds / 60.0).round()),
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Result of a series.
#[derive(Debug)]
pub struct Series {
    /// The entries in the order of the points. `None` where a point was not run because no more was wanted.
    pub entries: Vec<Option<Entry>>,
    /// Failure to write to the store; the entries have it all the same.
    pub unsaved: Option<StoreError>,
}

/// Why a series has no answer.
#[derive(Debug, thiserror::Error)]
pub enum SeriesError {
    /// The user broke it off.
    #[error("the series was broken off: {done} of {all} runs are kept in {path}; the same command goes on from there", path = path.display())]
    BrokenOff {
        /// How many are finished.
        done: usize,
        /// How many were asked for.
        all: usize,
        /// The store.
        path: std::path::PathBuf,
    },
    /// The user broke it off, and what was made is of no use.
    #[error(
        "the series was broken off after {done} of {all} runs; nothing of them is kept, and nothing can be said"
    )]
    Lost {
        /// How many were finished.
        done: usize,
        /// How many were asked for.
        all: usize,
    },
}

/// Runs every point that has no result yet, `jobs` at a time, and adds each result to the store when it is there.
/// A point that failed before is run again. When `stop` is set, what runs is ended and nothing more is begun.
pub fn run_all(
    points: &[(Point, MadeBy)],
    runner: &dyn Runner,
    store: &Mutex<Store>,
    jobs: usize,
    stop: &AtomicBool,
    progress: &dyn Progress,
) -> Series {
    let lock = || store.lock().unwrap_or_else(PoisonError::into_inner);
    let ids: Vec<_> = points
        .iter()
        .map(|(point, made_by)| point.identity(made_by))
        .collect();
    let finished = |id| matches!(lock().get(id), Some(entry) if entry.outcome.figures().is_some());
    // The same point twice is run once.
    let mut missing: Vec<usize> = (0..points.len())
        .filter(|index| !finished(&ids[*index]))
        .collect();
    let mut seen = std::collections::BTreeSet::new();
    missing.retain(|index| seen.insert(&ids[*index]));
    let known = points.len() - missing.len();
    progress.at(known, known, points.len());

    let queue = Mutex::new(missing.iter().copied());
    let done = Mutex::new(known);
    let unsaved = Mutex::new(None);
    std::thread::scope(|scope| {
        for _ in 0..jobs.clamp(1, missing.len().max(1)) {
            scope.spawn(|| {
                loop {
                    let next = queue
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .next()
                        .filter(|_| !stop.load(Ordering::Relaxed));
                    let Some(index) = next else { return };
                    let (point, made_by) = &points[index];
                    let Some(outcome) = runner.run(point) else {
                        continue;
                    };
                    let added = lock().add(Entry {
                        id: ids[index].clone(),
                        point: point.clone(),
                        made_by: made_by.clone(),
                        outcome,
                    });
                    *unsaved.lock().unwrap_or_else(PoisonError::into_inner) = added.err();
                    let mut done = done.lock().unwrap_or_else(PoisonError::into_inner);
                    *done += 1;
                    progress.at(*done, known, points.len());
                }
            });
        }
    });
    let ran: std::collections::BTreeSet<_> = missing.iter().map(|index| &ids[*index]).collect();
    let wanted = |id| lock().get(id).cloned();
    let entries = ids.iter().map(wanted).collect::<Vec<_>>();
    // A failure of an earlier series is no answer if this one did not come to run it again.
    let stopped = stop.load(Ordering::Relaxed);
    let entries = entries
        .into_iter()
        .map(|entry| {
            entry.filter(|entry| {
                !(stopped && ran.contains(&entry.id) && matches!(entry.outcome, Outcome::Failed(_)))
            })
        })
        .collect();
    Series {
        entries,
        unsaved: unsaved.into_inner().unwrap_or_else(PoisonError::into_inner),
    }
}

impl Series {
    /// The entries, if none is missing.
    ///
    /// # Errors
    /// The user broke the series off.
    pub fn complete(self, path: &std::path::Path) -> Result<Vec<Entry>, SeriesError> {
        let all = self.entries.len();
        let entries: Vec<Entry> = self.entries.into_iter().flatten().collect();
        if entries.len() < all {
            return Err(SeriesError::BrokenOff {
                done: entries.len(),
                all,
                path: path.to_owned(),
            });
        }
        Ok(entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::laboratory::Computer;
    use runner::measures::{Figures, Measure};
    use std::collections::BTreeMap;
    use std::path::PathBuf;
    use std::sync::atomic::AtomicUsize;
    use system::fingerprint::Fingerprint;

    struct Silent;
    impl Progress for Silent {
        fn at(&self, _: usize, _: usize, _: usize) {}
    }

    /// Runs nothing: the result is the seed, odd seeds fail, and after some runs the user stops.
    struct Fake<'a> {
        runs: AtomicUsize,
        stop_after: usize,
        stop: &'a AtomicBool,
    }

    impl Runner for Fake<'_> {
        fn run(&self, point: &Point) -> Option<Outcome> {
            if self.runs.fetch_add(1, Ordering::Relaxed) + 1 >= self.stop_after {
                self.stop.store(true, Ordering::Relaxed);
            }
            if point.seed % 2 == 1 {
                return Some(Outcome::Failed(String::from("odd")));
            }
            Some(Outcome::of_figures(Figures::from([(
                Measure::Completions,
                point.seed as f64,
            )])))
        }
    }

    fn points(count: u64) -> Vec<(Point, MadeBy)> {
        let made_by = MadeBy {
            partita: String::new(),
            system: String::new(),
            profile: None,
            files: BTreeMap::from([(String::from("kernel"), Fingerprint::of(b"kernel"))]),
        };
        let point = |seed| Point {
            system: PathBuf::from("a.toml"),
            changes: Vec::new(),
            computer: Computer::Qemu,
            seed,
            ..Point::default()
        };
        (0..count)
            .map(|seed| (point(seed), made_by.clone()))
            .collect()
    }

    #[test]
    fn rest_is_estimated_from_finished_runs() {
        let gone = Duration::from_secs(30);
        assert_eq!(estimate(gone, 0, 20), "");
        assert_eq!(estimate(gone, 10, 0), "");
        assert_eq!(estimate(gone, 10, 20), ", about 60 s to go");
        assert_eq!(estimate(gone, 10, 100), ", about 5 min to go");
    }

    #[test]
    fn series_resumes_where_it_stopped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let points = points(20);
        let mut runs = Vec::new();
        for stop_after in [7, usize::MAX, usize::MAX] {
            let stop = AtomicBool::new(false);
            let fake = Fake {
                runs: AtomicUsize::new(0),
                stop_after,
                stop: &stop,
            };
            let store = Mutex::new(Store::open(&path).unwrap());
            let series = run_all(&points, &fake, &store, 1, &stop, &Silent);
            runs.push(fake.runs.into_inner());
            assert!(series.unsaved.is_none());
            let complete = series.complete(&path);
            assert_eq!(complete.is_ok(), stop_after == usize::MAX);
            let Ok(entries) = complete else { continue };
            let order: Vec<u64> = entries.iter().map(|entry| entry.point.seed).collect();
            assert_eq!(order, (0..20).collect::<Vec<_>>());
        }
        // Seeds 0 to 6 first, four of them even; then all the others and the failures; then the failures again.
        assert_eq!(runs, [7, 16, 10]);
    }

    #[test]
    fn parallel_series_runs_points_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("results.jsonl");
        let mut twice = points(30);
        twice.extend(points(30));
        let stop = AtomicBool::new(false);
        let fake = Fake {
            runs: AtomicUsize::new(0),
            stop_after: usize::MAX,
            stop: &stop,
        };
        let store = Mutex::new(Store::open(&path).unwrap());
        let series = run_all(&twice, &fake, &store, 4, &stop, &Silent);
        assert_eq!(fake.runs.into_inner(), 30);
        assert_eq!(series.complete(&path).unwrap().len(), 60);
    }
}
