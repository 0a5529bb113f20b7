//! The model checker: every order of events in small systems.
//!
//! From each state that can be reached, nothing more happens from outside and every hart does what it
//! would do: then everybody who was ready, or had a reason to be, must have run. So no wake-up is lost,
//! nobody starves, and no spin wait is for somebody who will not come.
//!
//! Three vCPUs in two machines on two harts are explored to the end, and two machines with three each in their first steps, or on
//! demand to the end. Beyond those, long random ways are walked.

mod symmetry;
mod world;

use std::vec::Vec;

use stateright::{Checker, Model, Property};

use crate::config::{Config, Migration, SpinPolicy, WaitPolicy};
use crate::decision::{Leave, VcpuState};
use crate::id::{VcpuId, VcpuSet};
use crate::queue::Queue;
use world::{Mode, Step, World};

struct System {
    config: Config,
    vms: &'static [u16],
    /// How many things happen from outside: interrupts, stops, pauses and their like.
    disturbances: u8,
}

const HARTS: u64 = 2;

impl Model for System {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        let mut world = World::new(self.config, HARTS, self.vms, self.disturbances);
        for hart in world.harts() {
            world.dispatch(hart);
        }
        std::vec![world]
    }

    fn actions(&self, world: &World, steps: &mut Vec<Step>) {
        world.steps(steps);
    }

    fn next_state(&self, world: &World, step: Step) -> Option<World> {
        let mut next = world.clone();
        next.take(step);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = std::vec![
            Property::always("the tables are sound", |_, world: &World| {
                world.scheduler.check().is_ok()
            }),
            Property::always("nobody sleeps over a wake-up", |_, world: &World| {
                world.wakes.iter().all(|vcpu| {
                    world.scheduler.state(vcpu) != VcpuState::SelfWait || world.is_deaf(vcpu)
                })
            }),
            Property::always("everybody who can run will", |_, world: &World| drains(
                world
            )),
            Property::sometimes("a virtual machine is out of service", |_, world: &World| {
                !world.scheduler.queues.members(Queue::OutService).is_empty()
            }),
        ];
        if self.disturbances > 0 {
            properties.push(Property::sometimes(
                "a wake-up comes before its vCPU waits",
                |_, world: &World| {
                    let runs = |vcpu| world.scheduler.running_on(vcpu).is_some();
                    world.wakes.iter().any(runs)
                },
            ));
        }
        if matches!(self.config.spin, SpinPolicy::Wopd | SpinPolicy::Wapd) {
            properties.push(Property::sometimes("somebody spins", |_, world: &World| {
                !world.scheduler.spin_waits.waiting().is_empty()
            }));
        }
        properties
    }
}

/// Whether everybody who is ready, or has a reason to be, runs when nothing more comes from outside.
fn drains(world: &World) -> bool {
    let expected: VcpuSet = world
        .vcpus()
        .filter(|&vcpu| has_work(world, vcpu))
        .collect();
    let mut world = world.clone();
    world.changed = VcpuSet::from_bits(u64::MAX);
    let mut ran = VcpuSet::EMPTY;
    // In each turn every hart does its next thing. Every third slice consumes a service quantity.
    for turn in 0..24 {
        for hart in world.harts() {
            let step = match world.modes[hart.index()] {
                Mode::Between => Step::Dispatch(hart),
                _ if world.kicked[hart.index()] => Step::Kick(hart),
                Mode::Polling => Step::Dispatch(hart),
                Mode::InPlace if world.other_has_interrupt(hart) => {
                    Step::Guest(hart, Leave::SelfWait)
                }
                Mode::Guest { sliced: true, .. } => Step::SliceEnd(hart, turn % 3 == 2),
                Mode::Asleep | Mode::InPlace | Mode::Guest { sliced: false, .. } => continue,
            };
            world.take(step);
            ran = ran.union(world.scheduler.running(hart).into_iter().collect());
        }
        let under_way = |vcpu| {
            let state = world.scheduler.state(vcpu);
            matches!(state, VcpuState::Stopping(_) | VcpuState::Pausing(_))
        };
        if expected.without(ran).is_empty() && !world.vcpus().any(under_way) {
            return true;
        }
    }
    false
}

fn has_work(world: &World, vcpu: VcpuId) -> bool {
    match world.scheduler.state(vcpu) {
        VcpuState::Ready | VcpuState::SpinWait => true,
        VcpuState::SelfWait => world.pending.contains(vcpu) || world.scheduler.waits_for_word(vcpu),
        _ => false,
    }
}

/// Explores a system to this depth.
fn explore(
    spin: SpinPolicy,
    wait: WaitPolicy,
    vms: &'static [u16],
    disturbances: u8,
    depth: usize,
) {
    explore_with(strict(spin, wait), vms, disturbances, depth);
}

/// The strict order of paper 000, and a budget that is soon spent.
fn strict(spin: SpinPolicy, wait: WaitPolicy) -> Config {
    Config {
        spin,
        wait,
        affinity: 0,
        self_wait_budget: 1,
        ..Config::new(1_000_000)
    }
}

fn explore_with(config: Config, vms: &'static [u16], disturbances: u8, depth: usize) {
    let Config { spin, wait, .. } = config;
    let system = System {
        config,
        vms,
        disturbances,
    };
    let checker = system
        .checker()
        .target_max_depth(depth)
        .threads(2)
        .symmetry_fn(World::renumbered)
        .spawn_dfs()
        .join();
    let states = checker.unique_state_count();
    std::println!("{} {} {vms:?}: {states} states", spin.name(), wait.name());
    checker.assert_properties();
}

/// Far more than the depth of the small system: all of its states.
const WITHOUT_LIMIT: usize = 10_000;

#[test]
fn all_states_of_three_vcpus_by_host_interrupt() {
    for spin in SpinPolicy::ALL
        .into_iter()
        .filter(|&spin| spin != SpinPolicy::Reservation)
    {
        explore(spin, WaitPolicy::HostInterrupt, &[2, 1], 1, WITHOUT_LIMIT);
    }
}

#[test]
fn all_states_of_three_vcpus_by_self_wait() {
    for spin in [SpinPolicy::Wopd, SpinPolicy::Wapd, SpinPolicy::Rslp] {
        for wait in [WaitPolicy::SelfWait, WaitPolicy::SelfWaitAll] {
            explore(spin, wait, &[2, 1], 1, WITHOUT_LIMIT);
        }
    }
}

/// Nobody is dispatched twice in a row on one hart.
#[test]
fn all_states_of_three_vcpus_that_always_move() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Rslp, WaitPolicy::SelfWait),
        (SpinPolicy::Wopd, WaitPolicy::SelfWaitAll),
    ] {
        let config = Config {
            migration: Migration::Always,
            ..strict(spin, wait)
        };
        explore_with(config, &[2, 1], 1, WITHOUT_LIMIT);
    }
}

/// Words to wait for, with a holder that is known or not.
#[test]
fn all_states_of_three_vcpus_by_reservation() {
    for wait in [WaitPolicy::HostInterrupt, WaitPolicy::SelfWait] {
        explore(SpinPolicy::Reservation, wait, &[2, 1], 0, WITHOUT_LIMIT);
        explore(SpinPolicy::Reservation, wait, &[2, 1], 1, 14);
    }
}

#[test]
fn all_states_of_two_machines_with_two_vcpus() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
    ] {
        explore(spin, wait, &[2, 2], 0, WITHOUT_LIMIT);
        explore(spin, wait, &[2, 2], 1, 14);
    }
}

#[test]
fn undisturbed_states_of_two_machines_with_three_vcpus() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Rslp, WaitPolicy::SelfWait),
    ] {
        explore(spin, wait, &[3, 3], 0, WITHOUT_LIMIT);
    }
}

#[test]
fn first_steps_of_two_machines_with_three_vcpus() {
    for (spin, wait) in [
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Rslp, WaitPolicy::HostInterruptAll),
        (SpinPolicy::NotSame, WaitPolicy::SelfWait),
        (SpinPolicy::Directed, WaitPolicy::SelfWait),
        (SpinPolicy::Reservation, WaitPolicy::SelfWaitAll),
    ] {
        explore(spin, wait, &[3, 3], 2, 7);
    }
}

/// Walks through a system at random: `paths` ways of so many steps, each from its own seed.
fn walk(spin: SpinPolicy, wait: WaitPolicy, vms: &'static [u16], paths: u64, steps: u32) {
    for seed in 1..=paths {
        let mut random = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let migration = match seed % 4 {
            0 => Migration::Always,
            _ => Migration::AsNeeded,
        };
        let config = Config {
            spin,
            wait,
            migration,
            affinity: 1,
            self_wait_budget: 2,
            ..Config::new(1_000_000)
        };
        let mut world = World::new(config, HARTS, vms, u8::MAX);
        for hart in world.harts() {
            world.dispatch(hart);
        }
        let mut taken = Vec::new();
        let mut possible = Vec::new();
        for number in 0..steps {
            world.steps(&mut possible);
            // Marsaglia's xorshift.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = usize::try_from(random % possible.len() as u64).unwrap();
            let step = possible[place];
            possible.clear();
            taken.push(step);
            world.take(step);
            world.disturbances = u8::MAX;
            let told = || std::format!("{} {} seed {seed}: {taken:?}", spin.name(), wait.name());
            assert_eq!(world.scheduler.check(), Ok(()), "{}", told());
            let sleeps = |vcpu| world.scheduler.state(vcpu) == VcpuState::SelfWait;
            let missed = |vcpu| sleeps(vcpu) && !world.is_deaf(vcpu);
            assert!(!world.wakes.iter().any(missed), "{}", told());
            assert!(number % 4 != 0 || drains(&world), "{}", told());
        }
    }
}

/// What lies far beyond the first steps of the large systems, and a machine that gets a hart of its own and gives it back.
#[test]
fn long_ways_through_two_machines() {
    for spin in SpinPolicy::ALL {
        for wait in WaitPolicy::ALL {
            walk(spin, wait, &[3, 3], 8, 1500);
            walk(spin, wait, &[3, 1], 8, 1500);
        }
    }
}

/// Two machines with three vCPUs each, to the end or as far as `PARTITA_MODEL_DEPTH` says, with one disturbance or as many as
/// `PARTITA_MODEL_DISTURBANCES` says:
/// `cargo test -p scheduler --release -- --ignored --nocapture states_of_two_machines_with_three`.
fn explore_three_and_three(policies: &[SpinPolicy]) {
    let number = |name, usual: usize| {
        let text = std::env::var(name).ok();
        text.map_or(usual, |text| text.parse().unwrap())
    };
    let depth = number("PARTITA_MODEL_DEPTH", WITHOUT_LIMIT);
    let disturbances = number("PARTITA_MODEL_DISTURBANCES", 1);
    let disturbances = u8::try_from(disturbances).unwrap();
    for &spin in policies {
        for wait in WaitPolicy::ALL {
            explore(spin, wait, &[3, 3], disturbances, depth);
        }
    }
}

#[test]
#[ignore = "takes a minute or two for each pair of policies, with two threads"]
fn all_states_of_two_machines_with_three_vcpus() {
    explore_three_and_three(&[
        SpinPolicy::Wapd,
        SpinPolicy::Wopd,
        SpinPolicy::Rslp,
        SpinPolicy::None,
        SpinPolicy::NotSame,
    ]);
}

/// These remember more, who was favoured last and who waits for which word, and have many more states.
#[test]
#[ignore = "takes half an hour and more for each pair of policies, and gigabytes"]
fn many_states_of_two_machines_with_three_vcpus() {
    explore_three_and_three(&[SpinPolicy::Directed, SpinPolicy::Reservation]);
}
