//! Encodings from the specification's tables.

use proptest::prelude::*;

use super::*;
use crate::hart::decode::Width;

fn register(number: u32) -> Register {
    Register::from_field(number)
}

fn r_type(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

#[test]
fn cache_blocks_are_managed_by_three_instructions() {
    // cbo.inval, cbo.clean and cbo.flush (a0).
    for bits in [0x0005_200f, 0x0015_200f, 0x0025_200f] {
        assert!(manages_cache_block(bits), "{bits:#x}");
    }
    // cbo.zero (a0), fence, fence.i, lw a0, and one with a destination.
    for bits in [
        0x0045_200f,
        0x0ff0_000f,
        0x0000_100f,
        0x0005_2503,
        0x0015_208f,
    ] {
        assert!(!manages_cache_block(bits), "{bits:#x}");
    }
}

#[test]
fn instructions_without_operands() {
    for (bits, want) in [
        (0x1050_0073, Instruction::WaitForInterrupt),
        (0x00d0_0073, Instruction::WaitOnReservation),
        (0x01d0_0073, Instruction::WaitOnReservationShortly),
        (0x0100_000f, Instruction::Pause),
        (0x0ff0_000f, Instruction::Other), // fence iorw, iorw
        (0x1020_0073, Instruction::SupervisorReturn),
        (0x0000_0073, Instruction::Other), // ecall
        (0x0010_0073, Instruction::Other), // ebreak
        (0x3020_0073, Instruction::Other), // mret
        (0x0000_100f, Instruction::Other), // fence.i
        (0x0000_0000, Instruction::Other),
        (0xffff_ffff, Instruction::Other),
    ] {
        assert_eq!(Instruction::decode(bits), want, "{bits:#x}");
    }
}

#[test]
fn fences() {
    for (funct7, kind) in [
        (0b0001001, FenceKind::SfenceVma),
        (0b0001011, FenceKind::SinvalVma),
        (0b0010001, FenceKind::HfenceVvma),
        (0b0110001, FenceKind::HfenceGvma),
        (0b0010011, FenceKind::HinvalVvma),
        (0b0110011, FenceKind::HinvalGvma),
    ] {
        let bits = r_type(funct7, 11, 10, 0, 0, 0x73);
        let want = Fence {
            kind,
            address: register(10),
            space: register(11),
        };
        assert_eq!(Instruction::decode(bits), Instruction::Fence(want));
        let reserved = bits | 1 << 7;
        assert_eq!(
            Instruction::decode(reserved),
            Instruction::Other,
            "rd must be zero"
        );
    }
    let zero = register(0);
    for (bits, kind) in [
        (0x1800_0073, FenceKind::SfenceWInval),
        (0x1810_0073, FenceKind::SfenceInvalIr),
    ] {
        let want = Fence {
            kind,
            address: zero,
            space: zero,
        };
        assert_eq!(Instruction::decode(bits), Instruction::Fence(want));
    }
}

#[test]
fn hypervisor_loads_and_stores() {
    // hlv.b/bu/h/hu/hlvx.hu/w/wu/hlvx.wu/d and hsv.b/h/w/d: funct7 and rs2 of the table.
    let loads = [
        (48, 0),
        (48, 1),
        (50, 0),
        (50, 1),
        (50, 3),
        (52, 0),
        (52, 1),
        (52, 3),
        (54, 0),
    ];
    for (funct7, rs2) in loads {
        let bits = r_type(funct7, rs2, 10, 4, 11, 0x73);
        assert_eq!(Instruction::decode(bits), Instruction::HypervisorAccess);
    }
    for funct7 in [49, 51, 53, 55] {
        let bits = r_type(funct7, 12, 10, 4, 0, 0x73);
        assert_eq!(Instruction::decode(bits), Instruction::HypervisorAccess);
    }
    for (funct7, rs2) in [(48, 2), (48, 3), (54, 1), (54, 3), (40, 0), (0, 0)] {
        let bits = r_type(funct7, rs2, 10, 4, 11, 0x73);
        assert_eq!(Instruction::decode(bits), Instruction::Other);
    }
}

#[test]
fn cache_blocks() {
    for (number, operation) in [
        (0, CacheBlockOperation::Invalidate),
        (1, CacheBlockOperation::Clean),
        (2, CacheBlockOperation::Flush),
        (4, CacheBlockOperation::Zero),
    ] {
        let bits = number << 20 | 10 << 15 | 2 << 12 | 0x0f;
        let want = Instruction::CacheBlock(operation, register(10));
        assert_eq!(Instruction::decode(bits), want);
    }
    assert_eq!(
        Instruction::decode(3 << 20 | 2 << 12 | 0x0f),
        Instruction::Other
    );
}

proptest! {
    #[test]
    fn csr_accesses(csr in 0u32..4096, field in 0u32..32, rd in 0u32..32, form in 0usize..6) {
        let (funct3, operation) = [
            (1, CsrOperation::Write), (2, CsrOperation::Set), (3, CsrOperation::Clear),
            (5, CsrOperation::Write), (6, CsrOperation::Set), (7, CsrOperation::Clear),
        ][form];
        let bits = csr << 20 | field << 15 | funct3 << 12 | rd << 7 | 0x73;
        let Instruction::Csr(access) = Instruction::decode(bits) else {
            return Err(TestCaseError::fail("no access"));
        };
        let operand = if form < 3 {
            CsrOperand::Register(register(field))
        } else {
            CsrOperand::Immediate(field as u8)
        };
        let want = CsrAccess { csr: csr as u16, operation, operand, destination: register(rd) };
        prop_assert_eq!(access, want);
        // The table of Zicsr: CSRRW reads unless rd is x0 and always writes; the others always
        // read, and write unless the field is zero.
        prop_assert_eq!(access.writes(), operation == CsrOperation::Write || field != 0);
    }

    #[test]
    fn csr_results(old in any::<u64>(), operand in any::<u64>(), immediate in 0u8..32) {
        let access = |operation, operand| CsrAccess {
            csr: 0x100, operation, operand, destination: register(1),
        };
        let by_register = |operation| {
            access(operation, CsrOperand::Register(register(2))).result(old, operand)
        };
        prop_assert_eq!(by_register(CsrOperation::Write), operand);
        prop_assert_eq!(by_register(CsrOperation::Set), old | operand);
        prop_assert_eq!(by_register(CsrOperation::Clear), old & !operand);
        let set = access(CsrOperation::Set, CsrOperand::Immediate(immediate));
        prop_assert_eq!(set.result(old, operand), old | u64::from(immediate));
    }

    #[test]
    fn any_word(bits in any::<u32>(), system in any::<bool>()) {
        let bits = if system { bits & !0x7f | 0x73 } else { bits };
        let decoded = Instruction::decode(bits);
        if bits & 3 != 3 {
            prop_assert_eq!(decoded, Instruction::Other, "compressed instructions do not trap so");
        }
    }

    #[test]
    fn any_code(code in any::<[u8; 8]>()) {
        if let Some(word) = WatchedWord::decode(code) {
            prop_assert!((8..16).contains(&word.seen.number()));
        }
    }

    /// The pattern with every choice of registers that a compiler has.
    #[test]
    fn the_pattern_of_a_spinning_kernel(
        address in 0u32..32, loaded in 8u32..16, seen in 8u32..16, wide in any::<bool>(),
        ordering in 0u32..4, offset in 0u32..32,
    ) {
        let funct3 = if wide { 3 } else { 2 };
        let load = r_type(0b00010 << 2 | ordering, 0, address, funct3, loaded, 0x2f);
        let difference = 0b100011 << 10 | (loaded - 8) << 7 | 0b01 << 5 | (seen - 8) << 2 | 0b01;
        let branch = 0b111 << 13 | (loaded - 8) << 7 | offset << 2 | 0b01;
        let mut code = [0; 8];
        code[..4].copy_from_slice(&load.to_le_bytes());
        code[4..6].copy_from_slice(&(difference as u16).to_le_bytes());
        code[6..].copy_from_slice(&(branch as u16).to_le_bytes());
        let clobbered = loaded == address || loaded == seen;
        let want = WatchedWord {
            address: register(address),
            seen: register(seen),
            width: if wide { Width::Double } else { Width::Word },
        };
        prop_assert_eq!(WatchedWord::decode(code), (!clobbered).then_some(want));
        let mut other = code;
        other[0] ^= 0x40;
        prop_assert_eq!(WatchedWord::decode(other), None);
    }
}
