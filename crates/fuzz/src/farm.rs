//! The farm: case after case on as many threads as wanted, told in the order of their numbers.

use crate::case::Case;
use crate::corpus::Corpus;
use crate::draw::draw;
use crate::finding::Finding;
use crate::judge::{Bounds, judge, lacking_share};
use crate::observe::{CaseError, Observed, Programs, observe};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Cases that the farm tries.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Seed of all cases.
    pub seed: u64,
    /// Number of the first case.
    pub first: u64,
    /// How many cases are tried at most.
    pub systems: Option<u64>,
    /// How long cases are begun.
    pub time: Option<Duration>,
    /// Threads.
    pub jobs: usize,
    /// Which part of the cases is tried, and of how many parts: (0, 1) is all of them.
    pub shard: (u64, u64),
    /// Bounds of the invariants that have one.
    pub bounds: Bounds,
}

/// A case that was tried.
#[derive(Debug)]
pub struct Tried {
    /// The case with what it breaks, which may be nothing.
    pub finding: Finding,
    /// Observations of its run.
    pub observed: Observed,
}

/// Tries a case.
///
/// # Errors
/// [`CaseError`].
pub fn attempt(case: Case, programs: Programs<'_>, bounds: Bounds) -> Result<Tried, CaseError> {
    let mut observed = observe(&case, programs)?;
    if lacking_share(&case, &observed, bounds).is_some() {
        let alone = observe(&case.without_neighbours(), programs)?;
        observed.share_without_neighbours = alone.witness_share();
    }
    let violations = judge(&case, &observed, bounds);
    let finding = Finding {
        case,
        violations,
        fingerprint: observed.fingerprint.to_string(),
    };
    Ok(Tried { finding, observed })
}

/// Tries cases until the plan is done or it is stopped, and hands each to `tell` in the order of their numbers.
///
/// # Errors
/// The first [`CaseError`] but [`CaseError::BrokenOff`]: what was told until then stays.
pub fn run(
    plan: &Plan,
    programs: Programs<'_>,
    tell: &mut dyn FnMut(Tried),
) -> Result<(), CaseError> {
    let attempt = |number| attempt(draw(plan.seed, number), programs, plan.bounds);
    in_order(plan, programs.stop, &attempt, tell)
}

/// Tries cases of a corpus, then mutations of its cases and drawn ones, one after the other, until the plan is done or it is stopped. Hands each to
/// `tell` with the number of places that it is the first to reach. A system that cannot be is left out.
///
/// # Errors
/// The first [`CaseError`] but [`CaseError::BrokenOff`] and [`CaseError::Mistakes`].
pub fn run_guided(
    plan: &Plan,
    folder: &Path,
    programs: Programs<'_>,
    tell: &mut dyn FnMut(Tried, usize),
) -> Result<Corpus, CaseError> {
    let begun = Instant::now();
    let mut corpus = Corpus::new(folder);
    let mut known = Corpus::cases(folder)?.into_iter();
    let mut place = 0;
    while plan.systems.is_none_or(|systems| place < systems)
        && plan.time.is_none_or(|time| begun.elapsed() < time)
    {
        let case = known.next().unwrap_or_else(|| {
            place += 1;
            corpus.next(plan.seed, plan.first + place - 1)
        });
        match attempt(case, programs, plan.bounds) {
            Ok(tried) => {
                let covered = tried.observed.covered.clone().unwrap_or_default();
                let new = corpus.take(&tried.finding.case, covered)?;
                tell(tried, new);
            }
            Err(CaseError::Mistakes(_)) => {}
            Err(CaseError::BrokenOff) => break,
            Err(error) => return Err(error),
        }
    }
    corpus.minimise()?;
    Ok(corpus)
}

/// Cases that a thread may be ahead of the first one that was not told yet: what waits for its turn takes memory.
const MAX_AHEAD: u64 = 8;

/// Places that are given to threads, and told.
#[derive(Debug, Default)]
struct Places {
    /// The next one to be given.
    next: u64,
    /// How many were told.
    told: u64,
    /// No more are given.
    is_over: bool,
}

/// Places in their order, of which no more than a number lie between the last one told and the last one given.
struct Window<'a> {
    places: Mutex<Places>,
    changed: Condvar,
    plan: &'a Plan,
    stop: &'a AtomicBool,
    begun: Instant,
}

impl Window<'_> {
    fn lock(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a place may be tried. `None` if no more are.
    fn next(&self) -> Option<u64> {
        let width = MAX_AHEAD * self.plan.jobs.max(1) as u64;
        let mut places = self.lock();
        loop {
            let is_over = places.is_over
                || self
                    .plan
                    .systems
                    .is_some_and(|systems| places.next >= systems)
                || self
                    .plan
                    .time
                    .is_some_and(|time| self.begun.elapsed() >= time)
                || self.stop.load(Ordering::Relaxed);
            if is_over {
                return None;
            }
            if places.next < places.told + width {
                places.next += 1;
                return Some(places.next - 1);
            }
            let waited = self.changed.wait(places);
            places = waited.unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn change(&self, change: impl FnOnce(&mut Places)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// Attempts the plan's numbers on its threads, and hands the results to `tell` in the order of the numbers.
fn in_order<T: Send>(
    plan: &Plan,
    stop: &AtomicBool,
    attempt: &(dyn Fn(u64) -> Result<T, CaseError> + Sync),
    tell: &mut dyn FnMut(T),
) -> Result<(), CaseError> {
    let (part, parts) = plan.shard;
    let window = Window {
        places: Mutex::default(),
        changed: Condvar::new(),
        plan,
        stop,
        begun: Instant::now(),
    };
    let (results, received) = channel();
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            let results = results.clone();
            let window = &window;
            scope.spawn(move || {
                while let Some(place) = window.next() {
                    let number = plan.first + part + place * parts.max(1);
                    if results.send((place, attempt(number))).is_err() {
                        return;
                    }
                }
            });
        }
        drop(results);
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (place, tried) in received {
            waiting.insert(place, tried);
            while let Some(tried) = waiting.remove(&due) {
                due += 1;
                match tried {
                    Ok(tried) => tell(tried),
                    Err(CaseError::BrokenOff) => {}
                    Err(error) => {
                        window.change(|places| places.is_over = true);
                        return Err(error);
                    }
                }
                window.change(|places| places.told = due);
            }
        }
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    fn plan(systems: u64, jobs: usize) -> Plan {
        Plan {
            seed: 1,
            first: 100,
            systems: Some(systems),
            time: None,
            jobs,
            shard: (1, 3),
            bounds: Bounds::default(),
        }
    }

    /// Cases that end at once beside one that takes long, and beside a finding that is shrunk for long: few results wait meanwhile.
    #[test]
    fn waiting_results_have_a_bound() {
        let (begun, told) = (AtomicU64::new(0), AtomicU64::new(0));
        let most = AtomicU64::new(0);
        let attempt = |number: u64| {
            let ahead = begun.fetch_add(1, Ordering::SeqCst) + 1 - told.load(Ordering::SeqCst);
            most.fetch_max(ahead, Ordering::SeqCst);
            if number == 101 {
                std::thread::sleep(Duration::from_millis(30));
            }
            Ok(number)
        };
        let mut numbers = Vec::new();
        let mut tell = |number: u64| {
            if numbers.len() == 50 {
                std::thread::sleep(Duration::from_millis(30));
            }
            numbers.push(number);
            told.fetch_add(1, Ordering::SeqCst);
        };
        in_order(&plan(300, 2), &AtomicBool::new(false), &attempt, &mut tell).unwrap();
        assert_eq!(
            numbers,
            (0..300).map(|place| 101 + 3 * place).collect::<Vec<_>>()
        );
        let most = most.into_inner();
        assert!(most <= 2 * MAX_AHEAD + 2, "{most} results wait");
    }

    #[test]
    fn first_error_ends_all_threads() {
        let attempt = |number: u64| match number {
            103.. => Err(CaseError::File(std::io::ErrorKind::NotFound.into())),
            _ => Ok(number),
        };
        let mut told = Vec::new();
        let mut tell = |number| told.push(number);
        let ended = in_order(&plan(1000, 3), &AtomicBool::new(false), &attempt, &mut tell);
        assert!(matches!(ended, Err(CaseError::File(_))));
        assert_eq!(told, [101]);
    }
}
