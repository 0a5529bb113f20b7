//! All states of two vCPUs and their events: what is delivered, in which order, and what is resumed.
//!
//! What must hold is written here without the code that is tested: a vCPU keeps the states that its handlers have interrupted on a stack.

use std::collections::{HashSet, VecDeque};
use std::vec::Vec;

use super::*;
use riscv::csr::status::{SIE, SPP};
use riscv::sbi::software_events::{PREFERRED_HART, PRIORITY};

const VCPUS: usize = 2;
const EVENTS: [Event; 2] = [Event::Local, Event::Global];

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
}

/// Calls of a vCPU. The first one alone changes the order of its events, which keeps the states few.
fn actions(vcpu: usize) -> Vec<Action> {
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
    for event in EVENTS {
        all.push(Action::Register(event));
        all.push(Action::Enable(event));
        all.push(Action::Disable(event));
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
            Event::Local => &self.events.vcpus[vcpu].software,
            Event::Global => &self.events.global,
        }
    }

    /// Priority with the event's number, as the specification orders them.
    fn rank(&self, vcpu: usize, event: Event) -> (u32, u32) {
        let number = if event == Event::Local {
            0xffff_0000
        } else {
            0xffff_8000
        };
        (self.record(vcpu, event).priority, number)
    }

    /// Carries out a call of `vcpu`. Returns the vCPUs that are told.
    fn call(&mut self, vcpu: usize, action: Action) -> Vec<usize> {
        let events = &mut self.events;
        let own = &mut self.vcpus[vcpu];
        let told = match action {
            Action::Register(event) => {
                let entry = 0x2000 + 0x1000 * event as u64;
                events.register((vcpu, event), entry, 9).ok();
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
                let event = if own.now.program_counter == 0x2000 {
                    Event::Local
                } else {
                    Event::Global
                };
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
            && (event == Event::Local || first)
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
            let local = self.record(vcpu, Event::Local).state == State::Running;
            assert_eq!(local, runs(Event::Local));
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

#[test]
fn every_order_of_calls_keeps_the_rules() {
    let mut seen = HashSet::from([start()]);
    let mut open = VecDeque::from([start()]);
    while let Some(world) = open.pop_front() {
        for vcpu in 0..VCPUS {
            for action in actions(vcpu) {
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
    // Nothing was left out for want of a way there.
    let nested = |world: &World| world.vcpus.iter().any(|vcpu| vcpu.interrupted.len() == 2);
    assert!(seen.iter().any(nested));
}
