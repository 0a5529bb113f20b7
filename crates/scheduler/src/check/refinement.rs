//! Sharded queues as a refinement of the single queue: each effect of a step on vCPUs in one of two groups is possible in one queue for both harts.
//!
//! The view of a vCPU is its state and whether it has a reason to continue ([`Seen`]). A spin wait counts as ready, since a policy judges by the
//! partners of the spinner's own group. First the single queue is explored whole, with every choice, and the changes of each step are kept. Then each
//! step of the sharded queues must change nothing, or make a change that the same step makes in the single queue. It changes nothing if a hart finds
//! nothing in its own group: `super::pair` shows that work comes there. A vCPU that does not change is no part of the comparison, since a ready one
//! in another group may wait while one queue would have a hart for it.
//!
//! A migration is no step of the single queue. It may change nothing but end a wait, as each may end at any time.

use core::hash::{Hash, Hasher};
use std::collections::HashSet;
use std::hash::DefaultHasher;
use std::vec::Vec;

use stateright::Model;

use super::pair::{self, Event, Pair};
use super::systems::{WITHOUT_LIMIT, whole};
use super::world::{Step, World};
use super::{strict, ways};
use crate::base::id::{HartId, VcpuId};
use crate::config::Config;
use crate::decision::{Leave, VcpuState};
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

/// State of one vCPU, and whether it has an interrupt, a wake-up or a changed word.
type Seen = (VcpuState, bool);

/// All vCPUs, by their numbers.
type All = [Seen; 3];

/// Change of a step: nothing is kept of the vCPUs that it does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Change {
    step: Step,
    changed: [Option<(Seen, Seen)>; 3],
}

impl Change {
    fn new(from: All, step: Step, to: All) -> Self {
        let changed = core::array::from_fn(|number| {
            let (from, to) = (from[number], to[number]);
            (from != to).then_some((from, to))
        });
        Self { step, changed }
    }

    fn is_none(&self) -> bool {
        self.changed.iter().all(Option::is_none)
    }
}

fn seen(world: &World, vcpu: VcpuId) -> Seen {
    let state = match world.scheduler.state(vcpu) {
        VcpuState::SpinWait => VcpuState::Ready,
        state => state,
    };
    let reasons = [world.pending, world.wakes, world.changed];
    (state, reasons.iter().any(|reason| reason.contains(vcpu)))
}

fn of_single(world: &World) -> All {
    [0, 1, 2].map(|number| seen(world, VcpuId::new(number).unwrap()))
}

fn of_pair(pair: &Pair) -> All {
    let mut all = [(VcpuState::Absent, false); 3];
    for (place, world) in pair.worlds.iter().enumerate() {
        for vcpu in world.vcpus() {
            all[usize::from(pair.number(place, vcpu).get())] = seen(world, vcpu);
        }
    }
    all
}

/// Step of one group, in the single queue's numbers.
fn renamed(pair: &Pair, place: usize, step: Step) -> Step {
    let name = |vcpu| VcpuId::new(pair.number(place, vcpu).get()).unwrap();
    match step {
        Step::Spread(vcpu, to) => Step::Spread(name(vcpu), to),
        Step::SpinOnHolder(hart, holder) => Step::SpinOnHolder(hart, name(holder)),
        Step::Interrupt(vcpu) => Step::Interrupt(name(vcpu)),
        Step::Wake(vcpu) => Step::Wake(name(vcpu)),
        Step::ChangeWord(vcpu) => Step::ChangeWord(name(vcpu)),
        Step::Start(vcpu) => Step::Start(name(vcpu)),
        Step::Stop(vcpu) => Step::Stop(name(vcpu)),
        Step::Pause(vcpu) => Step::Pause(name(vcpu)),
        Step::Resume(vcpu) => Step::Resume(name(vcpu)),
        step => step,
    }
}

/// Visits each state up to this depth once; `next` tells where a state leads. Returns how many there are.
fn visit<S: Hash>(start: S, depth: usize, mut next: impl FnMut(&S) -> Vec<S>) -> usize {
    let fingerprint = |state: &S| {
        let mut hasher = DefaultHasher::new();
        state.hash(&mut hasher);
        hasher.finish()
    };
    let mut known = HashSet::from([fingerprint(&start)]);
    let mut level = std::vec![start];
    for _ in 1..depth {
        let ends = level.iter().flat_map(&mut next);
        level = ends.filter(|end| known.insert(fingerprint(end))).collect();
        if level.is_empty() {
            break;
        }
    }
    known.len()
}

/// Changes of the single queue's steps.
pub(super) struct Single {
    config: Config,
    changes: HashSet<Change>,
}

impl Single {
    /// Explores the system whole, with this number of disturbances.
    pub(super) fn new(spin: SpinPolicy, wait: WaitPolicy, disturbances: u8) -> Self {
        let config = strict(spin, wait);
        let mut changes = HashSet::new();
        let single = whole(config, &[2, 1], disturbances);
        let states = visit(single.start(), WITHOUT_LIMIT, |world| {
            let mut steps = Vec::new();
            world.steps(&mut steps);
            let mut ends = Vec::new();
            for step in steps {
                for end in ways(world, step) {
                    changes.insert(Change::new(of_single(world), step, of_single(&end)));
                    ends.push(end);
                }
            }
            ends
        });
        std::println!(
            "{} {}: one queue, disturbed {disturbances} times: {} changes in {states} states",
            spin.name(),
            wait.name(),
            changes.len(),
        );
        Self { config, changes }
    }

    /// Compares the sharded queues with the system, with this number of disturbances in each group.
    pub(super) fn could_do(&self, disturbances: [u8; 2], depth: usize) {
        let sharded = pair::System {
            config: self.config,
            disturbances: 0,
            moves: 1,
        };
        let mut start = sharded.init_states().remove(0);
        for (world, disturbances) in start.worlds.iter_mut().zip(disturbances) {
            world.disturbances = disturbances;
        }
        let states = visit(start, depth, |pair: &Pair| {
            let mut events = Vec::new();
            sharded.actions(pair, &mut events);
            let next = events.into_iter().map(|event| {
                let next = sharded.next_state(pair, event).unwrap();
                assert_eq!(self.lacks(pair, event, &next), None);
                next
            });
            next.collect()
        });
        std::println!(
            "  two groups, disturbed {disturbances:?} times, to depth {depth}: {states} states"
        );
    }

    /// Effect of the event on vCPUs, if the single queue has no such step.
    fn lacks(&self, pair: &Pair, event: Event, next: &Pair) -> Option<(Event, All, All)> {
        let (from, to) = (of_pair(pair), of_pair(next));
        let could = match event {
            Event::In(place, step) => {
                let change = Change::new(from, renamed(pair, place, step), to);
                change.is_none() || self.changes.contains(&change)
            }
            Event::Follow(_) | Event::Move(..) | Event::Pull(..) => {
                let mut both = from.into_iter().zip(to);
                both.all(|(from, to)| may_become(from, to))
            }
        };
        (!could).then_some((event, from, to))
    }
}

/// Returns true if a migration may have this effect on a vCPU.
fn may_become((from, reason): Seen, (to, still): Seen) -> bool {
    let ended = from == VcpuState::SelfWait && to == VcpuState::Ready;
    reason == still && (from == to || ended)
}

/// Without disturbances in the groups; without any in the single queue, few kicks would arrive there.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn two_groups_refine_one_queue() {
    let single = Single::new(SpinPolicy::Wapd, WaitPolicy::SelfWait, 1);
    single.could_do([0, 0], WITHOUT_LIMIT);
}

/// A vCPU that no event has started begins to run.
#[test]
fn step_without_a_counterpart_is_found() {
    let single = Single::new(SpinPolicy::Wapd, WaitPolicy::SelfWait, 0);
    let system = pair::System {
        config: single.config,
        disturbances: 1,
        moves: 0,
    };
    let pair = system.init_states().remove(0);
    let hart = HartId::new(0).unwrap();
    let stopped = system
        .next_state(&pair, Event::In(0, Step::Guest(hart, Leave::Stopped)))
        .unwrap();
    let dispatch = Event::In(0, Step::Dispatch(hart));
    assert_eq!(single.lacks(&stopped, dispatch, &stopped), None);
    let found = single.lacks(&stopped, dispatch, &pair);
    assert!(found.is_some());
}
