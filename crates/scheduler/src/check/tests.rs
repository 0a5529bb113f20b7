//! Soundness of the reduction by numbers.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::vec::Vec;

use stateright::Model;

use super::systems::whole;
use super::world::{Environment, Step, World};
use super::{System, strict, ways};
use crate::config::{Config, Placement};
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

fn fingerprint(world: &World) -> u64 {
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

/// Fingerprint of all worlds that differ in their numbers only.
fn class(world: &World) -> u64 {
    let numberings = world.numberings();
    let named = numberings
        .iter()
        .map(|numbers| fingerprint(&world.with(numbers)));
    named.min().unwrap()
}

/// Classes of all reachable states; `known` is the fingerprint of a state.
fn reached(system: &System, known: impl Fn(&World) -> u64) -> HashSet<u64> {
    let mut seen = HashSet::new();
    let mut classes = HashSet::new();
    let mut next = system.init_states();
    while let Some(world) = next.pop() {
        if !seen.insert(known(&world)) {
            continue;
        }
        classes.insert(class(&world));
        let mut actions = Vec::new();
        system.actions(&world, &mut actions);
        let ends = actions.into_iter();
        next.extend(ends.filter_map(|way| system.next_state(&world, way)));
    }
    classes
}

fn small_systems() -> Vec<System> {
    let changing = Environment {
        spins: &[SpinPolicy::Rslp, SpinPolicy::Directed],
        waits: &[WaitPolicy::SelfWait],
        tests_any_file: true,
        together: false,
        parameters: true,
    };
    let fixed = Config {
        placement: Placement::Fixed,
        ..strict(SpinPolicy::Wopd, WaitPolicy::SelfWait)
    };
    let directed = whole(
        strict(SpinPolicy::Directed, WaitPolicy::HostInterruptAll),
        &[2, 1],
        0,
    );
    std::vec![
        whole(strict(SpinPolicy::Wapd, WaitPolicy::SelfWait), &[2, 2], 0),
        directed,
        System {
            disturbances: 1,
            vms: &[1, 1],
            environment: changing,
            ..directed
        },
        whole(fixed, &[2, 1], 0),
        System {
            harts: 3,
            ..whole(
                strict(SpinPolicy::NotSame, WaitPolicy::SelfWait),
                &[1, 1],
                1
            )
        },
    ]
}

/// Each class that is reached with the lowest numbers is reached with the reduction too.
#[test]
#[ignore = "soak: every state of each system, twice; make soak runs it"]
fn soak_reduction_loses_no_class() {
    for system in small_systems() {
        let plain = reached(&system, fingerprint);
        let reduced = System {
            reduced: true,
            ..system
        };
        let reduced = reached(&reduced, |world| fingerprint(&world.renumbered()));
        std::println!(
            "{} classes, {} with every choice",
            plain.len(),
            reduced.len()
        );
        assert!(plain.is_subset(&reduced), "{system:?}");
    }
}

/// Step with other numbers.
fn renamed(step: Step, numbers: &super::symmetry::Numbers) -> Step {
    let (hart, vcpu) = (|hart| numbers.hart(hart), |vcpu| numbers.vcpu(vcpu));
    match step {
        Step::Dispatch(on) => Step::Dispatch(hart(on)),
        Step::Kick(on) => Step::Kick(hart(on)),
        Step::SliceEnd(on, consumed) => Step::SliceEnd(hart(on), consumed),
        Step::Guest(on, reason) => Step::Guest(hart(on), reason),
        Step::Spread(which, to) => Step::Spread(vcpu(which), hart(to)),
        Step::SpinClosed(on) => Step::SpinClosed(hart(on)),
        Step::SpinOnHolder(on, holder) => Step::SpinOnHolder(hart(on), vcpu(holder)),
        Step::Interrupt(which) => Step::Interrupt(vcpu(which)),
        Step::Wake(which) => Step::Wake(vcpu(which)),
        Step::ChangeWord(which) => Step::ChangeWord(vcpu(which)),
        Step::Start(which) => Step::Start(vcpu(which)),
        Step::Stop(which) => Step::Stop(vcpu(which)),
        Step::Pause(which) => Step::Pause(vcpu(which)),
        Step::Resume(which) => Step::Resume(vcpu(which)),
        Step::Allocate(vm, to) => Step::Allocate(numbers.vm(vm), to.map(hart)),
        Step::SetShare(vm, share) => Step::SetShare(numbers.vm(vm), share),
        Step::SetSpin(_) | Step::SetWait(_) | Step::SetSlice(_) => step,
    }
}

/// A renumbered state takes the renumbered steps: otherwise one state could not stand for its class. So many classes of each system are
/// tried.
fn renumber(tried: usize) {
    for system in small_systems() {
        let system = System {
            reduced: true,
            ..system
        };
        let mut classes = HashSet::new();
        let mut next = system.init_states();
        while let Some(world) = next.pop() {
            let known = class(&world);
            if classes.len() >= tried || !classes.insert(known) {
                continue;
            }
            let mut steps = Vec::new();
            world.steps(&mut steps);
            for step in steps {
                let ends = ways(&world, step);
                let expected: HashSet<u64> = ends.iter().map(class).collect();
                for numbers in world.numberings() {
                    let other = world.with(&numbers);
                    let step = renamed(step, &numbers);
                    let found = ways(&other, step).iter().map(class).collect();
                    assert_eq!(expected, found, "{step:?} in {other:?}");
                }
                next.extend(ends);
            }
        }
    }
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn renumbered_states_take_the_same_steps() {
    renumber(400);
}

#[test]
#[ignore = "soak: half a minute; make soak runs it"]
fn soak_renumbered_states_take_same_steps() {
    renumber(1500);
}
