//! May-be operations: "Zimop", and what "Zicfiss" makes of some of them.

/// SSPUSH x1 and x5, SSPOPCHK x1 and x5, and SSRDP to another register than x0.
pub(super) const fn is_shadow_stack(raw: u32) -> bool {
    match (raw >> 20, raw >> 15 & 31, raw >> 7 & 31) {
        (0xce1 | 0xce5, 0, 0) => true,
        (0xcdc, 1 | 5, 0) => true,
        (0xcdc, 0, destination) => destination != 0,
        _ => false,
    }
}

/// MOP.R.n and MOP.RR.n, which write zero to rd: "Zimop".
pub(super) const fn is_may_be_operation(raw: u32) -> bool {
    raw & 0xb3c0_707f == 0x81c0_4073 || raw & 0xb200_707f == 0x8200_4073
}

#[cfg(test)]
mod tests {
    use crate::instruction::{Operation, decode};

    #[test]
    fn may_be_operations_write_zero() {
        // The first and the last of each kind, to a0 from a1 (and a2).
        for raw in [0x81c5_c573_u32, 0xcdf5_c573, 0x82c5_c573, 0xcec5_c573] {
            let instruction = decode(raw, 4);
            assert_eq!(
                (instruction.operation, instruction.rd, instruction.immediate),
                (Operation::LoadImmediate, 10, 0),
                "{raw:#x}"
            );
        }
        assert_eq!(decode(0x81c5_c073, 4).operation, Operation::Nop);
        // SSPUSH x1 and SSPOPCHK x5, and what is left of the same numbers.
        for (raw, operation) in [
            (0xce10_4073_u32, Operation::ShadowStack),
            (0xcdc2_c073, Operation::ShadowStack),
            (0xcdc0_4573, Operation::ShadowStack),
            (0xce20_4073, Operation::Nop),
            (0xce10_c073, Operation::Nop),
            (0xcdc1_4073, Operation::Nop),
            (0xcdc0_4073, Operation::Nop),
            (0xcdc0_c573, Operation::LoadImmediate),
        ] {
            assert_eq!(decode(raw, 4).operation, operation, "{raw:#x}");
        }
        // HLV.B has bit 31 clear.
        assert_eq!(decode(0x6005_c573, 4).operation, Operation::System);
    }
}
