//! Evidence for a departure: a difference, both runs and the program.

use crate::assembler::SRET;
use crate::compare::{Difference, Place, Run};
use crate::csr;
use crate::layout;
use crate::program::Program;

/// An instruction by its bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Instruction(pub u32);

impl Instruction {
    const fn opcode(self) -> u32 {
        self.0 & 0x7f
    }

    const fn funct3(self) -> u32 {
        self.0 >> 12 & 7
    }

    /// LR, SC or an AMO.
    #[must_use]
    pub const fn is_atomic(self) -> bool {
        self.opcode() == 0x2f
    }

    /// AMOCAS into x0.
    #[must_use]
    pub const fn is_swap_into_zero(self) -> bool {
        self.is_atomic() && self.0 >> 27 == 5 && self.0 >> 7 & 31 == 0
    }

    /// CSRRW and its like.
    #[must_use]
    pub const fn is_csr(self) -> bool {
        self.opcode() == 0x73 && !matches!(self.funct3(), 0 | 4)
    }

    /// The register and the CSR of a CSR instruction.
    #[must_use]
    pub const fn csr(self) -> Option<(u32, u16)> {
        if self.is_csr() {
            Some((self.0 >> 7 & 31, (self.0 >> 20) as u16))
        } else {
            None
        }
    }

    /// CSRRC of mstatus, sstatus or vsstatus.
    #[must_use]
    pub const fn clears_bits_of_status(self) -> bool {
        self.opcode() == 0x73 && self.funct3() == 3 && matches!(self.0 >> 20, 0x100 | 0x200 | 0x300)
    }

    /// An instruction that needs FS: loads, stores and computations, compressed ones too, and accesses to fflags, frm and fcsr.
    #[must_use]
    pub const fn needs_float(self) -> bool {
        match self.0 & 3 {
            3 => match self.opcode() {
                0x07 | 0x27 => matches!(self.funct3(), 1..=3),
                0x43 | 0x47 | 0x4b | 0x4f | 0x53 => true,
                _ => self.is_csr() && matches!(self.0 >> 20, 1..=3),
            },
            0 | 2 => matches!(self.0 >> 13 & 7, 1 | 5),
            _ => false,
        }
    }

    /// HLV, HLVX or HSV.
    #[must_use]
    pub const fn is_guest_access(self) -> bool {
        self.opcode() == 0x73 && self.funct3() == 4
    }

    /// HLVX.
    #[must_use]
    pub const fn is_guest_fetch(self) -> bool {
        self.is_guest_access() && self.0 >> 20 & 31 == 3 && self.0 >> 25 & 1 == 0
    }

    /// CBO.INVAL, CBO.CLEAN, CBO.FLUSH or CBO.ZERO.
    #[must_use]
    pub const fn is_cache_block(self) -> bool {
        self.opcode() == 0x0f && self.funct3() == 2
    }

    /// CBO.INVAL, CBO.CLEAN or CBO.FLUSH.
    #[must_use]
    pub const fn is_cache_management(self) -> bool {
        self.is_cache_block() && self.0 >> 20 <= 2
    }

    /// SRET.
    #[must_use]
    pub const fn is_supervisor_return(self) -> bool {
        self.0 == SRET
    }

    /// WRS.NTO.
    #[must_use]
    pub const fn is_reservation_wait(self) -> bool {
        self.0 == 0x00d0_0073
    }

    /// SFENCE.W.INVAL or SFENCE.INVAL.IR.
    #[must_use]
    pub const fn is_invalidation_order(self) -> bool {
        matches!(self.0, 0x1800_0073 | 0x1810_0073)
    }

    /// An instruction of OP-V, or a vector load or store.
    #[must_use]
    pub const fn is_vector(self) -> bool {
        match self.opcode() {
            0x57 | 0x77 => true,
            0x07 | 0x27 => matches!(self.funct3(), 0 | 5..=7),
            _ => false,
        }
    }

    /// A load or store of whole vector registers.
    #[must_use]
    pub const fn is_whole_register_transfer(self) -> bool {
        self.is_vector()
            && matches!(self.opcode(), 0x07 | 0x27)
            && self.0 >> 26 & 7 == 0
            && self.0 >> 20 & 31 == 8
    }

    /// A unit-stride fault-only-first load.
    #[must_use]
    pub const fn is_fault_only_first(self) -> bool {
        self.opcode() == 0x07
            && self.is_vector()
            && self.0 >> 26 & 3 == 0
            && self.0 >> 20 & 31 == 0x10
    }

    /// The same with vm clear.
    #[must_use]
    pub const fn is_masked_fault_only_first(self) -> bool {
        self.is_fault_only_first() && self.0 >> 25 & 1 == 0
    }

    /// An indexed vector load or store.
    #[must_use]
    pub const fn is_indexed_transfer(self) -> bool {
        self.is_vector() && matches!(self.opcode(), 0x07 | 0x27) && self.0 >> 26 & 1 != 0
    }

    /// VZEXT or VSEXT.
    #[must_use]
    pub const fn is_integer_extension(self) -> bool {
        let selector = self.0 >> 15 & 31;
        self.opcode() == 0x57
            && self.funct3() == 2
            && self.0 >> 26 == 0x12
            && matches!(selector, 2..=7)
    }

    /// Register and value of ADDI or C.LI that loads a constant.
    #[must_use]
    pub const fn constant(self) -> Option<(u32, u64)> {
        let (rd, is_load) = (
            self.0 >> 7 & 31,
            self.funct3() == 0 && self.0 >> 15 & 31 == 0,
        );
        if self.opcode() == 0x13 && is_load {
            return Some((rd, (self.0.cast_signed() >> 20) as i64 as u64));
        }
        if self.0 & 0xe003 == 0x4001 {
            let high = (self.0 << 19).cast_signed() >> 31 << 5;
            return Some((rd, (high | (self.0 >> 2 & 31).cast_signed()) as i64 as u64));
        }
        None
    }

    /// A vector instruction of which a register may be read with two widths: as a mask and as data, or by two operands.
    #[must_use]
    pub const fn may_read_two_widths(self) -> bool {
        let (vd, vs1, vs2) = (self.0 >> 7 & 31, self.0 >> 15 & 31, self.0 >> 20 & 31);
        let masked = self.0 >> 25 & 1 == 0;
        if self.opcode() != 0x57 {
            let is_indexed = self.0 >> 26 & 1 != 0;
            return self.is_vector() && (masked && vd / 8 == 0 || is_indexed && vd / 8 == vs2 / 8);
        }
        let reads_vs1 = matches!(self.funct3(), 0..=2);
        let mixed =
            reads_vs1 && vs1 / 8 == vs2 / 8 || vd / 8 == vs2 / 8 || reads_vs1 && vd / 8 == vs1 / 8;
        self.funct3() != 7 && (masked && (vs2 / 8 == 0 || reads_vs1 && vs1 / 8 == 0) || mixed)
    }

    /// WFI.
    #[must_use]
    pub const fn is_wait(self) -> bool {
        self.0 == 0x1050_0073
    }
}

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

    /// Tests whether this machine found nothing at an address where boards have devices, which an indexed access led to.
    #[must_use]
    pub fn leads_to_device(&self) -> bool {
        let (Some((trap, _)), Place::Trap { trap: index, .. }) =
            (self.traps(), self.difference.place)
        else {
            return false;
        };
        let address = self.ours.recorded(
            index,
            match trap.to {
                "M" => csr::MTVAL,
                "HS" => csr::STVAL,
                _ => csr::VSTVAL,
            },
        );
        trap.instruction.is_indexed_transfer()
            && matches!(trap.cause, 5 | 7)
            && layout::DEVICES
                .iter()
                .any(|devices| devices.contains(&address))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_tell_which_instructions_need_fs() {
        // fld f0, 0(x5); fsh f0, 0(x5); fadd.s; fmadd.s; csrr x5, fcsr; c.fld; c.fsdsp.
        for raw in [
            0x0002_b007,
            0x0002_9027,
            0x0000_0053,
            0x0000_0043,
            0x0030_22f3,
            0x2000,
            0xa002,
        ] {
            assert!(Instruction(raw).needs_float(), "{raw:#x}");
        }
        // ld; vle8.v; csrr x5, sstatus; ecall; c.lw; c.j; c.swsp.
        for raw in [
            0x0002_b283,
            0x0202_8007,
            0x1000_22f3,
            0x73,
            0x4000,
            0xa001,
            0xc002,
        ] {
            assert!(!Instruction(raw).needs_float(), "{raw:#x}");
        }
        // amocas.d.aqrl x0, x11, (x31); the same into x1; amoswap.d x0, x11, (x31).
        assert!(Instruction(0x2ebf_b02f).is_swap_into_zero());
        assert!(!Instruction(0x2ebf_b0af).is_swap_into_zero());
        assert!(!Instruction(0x0ebf_b02f).is_swap_into_zero());
        // c.li x23, 16; addi x5, x0, -1; addi x5, x1, 1.
        assert_eq!(Instruction(0x4bc1).constant(), Some((23, 16)));
        assert_eq!(Instruction(0xfff0_0293).constant(), Some((5, u64::MAX)));
        assert_eq!(Instruction(0x0010_8293).constant(), None);
        // csrrc x18, sstatus, x31; csrrs x18, sstatus, x31.
        assert!(Instruction(0x100f_b973).clears_bits_of_status());
        assert!(!Instruction(0x100f_a973).clears_bits_of_status());
    }
}
