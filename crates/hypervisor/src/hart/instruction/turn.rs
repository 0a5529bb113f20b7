//! What a pause loop waits for that looks at several words: one turn of it, gone through as the guest would go.
//!
//! Stock Linux spins on a mutex whose owner runs by
//!
//! ```text
//! again:
//! lw     a5, 100(a1)      # the owner has a CPU
//! beqz   a5, out
//! ld     a5, 0(tp)        # nobody else wants this one
//! andi   a5, a5, 8
//! bnez   a5, out
//! div    a5, a5, x0
//! pause
//! ld     a5, 0(a0)        # the mutex has the same owner
//! andi   a5, a5, -8
//! beq    a1, a5, again
//! ```
//!
//! At the PAUSE all registers are known, and so is memory. A turn from there that comes back to the PAUSE comes back each time, as long as
//! each of its branches goes the same way. So every branch that depends on memory gives a [`Condition`] on what was loaded, and
//! the wait may be over when one of them does not hold any more. What the guest itself saw is not needed.
//!
//! A turn is understood if it is made of loads, computations, jumps, branches and fences. No register whose value it needs from before it
//! may change in it, or the next turn would be another one. A word that an address depends on has to stay as it is. As with
//! [`PauseLoop`](super::PauseLoop), all of this is a hint.

use super::code::{self, Load};
use super::step::{Comparison, Kind, Operand, Operation, Step};
use crate::hart::decode::{Register, Width};

/// Instructions of a turn that are gone through at most.
const MOST_STEPS: usize = 40;
/// Loads of a turn at most.
const MOST_LOADS: usize = 8;
/// Words of a wait at most.
pub const MOST_CONDITIONS: usize = 4;
/// Branches of a turn that depend on memory at most.
const MOST_BRANCHES: u32 = 8;

/// What a word has to be for a loop to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Where the word is, by whoever loads it for [`Guest`].
    pub place: u64,
    /// How long the word is.
    pub width: Width,
    /// Whether its sign fills the rest of a register.
    pub signed: bool,
    /// The bits that count, of the register.
    pub mask: u64,
    /// What these bits are compared with.
    pub value: u64,
    /// The loop goes on while they are equal, or while they are not.
    pub equal: bool,
}

impl Condition {
    /// Whether the loop goes on where the word is `raw`, of which the bits above its width do not count.
    #[must_use]
    pub const fn holds(&self, raw: u64) -> bool {
        let value = extended(raw, self.width, self.signed);
        (value & self.mask == self.value) == self.equal
    }
}

/// What a load leaves in its register.
pub(super) const fn extended(raw: u64, width: Width, signed: bool) -> u64 {
    let raw = width.truncate(raw);
    match (signed, width) {
        (true, Width::Byte) => raw as i8 as u64,
        (true, Width::Half) => raw as i16 as u64,
        (true, Width::Word) => raw as i32 as u64,
        _ => raw,
    }
}

/// The guest in its wait.
pub trait Guest {
    /// The halfword of code at a guest-virtual address, if there is one.
    fn fetch(&self, address: u64) -> Option<u16>;
    /// Where the word at a guest-virtual address is and what it is now, if the guest can load it.
    fn load(&self, address: u64, width: Width) -> Option<(u64, u64)>;
    /// What the register has, which is not x0.
    fn register(&self, register: Register) -> u64;
    /// The time of its clock.
    fn clock(&self) -> u64;
}

/// What a pause loop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The loop goes on while these hold, of which there is one at least. They hold now.
    Waits([Option<Condition>; MOST_CONDITIONS]),
    /// By memory as it is now the guest leaves the loop, which waits for the word at this place among others.
    Over(u64),
}

impl Turn {
    /// Goes through the loop around the PAUSE at the guest-virtual address `pause`; `None` where it is not understood.
    pub fn of(guest: &impl Guest, pause: u64) -> Option<Self> {
        let mut way = Way::new(guest, None);
        if way.leads_back(pause) {
            return way.conditions().map(Self::Waits);
        }
        // It is a loop if it would come back where one branch went the other way.
        (0..way.branches).find_map(|branch| {
            let mut other = Way::new(guest, Some(branch));
            let conditions = other.leads_back(pause).then(|| other.conditions())??;
            let [first, ..] = conditions;
            first.map(|condition| Self::Over(condition.place))
        })
    }
}

/// What of a loaded word a value is: some bits, shifted to the left, or to the right where `shift` is negative.
#[derive(Clone, Copy, Debug)]
struct View {
    load: usize,
    mask: u64,
    shift: i32,
}

impl View {
    /// Shifts the value on.
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

    /// The value's bits that `mask` has.
    fn masked(self, mask: u64) -> Self {
        Self {
            mask: self.mask & self.back(mask),
            ..self
        }
    }

    /// Where bits of the value are in the word.
    const fn back(self, value: u64) -> u64 {
        match self.shift {
            0.. => value >> self.shift,
            _ => value << -self.shift,
        }
    }

    /// Where bits of the word are in the value.
    const fn forth(self, word: u64) -> u64 {
        match self.shift {
            0.. => word << self.shift,
            _ => word >> -self.shift,
        }
    }

    /// What the word's bits are where the value is this one, if it can be.
    fn of(self, value: u64) -> Option<u64> {
        let word = self.back(value);
        (self.forth(word) == value && word & !self.mask == 0).then_some(word)
    }
}

/// A value, and what it depends on.
#[derive(Clone, Copy, Debug)]
struct Value {
    now: u64,
    /// The loads that it depends on, a bit for each.
    loads: u8,
    /// If it is so simple: what of a loaded word it is.
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

/// A word that was loaded.
#[derive(Clone, Copy, Debug)]
struct Loaded {
    place: u64,
    width: Width,
    signed: bool,
    now: u64,
}

impl Loaded {
    const fn condition(self, mask: u64, value: u64, equal: bool) -> Condition {
        Condition {
            place: self.place,
            width: self.width,
            signed: self.signed,
            mask,
            value,
            equal,
        }
    }
}

/// A way from a PAUSE.
struct Way<'a, G> {
    guest: &'a G,
    /// The branch among those that depend on memory which goes the other way.
    turned: Option<u32>,
    /// What registers have that the way has written.
    values: [Option<Value>; 32],
    /// The registers that it has read before, a bit for each.
    needed: u32,
    /// Branches that depend on memory.
    branches: u32,
    loads: [Option<Loaded>; MOST_LOADS],
    /// The loads whose words have to stay as they are, a bit for each.
    fixed: u8,
    conditions: [Option<Condition>; MOST_CONDITIONS],
}

impl<'a, G: Guest> Way<'a, G> {
    const fn new(guest: &'a G, turned: Option<u32>) -> Self {
        Self {
            guest,
            turned,
            values: [None; 32],
            needed: 0,
            branches: 0,
            loads: [None; MOST_LOADS],
            fixed: 0,
            conditions: [None; MOST_CONDITIONS],
        }
    }

    /// Whether the way from the PAUSE leads to it again, and would lead there another time.
    fn leads_back(&mut self, pause: u64) -> bool {
        let mut at = pause.wrapping_add(super::LENGTH);
        for _ in 0..MOST_STEPS {
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

    /// Makes the step at an address; where it leads.
    fn step(&mut self, at: u64) -> Option<u64> {
        let parcel = code::fetch(at, |at| self.guest.fetch(at))?;
        let next = at.wrapping_add(parcel.length());
        match Step::decode(parcel)? {
            Step::Nothing => {}
            Step::Load(load) => {
                self.load(load)?;
            }
            Step::Atomic(load, done, operand) => {
                let operand = self.get(operand);
                let (number, word) = self.load(load)?;
                // It wrote to the word if that were another one, or the operand.
                self.fixed |= 1 << number | operand.loads;
                if !done.leaves(word, operand.now, load.width) {
                    return None;
                }
            }
            Step::Relative(to, distance) => {
                self.set(to, Value::fixed(at.wrapping_add_signed(distance)));
            }
            Step::Value(to, value) => self.set(to, Value::fixed(value)),
            Step::Compute(to, operation, first, second) => {
                let first = self.get(first);
                let second = match second {
                    Operand::Register(second) => self.get(second),
                    Operand::Value(value) => Value::fixed(value),
                };
                self.set(to, computed(operation, first, second, &self.loads));
            }
            // No turn would be as the one before.
            Step::Clock(_) => return None,
            Step::Jump(offset) => return Some(at.wrapping_add_signed(offset)),
            Step::JumpTo(register, offset) => {
                let to = self.get(register);
                self.fixed |= to.loads;
                return Some(to.now.wrapping_add_signed(offset) & !1);
            }
            Step::Branch(comparison, (first, second), offset) => {
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

    /// Which load it was, and the word.
    fn load(&mut self, load: Load) -> Option<(usize, u64)> {
        let base = self.get(load.base);
        self.fixed |= base.loads;
        let address = base.now.wrapping_add_signed(load.offset);
        let (place, raw) = self.guest.load(address, load.width)?;
        let now = extended(raw, load.width, load.signed);
        let number = self.loads.iter().position(Option::is_none)?;
        *self.loads.get_mut(number)? = Some(Loaded {
            place,
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

    /// Whether a branch is taken, and what has to be for that.
    fn branch(&mut self, comparison: Comparison, first: Value, second: Value) -> Option<bool> {
        let taken = comparison.holds(first.now, second.now);
        if first.loads | second.loads == 0 {
            return Some(taken);
        }
        let number = self.branches;
        self.branches += 1;
        if self.branches > MOST_BRANCHES {
            return None;
        }
        let taken = taken != (self.turned == Some(number));
        match self.asked(comparison, first, second, taken) {
            Asked::This(condition) => self.note(condition)?,
            Asked::Nothing => {}
            Asked::Whole => self.fixed |= first.loads | second.loads,
        }
        Some(taken)
    }

    /// What a branch asks of memory, if it is to go this way.
    fn asked(&self, comparison: Comparison, first: Value, second: Value, taken: bool) -> Asked {
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
            _ => return Asked::Whole,
        };
        let Some(&Some(loaded)) = self.loads.get(viewed.load) else {
            return Asked::Whole;
        };
        if comparison.is_of_equality() {
            // BEQ holds of equal numbers.
            let equal = comparison.holds(0, 0) == taken;
            return match viewed.of(other) {
                Some(value) => Asked::This(loaded.condition(viewed.mask, value, equal)),
                // Nothing makes them equal.
                None => Asked::Nothing,
            };
        }
        let is_first = first.view.is_some();
        if comparison.is_of_signed() && is_first && other == 0 {
            // Whether it is less than 0 is one bit.
            let sign = viewed.mask & viewed.back(1 << 63);
            let negative = comparison.holds(u64::MAX, 0) == taken;
            return match sign {
                0 => Asked::Nothing,
                sign => Asked::This(loaded.condition(sign, sign, negative)),
            };
        }
        Asked::Whole
    }

    fn note(&mut self, condition: Condition) -> Option<()> {
        if !self.conditions.contains(&Some(condition)) {
            let free = self.conditions.iter().position(Option::is_none)?;
            *self.conditions.get_mut(free)? = Some(condition);
        }
        Some(())
    }

    /// What has to hold for the way to be this one; `None` where it is always, or where that is too much.
    fn conditions(mut self) -> Option<[Option<Condition>; MOST_CONDITIONS]> {
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

/// What a branch asks of memory.
enum Asked {
    /// This.
    This(Condition),
    /// Nothing: it always goes this way.
    Nothing,
    /// That the words which it depends on stay as they are.
    Whole,
}

/// What an operation makes of two values.
fn computed(
    operation: Operation,
    first: Value,
    second: Value,
    loads: &[Option<Loaded>; MOST_LOADS],
) -> Value {
    let view = match (first.view, second.view) {
        (Some(view), _) if second.loads == 0 => {
            let by = (second.now & 63) as i32;
            match operation.kind() {
                Kind::Mask => Some(view.masked(second.now)),
                Kind::ShiftLeft => view.shifted(by),
                Kind::ShiftRight => view.shifted(-by),
                Kind::Combine if second.now == 0 => Some(view),
                Kind::CombineWord if second.now == 0 && is_of_31_bits(view, loads) => Some(view),
                _ => None,
            }
        }
        (_, Some(view)) if first.loads == 0 => match operation.kind() {
            Kind::Mask => Some(view.masked(first.now)),
            Kind::Combine if first.now == 0 => Some(view),
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

/// Whether the lower 32 bits, extended by their sign, are the value itself.
fn is_of_31_bits(view: View, loads: &[Option<Loaded>; MOST_LOADS]) -> bool {
    const UPPER: u64 = u64::MAX << 31;
    let extends = |loaded: &Loaded| loaded.signed && loaded.width != Width::Double;
    let loaded = loads.get(view.load).and_then(Option::as_ref);
    view.forth(view.mask) & UPPER == 0
        || view.shift == 0 && view.mask & UPPER == UPPER && loaded.is_some_and(extends)
}

#[cfg(test)]
pub(super) mod tests;
