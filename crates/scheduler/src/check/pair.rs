//! Two groups of one hart each: every order of events in both, and of migrations between them.
//!
//! An action under the lock of one group is one step of that group, and so is an action under both locks. Between any two steps, anything may happen
//! in the other group. The load bits are a function of the groups' states, so they are no state of their own: a step is followed by a search of the
//! other group, as `Group::publish` makes it, and a flow that was found is followed at any time later.

use core::cell::RefCell;
use std::vec::Vec;

use stateright::{Checker, Model, Property};

use super::systems::WITHOUT_LIMIT;
use super::world::{Environment, Mode, Step, World};
use super::{has_work, next_of, strict};
use crate::base::id::{HartId, HartSet, MAX_VCPUS, VcpuId, VcpuNumber, VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::config::{Config, Placement};
use crate::decision::VcpuState;
use crate::groups::{Access, Directory, Flow, Group, GroupId, Layout, LoadBits, migration};
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

/// Both groups, and the numbers of their vCPUs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Pair {
    pub(super) worlds: [World; 2],
    names: [[Option<VcpuNumber>; MAX_VCPUS]; 2],
    /// A hart has found that a vCPU can be migrated from this group, and is about to do so.
    flows: [bool; 2],
    /// vCPUs that may still be migrated for shares.
    moves: u8,
}

/// Next event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Event {
    In(usize, Step),
    Follow(usize),
    /// Migration by a balance.
    Move(usize, VcpuId),
    /// Migration for a spinner that waits for this vCPU.
    Pull(usize, VcpuId),
}

/// Both groups, as the hypervisor has them.
struct Computer {
    groups: [RefCell<Group>; 2],
    directory: Directory,
    load_bits: LoadBits,
}

impl Access for Computer {
    fn directory(&self) -> &Directory {
        &self.directory
    }

    fn load_bits(&self) -> &LoadBits {
        &self.load_bits
    }

    fn count(&self) -> usize {
        2
    }

    fn with<R>(&self, group: GroupId, what: impl FnOnce(&mut Group) -> R) -> R {
        what(&mut self.groups[group.index()].borrow_mut())
    }

    fn with_two<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R {
        let mut one = self.groups[one.index()].borrow_mut();
        let mut other = self.groups[other.index()].borrow_mut();
        what(&mut one, &mut other)
    }
}

fn group_id(place: usize) -> GroupId {
    GroupId::new(place).unwrap()
}

impl Pair {
    /// The first VM has a vCPU in each group, the second one in the first.
    fn new(config: Config, disturbances: u8, moves: u8) -> Self {
        let hart = |place: u16| HartSet::only(HartId::new(place).unwrap());
        let mut worlds = [0, 1]
            .map(|place| World::on(config, Environment::default(), hart(place), disturbances));
        let mut names = [[None; MAX_VCPUS]; 2];
        let vm = |number| VmId::new(number).unwrap();
        for (place, world) in worlds.iter_mut().enumerate() {
            world.scheduler.register_vm(vm(0), 1, Placement::Floating);
            world.scheduler.register_vm(vm(1), 1, Placement::Floating);
            let members: &[(u16, u16)] = if place == 0 {
                &[(0, 0), (1, 2)]
            } else {
                &[(0, 1)]
            };
            for &(vm_number, number) in members {
                let vcpu = world.scheduler.create_vcpu(vm(vm_number)).unwrap();
                names[place][vcpu.index()] = VcpuNumber::new(number);
                world
                    .scheduler
                    .set_part(vm(vm_number), (1, 2 - u32::from(vm_number)));
            }
            let _ = world.scheduler.revise();
            let vcpus: Vec<VcpuId> = world.vcpus().collect();
            for vcpu in vcpus {
                let _ = world.scheduler.start(vcpu, Ticks::ZERO);
            }
            world.abstract_numbers();
        }
        let mut pair = Self {
            worlds,
            names,
            flows: [false; 2],
            moves,
        };
        for place in [0, 1] {
            let harts: Vec<HartId> = pair.worlds[place].harts().collect();
            for hart in harts {
                pair.take(Event::In(place, Step::Dispatch(hart)));
            }
        }
        pair
    }

    /// Groups in their current state.
    fn computer(&self) -> Computer {
        let mut directory = Directory::new();
        let group = |place: usize, directory: &mut Directory| {
            let world = &self.worlds[place];
            for hart in world.harts() {
                directory.assign(hart, group_id(place));
            }
            let layout = Layout::sharded(HartSet::from_bits(0b11), MAX_VCPUS).unwrap();
            let mut group = Group::new(group_id(place), world.scheduler.config, &layout).unwrap();
            let names = self.names[place].iter().enumerate();
            let vcpu = |slot: usize| VcpuId::new(u16::try_from(slot).unwrap()).unwrap();
            let known = names.filter_map(|(slot, name)| Some((vcpu(slot), (*name)?)));
            group.assume(world.scheduler.clone(), known, directory);
            RefCell::new(group)
        };
        let groups = [0, 1].map(|place| group(place, &mut directory));
        let load_bits = LoadBits::new();
        for group in &groups {
            // Flows were found when the group changed.
            let _ = group.borrow().publish(&load_bits);
        }
        Computer {
            groups,
            directory,
            load_bits,
        }
    }

    /// Applies a function to both groups. The model's state of a vCPU follows it.
    fn change(&mut self, what: impl FnOnce(&Computer) -> crate::Kicks) {
        let computer = self.computer();
        let kicks = what(&computer);
        let before = self.names;
        for (place, group) in computer.groups.iter().enumerate() {
            let group = group.borrow();
            self.worlds[place].scheduler = group.scheduler().clone();
            for (slot, name) in self.names[place].iter_mut().enumerate() {
                let vcpu = VcpuId::new(u16::try_from(slot).unwrap()).unwrap();
                *name = group.number(vcpu);
            }
        }
        for (from, to) in [(0, 1), (1, 0)] {
            for (new, name) in self.names[to].into_iter().enumerate() {
                let is_new = name.is_some() && before[to][new] != name;
                let old = before[from].iter().position(|old| is_new && *old == name);
                let slot = |slot: usize| VcpuId::new(u16::try_from(slot).unwrap()).unwrap();
                if let Some(old) = old {
                    let [first, second] = &mut self.worlds;
                    let (from, to) = if from == 0 {
                        (first, second)
                    } else {
                        (second, first)
                    };
                    for (from, to) in [
                        (&mut from.armed, &mut to.armed),
                        (&mut from.pending, &mut to.pending),
                        (&mut from.wakes, &mut to.wakes),
                        (&mut from.changed, &mut to.changed),
                    ] {
                        if from.contains(slot(old)) {
                            from.remove(slot(old));
                            to.insert(slot(new));
                        }
                    }
                }
            }
        }
        for world in &mut self.worlds {
            let own: HartSet = world.harts().collect();
            world.deliver(crate::Kicks(kicks.harts().intersection(own)));
            world.abstract_numbers();
        }
    }

    fn take(&mut self, event: Event) {
        match event {
            Event::In(place, step) => {
                if matches!(step, Step::Dispatch(_)) {
                    let other = &self.computer().groups[1 - place];
                    self.worlds[place].scheduler.others_have_surplus = other.borrow().has_surplus();
                }
                self.worlds[place].take(step);
            }
            Event::Follow(from) => {
                self.flows[from] = false;
                let flow = Flow {
                    from: group_id(from),
                    to: group_id(1 - from),
                };
                self.change(|computer| migration::follow(computer, flow, Ticks::ZERO));
            }
            Event::Move(from, vcpu) => {
                self.moves -= 1;
                self.change(|computer| {
                    computer
                        .with_two(group_id(from), group_id(1 - from), |from, to| {
                            migration::transfer(computer, (from, to), vcpu, Ticks::ZERO)
                        })
                        .unwrap_or_default()
                });
            }
            Event::Pull(from, vcpu) => {
                self.moves -= 1;
                let number = self.number(from, vcpu);
                self.change(|computer| {
                    migration::pull(computer, number, group_id(1 - from), Ticks::ZERO)
                });
            }
        }
        for (from, possible) in self.possible().into_iter().enumerate() {
            self.flows[from] |= possible;
        }
    }

    /// Returns true for each group from which a vCPU can be migrated.
    fn possible(&self) -> [bool; 2] {
        let computer = self.computer();
        let [one, other] = &computer.groups;
        let (one, other) = (one.borrow(), other.borrow());
        [(&one, &other), (&other, &one)]
            .map(|(from, to)| from.has_surplus() && (to.is_hungry() || to.has_untrapped_waits()))
    }

    pub(super) fn number(&self, place: usize, vcpu: VcpuId) -> VcpuNumber {
        self.names[place][vcpu.index()].unwrap()
    }

    /// Returns true if every vCPU that is ready, or has a reason to be, runs when nothing more comes from outside.
    fn drains(&self) -> bool {
        let mut expected: Vec<VcpuNumber> = Vec::new();
        for (place, world) in self.worlds.iter().enumerate() {
            let busy = world.vcpus().filter(|&vcpu| has_work(world, vcpu));
            expected.extend(busy.map(|vcpu| self.number(place, vcpu)));
        }
        let mut pair = self.clone();
        for world in &mut pair.worlds {
            world.changed = VcpuSet::from_bits(u64::MAX);
        }
        for turn in 0..36 {
            for place in [0, 1] {
                if pair.flows[place] {
                    pair.take(Event::Follow(place));
                }
                let harts: Vec<HartId> = pair.worlds[place].harts().collect();
                for hart in harts {
                    if let Some(step) = next_of(&pair.worlds[place], hart, turn) {
                        pair.take(Event::In(place, step));
                    }
                    if let Some(vcpu) = pair.worlds[place].scheduler.running(hart) {
                        let runs = pair.number(place, vcpu);
                        expected.retain(|&number| number != runs);
                    }
                }
            }
            if expected.is_empty() {
                return true;
            }
        }
        false
    }
}

/// A pair to explore.
pub(super) struct System {
    pub(super) config: Config,
    pub(super) disturbances: u8,
    pub(super) moves: u8,
}

impl Model for System {
    type State = Pair;
    type Action = Event;

    fn init_states(&self) -> Vec<Pair> {
        std::vec![Pair::new(self.config, self.disturbances, self.moves)]
    }

    fn actions(&self, pair: &Pair, events: &mut Vec<Event>) {
        for (place, world) in pair.worlds.iter().enumerate() {
            let mut steps = Vec::new();
            world.steps(&mut steps);
            // Allocations are made for all groups together, not in one of them.
            let steps = steps
                .into_iter()
                .filter(|step| !matches!(step, Step::Allocate(..)));
            events.extend(steps.map(|step| Event::In(place, step)));
            if pair.flows[place] {
                events.push(Event::Follow(place));
            }
            if pair.moves > 0 {
                let off = |vcpu: &VcpuId| world.scheduler.running_on(*vcpu).is_none();
                for vcpu in world.vcpus().filter(off) {
                    events.extend([Event::Move(place, vcpu), Event::Pull(place, vcpu)]);
                }
            }
        }
    }

    fn next_state(&self, pair: &Pair, event: Event) -> Option<Pair> {
        let mut next = pair.clone();
        next.take(event);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        std::vec![
            Property::always("the tables are sound", |_, pair: &Pair| {
                pair.worlds
                    .iter()
                    .all(|world| world.scheduler.check().is_ok())
            }),
            Property::always("each vCPU is in one group", |_, pair: &Pair| {
                let mut numbers: Vec<_> = pair.names.iter().flatten().flatten().collect();
                numbers.sort();
                let distinct = numbers.windows(2).all(|two| two[0] != two[1]);
                let there = |place: usize| {
                    let world = &pair.worlds[place];
                    let named = |vcpu: VcpuId| pair.names[place][vcpu.index()].is_some();
                    (0..).map_while(VcpuId::new).all(|vcpu| {
                        named(vcpu) == (world.scheduler.state(vcpu) != VcpuState::Absent)
                    })
                };
                distinct && numbers.len() == 3 && there(0) && there(1)
            }),
            Property::always("no wake-up is lost", |_, pair: &Pair| {
                pair.worlds.iter().all(|world| {
                    world.wakes.iter().all(|vcpu| {
                        world.scheduler.state(vcpu) != VcpuState::SelfWait
                            || world.is_uninterruptible(vcpu)
                    })
                })
            }),
            Property::always(
                "no hart is idle while the other group has a surplus",
                |_, pair: &Pair| {
                    let possible = pair.possible().into_iter().zip(pair.flows);
                    possible
                        .into_iter()
                        .all(|(possible, found)| found || !possible)
                }
            ),
            Property::always("every vCPU that can run will", |_, pair: &Pair| pair
                .drains()),
            Property::sometimes("a vCPU has gone to the other group", |_, pair: &Pair| {
                pair.names[1]
                    .iter()
                    .flatten()
                    .any(|number| number.get() == 2)
            }),
            Property::sometimes("a hart is idle", |_, pair: &Pair| {
                let modes = pair.worlds.iter().flat_map(|world| &world.modes);
                modes
                    .into_iter()
                    .any(|mode| matches!(mode, Mode::Asleep | Mode::InPlace))
            }),
        ]
    }
}

fn explore(spin: SpinPolicy, wait: WaitPolicy, (disturbances, moves): (u8, u8), depth: usize) {
    let system = System {
        config: strict(spin, wait),
        disturbances,
        moves,
    };
    // By breadth, which meets each state by its shortest way: a search by depth leaves out what follows a state that it has met by a longer one.
    let checker = system.checker().target_max_depth(depth);
    let checker = checker.spawn_bfs().join();
    std::println!(
        "two groups, {} {}, disturbed {disturbances} times in each, {moves} moves, to depth {depth}: {} states",
        spin.name(),
        wait.name(),
        checker.unique_state_count()
    );
    checker.assert_properties();
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn two_groups_are_explored_whole() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Wopd, WaitPolicy::HostInterrupt),
    ] {
        explore(spin, wait, (0, 1), WITHOUT_LIMIT);
    }
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn two_groups_by_reservation_are_explored() {
    explore(SpinPolicy::Reservation, WaitPolicy::SelfWait, (0, 1), 10);
}

#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn two_disturbed_groups_are_explored() {
    for (spin, wait) in [
        (SpinPolicy::Wapd, WaitPolicy::SelfWait),
        (SpinPolicy::Reservation, WaitPolicy::SelfWait),
        (SpinPolicy::Directed, WaitPolicy::HostInterrupt),
        (SpinPolicy::Rslp, WaitPolicy::SelfWaitAll),
    ] {
        explore(spin, wait, (1, 1), 7);
    }
}
