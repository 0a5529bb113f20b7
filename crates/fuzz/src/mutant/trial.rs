//! Tries of a mutant: systems of the farm, until one of them breaks an invariant that holds on the sound hypervisor.

use crate::case::Case;
use crate::draw::draw;
use crate::farm::attempt;
use crate::judge::{Bounds, Invariant, Violation};
use crate::observe::{CaseError, Programs};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use system::cache::Cache;

/// The two hypervisors that a mutant is tried with.
#[derive(Debug, Clone, Copy)]
pub struct Hypervisors<'a> {
    /// The one with the fault.
    pub mutant: &'a Path,
    /// The one without.
    pub sound: &'a Path,
}

/// Systems that a mutant is tried with.
#[derive(Debug, Clone, Copy)]
pub struct MutantTrial<'a> {
    /// Seed of the systems.
    pub seed: u64,
    /// Number of the first system.
    pub first: u64,
    /// How many systems are tried at most.
    pub systems: Option<u64>,
    /// How long systems are begun.
    pub time: Option<Duration>,
    /// Bounds of the invariants that have one.
    pub bounds: Bounds,
    /// Where built files are.
    pub cache: &'a Cache,
    /// Breaks the trial off.
    pub stop: &'a AtomicBool,
}

/// End of a mutant's trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// An invariant that holds on the sound hypervisor does not hold.
    Convicted {
        /// The system, as its seed and number.
        system: String,
        /// Invariant; none where the hypervisor refuses a system that the sound one takes.
        invariant: Option<Invariant>,
        /// Observation that shows it.
        detail: String,
        /// Systems that were tried, this one among them.
        systems: u64,
        /// Time from the first system's begin.
        time: Duration,
    },
    /// Every invariant holds that holds on the sound hypervisor.
    Survived {
        /// Systems that were tried.
        systems: u64,
        /// Time that they took.
        time: Duration,
    },
}

/// Tries a mutant. The machine has no profile, so that a system takes a fraction of a second.
///
/// # Errors
/// [`CaseError`]; a system that the mutant refuses is no error.
pub fn try_mutant(
    hypervisors: Hypervisors<'_>,
    trial: &MutantTrial<'_>,
) -> Result<Outcome, CaseError> {
    search(
        trial,
        &|number| run(hypervisors.mutant, trial, number),
        &|number| run(hypervisors.sound, trial, number),
    )
}

/// Invariants that the hypervisor without a fault breaks in the first system of a trial. Where [`Invariant::HypervisorGoesOn`] is among them it does
/// not run at all, and no trial would say anything.
///
/// # Errors
/// [`CaseError`].
pub fn try_sound(hypervisor: &Path, trial: &MutantTrial<'_>) -> Result<Vec<Violation>, CaseError> {
    run(hypervisor, trial, trial.first)
}

fn run(
    hypervisor: &Path,
    trial: &MutantTrial<'_>,
    number: u64,
) -> Result<Vec<Violation>, CaseError> {
    let programs = Programs {
        hypervisor,
        cache: trial.cache,
        stop: trial.stop,
        code: None,
    };
    let case = Case {
        profile: None,
        ..draw(trial.seed, number)
    };
    let tried = attempt(case, programs, trial.bounds)?;
    Ok(tried.finding.violations)
}

/// Runs the system of a number, and returns the invariants that it breaks.
type Run<'a> = &'a dyn Fn(u64) -> Result<Vec<Violation>, CaseError>;

fn search(trial: &MutantTrial<'_>, mutant: Run<'_>, sound: Run<'_>) -> Result<Outcome, CaseError> {
    let begun = Instant::now();
    let mut systems = 0;
    let goes_on = |systems: u64| {
        trial.systems.is_none_or(|most| systems < most)
            && trial.time.is_none_or(|most| begun.elapsed() < most)
    };
    while goes_on(systems) {
        if trial.stop.load(Ordering::Relaxed) {
            return Err(CaseError::BrokenOff);
        }
        let number = trial.first + systems;
        systems += 1;
        let found = match mutant(number) {
            Ok(violations) => violations
                .into_iter()
                .map(|one| (Some(one.invariant), one.detail))
                .collect(),
            Err(CaseError::Refused { refusal, .. }) => vec![(None, refusal)],
            Err(error) => return Err(error),
        };
        if found.is_empty() {
            continue;
        }
        let holds_not: Vec<Invariant> = sound(number)?.iter().map(|one| one.invariant).collect();
        let new = found.into_iter().find(|(invariant, _)| {
            invariant.is_none_or(|invariant| !holds_not.contains(&invariant))
        });
        if let Some((invariant, detail)) = new {
            return Ok(Outcome::Convicted {
                system: format!("{}-{number}", trial.seed),
                invariant,
                detail,
                systems,
                time: begun.elapsed(),
            });
        }
    }
    Ok(Outcome::Survived {
        systems,
        time: begun.elapsed(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(invariants: &[Invariant]) -> Vec<Violation> {
        let violation = |invariant: &Invariant| Violation {
            invariant: *invariant,
            detail: invariant.to_string(),
        };
        invariants.iter().map(violation).collect()
    }

    fn searched(mutant: Run<'_>, sound: Run<'_>) -> Result<Outcome, CaseError> {
        let folder = tempfile::tempdir().unwrap();
        let trial = MutantTrial {
            seed: 5,
            first: 10,
            systems: Some(4),
            time: None,
            bounds: Bounds::default(),
            cache: &Cache::new(folder.path()),
            stop: &AtomicBool::new(false),
        };
        search(&trial, mutant, sound)
    }

    /// The sound hypervisor keeps a hart too long in system 11, so that convicts nobody there.
    #[test]
    fn what_sound_breaks_convicts_no_mutant() {
        use Invariant::{LongestStretch, WitnessMemory};
        let sound = |number| Ok(broken(if number == 11 { &[LongestStretch] } else { &[] }));
        let survived = searched(&sound, &sound).unwrap();
        assert!(matches!(survived, Outcome::Survived { systems: 4, .. }));
        let mutant = |number| {
            let found: &[Invariant] = match number {
                11 => &[LongestStretch],
                12 => &[WitnessMemory],
                _ => &[],
            };
            Ok(broken(found))
        };
        let Outcome::Convicted {
            system,
            invariant,
            systems,
            ..
        } = searched(&mutant, &sound).unwrap()
        else {
            panic!("not convicted");
        };
        assert_eq!(
            (&*system, invariant, systems),
            ("5-12", Some(WitnessMemory), 3)
        );
    }

    #[test]
    fn refusal_of_a_good_system_convicts() {
        let refuses = |number| {
            Err(CaseError::Refused {
                case: format!("5-{number}"),
                refusal: String::from("no"),
            })
        };
        let convicted = searched(&refuses, &|_| Ok(Vec::new())).unwrap();
        assert!(matches!(
            convicted,
            Outcome::Convicted {
                invariant: None,
                systems: 1,
                ..
            }
        ));
        assert!(
            searched(&refuses, &refuses).is_err(),
            "the system is refused by all"
        );
    }
}
