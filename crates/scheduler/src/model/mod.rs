//! The model checker: every order of events in small systems.
//!
//! From each state that can be reached, nothing more happens from outside and every hart does what it
//! would do: then everybody who was ready, or had a reason to be, must have run. So no wake-up is lost,
//! nobody starves, and no spin wait is for somebody who will not come.

mod world;

use std::vec::Vec;

use stateright::{Checker, Model, Property};

use crate::config::{Config, SpinPolicy, WaitPolicy};
use crate::decision::VcpuState;
use crate::id::VcpuSet;
use crate::ticks::Ticks;
use world::{Mode, Step, World};

struct System {
    config: Config,
    harts: u64,
    vms: &'static [u16],
    disturbances: u8,
}

impl Model for System {
    type State = World;
    type Action = Step;

    fn init_states(&self) -> Vec<World> {
        std::vec![World::new(
            self.config,
            self.harts,
            self.vms,
            self.disturbances
        )]
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
        std::vec![
            Property::always("the tables are sound", |_, world: &World| {
                world.scheduler.check().is_ok()
            }),
            Property::always("nobody sleeps over a wake-up", |_, world: &World| {
                world
                    .wakes
                    .iter()
                    .all(|vcpu| world.scheduler.state(vcpu) != VcpuState::SelfWait)
            }),
            Property::always("everybody who can run will", |_, world: &World| drains(
                world
            )),
        ]
    }
}

/// Whether everybody who is ready, or has a reason to be, runs when nothing more comes from outside.
fn drains(world: &World) -> bool {
    drain(world, false)
}
fn drain(world: &World, print: bool) -> bool {
    let expected: VcpuSet = world
        .vcpus()
        .filter(|&vcpu| has_work(world, vcpu))
        .collect();
    let mut world = world.clone();
    world.changed = VcpuSet::from_bits(u64::MAX);
    let mut ran = VcpuSet::EMPTY;
    // Each turn serves two vCPUs, of six, through three subqueues.
    for turn in 0..24 {
        for hart in world.harts() {
            let step = match world.modes[hart.index()] {
                Mode::Between => Step::Dispatch(hart),
                _ if world.kicked[hart.index()] => Step::Kick(hart),
                Mode::Polling => Step::Dispatch(hart),
                Mode::Asleep => continue,
                Mode::Guest { sliced: true, .. } => Step::SliceEnd(hart, turn % 3 == 2),
                Mode::Guest { sliced: false, .. } => continue,
            };
            world.take(step);
            if print {
                std::println!(
                    "{step:?}  {:?} expected {expected:?} ran {ran:?}",
                    world
                        .vcpus()
                        .map(|v| (v, world.scheduler.state(v), world.scheduler.queue_of(v)))
                        .collect::<Vec<_>>()
                );
            }
            ran = ran.union(world.scheduler.running(hart).into_iter().collect());
        }
        if expected.without(ran).is_empty() {
            break;
        }
    }
    let left = |vcpu| {
        !matches!(
            world.scheduler.state(vcpu),
            VcpuState::Stopping(_) | VcpuState::Pausing(_)
        )
    };
    expected.without(ran).is_empty() && world.vcpus().all(left)
}

fn has_work(world: &World, vcpu: crate::VcpuId) -> bool {
    match world.scheduler.state(vcpu) {
        VcpuState::Ready | VcpuState::SpinWait => true,
        VcpuState::SelfWait => world.pending.contains(vcpu) || world.scheduler.waits_for_word(vcpu),
        _ => false,
    }
}

fn explore(config: Config, vms: &'static [u16], disturbances: u8, depth: usize) -> usize {
    let system = System {
        config,
        harts: 2,
        vms,
        disturbances,
    };
    let checker = system.checker().target_max_depth(depth).spawn_bfs().join();
    if let Some((name, path)) = checker.discoveries().into_iter().next() {
        let world = path.last_state().clone();
        if name.starts_with("every") {
            drain(&world, true);
        }
        let steps = path.into_actions();
        panic!(
            "{} / {}: not so: {name}: {steps:#?}",
            config.spin.name(),
            config.wait.name()
        );
    }
    checker.unique_state_count()
}

fn configuration(spin: SpinPolicy, wait: WaitPolicy) -> Config {
    let usual = Config::new(1_000_000);
    Config {
        spin,
        wait,
        affinity: 0,
        self_wait_budget: 1,
        ..usual
    }
}

#[test]
fn every_policy_in_a_small_system() {
    for spin in SpinPolicy::ALL {
        for wait in WaitPolicy::ALL {
            let start = std::time::Instant::now();
            let states = explore(configuration(spin, wait), &[3, 3], 2, 8);
            std::println!("{spin:?} {wait:?} {states} {:?}", start.elapsed());
        }
    }
    let _ = Ticks::ZERO;
}
