//! Every halfword, and encodings put together from the specification's formats.

use proptest::prelude::*;

use super::*;

/// `funct3` of a load, by the unprivileged architecture's table of RV64I.
const LOADS: [(u32, Width, bool); 7] = [
    (0, Width::Byte, true),
    (1, Width::Half, true),
    (2, Width::Word, true),
    (3, Width::Double, true),
    (4, Width::Byte, false),
    (5, Width::Half, false),
    (6, Width::Word, false),
];

fn i_type(immediate: u32, rs1: u32, funct3: u32, rd: u32) -> u32 {
    immediate << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | 0b0000011
}

fn s_type(immediate: u32, rs2: u32, rs1: u32, funct3: u32) -> u32 {
    let (high, low) = (immediate >> 5 & 0x7f, immediate & 0x1f);
    high << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | low << 7 | 0b0100011
}

fn load(register: u32, width: Width, sign_extend: bool, length: u64) -> MemoryOperation {
    let register = Register::from_field(register);
    MemoryOperation {
        access: Access::Load {
            register,
            sign_extend,
        },
        width,
        length,
    }
}

fn store(register: u32, width: Width, length: u64) -> MemoryOperation {
    let register = Register::from_field(register);
    MemoryOperation {
        access: Access::Store { register },
        width,
        length,
    }
}

proptest! {
    #[test]
    fn loads(immediate in 0u32..4096, rs1 in 0u32..32, rd in 0u32..32, form in 0usize..7) {
        let (funct3, width, signed) = LOADS[form];
        let bits = i_type(immediate, rs1, funct3, rd);
        prop_assert_eq!(MemoryOperation::decode(bits), Some(load(rd, width, signed, 4)));
    }

    #[test]
    fn stores(immediate in 0u32..4096, rs1 in 0u32..32, rs2 in 0u32..32, form in 0usize..4) {
        let (funct3, width, _) = LOADS[form];
        let bits = s_type(immediate, rs2, rs1, funct3);
        prop_assert_eq!(MemoryOperation::decode(bits), Some(store(rs2, width, 4)));
    }

    /// Any word decodes without a panic.
    #[test]
    fn any_word(bits in any::<u32>()) {
        if let Some(operation) = MemoryOperation::decode(bits) {
            let wide = bits & 3 == 3;
            prop_assert_eq!(operation.length, if wide { 4 } else { 2 });
            if wide {
                prop_assert!(matches!(bits & 0x7f, 0b0000011 | 0b0100011));
            }
        }
    }

    #[test]
    fn a_transformation_says_what_the_instruction_said(
        form in 0usize..7, register in 0u32..32, offset in 0u32..8, is_store in any::<bool>(),
    ) {
        let (funct3, width, signed) = LOADS[form];
        // The immediate is zero, and the offset of a misaligned access stands for rs1.
        let (bits, want) = if is_store {
            if form > 3 { return Ok(()); }
            (s_type(0, register, offset, funct3), store(register, width, 4))
        } else {
            (i_type(0, offset, funct3, register), load(register, width, signed, 4))
        };
        prop_assert_eq!(TrapInstruction::from_htinst(bits.into()), TrapInstruction::Operation(want));
        let compressed = MemoryOperation { length: 2, ..want };
        prop_assert_eq!(
            TrapInstruction::from_htinst((bits & !2).into()),
            TrapInstruction::Operation(compressed)
        );
        prop_assert_eq!(
            TrapInstruction::from_htinst(u64::from(bits) | 1 << 32),
            TrapInstruction::Unknown
        );
    }

    #[test]
    fn any_htinst(value in any::<u64>()) {
        if let TrapInstruction::Operation(operation) = TrapInstruction::from_htinst(value) {
            prop_assert!(value >> 32 == 0 && value & 1 == 1);
            prop_assert_eq!(operation.length, if value & 2 == 0 { 2 } else { 4 });
        }
    }

    #[test]
    fn a_load_extends_as_its_instruction_says(value in any::<u64>()) {
        let signed = |width| load(1, width, true, 4).loaded(value);
        let unsigned = |width| load(1, width, false, 4).loaded(value);
        for (width, bits) in
            [(Width::Byte, 8), (Width::Half, 16), (Width::Word, 32), (Width::Double, 64)]
        {
            let up = 64 - bits;
            prop_assert_eq!(signed(width), ((value << up) as i64 >> up) as u64);
            prop_assert_eq!(unsigned(width), value << up >> up);
        }
    }
}

/// All that the compressed formats leave free is immediate bits: each form must own exactly as
/// many halfwords as its format has, and no halfword may belong to two.
#[test]
fn every_halfword() {
    let mut owned = std::collections::HashMap::<_, usize>::new();
    for bits in 0..=u32::from(u16::MAX) {
        if bits & 3 == 3 {
            continue;
        }
        // What follows the halfword in memory is another instruction's business.
        assert_eq!(
            MemoryOperation::decode(bits),
            MemoryOperation::decode(bits | 0xabcd_0000)
        );
        if let Some(operation) = MemoryOperation::decode(bits) {
            assert_eq!(operation.length, 2);
            *owned.entry(operation).or_default() += 1;
        }
    }
    // C.LW and C.LD: a 5-bit immediate and 8 base registers, for rd' of x8 to x15.
    // C.LWSP and C.LDSP: a 6-bit immediate, for every rd but x0.
    for register in 0..32 {
        let short = if (8..16).contains(&register) {
            32 * 8
        } else {
            0
        };
        let stack = if register == 0 { 0 } else { 64 };
        for width in [Width::Word, Width::Double] {
            let loads = owned.remove(&load(register, width, true, 2)).unwrap_or(0);
            assert_eq!(loads, short + stack, "loads of {width:?} to x{register}");
            // C.SWSP and C.SDSP may store x0.
            let stores = owned.remove(&store(register, width, 2)).unwrap_or(0);
            assert_eq!(stores, short + 64, "stores of {width:?} from x{register}");
        }
        if (8..16).contains(&register) {
            // Zcb: two immediate bits for bytes, one for halves, 8 base registers.
            assert_eq!(
                owned.remove(&load(register, Width::Byte, false, 2)),
                Some(4 * 8)
            );
            assert_eq!(
                owned.remove(&load(register, Width::Half, false, 2)),
                Some(2 * 8)
            );
            assert_eq!(
                owned.remove(&load(register, Width::Half, true, 2)),
                Some(2 * 8)
            );
            assert_eq!(owned.remove(&store(register, Width::Byte, 2)), Some(4 * 8));
            assert_eq!(owned.remove(&store(register, Width::Half, 2)), Some(2 * 8));
        }
    }
    assert!(
        owned.is_empty(),
        "decoded, but not in the specification: {owned:?}"
    );
}

/// Encodings as an assembler makes them (each checked by hand against the formats' bit fields).
#[test]
fn known_encodings() {
    // c.lw a5,0(a0): 010 000 010 00 111 00
    assert_eq!(
        MemoryOperation::decode(0x411c),
        Some(load(15, Width::Word, true, 2))
    );
    // c.sw a4,4(a5): 110 000 111 10 110 00 -> uimm[2] is bit 6
    assert_eq!(
        MemoryOperation::decode(0b1100_0011_1101_1000),
        Some(store(14, Width::Word, 2))
    );
    // c.ldsp ra,8(sp): 011 0 00001 01000 10
    assert_eq!(
        MemoryOperation::decode(0x60a2),
        Some(load(1, Width::Double, true, 2))
    );
    // c.sdsp ra,8(sp): 111 000010? uimm[5:3|8:6] = 001 000 -> 111 001000 00001 10
    assert_eq!(
        MemoryOperation::decode(0b1110_0100_0000_0110),
        Some(store(1, Width::Double, 2))
    );
    // flw, amoadd.w, lr.w, fence: not ours
    for bits in [0x0005_2507, 0x00b5_252f, 0x1005_252f, 0x0ff0_000f] {
        assert_eq!(MemoryOperation::decode(bits), None, "{bits:#x}");
    }
}

#[test]
fn pseudoinstructions_tell_of_a_walk() {
    assert_eq!(
        TrapInstruction::from_htinst(0x3000),
        TrapInstruction::WalkRead
    );
    assert_eq!(
        TrapInstruction::from_htinst(0x2000),
        TrapInstruction::WalkRead
    );
    assert_eq!(
        TrapInstruction::from_htinst(0x3020),
        TrapInstruction::WalkWrite
    );
    assert_eq!(
        TrapInstruction::from_htinst(0x2020),
        TrapInstruction::WalkWrite
    );
    assert_eq!(TrapInstruction::from_htinst(0), TrapInstruction::Unknown);
}

#[test]
fn instruction_that_became_unreadable_is_executed_again() {
    let unknown = TrapInstruction::from_htinst(0);
    assert_eq!(unknown.trapped(|| None), Trapped::Gone);
    // lw a0, 0(a1), and addi a0, a0, 1.
    let load = unknown.trapped(|| Some(0x0005_a503));
    assert!(matches!(load, Trapped::Operation(operation) if operation.width == Width::Word));
    assert_eq!(unknown.trapped(|| Some(0x0015_0513)), Trapped::Other);
    let walk = TrapInstruction::from_htinst(0x3000);
    assert_eq!(walk.trapped(|| None), Trapped::Other, "nothing is fetched");
}
