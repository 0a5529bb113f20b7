//! One iteration of a pause loop that tests several words, followed as the guest would execute it.
//!
//! Stock Linux spins on a mutex whose owner runs by
//!
//! ```text
//! again:
//! lw     a5, 100(a1)      # the owner has a CPU
//! beqz   a5, out
//! ld     a5, 0(tp)        # no other hart wants this one
//! andi   a5, a5, 8
//! bnez   a5, out
//! div    a5, a5, x0
//! pause
//! ld     a5, 0(a0)        # the mutex has the same owner
//! andi   a5, a5, -8
//! beq    a1, a5, again
//! ```
//!
//! At the PAUSE all registers and all memory are known. An iteration that comes back to the PAUSE does so again as long as each branch goes the
//! same way. So every branch that depends on memory gives a [`Condition`] on a loaded word, and the wait may be over when one condition fails. The
//! value that the guest saw is not needed.
//!
//! An iteration is understood if it consists of loads, computations, jumps, branches and fences. It must not write a register that it reads
//! before, or the next iteration would differ. A word that an address depends on must not change. As with [`PauseLoop`](crate::PauseLoop), all of
//! this is a hint.

use crate::condition::{Condition, MAX_CONDITIONS};
use crate::instruction::{Comparison, Instruction, Operand, Operation, OperationClass};
use crate::parcel::{self, Load, WAIT_LENGTH};
use crate::port::Guest;
use crate::register::{Register, Width};

/// Instructions of an iteration at most.
const MAX_INSTRUCTIONS: usize = 40;
/// Loads of an iteration at most.
const MAX_LOADS: usize = 8;
/// Branches of an iteration that depend on memory at most.
const MAX_BRANCHES: u32 = 8;

/// Result of following one iteration of a pause loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iteration<A> {
    /// The loop goes on while these conditions hold. There is one at least, and all hold now.
    Waits([Option<Condition<A>>; MAX_CONDITIONS]),
    /// The guest leaves the loop with memory as it is now; the loop tests the word at this address.
    Over(A),
}

impl<A: Copy + PartialEq> Iteration<A> {
    /// Follows the loop around the PAUSE at the guest-virtual address `pause`; `None` if it is not understood.
    pub fn follow(guest: &impl Guest<Address = A>, pause: u64) -> Option<Self> {
        let mut path = Path::new(guest, None);
        if path.leads_back(pause) {
            return path.conditions().map(Self::Waits);
        }
        // A loop would come back if one branch went the other way.
        (0..path.branches).find_map(|branch| {
            let mut other = Path::new(guest, Some(branch));
            let conditions = other.leads_back(pause).then(|| other.conditions())??;
            let [first, ..] = conditions;
            first.map(|condition| Self::Over(condition.address))
        })
    }
}

/// Bits of a loaded word that a value consists of, shifted left, or right if `shift` is negative.
#[derive(Clone, Copy, Debug)]
struct View {
    load: usize,
    mask: u64,
    shift: i32,
}

impl View {
    /// Shifts the value further.
    fn shifted(self, by: i32) -> Option<Self> {
        let shift = self.shift + by;
        let left = match shift {
            0..64 => u64::MAX >> shift,
            -63..0 => u64::MAX << -shift,
            _ => return None,
        };
        Some(Self {
            mask: self.mask & left,
            shift,
            ..self
        })
    }

    /// Keeps the bits of the value that `mask` has.
    fn masked(self, mask: u64) -> Self {
        Self {
            mask: self.mask & self.to_word(mask),
            ..self
        }
    }

    /// Moves bits of the value to their places in the word.
    const fn to_word(self, value: u64) -> u64 {
        match self.shift {
            0.. => value >> self.shift,
            _ => value << -self.shift,
        }
    }

    /// Moves bits of the word to their places in the value.
    const fn to_value(self, word: u64) -> u64 {
        match self.shift {
            0.. => word << self.shift,
            _ => word >> -self.shift,
        }
    }

    /// Bits of the word for which the value is `value`, if there are any.
    fn word_for(self, value: u64) -> Option<u64> {
        let word = self.to_word(value);
        (self.to_value(word) == value && word & !self.mask == 0).then_some(word)
    }
}

/// A value, and the loads that it depends on.
#[derive(Clone, Copy, Debug)]
struct Value {
    now: u64,
    /// Loads that it depends on, a bit each.
    loads: u8,
    /// Bits of one loaded word, if the value is that simple.
    view: Option<View>,
}

impl Value {
    const fn fixed(now: u64) -> Self {
        Self {
            now,
            loads: 0,
            view: None,
        }
    }
}

/// A loaded word.
#[derive(Clone, Copy, Debug)]
struct Loaded<A> {
    address: A,
    width: Width,
    signed: bool,
    now: u64,
}

impl<A: Copy> Loaded<A> {
    const fn condition(self, mask: u64, value: u64, equal: bool) -> Condition<A> {
        Condition {
            address: self.address,
            width: self.width,
            signed: self.signed,
            mask,
            value,
            equal,
        }
    }
}

/// A path from a PAUSE.
struct Path<'a, G: Guest> {
    guest: &'a G,
    /// Branch, among those that depend on memory, that goes the other way.
    inverted: Option<u32>,
    /// Values of registers that the path has written.
    values: [Option<Value>; 32],
    /// Registers that it has read before, a bit each.
    needed: u32,
    /// Branches that depend on memory.
    branches: u32,
    loads: [Option<Loaded<G::Address>>; MAX_LOADS],
    /// Loads whose words must not change, a bit each.
    fixed: u8,
    conditions: [Option<Condition<G::Address>>; MAX_CONDITIONS],
}

impl<'a, G: Guest> Path<'a, G> {
    const fn new(guest: &'a G, inverted: Option<u32>) -> Self {
        Self {
            guest,
            inverted,
            values: [None; 32],
            needed: 0,
            branches: 0,
            loads: [const { None }; MAX_LOADS],
            fixed: 0,
            conditions: [const { None }; MAX_CONDITIONS],
        }
    }

    /// Returns true if the path from the PAUSE leads back to it, and would do so again.
    fn leads_back(&mut self, pause: u64) -> bool {
        let mut at = pause.wrapping_add(WAIT_LENGTH);
        for _ in 0..MAX_INSTRUCTIONS {
            if at == pause {
                let mut written = self
                    .values
                    .iter()
                    .enumerate()
                    .filter(|(_, value)| value.is_some());
                return written.all(|(number, _)| self.needed >> number & 1 == 0);
            }
            match self.step(at) {
                Some(next) => at = next,
                None => return false,
            }
        }
        false
    }

    /// Executes the instruction at an address. Returns the next address.
    fn step(&mut self, at: u64) -> Option<u64> {
        let parcel = parcel::fetch(at, |at| self.guest.fetch(at))?;
        let next = at.wrapping_add(parcel.length());
        match Instruction::decode(parcel)? {
            Instruction::Nothing => {}
            Instruction::Load(load) => {
                self.load(load)?;
            }
            Instruction::Atomic(load, operation, operand) => {
                let operand = self.get(operand);
                let (number, word) = self.load(load)?;
                // Another word or operand would make it a store.
                self.fixed |= 1 << number | operand.loads;
                if !operation.keeps(word, operand.now, load.width) {
                    return None;
                }
            }
            Instruction::Relative(to, distance) => {
                self.set(to, Value::fixed(at.wrapping_add_signed(distance)));
            }
            Instruction::Value(to, value) => self.set(to, Value::fixed(value)),
            Instruction::Compute(to, operation, first, second) => {
                let first = self.get(first);
                let second = match second {
                    Operand::Register(second) => self.get(second),
                    Operand::Value(value) => Value::fixed(value),
                };
                self.set(to, computed(operation, first, second, &self.loads));
            }
            // No iteration would be as the one before.
            Instruction::Clock(_) => return None,
            Instruction::Jump(offset) => return Some(at.wrapping_add_signed(offset)),
            Instruction::JumpRegister(register, offset) => {
                let to = self.get(register);
                self.fixed |= to.loads;
                return Some(to.now.wrapping_add_signed(offset) & !1);
            }
            Instruction::Branch(comparison, (first, second), offset) => {
                let (first, second) = (self.get(first), self.get(second));
                return Some(match self.branch(comparison, first, second)? {
                    true => at.wrapping_add_signed(offset),
                    false => next,
                });
            }
        }
        Some(next)
    }

    fn get(&mut self, register: Register) -> Value {
        if register.is_zero() {
            return Value::fixed(0);
        }
        match self.values.get(register.number()) {
            Some(&Some(value)) => value,
            _ => {
                self.needed |= 1 << register.number();
                Value::fixed(self.guest.register(register))
            }
        }
    }

    fn set(&mut self, register: Register, value: Value) {
        if let Some(slot) = self.values.get_mut(register.number())
            && !register.is_zero()
        {
            *slot = Some(value);
        }
    }

    /// Loads a word. Returns the number of the load and the value.
    fn load(&mut self, load: Load) -> Option<(usize, u64)> {
        let base = self.get(load.base);
        self.fixed |= base.loads;
        let address = base.now.wrapping_add_signed(load.offset);
        let (address, raw) = self.guest.load(address, load.width)?;
        let now = load.width.extend(raw, load.signed);
        let number = self.loads.iter().position(Option::is_none)?;
        *self.loads.get_mut(number)? = Some(Loaded {
            address,
            width: load.width,
            signed: load.signed,
            now,
        });
        let view = View {
            load: number,
            mask: u64::MAX,
            shift: 0,
        };
        self.set(
            load.to,
            Value {
                now,
                loads: 1 << number,
                view: Some(view),
            },
        );
        Some((number, now))
    }

    /// Takes a branch or not, and notes the condition for that.
    fn branch(&mut self, comparison: Comparison, first: Value, second: Value) -> Option<bool> {
        let taken = comparison.holds(first.now, second.now);
        if first.loads | second.loads == 0 {
            return Some(taken);
        }
        let number = self.branches;
        self.branches += 1;
        if self.branches > MAX_BRANCHES {
            return None;
        }
        let taken = taken != (self.inverted == Some(number));
        match self.requirement(comparison, first, second, taken) {
            Requirement::Condition(condition) => self.note(condition)?,
            Requirement::None => {}
            Requirement::Unchanged => self.fixed |= first.loads | second.loads,
        }
        Some(taken)
    }

    /// Requirement on memory for a branch to go this way.
    fn requirement(
        &self,
        comparison: Comparison,
        first: Value,
        second: Value,
        taken: bool,
    ) -> Requirement<G::Address> {
        let (viewed, other) = match (first, second) {
            (
                Value {
                    view: Some(view), ..
                },
                other,
            )
            | (
                other,
                Value {
                    view: Some(view), ..
                },
            ) if other.loads == 0 => (view, other.now),
            _ => return Requirement::Unchanged,
        };
        let Some(&Some(loaded)) = self.loads.get(viewed.load) else {
            return Requirement::Unchanged;
        };
        if comparison.is_of_equality() {
            // BEQ holds of equal numbers.
            let equal = comparison.holds(0, 0) == taken;
            return match viewed.word_for(other) {
                Some(value) => Requirement::Condition(loaded.condition(viewed.mask, value, equal)),
                // Nothing makes them equal.
                None => Requirement::None,
            };
        }
        let is_first = first.view.is_some();
        if comparison.is_of_signed() && is_first && other == 0 {
            // "Less than 0" is one bit.
            let sign = viewed.mask & viewed.to_word(1 << 63);
            let negative = comparison.holds(u64::MAX, 0) == taken;
            return match sign {
                0 => Requirement::None,
                sign => Requirement::Condition(loaded.condition(sign, sign, negative)),
            };
        }
        Requirement::Unchanged
    }

    fn note(&mut self, condition: Condition<G::Address>) -> Option<()> {
        if !self.conditions.contains(&Some(condition)) {
            let free = self.conditions.iter().position(Option::is_none)?;
            *self.conditions.get_mut(free)? = Some(condition);
        }
        Some(())
    }

    /// Conditions under which the path is this one; `None` if there is none or too many.
    fn conditions(mut self) -> Option<[Option<Condition<G::Address>>; MAX_CONDITIONS]> {
        for (number, loaded) in self.loads.into_iter().enumerate() {
            if let Some(loaded) = loaded
                && self.fixed >> number & 1 != 0
            {
                self.note(loaded.condition(u64::MAX, loaded.now, true))?;
            }
        }
        self.conditions
            .iter()
            .any(Option::is_some)
            .then_some(self.conditions)
    }
}

/// Requirement of a branch on memory.
enum Requirement<A> {
    /// A condition on one word.
    Condition(Condition<A>),
    /// No condition: the branch always goes this way.
    None,
    /// The words that the branch depends on do not change.
    Unchanged,
}

/// Value that an operation computes.
fn computed<A>(
    operation: Operation,
    first: Value,
    second: Value,
    loads: &[Option<Loaded<A>>; MAX_LOADS],
) -> Value {
    let view = match (first.view, second.view) {
        (Some(view), _) if second.loads == 0 => {
            let by = (second.now & 63) as i32;
            match operation.class() {
                OperationClass::Mask => Some(view.masked(second.now)),
                OperationClass::ShiftLeft => view.shifted(by),
                OperationClass::ShiftRight => view.shifted(-by),
                OperationClass::Combine if second.now == 0 => Some(view),
                OperationClass::CombineWord if second.now == 0 && is_sign_extended(view, loads) => {
                    Some(view)
                }
                _ => None,
            }
        }
        (_, Some(view)) if first.loads == 0 => match operation.class() {
            OperationClass::Mask => Some(view.masked(first.now)),
            OperationClass::Combine if first.now == 0 => Some(view),
            _ => None,
        },
        _ => None,
    };
    Value {
        now: operation.of(first.now, second.now),
        loads: first.loads | second.loads,
        view,
    }
}

/// Returns true if sign extension of the lower 32 bits leaves the value unchanged.
fn is_sign_extended<A>(view: View, loads: &[Option<Loaded<A>>; MAX_LOADS]) -> bool {
    const UPPER: u64 = u64::MAX << 31;
    let extends = |loaded: &Loaded<A>| loaded.signed && loaded.width != Width::Double;
    let loaded = loads.get(view.load).and_then(Option::as_ref);
    view.to_value(view.mask) & UPPER == 0
        || view.shift == 0 && view.mask & UPPER == UPPER && loaded.is_some_and(extends)
}

#[cfg(test)]
pub(crate) mod tests;
