//! The farm: case after case on as many threads as wanted, told in the order of their numbers.

use crate::case::Case;
use crate::draw::draw;
use crate::finding::Finding;
use crate::judge::{Bounds, judge, lacking_share};
use crate::observe::{CaseError, Observed, Programs, observe};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
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
    let (part, parts) = plan.shard;
    let begun = Instant::now();
    let next = AtomicU64::new(0);
    let (results, received) = channel();
    std::thread::scope(|scope| {
        for _ in 0..plan.jobs.max(1) {
            let results = results.clone();
            let next = &next;
            scope.spawn(move || {
                loop {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    let is_over = plan.systems.is_some_and(|systems| place >= systems)
                        || plan.time.is_some_and(|time| begun.elapsed() >= time)
                        || programs.stop.load(Ordering::Relaxed);
                    if is_over {
                        return;
                    }
                    let number = plan.first + part + place * parts.max(1);
                    let tried = attempt(draw(plan.seed, number), programs, plan.bounds);
                    if results.send((place, tried)).is_err() {
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
                        next.store(u64::MAX / 2, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        }
        Ok(())
    })
}
