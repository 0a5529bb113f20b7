//! The model checker: every order of events in small computers, and in the middle of each step a step of another hart.
//!
//! Small systems are explored whole, without any symmetry. Larger ones are walked through at random.

mod computer;
mod step;
mod world;

use std::println;
use std::vec::Vec;

use scheduler::{HartId, VcpuNumber};
use stateright::{Checker, Model, Property};

use super::{Backing, Departure, GuestFile, Owner};
use computer::HardwareFile;
use step::Step;
use world::{COUNTED, Message, OF_SOURCE, World};

/// A step, and what happens in its middle, after how many accesses.
type Action = (Step, Option<(u32, Step)>);

struct System(World);

impl Model for System {
    type State = World;
    type Action = Action;

    fn init_states(&self) -> Vec<World> {
        std::vec![self.0.clone()]
    }

    fn actions(&self, world: &World, actions: &mut Vec<Action>) {
        actions_of(world, actions);
    }

    fn next_state(&self, world: &World, (step, interruption): Action) -> Option<World> {
        Some(world.after(step, interruption).0)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        let mut properties = std::vec![
            Property::always("every invariant holds", |_, world: &World| {
                broken(world).is_none()
            }),
            Property::always(
                "forwarders end, and interrupts arrive",
                |_, world: &World| { drains(world).is_ok() }
            ),
        ];
        if self.0.hardware_files() > 0 {
            properties.push(Property::sometimes(
                "a file forwards",
                |_, world: &World| world.forwarders() > 0,
            ));
        }
        properties
    }
}

fn actions_of(world: &World, actions: &mut Vec<Action>) {
    let mut steps = Vec::new();
    world.steps(&mut steps);
    actions.extend(steps.iter().map(|step| (*step, None)));
    if world.interruptions == 0 {
        return;
    }
    for &step in &steps {
        let (_, accesses) = world.after(step, None);
        for access in 0..accesses {
            actions.extend(
                steps
                    .iter()
                    .filter(|other| elsewhere(step, **other))
                    .map(|other| (step, Some((access, *other)))),
            );
        }
    }
}

/// Returns true if `other` can happen in the middle of `step`: on another hart, or on none.
fn elsewhere(step: Step, other: Step) -> bool {
    let hart = |step| match step {
        Step::Dispatch(hart, _)
        | Step::Watch(hart, _)
        | Step::Enter(hart)
        | Step::Exit(hart)
        | Step::Attend(hart)
        | Step::Poll(hart)
        | Step::Leave(hart, _)
        | Step::Claim(hart, _)
        | Step::Meddle(hart)
        | Step::Disable(hart)
        | Step::Send { by: hart, .. } => Some(hart),
        Step::Arrive(_) | Step::Fire | Step::Reroute(_) | Step::Reset(_) => None,
    };
    // What starts a VM anew waits until nothing of it is under way.
    let anew = |step| matches!(step, Step::Reset(_) | Step::Reroute(_));
    !anew(step) && !anew(other) && (hart(step).is_none() || hart(step) != hart(other))
}

impl World {
    fn hardware_files(&self) -> usize {
        self.harts.iter().map(|hart| hart.hardware.len()).sum()
    }

    fn owners(&self) -> impl Iterator<Item = (HartId, GuestFile, Owner)> {
        let harts = self.hart_ids().zip(&self.harts);
        harts.flat_map(|(id, hart)| {
            hart.files
                .iter()
                .map(move |(file, owner)| (id, file, owner))
        })
    }

    fn forwarders(&self) -> usize {
        let forwards = |(_, _, owner): &(_, _, Owner)| matches!(owner, Owner::Forwarder(_));
        self.owners().filter(forwards).count()
    }

    /// Number of places that hold the interrupt that was sent to `vcpu`.
    fn places(&self, vcpu: VcpuNumber, bit: u64) -> usize {
        let kept = &self.vcpu(vcpu).interrupts;
        let in_memory = usize::from(kept.state.pending & bit != 0);
        let files = self.owners().filter(|(_, _, owner)| match owner {
            Owner::Free => false,
            Owner::Vcpu(of) => *of == vcpu,
            Owner::Forwarder(forwarder) => forwarder.vcpu == vcpu && forwarder.life == kept.life,
        });
        let in_files = files.map(|(hart, file, _)| {
            let there = usize::from(self.hardware(hart, file).pending[0] & bit != 0);
            let message = Message::ToFile(file);
            let coming = match bit == OF_SOURCE.bit() {
                true => &self.harts[hart.index()].in_flight[..],
                false => &[],
            };
            there + coming.iter().filter(|other| **other == message).count()
        });
        in_memory + in_files.sum::<usize>()
    }
}

/// The first invariant that does not hold (INVARIANTS.md).
fn broken(world: &World) -> Option<&'static str> {
    if world.broken.is_some() {
        return world.broken;
    }
    for (hart, file, owner) in world.owners() {
        let here = Backing::File { hart, file };
        let state = world.hardware(hart, file);
        let watched = world.harts[hart.index()].watched & file.bit() != 0;
        let of = match owner {
            Owner::Free => None,
            Owner::Vcpu(vcpu) => Some(vcpu),
            Owner::Forwarder(forwarder) => Some(forwarder.vcpu),
        };
        let is_backing = |vcpu: VcpuNumber| world.vcpu(vcpu).interrupts.backing() == here;
        if world
            .vcpu_ids()
            .any(|vcpu| is_backing(vcpu) != (owner == Owner::Vcpu(vcpu)))
        {
            return Some("a file is the backing of a vCPU that does not own it, or is not");
        }
        let vm = of.map(|vcpu| world.vcpu(vcpu).vm);
        for other in world.harts.iter().filter(|hart| hart.in_guest) {
            let mut reached = other.reach.iter();
            let reaches = reached.any(|(_, through)| through.is(here));
            if reaches && other.declared.map(|(of, _)| of) != vm {
                return Some("a guest can send to a file that is not its VM's");
            }
        }
        let watched_waiters = world.harts[hart.index()].watched_waiters & file.bit() != 0;
        let waits = |vcpu: VcpuNumber| {
            let departure = world.vcpu(vcpu).departure;
            matches!(departure, Some(Departure::Waits { watched: true }))
        };
        if let Owner::Vcpu(vcpu) = owner
            && watched
            && !watched_waiters
            && !waits(vcpu)
        {
            return Some("a file is watched for no waiter");
        }
        if owner == Owner::Free {
            if *state != HardwareFile::default() || watched {
                return Some("a free file is not empty");
            }
            let coming = world.harts[hart.index()]
                .in_flight
                .contains(&Message::ToFile(file));
            let source = world.source.is_some_and(|(_, place)| place == here);
            let mapped = world.vcpus.iter().any(|vcpu| vcpu.mapped == here);
            if coming || source || mapped {
                return Some("something can reach a free file");
            }
        }
        if let Owner::Forwarder(forwarder) = owner
            && forwarder.open
            && (state.enabled != [!1, 0] || state.delivery != 1 || !watched)
        {
            return Some("an open forwarder does not show what it can send on, or more");
        }
    }
    for vcpu in world.vcpu_ids() {
        let state = world.vcpu(vcpu);
        if state.mapped != state.interrupts.backing() {
            return Some("a page is mapped to what is not the backing");
        }
        let sent = [(COUNTED, state.counted), (OF_SOURCE, state.of_source)];
        for (identity, sent) in sent {
            match (world.places(vcpu, identity.bit()), sent) {
                (0, false) | (1, true) => {}
                (0, true) => return Some("an interrupt is lost"),
                _ => return Some("an interrupt is doubled"),
            }
        }
    }
    None
}

/// Checks that everything comes to rest although no guest exits by itself: harts handle their interrupts and
/// look into their files twice; then no file forwards, and every interrupt is where its vCPU finds it.
fn drains(world: &World) -> Result<(), &'static str> {
    let mut world = world.clone();
    for turn in 0..12 {
        for hart in world.hart_ids() {
            let mut does = Vec::from([Step::Arrive(hart), Step::Arrive(hart), Step::Attend(hart)]);
            if turn % 4 == 0 {
                // A look comes with a timer interrupt of the hart, which is in a guest or not.
                does.push(Step::Exit(hart));
                does.push(Step::Poll(hart));
            }
            if world.harts[hart.index()].vcpu.is_some() {
                does.push(Step::Enter(hart));
            }
            for step in does {
                let forwards = |(_, owner)| matches!(owner, Owner::Forwarder(_));
                let looks = world.harts[hart.index()].files.iter().any(forwards);
                // Where nothing forwards, the hart does not even leave its guest.
                let idle = matches!(step, Step::Exit(_)) && !looks;
                if !idle && world.is_possible(step) {
                    world = world.after(step, None).0;
                }
            }
        }
    }
    if world.forwarders() > 0 {
        return Err("a file forwards for ever");
    }
    for vcpu in &world.vcpus {
        let kept = &vcpu.interrupts;
        let pending = match kept.backing() {
            Backing::Memory => kept.state.pending,
            Backing::File { hart, file } => {
                world.hardware(hart, file).pending[0] | kept.state.pending
            }
        };
        let expected = [(COUNTED, vcpu.counted), (OF_SOURCE, vcpu.of_source)];
        for (identity, sent) in expected {
            if sent != (pending & identity.bit() != 0) {
                return Err("an interrupt does not arrive");
            }
        }
        let told = match (kept.backing(), vcpu.departure) {
            (Backing::Memory, Some(Departure::Waits { .. })) => true,
            (Backing::File { hart, file }, Some(Departure::Waits { watched })) => {
                watched || world.harts[hart.index()].watched_waiters & file.bit() != 0
            }
            (_, Some(Departure::Ready) | None) => false,
        };
        if told && pending & vcpu.enabled != 0 && !vcpu.woken {
            return Err("a vCPU that waits is not woken");
        }
    }
    Ok(())
}

fn explore(name: &str, world: World, most: Option<usize>) {
    let mut builder = System(world).checker().threads(2);
    if let Some(most) = most {
        builder = builder.target_state_count(most);
    }
    let checker = builder.spawn_bfs().join();
    println!("{name}: {} states", checker.unique_state_count());
    for (property, path) in checker.discoveries() {
        let state = path.last_state();
        if property != "a file forwards" {
            let (broken, drains) = (broken(state), drains(state));
            let actions: Vec<Action> = path.clone().into_actions();
            panic!("{name}: {property}: {broken:?} {drains:?}\n{state:#?}\n{actions:?}");
        }
    }
    checker.assert_properties();
}

/// Harts, files of each, VMs by their vCPUs, whether the first has a device, whether waits are watched, interruptions,
/// surprises.
type Size = (usize, u8, &'static [u16], bool, bool, u8, u8);

fn explore_each(sizes: &[Size]) {
    explore_first(sizes, None);
}

/// The first states in the order of their distance, so many of each, or all.
fn explore_first(sizes: &[Size], most: Option<usize>) {
    for &(harts, files, vms, source, watches, interruptions, surprises) in sizes {
        let world = World::new(harts, files, vms, source, watches, interruptions, surprises);
        let name = std::format!(
            "{vms:?} on {harts} harts with {files} files, source {source}, watches {watches}, \
             {interruptions} interruptions, {surprises} surprises"
        );
        explore(&name, world, most);
    }
}

#[test]
fn all_states_of_two_siblings() {
    explore_each(&[
        (2, 0, &[2], false, true, 1, 1),
        (2, 1, &[2], false, false, 0, 0),
        (2, 1, &[2], false, true, 0, 1),
        (2, 2, &[2], false, false, 0, 0),
    ]);
}

#[test]
fn all_states_of_vcpu_and_device() {
    explore_each(&[(2, 2, &[1], true, false, 1, 0)]);
}

#[test]
#[ignore = "soak: half a minute; make soak runs it"]
fn soak_states_of_watched_vcpu_and_device() {
    explore_each(&[(2, 1, &[1], true, true, 1, 1)]);
}

#[test]
fn all_states_of_two_vms_one_file() {
    explore_each(&[(2, 1, &[1, 1], false, true, 0, 1)]);
}

/// A sibling stays in its guest, and can send by any old translation, while the other one moves between two harts.
#[test]
fn first_states_of_siblings_on_three_harts() {
    explore_first(&[(3, 1, &[2], false, false, 0, 0)], Some(60_000));
}

#[test]
fn all_states_of_interrupted_siblings() {
    explore_each(&[(2, 1, &[2], false, false, 1, 0)]);
}

/// Most states visited of each larger computer, from the nearest states on: all of them are more than memory holds.
const MAX_STATES: usize = 6_000_000;

/// `cargo test -p hypervisor --release --lib -- --ignored --nocapture soak`; `make soak` runs it.
#[test]
#[ignore = "soak: takes minutes and gigabytes"]
fn soak_first_states_of_larger_computers() {
    for size in [
        (2, 2, &[2][..], false, true, 0, 1),
        (2, 1, &[2, 1], false, true, 0, 1),
        (2, 1, &[2], true, true, 0, 1),
        (3, 1, &[2], false, false, 0, 0),
        (3, 1, &[2], false, true, 0, 1),
        (3, 2, &[2], false, false, 1, 0),
    ] {
        explore_first(&[size], Some(MAX_STATES));
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit.max(1) as u64) as usize
    }
}

/// Long ways through computers that are too large to explore, with another hart's step in the middle of half of the steps.
#[test]
fn long_ways_through_larger_computers() {
    for seed in 1..=60u64 {
        let mut random = Random(seed.wrapping_mul(splitmix::GOLDEN_GAMMA));
        let files = (seed % 4) as u8;
        let mut world = World::new(3, files, &[3, 2], seed % 2 == 0, seed % 3 == 0, 0, 0);
        let mut steps = Vec::new();
        let mut taken = Vec::new();
        for number in 0..400 {
            world.interruptions = 1;
            world.surprises = 1;
            steps.clear();
            world.steps(&mut steps);
            let step = steps[random.below(steps.len())];
            let other = steps[random.below(steps.len())];
            let interruption = (random.below(2) == 0 && elsewhere(step, other))
                .then(|| (random.below(24) as u32, other));
            taken.push((step, interruption));
            world = world.after(step, interruption).0;
            assert_eq!(broken(&world), None, "seed {seed}: {taken:?}");
            if number % 8 == 0 {
                assert_eq!(drains(&world), Ok(()), "seed {seed}: {taken:?}");
            }
        }
    }
}
