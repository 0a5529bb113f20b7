//! Integer arithmetic that takes more than one host operation.
//!
//! Unprivileged specification, "M", "Zbb", "Zbc" and "Zbkx".

use crate::instruction::{Instruction, Operation};

/// Sign-extends the low 32 bits.
#[inline(always)]
pub(super) const fn word(value: u64) -> u64 {
    value as u32 as i32 as i64 as u64
}

/// Result of an instruction that only computes, from its source registers and its immediate operand; `None` for others.
#[inline(always)]
pub(super) fn computed(operation: Operation, x: &[u64; 256], i: &Instruction) -> Option<u64> {
    // Operands are read where they are needed: few operations need all of them.
    let rs1 = || x[i.rs1 as usize];
    let rs2 = || x[i.rs2 as usize];
    let immediate = || i64::from(i.immediate) as u64;
    Some(match operation {
        Operation::Addi => rs1().wrapping_add(immediate()),
        Operation::Slti => u64::from((rs1() as i64) < i64::from(i.immediate)),
        Operation::Sltiu => u64::from(rs1() < immediate()),
        Operation::Xori => rs1() ^ immediate(),
        Operation::Ori => rs1() | immediate(),
        Operation::Andi => rs1() & immediate(),
        Operation::Slli => rs1() << (i.immediate & 63),
        Operation::Srli => rs1() >> (i.immediate & 63),
        Operation::Srai => (rs1() as i64 >> (i.immediate & 63)) as u64,
        Operation::Addiw => word(rs1().wrapping_add(immediate())),
        Operation::Slliw => word(rs1() << (i.immediate & 31)),
        Operation::Srliw => word(u64::from(rs1() as u32 >> (i.immediate & 31))),
        Operation::Sraiw => (rs1() as i32 >> (i.immediate & 31)) as i64 as u64,
        Operation::Add => rs1().wrapping_add(rs2()),
        Operation::Sub => rs1().wrapping_sub(rs2()),
        Operation::Sll => rs1() << (rs2() & 63),
        Operation::Slt => u64::from((rs1() as i64) < rs2() as i64),
        Operation::Sltu => u64::from(rs1() < rs2()),
        Operation::Xor => rs1() ^ rs2(),
        Operation::Srl => rs1() >> (rs2() & 63),
        Operation::Sra => (rs1() as i64 >> (rs2() & 63)) as u64,
        Operation::Or => rs1() | rs2(),
        Operation::And => rs1() & rs2(),
        Operation::Addw => word(rs1().wrapping_add(rs2())),
        Operation::Subw => word(rs1().wrapping_sub(rs2())),
        Operation::Sllw => word(rs1() << (rs2() & 31)),
        Operation::Srlw => word(u64::from(rs1() as u32 >> (rs2() & 31))),
        Operation::Sraw => (rs1() as i32 >> (rs2() & 31)) as i64 as u64,
        _ => return multiplied(operation, x, i),
    })
}

/// Result of a multiplication, a division or a scaled addition ("M", "Zbc", "Zba"); otherwise that of [`manipulated`].
#[inline(always)]
fn multiplied(operation: Operation, x: &[u64; 256], i: &Instruction) -> Option<u64> {
    // Operands are read where they are needed: few operations need all of them.
    let rs1 = || x[i.rs1 as usize];
    let rs2 = || x[i.rs2 as usize];
    Some(match operation {
        Operation::Mul => rs1().wrapping_mul(rs2()),
        Operation::Mulh => mulh(rs1(), rs2()),
        Operation::Mulhsu => mulhsu(rs1(), rs2()),
        Operation::Mulhu => mulhu(rs1(), rs2()),
        Operation::Mulw => word(rs1().wrapping_mul(rs2())),
        Operation::Div => div(rs1(), rs2()),
        Operation::Divu => divu(rs1(), rs2()),
        Operation::Rem => rem(rs1(), rs2()),
        Operation::Remu => remu(rs1(), rs2()),
        Operation::Divw => divw(rs1(), rs2()),
        Operation::Divuw => divuw(rs1(), rs2()),
        Operation::Remw => remw(rs1(), rs2()),
        Operation::Remuw => remuw(rs1(), rs2()),
        Operation::AddUw => (rs1() as u32 as u64).wrapping_add(rs2()),
        Operation::Sh1add => (rs1() << 1).wrapping_add(rs2()),
        Operation::Sh2add => (rs1() << 2).wrapping_add(rs2()),
        Operation::Sh3add => (rs1() << 3).wrapping_add(rs2()),
        Operation::Sh1addUw => ((rs1() as u32 as u64) << 1).wrapping_add(rs2()),
        Operation::Sh2addUw => ((rs1() as u32 as u64) << 2).wrapping_add(rs2()),
        Operation::Sh3addUw => ((rs1() as u32 as u64) << 3).wrapping_add(rs2()),
        Operation::SlliUw => (rs1() as u32 as u64) << (i.immediate & 63),
        Operation::Clmul => clmul(rs1(), rs2()),
        Operation::Clmulh => clmulh(rs1(), rs2()),
        Operation::Clmulr => clmulr(rs1(), rs2()),
        _ => return manipulated(operation, x, i),
    })
}

/// Result of an instruction on bits, bytes or the smaller and greater value ("Zbb", "Zbs", "Zbkb", "Zbkx", "Zicond"); `None` for others.
#[inline(always)]
fn manipulated(operation: Operation, x: &[u64; 256], i: &Instruction) -> Option<u64> {
    // Operands are read where they are needed: few operations need all of them.
    let rs1 = || x[i.rs1 as usize];
    let rs2 = || x[i.rs2 as usize];
    Some(match operation {
        Operation::Andn => rs1() & !rs2(),
        Operation::Orn => rs1() | !rs2(),
        Operation::Xnor => !(rs1() ^ rs2()),
        Operation::Clz => u64::from(rs1().leading_zeros()),
        Operation::Clzw => u64::from((rs1() as u32).leading_zeros()),
        Operation::Ctz => u64::from(rs1().trailing_zeros()),
        Operation::Ctzw => u64::from((rs1() as u32).trailing_zeros()),
        Operation::Cpop => u64::from(rs1().count_ones()),
        Operation::Cpopw => u64::from((rs1() as u32).count_ones()),
        Operation::Max => (rs1() as i64).max(rs2() as i64) as u64,
        Operation::Maxu => rs1().max(rs2()),
        Operation::Min => (rs1() as i64).min(rs2() as i64) as u64,
        Operation::Minu => rs1().min(rs2()),
        Operation::SextB => rs1() as i8 as i64 as u64,
        Operation::SextH => rs1() as i16 as i64 as u64,
        Operation::ZextH => rs1() & 0xffff,
        Operation::Rol => rs1().rotate_left(rs2() as u32 & 63),
        Operation::Rolw => word((rs1() as u32).rotate_left(rs2() as u32 & 31).into()),
        Operation::Ror => rs1().rotate_right(rs2() as u32 & 63),
        Operation::Rorw => word((rs1() as u32).rotate_right(rs2() as u32 & 31).into()),
        Operation::Rori => rs1().rotate_right(i.immediate as u32 & 63),
        Operation::Roriw => word((rs1() as u32).rotate_right(i.immediate as u32 & 31).into()),
        Operation::OrcB => orc_b(rs1()),
        Operation::Rev8 => rs1().swap_bytes(),
        Operation::Bclr => rs1() & !(1 << (rs2() & 63)),
        Operation::Bclri => rs1() & !(1 << (i.immediate & 63)),
        Operation::Bext => rs1() >> (rs2() & 63) & 1,
        Operation::Bexti => rs1() >> (i.immediate & 63) & 1,
        Operation::Binv => rs1() ^ 1 << (rs2() & 63),
        Operation::Binvi => rs1() ^ 1 << (i.immediate & 63),
        Operation::Bset => rs1() | 1 << (rs2() & 63),
        Operation::Bseti => rs1() | 1 << (i.immediate & 63),
        Operation::CzeroEqz => {
            if rs2() == 0 {
                0
            } else {
                rs1()
            }
        }
        Operation::Pack => rs1() as u32 as u64 | rs2() << 32,
        Operation::Packh => rs1() & 0xff | (rs2() & 0xff) << 8,
        Operation::Packw => word(rs1() & 0xffff | rs2() << 16),
        Operation::Brev8 => rs1().reverse_bits().swap_bytes(),
        Operation::Xperm4 => xperm(rs1(), rs2(), 4),
        Operation::Xperm8 => xperm(rs1(), rs2(), 8),
        Operation::CzeroNez => {
            if rs2() != 0 {
                0
            } else {
                rs1()
            }
        }
        _ => return None,
    })
}

/// MULH: the high half of a signed product.
#[inline(always)]
pub const fn mulh(a: u64, b: u64) -> u64 {
    ((a as i64 as i128 * b as i64 as i128) >> 64) as u64
}

/// MULHSU: the high half of a signed by unsigned product.
#[inline(always)]
pub const fn mulhsu(a: u64, b: u64) -> u64 {
    ((a as i64 as i128 * b as i128) >> 64) as u64
}

/// MULHU: the high half of an unsigned product.
#[inline(always)]
pub const fn mulhu(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 64) as u64
}

/// DIV: by zero gives all ones, overflow the dividend.
#[inline(always)]
pub const fn div(a: u64, b: u64) -> u64 {
    if b == 0 {
        u64::MAX
    } else {
        (a as i64).wrapping_div(b as i64) as u64
    }
}

/// DIVU: by zero gives all ones.
#[inline(always)]
pub const fn divu(a: u64, b: u64) -> u64 {
    match a.checked_div(b) {
        Some(quotient) => quotient,
        None => u64::MAX,
    }
}

/// REM: by zero gives the dividend, overflow zero.
#[inline(always)]
pub const fn rem(a: u64, b: u64) -> u64 {
    if b == 0 {
        a
    } else {
        (a as i64).wrapping_rem(b as i64) as u64
    }
}

/// REMU: by zero gives the dividend.
#[inline(always)]
pub const fn remu(a: u64, b: u64) -> u64 {
    match a.checked_rem(b) {
        Some(remainder) => remainder,
        None => a,
    }
}

/// DIVW.
#[inline(always)]
pub const fn divw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as i32, b as i32);
    if b == 0 {
        u64::MAX
    } else {
        a.wrapping_div(b) as i64 as u64
    }
}

/// DIVUW.
#[inline(always)]
pub const fn divuw(a: u64, b: u64) -> u64 {
    match (a as u32).checked_div(b as u32) {
        Some(quotient) => quotient as i32 as i64 as u64,
        None => u64::MAX,
    }
}

/// REMW.
#[inline(always)]
pub const fn remw(a: u64, b: u64) -> u64 {
    let (a, b) = (a as i32, b as i32);
    if b == 0 {
        a as i64 as u64
    } else {
        a.wrapping_rem(b) as i64 as u64
    }
}

/// REMUW.
#[inline(always)]
pub const fn remuw(a: u64, b: u64) -> u64 {
    let remainder = match (a as u32).checked_rem(b as u32) {
        Some(remainder) => remainder,
        None => a as u32,
    };
    remainder as i32 as i64 as u64
}

/// ORC.B: every byte that is not zero becomes 0xff.
#[inline(always)]
pub const fn orc_b(a: u64) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    // Bit 7 of each byte: set if any bit of the byte is.
    let any = (((a & LOW) + LOW) | a) & !LOW;
    (any >> 7).wrapping_mul(0xff)
}

/// The carry-less product of two 64-bit values.
const fn carry_less(a: u64, b: u64) -> u128 {
    let (mut product, mut bit) = (0, 0);
    while bit < 64 {
        if b >> bit & 1 != 0 {
            product ^= (a as u128) << bit;
        }
        bit += 1;
    }
    product
}

/// CLMUL: the low half of the carry-less product.
#[inline(never)]
pub const fn clmul(a: u64, b: u64) -> u64 {
    carry_less(a, b) as u64
}

/// CLMULH: the high half of the carry-less product.
#[inline(never)]
pub const fn clmulh(a: u64, b: u64) -> u64 {
    (carry_less(a, b) >> 64) as u64
}

/// CLMULR: bits 126 to 63 of the carry-less product.
#[inline(never)]
pub const fn clmulr(a: u64, b: u64) -> u64 {
    (carry_less(a, b) >> 63) as u64
}

/// XPERM4 and XPERM8: each element of `indices`, of `bits` bits, picks an element of `table`; one
/// beyond the table gives zero.
#[inline(never)]
pub const fn xperm(table: u64, indices: u64, bits: u32) -> u64 {
    let mask = (1 << bits) - 1;
    let (mut result, mut at) = (0, 0);
    while at < 64 {
        let index = indices >> at & mask;
        if index < 64 / bits as u64 {
            result |= (table >> (index as u32 * bits) & mask) << at;
        }
        at += bits;
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIN: u64 = 1 << 63;

    #[test]
    fn division_follows_the_table_of_the_specification() {
        assert_eq!(
            (div(7, 0), divu(7, 0), rem(7, 0), remu(7, 0)),
            (u64::MAX, u64::MAX, 7, 7)
        );
        assert_eq!((div(MIN, u64::MAX), rem(MIN, u64::MAX)), (MIN, 0));
        let min32 = 0xffff_ffff_8000_0000;
        assert_eq!((divw(min32, u64::MAX), remw(min32, u64::MAX)), (min32, 0));
        assert_eq!((divuw(min32, 0), remuw(min32, 0)), (u64::MAX, min32));
    }

    #[test]
    fn high_products_agree_with_wide_ones() {
        for a in [0, 1, MIN, u64::MAX, 0x1234_5678_9abc_def0] {
            for b in [0, 1, MIN, u64::MAX, 0x0fed_cba9_8765_4321] {
                assert_eq!(
                    u128::from(mulhu(a, b)),
                    (u128::from(a) * u128::from(b)) >> 64
                );
                // a_signed * b = a * b - (a < 0) * b * 2^64
                let correction = if a & MIN != 0 { b } else { 0 };
                assert_eq!(mulhsu(a, b), mulhu(a, b).wrapping_sub(correction));
            }
        }
    }

    /// x + 1 squared is x squared + 1: no carries. Each product's parts fit together.
    #[test]
    fn carry_less_products_have_no_carries() {
        assert_eq!(clmul(3, 3), 5);
        assert_eq!((clmulh(MIN, MIN), clmul(MIN, MIN)), (1 << 62, 0));
        let (a, b) = (0x1234_5678_9abc_def0, 0x0fed_cba9_8765_4321);
        assert_eq!(clmulr(a, b), clmulh(a, b) << 1 | clmul(a, b) >> 63);
    }

    #[test]
    fn crossbars_pick_elements_or_zero() {
        let table = 0xfedc_ba98_7654_3210;
        assert_eq!(
            xperm(table, 0x0123_4567_89ab_cdef, 4),
            0x0123_4567_89ab_cdef
        );
        assert_eq!(
            xperm(table, 0x0001_0207_08ff_0304, 8),
            0x1032_54fe_0000_7698
        );
    }

    #[test]
    fn orc_b_works_on_each_byte() {
        assert_eq!(orc_b(0x0001_8000_ff00_7f10), 0x00ff_ff00_ff00_ffff);
    }
}
