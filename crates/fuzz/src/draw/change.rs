//! Cases that are mutations of others.

use super::programs;
use super::{commands, placement, settings};
use crate::case::{Case, Guest, WITNESS};
use exerciser::random::Random;

/// Changes of a case at most.
const MAX_CHANGES: u64 = 3;
/// Most that a count of work is raised to.
const MAX_COUNT: u64 = 4000;
/// Options that say how much is done.
const COUNTS: [&str; 4] = ["events", "count", "rounds", "calls"];

/// A case that is `one` with parts of `other` and some drawn anew. It has this seed and number.
pub fn mutate(one: &Case, other: &Case, (seed, number): (u64, u64), random: &mut Random) -> Case {
    let mut case = Case {
        seed,
        number,
        ..one.clone()
    };
    for _ in 0..=random.below(MAX_CHANGES) {
        change(&mut case, other, random);
    }
    case.settle();
    case
}

fn change(case: &mut Case, other: &Case, random: &mut Random) {
    match random.below(9) {
        0 => case.machine_seed = random.below(1 << 32),
        1 => case.settings = settings(random),
        2 => case.commands = commands(random, &case.vms),
        3 => case.harts = 1 + random.below(3),
        4 => case.guest_files = random.pick(&[0, 1, 3, 7]),
        5 => {
            // The other's command of the operator may be to a VM that is not there.
            let names: Vec<&str> = case.vms.iter().map(|vm| vm.name.as_str()).collect();
            let fits = |line: &str| {
                line.rsplit(' ')
                    .next()
                    .is_some_and(|name| names.contains(&name))
            };
            let commands = other.commands.iter().filter(|one| fits(&one.line));
            case.commands = commands.cloned().collect();
        }
        6 => {
            let foreign = other.hostile().next().cloned();
            if let (Some(vm), Some(mut foreign)) = (hostile(case, random), foreign) {
                foreign.name.clone_from(&vm.name);
                *vm = foreign;
            }
        }
        7 => {
            let seed = random.below(1 << 20).to_string();
            let doubles = random.one_in(2);
            if let Some(vm) = hostile(case, random) {
                for name in COUNTS {
                    let count = vm.program.options.get(name);
                    let count = count.and_then(|count| count.parse::<u64>().ok());
                    if let Some(count) = count.filter(|count| doubles && 2 * count <= MAX_COUNT) {
                        let options = &mut vm.program.options;
                        options.insert(String::from(name), (2 * count).to_string());
                    }
                }
                if let Some(place) = vm.program.options.get_mut("seed") {
                    *place = seed;
                }
            }
        }
        _ => {
            let mut drawn = random.clone();
            if let Some(vm) = hostile(case, random) {
                vm.settings = placement(&mut drawn, vm.disk);
                let is_paged = vm
                    .settings
                    .get("placement")
                    .is_some_and(|one| one == "\"paged\"");
                vm.program = programs::draw(&mut drawn, vm.vcpus, is_paged, vm.disk.is_some());
            }
        }
    }
}

/// One of the hostile VMs.
fn hostile<'a>(case: &'a mut Case, random: &mut Random) -> Option<&'a mut Guest> {
    let hostile = case.vms.iter_mut().filter(|vm| vm.name != WITNESS);
    let mut hostile: Vec<&mut Guest> = hostile.collect();
    let index = random.below(hostile.len() as u64) as usize;
    (index < hostile.len()).then(|| hostile.swap_remove(index))
}

#[cfg(test)]
mod tests {
    use super::super::draw;
    use super::super::tests::read_system;
    use super::*;

    #[test]
    fn most_mutations_are_valid_systems() {
        let folder = tempfile::tempdir().unwrap();
        let mut random = Random::new(9);
        let valid = (0..100).filter(|number| {
            let (one, other) = (draw(2, *number), draw(3, *number));
            let case = mutate(&one, &other, (4, *number), &mut random);
            assert_eq!((case.seed, case.number), (4, *number));
            assert_eq!(case.vms[0].name, WITNESS);
            read_system(&case, folder.path()).is_ok()
        });
        let valid = valid.count();
        assert!(valid > 80, "{valid} of 100");
    }
}
