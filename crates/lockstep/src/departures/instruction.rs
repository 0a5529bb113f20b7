//! Instructions by their bits, as departures ask for them.

use crate::assembler::SRET;

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

    /// An instruction of OP-V that is no configuration, or one of OP-VE.
    #[must_use]
    pub const fn is_vector_arithmetic(self) -> bool {
        self.opcode() == 0x77 || self.opcode() == 0x57 && self.funct3() != 7
    }

    /// VSETVLI or VSETVL of x0 and x0.
    #[must_use]
    pub const fn keeps_vector_length(self) -> bool {
        let is_configuration = self.opcode() == 0x57 && self.funct3() == 7;
        let is_by_register = self.0 >> 31 == 0 || self.0 >> 25 == 0x40;
        is_configuration && is_by_register && self.0 >> 7 & 31 == 0 && self.0 >> 15 & 31 == 0
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
            let masks_itself = masked && (vd / 8 == 0 || is_indexed && vs2 / 8 == 0);
            return self.is_vector() && (masks_itself || is_indexed && vd / 8 == vs2 / 8);
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

    /// SSPUSH, SSPOPCHK, SSRDP, or a compressed form.
    #[must_use]
    pub const fn is_shadow_stack(self) -> bool {
        matches!(self.0 & 0xffff, 0x6081 | 0x6281)
            || matches!(
                self.0,
                0xce10_4073 | 0xce50_4073 | 0xcdc0_c073 | 0xcdc2_c073
            )
            || self.is_shadow_pointer_read()
    }

    /// SSRDP.
    #[must_use]
    pub const fn is_shadow_pointer_read(self) -> bool {
        self.0 & 0xffff_f07f == 0xcdc0_4073 && self.0 >> 7 & 31 != 0
    }

    /// SSAMOSWAP.
    #[must_use]
    pub const fn is_shadow_swap(self) -> bool {
        self.is_atomic() && self.0 >> 27 == 9
    }
}

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
        // sspush x1; sspopchk x5; ssrdp x9; c.sspush x1; c.sspopchk x5.
        for raw in [0xce10_4073, 0xcdc2_c073, 0xcdc0_44f3, 0x6081, 0x0001_6281] {
            assert!(Instruction(raw).is_shadow_stack(), "{raw:#x}");
        }
        // mop.r.28 x0, x2; c.lui x1, 0; amoswap.d x1, x11, (x31).
        for raw in [0xcdc1_4073, 0x6085, 0x0ebf_b0af] {
            assert!(!Instruction(raw).is_shadow_stack(), "{raw:#x}");
        }
        // vsuxei16.v v29, (x31), v0, v0.t; vsuxei64.v v19, (x31), v16; vsuxei16.v v29, (x31), v8.
        assert!(Instruction(0x0c0f_dea7).may_read_two_widths());
        assert!(Instruction(0x070f_f9a7).may_read_two_widths());
        assert!(!Instruction(0x0e8f_dea7).may_read_two_widths());
        // vsetvl x0, x0, x30; vsetvl x1, x0, x30; vsetivli x0, 0, e8.
        assert!(Instruction(0x81e0_7057).keeps_vector_length());
        assert!(!Instruction(0x81e0_70d7).keeps_vector_length());
        assert!(!Instruction(0xc000_7057).keeps_vector_length());
        // ssamoswap.d x25, x16, (x31); amoswap.d x25, x16, (x31).
        assert!(Instruction(0x4b0f_bcaf).is_shadow_swap());
        assert!(!Instruction(0x0b0f_bcaf).is_shadow_swap());
    }
}
