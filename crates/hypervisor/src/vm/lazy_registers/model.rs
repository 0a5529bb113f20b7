//! Every order in which vCPUs of hostile guests come to harts, change their registers, say what they like of them, leave and are started again:
//! nobody sees what another has written, and nobody loses its own.
//!
//! The model has two harts and two vCPUs of different VMs. Contents are who wrote them last. The states are explored whole.

use core::cell::RefCell;
use std::collections::BTreeSet;
use std::thread_local;
use std::vec::Vec;

use scheduler::{HartId, VcpuNumber};

use super::{Habit, Lazy, RegisterSet, Registers};
use crate::hart::context::GuestContext;
use crate::hart::csr::status;

const HARTS: usize = 2;
const VCPUS: usize = 2;

/// Writer of a register's contents: 0 at reset, 1 + the vCPU afterwards.
type Writer = u8;

/// Contents of a set: the registers, the tail that only a write of whole registers reaches, and the CSRs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Contents {
    registers: Writer,
    tail: Writer,
    control: Writer,
}

thread_local! {
    /// Contents of the set of the hart that works at the moment.
    static SET: RefCell<Contents> = const { RefCell::new(Contents { registers: 0, tail: 0, control: 0 }) };
}

/// Memory of a vCPU.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Memory(Contents);

impl Registers for Memory {
    const FIELD: u64 = status::VS;
    const CLEAN: u64 = status::VS_CLEAN;

    fn save(&mut self, changed: bool) {
        SET.with_borrow(|set| {
            self.0.control = set.control;
            if changed {
                self.0 = *set;
            }
        });
    }

    fn restore(&self) {
        SET.set(self.0);
    }
}

/// Action of a guest on its hart.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// Writes some elements.
    Elements,
    /// Writes whole registers.
    All,
    /// Writes a CSR of the set in a way that leaves the hypervisor's field as it is (as QEMU has it).
    Control,
}

const STEPS: [Step; 3] = [Step::Elements, Step::All, Step::Control];

/// A vCPU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Guest {
    memory: Memory,
    /// Hart whose set was made equal to the memory last.
    on: Option<usize>,
    /// Contents that the vCPU must find.
    due: Contents,
    /// Hart that it is on, and its field of sstatus there.
    runs: Option<(usize, u64)>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct State {
    sets: [Contents; HARTS],
    /// 1 + the vCPU that each set is of, or 0.
    owners: [u16; HARTS],
    guests: [Guest; VCPUS],
}

fn hart(number: usize) -> HartId {
    HartId::new(number as u16).unwrap()
}

impl State {
    fn new() -> Self {
        Self {
            sets: [Contents::default(); HARTS],
            owners: [0; HARTS],
            guests: [const {
                Guest {
                    memory: Memory(Contents {
                        registers: 0,
                        tail: 0,
                        control: 0,
                    }),
                    on: None,
                    due: Contents {
                        registers: 0,
                        tail: 0,
                        control: 0,
                    },
                    runs: None,
                }
            }; VCPUS],
        }
    }

    /// Does something with a vCPU's registers on a hart, as the hypervisor does.
    fn with(
        &mut self,
        guest: usize,
        number: usize,
        habit: Habit,
        what: impl FnOnce(&mut Lazy<Memory>, &RegisterSet, VcpuNumber, &mut GuestContext),
    ) {
        let set = RegisterSet::new(hart(number));
        set.owner
            .store(self.owners[number], core::sync::atomic::Ordering::Relaxed);
        SET.set(self.sets[number]);
        let own = &mut self.guests[guest];
        let mut lazy = Lazy {
            context: own.memory.clone(),
            habit,
            on: own.on.map(hart),
        };
        let mut context = GuestContext::starting_at(0, 0, 0);
        let field = own.runs.map_or(status::VS, |(_, field)| field);
        context.sstatus = context.sstatus & !status::VS | field;
        let vcpu = VcpuNumber::new(guest as u16).unwrap();
        what(&mut lazy, &set, vcpu, &mut context);
        own.memory = lazy.context;
        own.on = lazy.on.map(HartId::index);
        own.runs = Some((number, context.sstatus & status::VS));
        self.owners[number] = set.owner.load(core::sync::atomic::Ordering::Relaxed);
        self.sets[number] = SET.with_borrow(|set| *set);
    }

    /// A guest that can reach the registers finds its own.
    fn check(&self) {
        for guest in &self.guests {
            if let Some((number, field)) = guest.runs
                && field != 0
            {
                assert_eq!(self.sets[number], guest.due, "{self:?}");
            }
        }
    }

    fn successors(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for guest in 0..VCPUS {
            match self.guests[guest].runs {
                None => {
                    for number in 0..HARTS {
                        let is_taken =
                            |other: &Guest| other.runs.is_some_and(|(on, _)| on == number);
                        if !self.guests.iter().any(is_taken) {
                            all.extend(self.dispatches(guest, number));
                        }
                    }
                    // The VM is started again, which fills its memory anew.
                    let mut state = self.clone();
                    let mut lazy = state.lazy(guest);
                    lazy.forget();
                    state.guests[guest].memory = Memory::default();
                    state.guests[guest].on = lazy.on.map(HartId::index);
                    state.guests[guest].due = Contents::default();
                    all.push(state);
                }
                Some((number, field)) => {
                    let mut state = self.clone();
                    state.with(guest, number, Habit::default(), |lazy, _, _, context| {
                        lazy.unload(context);
                    });
                    state.guests[guest].runs = None;
                    all.push(state);
                    match field {
                        0 => {
                            let mut state = self.clone();
                            state.with(guest, number, Habit::UNUSED, |lazy, set, vcpu, context| {
                                assert!(lazy.give(set, vcpu, context));
                            });
                            all.push(state);
                        }
                        _ => all.extend(STEPS.map(|step| self.step(guest, number, step))),
                    }
                }
            }
        }
        all
    }

    fn lazy(&self, guest: usize) -> Lazy<Memory> {
        Lazy {
            context: self.guests[guest].memory.clone(),
            habit: Habit::UNUSED,
            on: self.guests[guest].on.map(hart),
        }
    }

    /// A dispatch, with the registers expected to be used and not.
    fn dispatches(&self, guest: usize, number: usize) -> [Self; 2] {
        [Habit::default(), Habit::UNUSED].map(|habit| {
            let mut state = self.clone();
            state.with(guest, number, habit, |lazy, set, vcpu, context| {
                lazy.load(set, vcpu, context);
            });
            state
        })
    }

    /// A step of the guest. What it says of its own copy of the field (Off, Initial, Clean) changes nothing here: that is vsstatus's.
    fn step(&self, guest: usize, number: usize, step: Step) -> Self {
        let mut state = self.clone();
        let own = &mut state.guests[guest];
        let writer = 1 + guest as Writer;
        let set = &mut state.sets[number];
        match step {
            Step::Elements => set.registers = writer,
            Step::All => (set.registers, set.tail) = (writer, writer),
            Step::Control => set.control = writer,
        }
        own.due = *set;
        if !matches!(step, Step::Control) {
            own.runs = Some((number, status::VS));
        }
        state
    }
}

#[test]
fn no_guest_sees_registers_of_another() {
    let mut seen = BTreeSet::from([State::new()]);
    let mut open = Vec::from([State::new()]);
    while let Some(state) = open.pop() {
        state.check();
        for next in state.successors() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    assert!(seen.len() > 1000, "{}", seen.len());
}
