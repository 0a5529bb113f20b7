//! Explorations that take too long for every test: `make soak`, or `cargo test -p scheduler --release --lib -- --ignored --nocapture --test-threads 1
//! soak`.
//!
//! `PARTITA_MODEL_DEPTH` and `PARTITA_MODEL_DISTURBANCES` set the depth in steps and the number of disturbances (1). Without a depth, a system
//! of at most some millions of states is explored whole.

use super::refinement::Single;
use super::systems::{WITHOUT_LIMIT, reduced, whole};
use super::world::Environment;
use super::{System, strict};
use crate::config::{Config, Placement};
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

fn number(name: &str) -> Option<usize> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap())
}

/// Explores every state, or those to the depth that the environment names.
fn explore(system: System) {
    match number("PARTITA_MODEL_DEPTH") {
        Some(depth) => system.explore_to_depth(depth),
        None => system.explore(),
    }
}

/// Explores the states of this number of steps, or of that which the environment names.
fn explore_to_depth(system: System, steps: usize) {
    system.explore_to_depth(number("PARTITA_MODEL_DEPTH").unwrap_or(steps));
}

fn disturbances() -> u8 {
    u8::try_from(number("PARTITA_MODEL_DISTURBANCES").unwrap_or(1)).unwrap()
}

/// All pairs of policies, without any reduction, but for those with `reservation`: their states do not fit into the memory of a computer.
#[test]
#[ignore = "takes minutes"]
fn every_policy_is_explored_whole() {
    let spins = SpinPolicy::ALL.into_iter();
    for spin in spins.filter(|spin| *spin != SpinPolicy::Reservation) {
        for wait in WaitPolicy::ALL {
            explore(whole(strict(spin, wait), &[2, 1], disturbances()));
        }
    }
}

#[test]
#[ignore = "takes minutes"]
fn reservation_is_explored_undisturbed() {
    for wait in WaitPolicy::ALL {
        explore(reduced(strict(SpinPolicy::Reservation, wait), &[2, 1], 0));
    }
}

/// Bounded: `host-interrupt` alone has 13,900,574 classes.
#[test]
#[ignore = "takes minutes"]
fn reservation_is_explored_with_disturbances() {
    for wait in WaitPolicy::ALL {
        let strict = strict(SpinPolicy::Reservation, wait);
        explore_to_depth(reduced(strict, &[2, 1], disturbances()), 8);
    }
}

#[test]
#[ignore = "takes minutes"]
fn fixed_placement_is_explored_by_every_policy() {
    for spin in SpinPolicy::ALL {
        for wait in [WaitPolicy::HostInterrupt, WaitPolicy::SelfWait] {
            let config = Config {
                placement: Placement::Fixed,
                ..strict(spin, wait)
            };
            explore(reduced(config, &[2, 2], 0));
        }
    }
}

/// From every policy to every other. Bounded: the choices of the operator make each of some million classes expensive.
#[test]
#[ignore = "takes minutes"]
fn every_change_of_policy_is_explored() {
    let environment = Environment {
        spins: &SpinPolicy::ALL,
        waits: &WaitPolicy::ALL,
        parameters: true,
        ..Environment::default()
    };
    for spin in SpinPolicy::ALL {
        let system = reduced(strict(spin, WaitPolicy::SelfWait), &[2, 1], disturbances());
        let system = System {
            environment,
            ..system
        };
        explore_to_depth(system, 6);
    }
}

#[test]
#[ignore = "takes minutes"]
fn three_harts_are_explored_with_disturbances() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Rslp, WaitPolicy::HostInterrupt),
        (SpinPolicy::NotSame, WaitPolicy::SelfWaitAll),
    ] {
        let system = reduced(strict(spin, wait), &[2, 2], disturbances());
        explore(System { harts: 3, ..system });
    }
}

#[test]
#[ignore = "takes minutes"]
fn two_vms_of_three_vcpus_are_explored() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Rslp, WaitPolicy::SelfWait),
    ] {
        explore(reduced(strict(spin, wait), &[3, 3], 0));
    }
}

/// Two disturbances come to the first steps.
#[test]
#[ignore = "takes minutes"]
fn first_states_of_three_vcpus_are_explored() {
    for (spin, wait, steps) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait, 5),
        (SpinPolicy::Rslp, WaitPolicy::HostInterruptAll, 5),
        (SpinPolicy::Directed, WaitPolicy::SelfWait, 5),
        // Any VM may be boosted at each search.
        (SpinPolicy::Reservation, WaitPolicy::SelfWaitAll, 4),
    ] {
        explore_to_depth(reduced(strict(spin, wait), &[3, 3], 2), steps);
    }
}

#[test]
#[ignore = "takes hours"]
fn every_policy_on_two_vms_and_disturbances() {
    for spin in SpinPolicy::ALL {
        for wait in WaitPolicy::ALL {
            explore(reduced(strict(spin, wait), &[3, 3], disturbances()));
        }
    }
}

/// One queue with two disturbances against two groups with fewer, whole as far as their number allows.
#[test]
#[ignore = "takes minutes"]
fn two_groups_refine_one_queue() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Directed, WaitPolicy::HostInterrupt),
        (SpinPolicy::Rslp, WaitPolicy::SelfWaitAll),
    ] {
        let single = Single::new(spin, wait, 2);
        single.could_do([0, 0], WITHOUT_LIMIT);
        for disturbances in [[1, 0], [0, 1]] {
            single.could_do(disturbances, 8);
        }
        single.could_do([1, 1], 6);
    }
}
