//! Shrinks a case to a smaller one that breaks the same invariant.

use crate::case::{Case, Guest, WITNESS};
use crate::farm::{Tried, attempt};
use crate::judge::{Bounds, Invariant};
use crate::observe::{CaseError, Programs};

/// Options of exercises that say how much is done, which may be halved.
const COUNTS: [&str; 6] = [
    "events",
    "count",
    "rounds",
    "calls",
    "duration-ms",
    "storm-ms",
];
/// Classes of the exercise `mixture`, by the names of its option.
const CLASSES: [&str; 10] = [
    "calls",
    "instructions",
    "devices",
    "addresses",
    "tables",
    "fences",
    "rings",
    "pages",
    "interrupts",
    "waits",
];

/// Change of a VM to a smaller one.
type Change<'a> = &'a dyn Fn(&mut Guest);

/// Shrinks a case by at most so many tries. The result breaks the first invariant that `found` breaks.
///
/// # Errors
/// [`CaseError::BrokenOff`]; other errors end a try alone.
pub fn shrink(
    found: Tried,
    programs: Programs<'_>,
    bounds: Bounds,
    tries: usize,
) -> Result<Tried, CaseError> {
    let Some(invariant) = found.finding.violations.first().map(|one| one.invariant) else {
        return Ok(found);
    };
    let breaks = |case: Case| -> Result<Option<Tried>, CaseError> {
        match attempt(case, programs, bounds) {
            Ok(tried) => Ok(Some(tried).filter(|tried| tried.breaks(invariant))),
            Err(CaseError::BrokenOff) => Err(CaseError::BrokenOff),
            // A system that cannot be is no smaller case.
            Err(_) => Ok(None),
        }
    };
    descend(found, tries, |tried| smaller(&tried.finding.case), breaks)
}

impl Tried {
    /// Returns whether this invariant did not hold.
    pub fn breaks(&self, invariant: Invariant) -> bool {
        let mut violations = self.finding.violations.iter();
        violations.any(|violation| violation.invariant == invariant)
    }
}

/// Takes the first smaller thing that is still accepted, until there is none or no try is left.
fn descend<T, C, E>(
    mut least: T,
    mut tries: usize,
    smaller: impl Fn(&T) -> Vec<C>,
    accepted: impl Fn(C) -> Result<Option<T>, E>,
) -> Result<T, E> {
    // Whatever was refused is not tried again before something else has become smaller.
    let mut place = 0;
    loop {
        let candidate = smaller(&least).into_iter().nth(place);
        let Some(candidate) = candidate.filter(|_| tries > 0) else {
            return Ok(least);
        };
        tries -= 1;
        match accepted(candidate)? {
            Some(found) => (least, place) = (found, 0),
            None => place += 1,
        }
    }
}

/// The cases that are one step smaller, the largest steps first.
pub fn smaller(case: &Case) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut with = |change: &dyn Fn(&mut Case)| {
        let mut other = case.clone();
        change(&mut other);
        if other != *case {
            cases.push(other);
        }
    };
    let hostile: Vec<&Guest> = case.hostile().collect();
    if hostile.len() > 1 {
        for vm in &hostile {
            with(&|case| without(case, &vm.name));
        }
    }
    with(&|case| case.commands.clear());
    for index in 0..case.commands.len() {
        with(&|case| {
            case.commands.remove(index);
        });
    }
    with(&|case| case.check_translations = false);
    with(&|case| case.profile = None);
    with(&|case| case.faults = None);
    with(&|case| case.experiment.clear());
    for key in case.settings.keys() {
        with(&|case| {
            case.settings.remove(key);
        });
    }
    for (index, vm) in case.vms.iter().enumerate() {
        let mut with_vm = |change: &dyn Fn(&mut Guest)| {
            with(&|case| {
                if let Some(vm) = case.vms.get_mut(index) {
                    change(vm);
                }
            });
        };
        with_vm(&|vm| vm.vcpus = 1);
        with_vm(&|vm| vm.vcpus = vm.vcpus.div_ceil(2));
        with_vm(&Guest::drop_disk);
        for key in vm.settings.keys() {
            with_vm(&|vm| {
                vm.settings.remove(key);
            });
        }
        if vm.name != WITNESS {
            less_work(vm, &mut with_vm);
        }
    }
    with(&|case| case.harts = 1);
    with(&|case| case.guest_files = 0);
    cases
}

/// Takes a VM away, with what the operator says to it.
fn without(case: &mut Case, name: &str) {
    case.vms.retain(|vm| vm.name != name);
    case.commands
        .retain(|command| !command.line.split(' ').any(|word| word == name));
}

/// Lets a guest do less.
fn less_work(vm: &Guest, with_vm: &mut dyn FnMut(Change<'_>)) {
    let options = &vm.program.options;
    if vm.program.exercise == "mixture" {
        let all = CLASSES.join(",");
        let classes = options.get("classes").unwrap_or(&all);
        let classes: Vec<&str> = classes.split(',').collect();
        let halves = classes.split_at(classes.len() / 2);
        let halves = [halves.0.join(","), halves.1.join(",")];
        let singles = (0..classes.len()).map(|index| {
            let mut rest = classes.clone();
            rest.remove(index);
            rest.join(",")
        });
        for rest in halves
            .into_iter()
            .chain(singles)
            .filter(|rest| !rest.is_empty())
        {
            with_vm(&|vm| {
                let classes = String::from("classes");
                vm.program.options.insert(classes, rest.clone());
            });
        }
    }
    for name in COUNTS {
        let count = options
            .get(name)
            .and_then(|count| count.parse::<u64>().ok());
        let Some(count) = count.filter(|count| *count > 1) else {
            continue;
        };
        let half = count / 2;
        with_vm(&|vm| {
            vm.program
                .options
                .insert(String::from(name), half.to_string());
        });
        // Events and programs do not depend on those before them: the second half stands for itself.
        if ["events", "count"].contains(&name)
            && ["mixture", "fuzz"].contains(&&*vm.program.exercise)
        {
            let first = options
                .get("first")
                .and_then(|first| first.parse::<u64>().ok());
            let first = first.unwrap_or(0) + half;
            with_vm(&|vm| {
                let options = &mut vm.program.options;
                options.insert(String::from(name), (count - half).to_string());
                options.insert(String::from("first"), first.to_string());
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::draw;
    use crate::draw::tests::read_system;
    use std::convert::Infallible;

    /// Shrinks a case as long as it has what is asked for.
    fn least(case: Case, has: impl Fn(&Case) -> bool) -> Case {
        let accepted = |case: Case| Ok::<_, Infallible>(Some(case).filter(&has));
        let Ok(case) = descend(case, 10_000, smaller, accepted);
        case
    }

    fn has_program(case: &Case, exercise: &str) -> bool {
        case.hostile().any(|vm| vm.program.exercise == exercise)
    }

    #[test]
    fn least_case_has_nothing_to_spare() {
        let cases = (0..2000).map(|number| draw(5, number));
        let has = |case: &Case| has_program(case, "mixture");
        let mut cases = cases.filter(|case| has(case) && case.vms.len() == 3);
        let case = least(cases.next().unwrap(), has);
        assert_eq!((case.vms.len(), case.harts), (2, 1));
        assert_eq!(case.commands, []);
        assert_eq!(case.profile, None);
        let vm = case.hostile().next().unwrap();
        assert_eq!((vm.vcpus, vm.disk), (1, None));
        assert_eq!(vm.program.options["events"], "1");
        assert_eq!(vm.program.options["classes"].split(',').count(), 1);
    }

    #[test]
    fn one_event_of_many_is_found() {
        let cases = (0..2000).map(|number| draw(5, number));
        let events = |case: &Case| -> Option<(u64, u64)> {
            let vm = case.hostile().find(|vm| vm.program.exercise == "mixture")?;
            let number = |name: &str| vm.program.options.get(name)?.parse::<u64>().ok();
            Some((number("first").unwrap_or(0), number("events")?))
        };
        let has = |case: &Case| {
            events(case).is_some_and(|(first, count)| (first..first + count).contains(&77))
        };
        let case = cases.into_iter().find(|case| has(case)).unwrap();
        assert_eq!(events(&least(case, has)), Some((77, 1)));
    }

    #[test]
    fn smaller_systems_are_valid_or_refused() {
        let case = draw(1, 4);
        let folder = tempfile::tempdir().unwrap();
        let valid = |case: &Case| read_system(case, folder.path()).is_ok();
        let smaller = smaller(&case);
        let count = smaller.iter().filter(|case| valid(case)).count();
        assert!(2 * count > smaller.len(), "{count} of {}", smaller.len());
    }
}
