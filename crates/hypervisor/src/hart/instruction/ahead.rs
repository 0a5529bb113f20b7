//! Whether the code in front of a guest leads to a wait, wherever in its loop the guest was interrupted.
//!
//! A guest that waits by WRS.NTO leaves at that instruction, if at all: there its registers tell what it waits for. One that was interrupted by the hart's timer may be
//! anywhere in the loop around it. So the guest is followed to the next WRS.NTO, over whatever has no effect but on registers: loads, computations, jumps, branches, fences, and atomic operations
//! that leave a word as it is.
//! All registers are known, and so is memory. A store, or anything else that is not understood, ends the search: the guest is at work.

use super::code::{self, Load, Parcel};
use super::step::{Operand, Step};
use super::turn::{Guest, extended};
use crate::hart::decode::Register;

/// Instructions that are gone through at most: a turn of a loop with a count, a limit of time and a look at some other words is some forty.
const MOST_STEPS: usize = 64;

/// The wait that a guest comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ahead {
    /// The instruction's guest-virtual address.
    pub at: u64,
    /// What registers have there that the way to it writes.
    written: [Option<u64>; 32],
}

impl Ahead {
    /// Follows the guest from the guest-virtual address `from`.
    pub fn of(guest: &impl Guest, from: u64) -> Option<Self> {
        let mut way = Way {
            guest,
            written: [None; 32],
        };
        let mut at = from;
        for _ in 0..MOST_STEPS {
            let parcel = code::fetch(at, |at| guest.fetch(at))?;
            if parcel == Parcel::Long(super::WRS_NTO) {
                let written = way.written;
                return Some(Self { at, written });
            }
            at = way.step(at, parcel)?;
        }
        None
    }

    /// What a register has there, if the way writes it.
    #[must_use]
    pub fn written(&self, register: Register) -> Option<u64> {
        self.written.get(register.number()).copied().flatten()
    }
}

/// A way to a wait.
struct Way<'a, G> {
    guest: &'a G,
    written: [Option<u64>; 32],
}

impl<G: Guest> Way<'_, G> {
    /// Makes the step at an address; where it leads.
    fn step(&mut self, at: u64, parcel: Parcel) -> Option<u64> {
        let next = at.wrapping_add(parcel.length());
        match Step::decode(parcel)? {
            Step::Nothing => {}
            Step::Load(load) => {
                self.load(load)?;
            }
            Step::Atomic(load, done, operand) => {
                let operand = self.get(operand);
                if !done.leaves(self.load(load)?, operand, load.width) {
                    return None;
                }
            }
            Step::Relative(to, distance) => self.set(to, at.wrapping_add_signed(distance)),
            Step::Value(to, value) => self.set(to, value),
            Step::Compute(to, operation, first, second) => {
                let second = match second {
                    Operand::Register(second) => self.get(second),
                    Operand::Value(value) => value,
                };
                self.set(to, operation.of(self.get(first), second));
            }
            Step::Clock(to) => self.set(to, self.guest.clock()),
            Step::Jump(offset) => return Some(at.wrapping_add_signed(offset)),
            Step::JumpTo(register, offset) => {
                return Some(self.get(register).wrapping_add_signed(offset) & !1);
            }
            Step::Branch(comparison, (first, second), offset) => {
                return Some(match comparison.holds(self.get(first), self.get(second)) {
                    true => at.wrapping_add_signed(offset),
                    false => next,
                });
            }
        }
        Some(next)
    }

    /// The word.
    fn load(&mut self, load: Load) -> Option<u64> {
        let address = self.get(load.base).wrapping_add_signed(load.offset);
        let (_, raw) = self.guest.load(address, load.width)?;
        let word = extended(raw, load.width, load.signed);
        self.set(load.to, word);
        Some(word)
    }

    fn get(&self, register: Register) -> u64 {
        if register.is_zero() {
            return 0;
        }
        let written = self.written.get(register.number()).copied().flatten();
        written.unwrap_or_else(|| self.guest.register(register))
    }

    fn set(&mut self, register: Register, value: u64) {
        if let Some(slot) = self.written.get_mut(register.number())
            && !register.is_zero()
        {
            *slot = Some(value);
        }
    }
}

#[cfg(test)]
mod tests;
