//! Model checker: every order of events in small systems.
//!
//! From each reachable state, nothing more happens from outside and every hart acts: then every vCPU that was ready, or had a reason to be, must have
//! run. So no wake-up is lost, no vCPU starves, and every spin wait ends.
//!
//! Small systems are explored whole, state by state. In larger ones, states that differ only in their numbers are one ([`symmetry`]). Beyond those,
//! long random walks are taken.

mod pair;
mod refinement;
mod soak;
mod steps;
mod symmetry;
mod systems;
mod tests;
mod walks;
mod world;

use std::sync::Arc;
use std::vec::Vec;

use stateright::{Checker, Model, Property};

use crate::base::choice;
use crate::base::id::{HartId, VcpuId, VcpuSet};
use crate::config::Config;
use crate::decision::{Leave, VcpuState};
use crate::policies::queues::Queue;
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;
use world::{Environment, Mode, Step, World};

/// A system to explore.
#[derive(Clone, Copy, Debug)]
struct System {
    config: Config,
    environment: Environment,
    harts: u64,
    vms: &'static [u16],
    /// Events from outside: interrupts, stops, pauses and their like.
    disturbances: u8,
    /// States that differ only in their numbers are one.
    reduced: bool,
    /// With `reduced`, a step ends in the state that stands for its class.
    numbered: bool,
}

/// A step, and its end.
#[derive(Clone, PartialEq)]
struct Way {
    step: Step,
    to: Arc<World>,
}

impl core::fmt::Debug for Way {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.step.fmt(formatter)
    }
}

/// Ends of a step, by every choice that the scheduler has.
fn ways(world: &World, step: Step) -> Vec<World> {
    let mut ends: Vec<World> = Vec::new();
    let every = choice::every(|| {
        let mut next = world.clone();
        next.take(step);
        next
    });
    for end in every {
        if !ends.contains(&end) {
            ends.push(end);
        }
    }
    ends
}

impl System {
    fn start(&self) -> World {
        let mut world = World::new(
            self.config,
            self.environment,
            self.harts,
            self.vms,
            self.disturbances,
        );
        for hart in world.harts() {
            world.dispatch(hart);
        }
        world
    }

    /// Explores every state.
    fn explore(self) {
        let mut checker = self.checker().threads(2);
        if self.reduced {
            checker = checker.symmetry_fn(World::renumbered);
        }
        self.conclude(checker.spawn_dfs().join(), "");
    }

    /// Explores the states that this number of steps or fewer lead to. Those of one step more are counted, but not checked.
    ///
    /// The search is by breadth and by one thread, which alone meets each state by its shortest way. A search by depth leaves out what follows a state
    /// that it has met by a longer one.
    fn explore_to_depth(self, steps: usize) {
        let system = Self {
            numbered: self.reduced,
            ..self
        };
        // The first state has depth 1, and states of the target are met alone.
        let checker = system.checker().target_max_depth(steps + 2);
        let checker = checker.spawn_bfs().join();
        self.conclude(checker, &std::format!(" of {steps} steps and one more"));
    }

    /// Prints the number of states, and asserts what must hold in them.
    fn conclude(&self, checker: impl Checker<Self>, extent: &str) {
        let Config { spin, wait, .. } = self.config;
        let Self {
            vms,
            harts,
            disturbances,
            ..
        } = self;
        let states = checker.unique_state_count();
        let kind = if self.reduced { "classes" } else { "states" };
        std::println!(
            "{} {} {vms:?} on {harts}, disturbed {disturbances} times: {states} {kind}{extent}",
            spin.name(),
            wait.name()
        );
        checker.assert_properties();
    }
}

impl Model for System {
    type State = World;
    type Action = Way;

    fn init_states(&self) -> Vec<World> {
        std::vec![self.start()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Way>) {
        let mut steps = Vec::new();
        world.steps(&mut steps);
        for step in steps {
            let ends = if self.reduced {
                ways(world, step)
            } else {
                let mut next = world.clone();
                next.take(step);
                std::vec![next]
            };
            actions.extend(ends.into_iter().map(|end| Way {
                step,
                to: Arc::new(if self.numbered { end.renumbered() } else { end }),
            }));
        }
    }

    fn next_state(&self, _: &World, way: Way) -> Option<World> {
        Some(Arc::unwrap_or_clone(way.to))
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = std::vec![
            Property::always("the tables are sound", |_, world: &World| {
                world.scheduler.check().is_ok()
            }),
            Property::always("no wake-up is lost", |_, world: &World| {
                world.wakes.iter().all(|vcpu| {
                    world.scheduler.state(vcpu) != VcpuState::SelfWait
                        || world.is_uninterruptible(vcpu)
                })
            }),
            Property::always("every vCPU that can run will", |_, world: &World| drains(
                world
            )),
        ];
        if self.config.spin != SpinPolicy::Gang {
            properties.push(Property::sometimes(
                "a VM is out of service",
                |_, world: &World| !world.scheduler.queues.members(Queue::OutService).is_empty(),
            ));
        } else {
            properties.push(Property::sometimes(
                "an alternate runs",
                |_, world: &World| world.runs_alternate(),
            ));
        }
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
            properties.push(Property::sometimes("a vCPU spins", |_, world: &World| {
                !world.scheduler.spin_waits.waiting().is_empty()
            }));
        }
        properties
    }
}

/// Returns true if every vCPU that is ready, or has a reason to be, runs when nothing more comes from outside.
fn drains(world: &World) -> bool {
    let expected: VcpuSet = world
        .vcpus()
        .filter(|&vcpu| has_work(world, vcpu))
        .collect();
    let mut world = world.clone();
    world.changed = VcpuSet::from_bits(u64::MAX);
    let mut ran = VcpuSet::EMPTY;
    // In each iteration every hart takes its next step.
    for turn in 0..24 {
        for hart in world.harts() {
            let Some(step) = next_of(&world, hart, turn) else {
                continue;
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

/// Next step of a hart if nothing comes from outside. Every third slice consumes a service quantity.
fn next_of(world: &World, hart: HartId, turn: u32) -> Option<Step> {
    Some(match world.modes[hart.index()] {
        Mode::Between => Step::Dispatch(hart),
        _ if world.kicked[hart.index()] => Step::Kick(hart),
        Mode::Polling => Step::Dispatch(hart),
        Mode::InPlace if world.other_has_interrupt(hart) => Step::Guest(hart, Leave::SelfWait),
        Mode::Guest { sliced: true, .. } => Step::SliceEnd(hart, turn % 3 == 2),
        Mode::Asleep | Mode::InPlace | Mode::Guest { sliced: false, .. } => return None,
    })
}

fn has_work(world: &World, vcpu: VcpuId) -> bool {
    match world.scheduler.state(vcpu) {
        VcpuState::Ready | VcpuState::SpinWait => true,
        VcpuState::SelfWait => world.pending.contains(vcpu) || world.scheduler.waits_for_word(vcpu),
        _ => false,
    }
}

/// Strict order of paper 000, and a budget that is soon spent.
fn strict(spin: SpinPolicy, wait: WaitPolicy) -> Config {
    Config {
        spin,
        wait,
        affinity: 0,
        self_wait_budget: 1,
        ..Config::new(1_000_000)
    }
}
