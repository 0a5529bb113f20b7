//! Encodings from the specification's tables.

use proptest::prelude::*;

use super::*;

fn register(number: u32) -> Register {
    Register::from_field(number)
}

fn r_type(funct7: u32, rs2: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

#[test]
fn three_instructions_manage_cache_blocks() {
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
fn instructions_without_operands_are_decoded() {
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
fn fences_are_decoded() {
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
fn hypervisor_accesses_are_decoded() {
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
fn cache_block_operations_are_decoded() {
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
    fn csr_accesses_are_decoded(csr in 0u32..4096, field in 0u32..32, rd in 0u32..32, form in 0usize..6) {
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
    fn csr_results_follow_the_operation(old in any::<u64>(), operand in any::<u64>(), immediate in 0u8..32) {
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
    fn any_word_is_decoded(bits in any::<u32>(), system in any::<bool>()) {
        let bits = if system { bits & !0x7f | 0x73 } else { bits };
        let decoded = Instruction::decode(bits);
        if bits & 3 != 3 {
            prop_assert_eq!(decoded, Instruction::Other, "compressed instructions do not trap so");
        }
    }
}
