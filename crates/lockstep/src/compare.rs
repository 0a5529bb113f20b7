//! Two runs of a program, side by side.

use std::fmt;

use crate::csr::{self, COMPARED, RECORDED, VECTOR_COMPARED};
use crate::layout::{self, context};
use crate::program::Program;
use riscv::exception::DOUBLE_TRAP;

/// Implementation that gave a result.
#[derive(Debug, Clone, Copy)]
pub struct Run<'a> {
    slot: &'a [u8],
    base: u64,
}

impl<'a> Run<'a> {
    /// A slot after a run.
    #[must_use]
    pub const fn new(slot: &'a [u8], base: u64) -> Self {
        Self { slot, base }
    }

    fn word(&self, offset: u64) -> u64 {
        let start = offset as usize;
        self.slot
            .get(start..start + 8)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u64::from_le_bytes)
    }

    /// Four bytes at an offset in the slot.
    #[must_use]
    pub fn bits32(&self, offset: u64) -> u32 {
        let start = offset as usize;
        self.slot
            .get(start..start + 4)
            .and_then(|bytes| bytes.try_into().ok())
            .map_or(0, u32::from_le_bytes)
    }

    fn context(&self, offset: i32, index: usize) -> u64 {
        self.word(layout::CONTEXT + u64::from(offset.cast_unsigned()) + 8 * index as u64)
    }

    /// Tests whether the program ended.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.context(context::DONE, 0) == 1
    }

    /// Traps recorded.
    #[must_use]
    pub fn traps(&self) -> usize {
        let next = self.context(context::NEXT, 0);
        let bytes = next
            .wrapping_sub(self.base + layout::LOG)
            .min(layout::LOG_SIZE);
        bytes as usize / (8 * RECORDED.len())
    }

    fn record(&self, trap: usize, field: usize) -> u64 {
        let index = trap * RECORDED.len() + field;
        self.word(layout::LOG + 8 * index as u64)
    }

    /// CSR at the end, by its number; zero of one that is not compared.
    #[must_use]
    pub fn left(&self, number: u16) -> u64 {
        let mut compared = COMPARED.iter().chain(&VECTOR_COMPARED);
        let place = compared.position(|&compared| compared == number);
        place.map_or(0, |index| self.context(context::CSRS_AFTER, index))
    }

    /// A field of a record, by the number of its CSR.
    #[must_use]
    pub fn recorded(&self, trap: usize, number: u16) -> u64 {
        let field = RECORDED.iter().position(|&field| field == number);
        field.map_or(0, |field| self.record(trap, field))
    }
}

impl Run<'_> {
    /// Where a trap went at last, its cause and where it came from: the supervisors' handlers hand
    /// theirs on to M-mode. Of a double trap the cause is that of the trap that was not expected.
    #[must_use]
    pub fn trap(&self, trap: usize) -> (&'static str, u64, u64) {
        let read = |number| self.recorded(trap, number);
        let at = read(csr::MEPC);
        let handlers = self.base + layout::HANDLERS;
        let inside = |start: u64| (start..start + layout::HANDLERS_SIZE).contains(&at);
        if self.is_double(trap) {
            ("M", read(csr::MTVAL2), at)
        } else if inside(handlers) {
            ("HS", read(csr::SCAUSE), read(csr::SEPC))
        } else if inside(handlers + layout::VIRTUAL_HANDLERS) {
            ("VS", read(csr::VSCAUSE), read(csr::VSEPC))
        } else {
            ("M", read(csr::MCAUSE), at)
        }
    }

    /// Tests whether a trap is a double trap.
    #[must_use]
    pub fn is_double(&self, trap: usize) -> bool {
        self.recorded(trap, csr::MCAUSE) == DOUBLE_TRAP
    }
}

/// Difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A CSR as a trap to M-mode found it.
    Trap {
        /// Which trap, from 0.
        trap: usize,
        /// Which CSR.
        number: u16,
    },
    /// One of the two took fewer traps.
    Traps,
    /// An integer register at the end.
    Integer(usize),
    /// A floating-point register at the end.
    Float(usize),
    /// A CSR at the end.
    Csr(u16),
    /// Memory, by its offset in the slot.
    Memory(u64),
    /// One of the two did not end.
    End,
}

/// A difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// Where.
    pub place: Place,
    /// Value of this machine.
    pub ours: u64,
    /// Value of the other implementation.
    pub theirs: u64,
}

impl fmt::Display for Difference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place::Trap { trap, number } => {
                write!(formatter, "trap {trap}: {}", csr::name(number))?;
            }
            Place::Traps => write!(formatter, "number of traps")?,
            Place::Integer(register) => write!(formatter, "x{register}")?,
            Place::Float(register) => write!(formatter, "f{register}")?,
            Place::Csr(number) => write!(formatter, "{}", csr::name(number))?,
            Place::Memory(offset) if offset.wrapping_sub(layout::VECTORS) < layout::PAGE => {
                write!(formatter, "vectors + {:#x}", offset - layout::VECTORS)?;
            }
            Place::Memory(offset) => write!(formatter, "memory at slot + {offset:#x}")?,
            Place::End => write!(formatter, "came to its end")?,
        }
        write!(
            formatter,
            ": {:#x} here, {:#x} there",
            self.ours, self.theirs
        )
    }
}

/// The bits of CSRs that are compared: not the pending external interrupt at machine level, which
/// the board decides on.
const fn mask(number: u16) -> u64 {
    match number {
        csr::MIP => !0x800,
        _ => u64::MAX,
    }
}

/// Tests whether two trap values stand for the same: the instruction that was trapped on may be left
/// zero. Not so the pseudoinstruction of a guest-page fault by an implicit access.
fn is_same_value(number: u16, run: Run<'_>, trap: usize, left: u64, right: u64) -> bool {
    let cause = match number {
        csr::MTVAL => csr::MCAUSE,
        csr::STVAL => csr::SCAUSE,
        csr::VSTVAL => csr::VSCAUSE,
        csr::MTINST | csr::HTINST => {
            let other = left | right;
            return (left == 0 || right == 0) && !matches!(other, 0x3000 | 0x3020);
        }
        _ => return false,
    };
    (left == 0 || right == 0) && matches!(run.recorded(trap, cause), 2 | 22)
}

/// Every difference: whether both ended, then traps.
#[must_use]
pub fn differences(ours: Run<'_>, theirs: Run<'_>) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut check = |place, ours: u64, theirs: u64| {
        if ours != theirs {
            found.push(Difference {
                place,
                ours,
                theirs,
            });
        }
    };
    check(
        Place::End,
        u64::from(ours.is_done()),
        u64::from(theirs.is_done()),
    );
    for trap in 0..ours.traps().min(theirs.traps()) {
        for (field, &number) in RECORDED.iter().enumerate() {
            let (left, right) = (ours.record(trap, field), theirs.record(trap, field));
            if is_same_value(number, ours, trap, left, right) {
                continue;
            }
            let mask = mask(number);
            check(Place::Trap { trap, number }, left & mask, right & mask);
        }
    }
    check(Place::Traps, ours.traps() as u64, theirs.traps() as u64);
    for register in 1..32 {
        let read = |run: Run<'_>| run.context(context::X_AFTER, register);
        check(Place::Integer(register), read(ours), read(theirs));
    }
    for register in 0..32 {
        let read = |run: Run<'_>| run.context(context::F_AFTER, register);
        check(Place::Float(register), read(ours), read(theirs));
    }
    for (index, &number) in COMPARED.iter().chain(&VECTOR_COMPARED).enumerate() {
        let mask = mask(number);
        let read = |run: Run<'_>| run.context(context::CSRS_AFTER, index) & mask;
        check(Place::Csr(number), read(ours), read(theirs));
    }
    for offset in (0..layout::SLOT).step_by(8) {
        if !(layout::CONTEXT..layout::LOG + layout::LOG_SIZE).contains(&offset) {
            check(
                Place::Memory(offset),
                ours.word(offset),
                theirs.word(offset),
            );
        }
    }
    found
}

/// Describes a run for people: a line for each trap.
#[must_use]
pub fn describe(program: &Program, run: Run<'_>) -> Vec<String> {
    let line = |trap: usize| {
        let (to, cause, at) = run.trap(trap);
        let item = program.item_at(at).map_or("", |item| item.text.as_str());
        let double = if run.is_double(trap) { "double " } else { "" };
        format!("{double}trap {trap} to {to}: cause {cause:#x} at {at:#x} {item}")
    };
    (0..run.traps()).map(line).collect()
}
