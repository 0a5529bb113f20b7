//! Evidence for a departure: a difference, both runs and the program.

use super::instruction::Instruction;
use crate::compare::{Difference, Place, Run};
use crate::csr;
use crate::layout;
use crate::program::Program;

/// A trap as both runs' records have it.
#[derive(Debug, Clone, Copy)]
pub struct Trap {
    /// Where it went.
    pub to: &'static str,
    /// Its cause.
    pub cause: u64,
    /// Where it came from.
    pub at: u64,
    /// The instruction there, if that lies in the program's code or the handlers.
    pub instruction: Instruction,
}

impl Trap {
    /// Number of the register that has the trap's value.
    const fn value(&self) -> u16 {
        match self.to.as_bytes() {
            b"M" => csr::MTVAL,
            b"HS" => csr::STVAL,
            _ => csr::VSTVAL,
        }
    }
}

/// A difference and all that is around it.
#[derive(Debug, Clone, Copy)]
pub struct Seen<'a> {
    /// The difference.
    pub difference: Difference,
    /// This machine's run.
    pub ours: Run<'a>,
    /// The other's run.
    pub theirs: Run<'a>,
    /// The program.
    pub program: &'a Program,
}

impl Seen<'_> {
    /// The bits that differ.
    #[must_use]
    pub const fn bits(&self) -> u64 {
        self.difference.ours ^ self.difference.theirs
    }

    /// The number of the CSR that differs.
    #[must_use]
    pub const fn number(&self) -> Option<u16> {
        match self.difference.place {
            Place::Trap { number, .. } | Place::Csr(number) => Some(number),
            _ => None,
        }
    }

    /// Tests whether a CSR, wherever it was read, differs in these bits only.
    #[must_use]
    pub fn only(&self, number: u16, bits: u64) -> bool {
        self.number() == Some(number) && self.bits() & !bits == 0
    }

    /// Tests whether an integer register that an instruction of the program reads one of these CSRs into
    /// differs in these bits only.
    #[must_use]
    pub fn is_read_of(&self, numbers: &[u16], bits: u64) -> bool {
        let Place::Integer(register) = self.difference.place else {
            return false;
        };
        let reads = |instruction: Instruction| {
            instruction
                .csr()
                .is_some_and(|(rd, number)| rd as usize == register && numbers.contains(&number))
        };
        self.bits() & !bits == 0 && self.code().any(reads)
    }

    /// Tests whether an integer register that differs holds here what an instruction of the program loads it with.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        let Place::Integer(register) = self.difference.place else {
            return false;
        };
        let wanted = Some((register as u32, self.difference.ours));
        self.has(|instruction| instruction.constant() == wanted)
    }

    /// Tests whether the code holds such an instruction.
    #[must_use]
    pub fn has(&self, is: impl Fn(Instruction) -> bool) -> bool {
        self.code().any(is)
    }

    /// Instructions of 32 bits at every even address of the code.
    fn code(&self) -> impl Iterator<Item = Instruction> {
        let base = self.program.slot.base + layout::CODE;
        (0..layout::PAGE)
            .step_by(2)
            .map(move |offset| self.instruction(base + offset))
    }

    fn instruction(&self, address: u64) -> Instruction {
        let base = self.program.slot.base + layout::CODE;
        let offset = address.wrapping_sub(base);
        let inside = offset < 2 * layout::PAGE - 4;
        Instruction(if inside {
            self.ours.bits32(layout::CODE + offset)
        } else {
            0
        })
    }

    fn trap(&self, run: crate::compare::Run<'_>, trap: usize) -> Trap {
        let (to, cause, at) = run.trap(trap);
        Trap {
            to,
            cause,
            at,
            instruction: self.instruction(at),
        }
    }

    /// Trap values of both traps of a difference in a trap's record.
    #[must_use]
    pub fn trap_values(&self) -> Option<(u64, u64)> {
        let (Some((left, right)), Place::Trap { trap, .. }) = (self.traps(), self.difference.place)
        else {
            return None;
        };
        Some((
            self.ours.recorded(trap, left.value()),
            self.theirs.recorded(trap, right.value()),
        ))
    }

    /// Both traps of a difference in a trap's record.
    #[must_use]
    pub fn traps(&self) -> Option<(Trap, Trap)> {
        let Place::Trap { trap, .. } = self.difference.place else {
            return None;
        };
        Some((self.trap(self.ours, trap), self.trap(self.theirs, trap)))
    }

    /// Tests whether both trapped with the same instruction, with causes and an instruction such as these.
    #[must_use]
    pub fn both(&self, are: impl Fn(u64, u64, Instruction) -> bool) -> bool {
        self.traps().is_some_and(|(left, right)| {
            left.at == right.at && are(left.cause, right.cause, left.instruction)
        })
    }

    /// Tests whether only this machine trapped, with such a cause and with such an instruction.
    #[must_use]
    pub fn only_ours(&self, is: impl Fn(u64, Instruction) -> bool) -> bool {
        self.traps()
            .is_some_and(|(left, right)| left.at != right.at && is(left.cause, left.instruction))
    }

    /// Tests whether only the other trapped, with such a cause and with such an instruction.
    #[must_use]
    pub fn only_theirs(&self, is: impl Fn(u64, Instruction) -> bool) -> bool {
        self.traps()
            .is_some_and(|(left, right)| left.at != right.at && is(right.cause, right.instruction))
    }

    /// Tests whether both trapped before this difference with the same instruction, with such a cause and with such an instruction.
    #[must_use]
    pub fn both_trapped_before(&self, is: impl Fn(u64, Instruction) -> bool) -> bool {
        let traps = match self.difference.place {
            Place::Trap { trap, .. } => trap,
            _ => self.ours.traps().min(self.theirs.traps()),
        };
        (0..traps).any(|trap| {
            let (left, right) = (self.trap(self.ours, trap), self.trap(self.theirs, trap));
            left.at == right.at && left.cause == right.cause && is(left.cause, left.instruction)
        })
    }

    /// Tests whether this machine found nothing at an address where boards have devices, which an indexed access led to. A leaf of the
    /// highest level leaves all lower bits of an address as they are.
    #[must_use]
    pub fn leads_to_device(&self) -> bool {
        const LARGEST_PAGE: u64 = 1 << 39;
        let (Some((trap, _)), Place::Trap { trap: index, .. }) =
            (self.traps(), self.difference.place)
        else {
            return false;
        };
        let address = self.ours.recorded(index, trap.value());
        trap.instruction.is_indexed_transfer()
            && matches!(trap.cause, 5 | 7)
            && layout::DEVICES.iter().any(|devices| {
                devices.contains(&address) || devices.contains(&(address % LARGEST_PAGE))
            })
    }

    /// Tests whether a value was written by a guest-page fault, not left from an earlier trap.
    #[must_use]
    pub fn is_guest_page_fault(&self) -> bool {
        let (Some((trap, _)), Some(number)) = (self.traps(), self.number()) else {
            return false;
        };
        let machine = matches!(number, csr::MTVAL2 | csr::MTINST);
        (trap.to == "M") == machine && matches!(trap.cause, 20 | 21 | 23)
    }

    /// The pseudoinstruction of this machine's guest-page fault by an implicit access, where the
    /// other has the same fault by another access.
    #[must_use]
    pub fn implicit(&self) -> Option<u64> {
        let Place::Trap { trap, .. } = self.difference.place else {
            return None;
        };
        let same = self.both(|left, right, _| left == right && matches!(left, 20 | 21 | 23));
        let (instruction, address) = match self.trap(self.ours, trap).to {
            "M" => (csr::MTINST, csr::MTVAL2),
            _ => (csr::HTINST, csr::HTVAL),
        };
        let read = |run: Run<'_>, number| run.recorded(trap, number);
        let other = [instruction, address]
            .into_iter()
            .any(|number| read(self.ours, number) != read(self.theirs, number));
        let ours = read(self.ours, instruction);
        (same && other && matches!(ours, 0x3000 | 0x3020)).then_some(ours)
    }

    /// The instruction that a trap value or cause belongs to, when its register was written last.
    /// A record holds registers of three modes: each has its own cause and place.
    #[must_use]
    pub fn recorded(&self) -> Option<(u64, Instruction)> {
        let Place::Trap { trap, number } = self.difference.place else {
            return None;
        };
        let (cause, at) = match number {
            csr::MTVAL if self.ours.is_double(trap) => (csr::MTVAL2, csr::MEPC),
            csr::MTVAL => (csr::MCAUSE, csr::MEPC),
            csr::STVAL => (csr::SCAUSE, csr::SEPC),
            csr::VSTVAL => (csr::VSCAUSE, csr::VSEPC),
            _ => return None,
        };
        let at = self.ours.recorded(trap, at);
        Some((self.ours.recorded(trap, cause), self.instruction(at)))
    }

    /// Tests whether an address differs in nothing but its place in the cache block.
    #[must_use]
    pub fn is_in_block(&self) -> bool {
        let low = match self.number() {
            Some(csr::MTVAL | csr::STVAL | csr::VSTVAL) => 63,
            Some(csr::MTVAL2 | csr::HTVAL) => 15,
            _ => return false,
        };
        // One of the two is the block's start.
        let (ours, theirs) = (self.difference.ours, self.difference.theirs);
        let start = ours & !low;
        start == theirs & !low && [ours, theirs].contains(&start)
    }

    /// Tests whether a status register, or a register that one was read into, differs in no other bits
    /// than these.
    #[must_use]
    pub fn status(&self, bits: u64) -> bool {
        const STATUS: [u16; 3] = [csr::MSTATUS, csr::SSTATUS, csr::VSSTATUS];
        STATUS.into_iter().any(|number| self.only(number, bits)) || self.is_read_of(&STATUS, bits)
    }
}

/// The causes of the supervisors' timer interrupts: 5, and 6 as HS-mode sees VS-mode's.
#[must_use]
pub const fn is_timer(cause: u64) -> bool {
    cause == 1 << 63 | 5 || cause == 1 << 63 | 6
}

/// FS and SD of mstatus, sstatus and vsstatus.
pub const FLOAT: u64 = 3 << 13 | 1 << 63;
/// VS and SD.
pub const VECTORS: u64 = 3 << 9 | 1 << 63;
/// Clean in FS.
pub const CLEAN: u64 = 2 << 13;
