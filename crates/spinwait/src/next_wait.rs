//! The next WRS.NTO of a guest that was interrupted somewhere in its loop.
//!
//! A guest that traps at WRS.NTO tells by its registers which word it waits for. A guest that the hart's timer interrupted may be anywhere in the
//! loop around the WRS.NTO. So it is followed to the next one over instructions that change registers alone: loads, computations, jumps, branches,
//! fences, and atomic operations that leave a word unchanged. A store, or an instruction that is not understood, ends the search: the guest is at
//! work.

use riscv::instruction::WRS_NTO;

use crate::instruction::{Instruction, Operand};
use crate::parcel::{self, Load, Parcel};
use crate::port::Guest;
use crate::register::Register;

/// Instructions at most. An iteration with a count, a time limit and tests of some other words has some forty.
const MAX_INSTRUCTIONS: usize = 64;

/// The next WRS.NTO of a guest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextWait {
    /// Guest-virtual address of the WRS.NTO.
    pub at: u64,
    /// Values of registers that the path to it writes.
    written: [Option<u64>; 32],
}

impl NextWait {
    /// Follows the guest from the guest-virtual address `from`.
    pub fn find(guest: &impl Guest, from: u64) -> Option<Self> {
        let mut path = Path {
            guest,
            written: [None; 32],
        };
        let mut at = from;
        for _ in 0..MAX_INSTRUCTIONS {
            let parcel = parcel::fetch(at, |at| guest.fetch(at))?;
            if parcel == Parcel::Long(WRS_NTO) {
                let written = path.written;
                return Some(Self { at, written });
            }
            at = path.step(at, parcel)?;
        }
        None
    }

    /// Value of a register at the WRS.NTO, if the path writes it.
    #[must_use]
    pub fn written(&self, register: Register) -> Option<u64> {
        self.written.get(register.number()).copied().flatten()
    }
}

/// A path to a WRS.NTO.
struct Path<'a, G> {
    guest: &'a G,
    written: [Option<u64>; 32],
}

impl<G: Guest> Path<'_, G> {
    /// Executes the instruction at an address. Returns the next address.
    fn step(&mut self, at: u64, parcel: Parcel) -> Option<u64> {
        let next = at.wrapping_add(parcel.length());
        match Instruction::decode(parcel)? {
            Instruction::Nothing => {}
            Instruction::Load(load) => {
                self.load(load)?;
            }
            Instruction::Atomic(load, operation, operand) => {
                let operand = self.get(operand);
                if !operation.keeps(self.load(load)?, operand, load.width) {
                    return None;
                }
            }
            Instruction::Relative(to, distance) => self.set(to, at.wrapping_add_signed(distance)),
            Instruction::Value(to, value) => self.set(to, value),
            Instruction::Compute(to, operation, first, second) => {
                let second = match second {
                    Operand::Register(second) => self.get(second),
                    Operand::Value(value) => value,
                };
                self.set(to, operation.of(self.get(first), second));
            }
            Instruction::Clock(to) => self.set(to, self.guest.clock()),
            Instruction::Jump(offset) => return Some(at.wrapping_add_signed(offset)),
            Instruction::JumpRegister(register, offset) => {
                return Some(self.get(register).wrapping_add_signed(offset) & !1);
            }
            Instruction::Branch(comparison, (first, second), offset) => {
                return Some(match comparison.holds(self.get(first), self.get(second)) {
                    true => at.wrapping_add_signed(offset),
                    false => next,
                });
            }
        }
        Some(next)
    }

    /// Loads a word. Returns its value.
    fn load(&mut self, load: Load) -> Option<u64> {
        let address = self.get(load.base).wrapping_add_signed(load.offset);
        let (_, raw) = self.guest.load(address, load.width)?;
        let word = load.width.extend(raw, load.signed);
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
