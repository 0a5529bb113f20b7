//! All states of two vCPUs and their events: what is delivered, in which order, and what is resumed.
//!
//! What must hold is written here without the code that is tested: a vCPU keeps the states that its handlers have interrupted on a stack.

use std::collections::{HashSet, VecDeque};
use std::vec::Vec;

use super::*;
use riscv::csr::status::{SIE, SPP};
use riscv::sbi::software_events::{PREFERRED_HART, PRIORITY};

const VCPUS: usize = 2;
const EVENTS: [Event; 3] = [Event::DoubleTrap, Event::Local, Event::Global];

/// Address of the handler of an event.
const fn entry(event: Event) -> u64 {
    0x2000 + 0x1000 * event as u64
}

/// A vCPU, and the states that were interrupted on it, the oldest first, with the handlers that did it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Vcpu {
    now: Interruptible,
    interrupted: Vec<(Event, Interruptible)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    events: SoftwareEvents,
    vcpus: [Vcpu; VCPUS],
    /// vCPUs that have taken events since they started.
    have_taken: [bool; VCPUS],
}

#[derive(Clone, Copy, Debug)]
enum Action {
    Register(Event),
    Enable(Event),
    Disable(Event),
    Inject(Event, u64),
    Write(Event, u32, u64),
    Unmask,
    Mask,
    Complete,
    Stop,
    /// The guest traps in a trap handler. If it cannot be told, it ends.
    DoubleTrap,
}

/// Calls of a vCPU. The first one alone changes the order of its events, which keeps the states few.
fn actions(vcpu: usize, events: &[Event]) -> Vec<Action> {
    let mut all = std::vec![
        Action::Unmask,
        Action::Mask,
        Action::Complete,
        Action::Stop,
        Action::Inject(Event::Local, 0),
        Action::Inject(Event::Local, 1),
        Action::Inject(Event::Global, 0),
        Action::Write(Event::Global, PREFERRED_HART, 1),
    ];
    if vcpu == 0 {
        all.push(Action::Write(Event::Local, PRIORITY, 1));
    }
    if events.contains(&Event::DoubleTrap) {
        all.push(Action::DoubleTrap);
    }
    for event in events {
        all.push(Action::Register(*event));
        all.push(Action::Enable(*event));
        all.push(Action::Disable(*event));
    }
    all
}

fn start() -> World {
    let now = Interruptible {
        program_counter: 0x1000,
        in_supervisor_mode: true,
        status: SPP | SIE,
        a6: 6,
        a7: 7,
        ..Interruptible::default()
    };
    let vcpu = Vcpu {
        now,
        interrupted: Vec::new(),
    };
    World {
        events: SoftwareEvents::new(VCPUS),
        vcpus: [vcpu.clone(), vcpu],
        have_taken: [false; VCPUS],
    }
}

impl World {
    fn record(&self, vcpu: usize, event: Event) -> &Record {
        match event {
            Event::Global => &self.events.global,
            event => &self.events.vcpus[vcpu].events[event as usize],
        }
    }

    /// Priority with the event's number, as the specification orders them.
    fn rank(&self, vcpu: usize, event: Event) -> (u32, u32) {
        let number = match event {
            Event::DoubleTrap => 1,
            Event::CounterOverflow => 0x1_0000,
            Event::Local => 0xffff_0000_u32,
            Event::Global => 0xffff_8000,
        };
        (self.record(vcpu, event).priority, number)
    }

    /// Carries out a call of `vcpu`. Returns the vCPUs that are told.
    fn call(&mut self, vcpu: usize, action: Action) -> Vec<usize> {
        let events = &mut self.events;
        let own = &mut self.vcpus[vcpu];
        let told = match action {
            Action::Register(event) => {
                events.register((vcpu, event), entry(event), 9).ok();
                None
            }
            Action::Enable(event) => events.enable(vcpu, event).ok().flatten(),
            Action::Disable(event) => {
                events.disable(vcpu, event).ok();
                None
            }
            Action::Inject(event, target) => events.inject(event, target).unwrap(),
            Action::Write(event, attribute, value) => {
                events.write((vcpu, event), attribute, &[value]).ok();
                None
            }
            Action::Unmask => {
                self.have_taken[vcpu] = true;
                events.unmask(vcpu).is_ok().then_some(vcpu)
            }
            Action::Mask => events.mask(vcpu).ok().flatten(),
            Action::Complete => {
                let before = own.interrupted.pop();
                let told = events.complete(vcpu, &mut own.now);
                assert_eq!(told.is_some(), before.is_some());
                if let Some((_, before)) = before {
                    assert_eq!(own.now, before, "not what was interrupted");
                    return told.flatten().into_iter().chain([vcpu]).collect();
                }
                None
            }
            Action::DoubleTrap => {
                let before = own.now;
                if events.double_trap(vcpu, &mut own.now) {
                    let entered = |event: &Event| entry(*event) == own.now.program_counter;
                    let event = EVENTS.into_iter().find(entered).unwrap();
                    own.interrupted.push((event, before));
                    Some(vcpu)
                } else {
                    // The VM ends.
                    *self = start();
                    None
                }
            }
            Action::Stop => {
                *own = start().vcpus[vcpu].clone();
                self.have_taken[vcpu] = false;
                events.stop(vcpu)
            }
        };
        told.into_iter().collect()
    }

    /// Delivers to the vCPUs that were told, as before they enter their guests.
    fn deliver(&mut self, told: &[usize]) {
        for vcpu in told {
            let own = &mut self.vcpus[*vcpu];
            let before = own.now;
            if self.events.deliver(*vcpu, &mut own.now) {
                let entered = |event: &Event| entry(*event) == own.now.program_counter;
                let event = EVENTS.into_iter().find(entered).unwrap();
                own.interrupted.push((event, before));
            }
        }
    }

    /// Event that must not wait on this vCPU.
    fn must_run(&self, vcpu: usize, event: Event) -> bool {
        let takes = |vcpu: usize| self.events.vcpus[vcpu].takes_events;
        let record = self.record(vcpu, event);
        let preferred = self.events.preferred;
        let is_last_choice = !self.have_taken[preferred] && (vcpu == 0 || !takes(0));
        let first = vcpu == preferred || is_last_choice;
        takes(vcpu)
            && record.state == State::Enabled
            && record.is_pending
            && (event != Event::Global || first)
            && self.vcpus[vcpu]
                .interrupted
                .iter()
                .all(|(running, _)| self.rank(vcpu, event) < self.rank(vcpu, *running))
    }

    fn check(&self) {
        for vcpu in 0..VCPUS {
            for event in EVENTS {
                assert!(!self.must_run(vcpu, event), "{event:?} waits: {self:#?}");
            }
            let handlers = &self.vcpus[vcpu].interrupted;
            let ranks = handlers.iter().map(|(event, _)| self.rank(vcpu, *event));
            assert!(ranks.is_sorted_by(|before, after| before > after));
            let runs = |event| handlers.iter().any(|(handled, _)| *handled == event);
            for event in [Event::DoubleTrap, Event::Local] {
                let is_running = self.record(vcpu, event).state == State::Running;
                assert_eq!(is_running, runs(event));
            }
            if runs(Event::Global) {
                assert_eq!(self.events.global.state, State::Running);
                assert_eq!(self.events.handler, vcpu);
            }
        }
        let handlers = self.vcpus.iter().flat_map(|vcpu| &vcpu.interrupted);
        let global = handlers.filter(|(event, _)| *event == Event::Global);
        let runs = usize::from(self.events.global.state == State::Running);
        assert_eq!(global.count(), runs);
    }
}

/// Explores all states that calls of some vCPUs for some events lead to. Returns the largest number of handlers that have preempted each other.
fn explore(vcpus: usize, events: &[Event]) -> usize {
    let mut seen = HashSet::from([start()]);
    let mut open = VecDeque::from([start()]);
    while let Some(world) = open.pop_front() {
        for vcpu in 0..vcpus {
            for action in actions(vcpu, events) {
                let mut next = world.clone();
                let told = next.call(vcpu, action);
                next.deliver(&told);
                next.check();
                if seen.insert(next.clone()) {
                    open.push_back(next);
                }
            }
        }
    }
    let handlers = |world: &World| world.vcpus.clone().map(|vcpu| vcpu.interrupted.len());
    seen.iter().flat_map(handlers).max().unwrap_or(0)
}

/// Nothing is left out for want of a way there: the handlers of all events preempt each other.
#[test]
fn every_order_of_calls_keeps_the_rules() {
    assert_eq!(explore(VCPUS, &EVENTS[1..]), 2);
}

#[test]
fn double_traps_keep_the_rules() {
    assert_eq!(explore(1, &EVENTS), 3);
}
