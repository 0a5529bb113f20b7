//! Encodings of instructions (unprivileged specification, "RV32/64G Instruction Set Listings"; privileged
//! specification for SYSTEM instructions and the hypervisor extension; Svinval; Zawrs).

pub use riscv::instruction::{ECALL, SRET, WFI, WRS_NTO};

use riscv::instruction::SYSTEM;

/// A register's number, 0 to 31.
pub type Register = u32;

/// Argument register a0.
pub const A0: Register = 10;
/// Argument register a1.
pub const A1: Register = 11;

/// JAL x0 to `offset` bytes from itself; its reach (±1 MiB) is the caller's to keep.
#[must_use]
pub const fn jump(offset: u64) -> u32 {
    let offset = offset as u32;
    (offset >> 20 & 1) << 31
        | (offset >> 1 & 0x3ff) << 21
        | (offset >> 11 & 1) << 20
        | (offset >> 12 & 0xff) << 12
        | 0x6f
}

const fn register_form(
    function7: u32,
    rs2: Register,
    rs1: Register,
    function3: u32,
    rd: Register,
    opcode: u32,
) -> u32 {
    function7 << 25
        | (rs2 & 31) << 20
        | (rs1 & 31) << 15
        | (function3 & 7) << 12
        | (rd & 31) << 7
        | opcode
}

/// CSRRS rd, csr, x0: a read without a write.
#[must_use]
pub const fn csr_read(number: u16, rd: Register) -> u32 {
    (number as u32) << 20 | 2 << 12 | (rd & 31) << 7 | SYSTEM
}

/// CSRRW x0, csr, rs1: a write without a read.
#[must_use]
pub const fn csr_write(number: u16, rs1: Register) -> u32 {
    (number as u32) << 20 | (rs1 & 31) << 15 | 1 << 12 | SYSTEM
}

/// A way to touch memory at the address in a0, with a1 as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reads: a failure is a load fault.
    Load,
    /// Writes, or reads and writes: a failure is a store fault.
    Store,
}

/// Every way to touch memory: name, instruction, kind, bytes.
pub const ACCESSES: &[(&str, u32, Access, u64)] = &[
    ("lb", A0 << 15 | A1 << 7 | 0x03, Access::Load, 1),
    ("lh", A0 << 15 | 1 << 12 | A1 << 7 | 0x03, Access::Load, 2),
    ("lw", A0 << 15 | 2 << 12 | A1 << 7 | 0x03, Access::Load, 4),
    ("ld", A0 << 15 | 3 << 12 | A1 << 7 | 0x03, Access::Load, 8),
    ("lwu", A0 << 15 | 6 << 12 | A1 << 7 | 0x03, Access::Load, 4),
    ("flw", A0 << 15 | 2 << 12 | A1 << 7 | 0x07, Access::Load, 4),
    ("fld", A0 << 15 | 3 << 12 | A1 << 7 | 0x07, Access::Load, 8),
    (
        "lr.w",
        register_form(0b000_1000, 0, A0, 2, A1, 0x2f),
        Access::Load,
        4,
    ),
    (
        "lr.d",
        register_form(0b000_1000, 0, A0, 3, A1, 0x2f),
        Access::Load,
        8,
    ),
    ("sb", register_form(0, A1, A0, 0, 0, 0x23), Access::Store, 1),
    ("sh", register_form(0, A1, A0, 1, 0, 0x23), Access::Store, 2),
    ("sw", register_form(0, A1, A0, 2, 0, 0x23), Access::Store, 4),
    ("sd", register_form(0, A1, A0, 3, 0, 0x23), Access::Store, 8),
    (
        "fsw",
        register_form(0, A1, A0, 2, 0, 0x27),
        Access::Store,
        4,
    ),
    (
        "fsd",
        register_form(0, A1, A0, 3, 0, 0x27),
        Access::Store,
        8,
    ),
    (
        "amoadd.w",
        register_form(0, A1, A0, 2, A1, 0x2f),
        Access::Store,
        4,
    ),
    (
        "amoswap.d",
        register_form(0b000_0100, A1, A0, 3, A1, 0x2f),
        Access::Store,
        8,
    ),
    (
        "amomaxu.w",
        register_form(0b111_0000, A1, A0, 2, A1, 0x2f),
        Access::Store,
        4,
    ),
];

/// SC.W a1, a1, (a0): it may fail without touching memory, so it is not among [`ACCESSES`].
pub const STORE_CONDITIONAL: u32 = register_form(0b000_1100, A1, A0, 2, A1, 0x2f);

/// Tests whether an encoding is a compressed one: its lowest two bits are not both set.
#[must_use]
pub const fn is_compressed(word: u32) -> bool {
    word & 3 != 3
}

/// The 16-bit parcels of an instruction, and how many of the two count.
#[must_use]
pub const fn parcels(word: u32) -> ([u16; 2], usize) {
    (
        [word as u16, (word >> 16) as u16],
        if is_compressed(word) { 1 } else { 2 },
    )
}

/// Permitted outcome of a SYSTEM instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allowed {
    /// It completes.
    Completes,
    /// Illegal-instruction.
    Illegal,
    /// One of the two.
    Either,
    /// Completes in HS-mode; illegal to a guest without the H extension (to HS-mode its attempt is a
    /// virtual-instruction exception: "HLV, HLVX, HSV, HFENCE, HINVAL when V=1").
    Hypervisor,
}

use Allowed::{Completes, Either, Hypervisor, Illegal};

/// Privileged and hint instructions: name, encoding (a0 as address and operand), in S-mode, in U-mode.
pub const PRIVILEGED: &[(&str, u32, Allowed, Allowed)] = &[
    (
        "hlv.b",
        register_form(0b011_0000, 0, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlv.bu",
        register_form(0b011_0000, 1, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlv.h",
        register_form(0b011_0010, 0, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlv.hu",
        register_form(0b011_0010, 1, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlvx.hu",
        register_form(0b011_0010, 3, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlv.w",
        register_form(0b011_0100, 0, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlv.wu",
        register_form(0b011_0100, 1, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlvx.wu",
        register_form(0b011_0100, 3, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hlv.d",
        register_form(0b011_0110, 0, A0, 4, A1, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hsv.b",
        register_form(0b011_0001, A1, A0, 4, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hsv.h",
        register_form(0b011_0011, A1, A0, 4, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hsv.w",
        register_form(0b011_0101, A1, A0, 4, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hsv.d",
        register_form(0b011_0111, A1, A0, 4, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hfence.vvma",
        register_form(0b001_0001, 0, 0, 0, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hfence.vvma a0, a1",
        register_form(0b001_0001, A1, A0, 0, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hfence.gvma",
        register_form(0b011_0001, 0, 0, 0, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    (
        "hfence.gvma a0, a1",
        register_form(0b011_0001, A1, A0, 0, 0, SYSTEM),
        Hypervisor,
        Illegal,
    ),
    ("mret", 0x3020_0073, Illegal, Illegal),
    ("mnret", 0x7020_0073, Illegal, Illegal),
    ("uret", 0x0020_0073, Illegal, Illegal),
    ("dret", 0x7b20_0073, Illegal, Illegal),
    (
        "sfence.vma",
        register_form(0b000_1001, 0, 0, 0, 0, SYSTEM),
        Completes,
        Illegal,
    ),
    (
        "sfence.vma a0, a1",
        register_form(0b000_1001, A1, A0, 0, 0, SYSTEM),
        Completes,
        Illegal,
    ),
    // Svinval is where the ISA string says so; a hypervisor cannot take it from a hart that has it.
    (
        "sinval.vma",
        register_form(0b000_1011, 0, 0, 0, 0, SYSTEM),
        Either,
        Illegal,
    ),
    (
        "sfence.w.inval",
        register_form(0b000_1100, 0, 0, 0, 0, SYSTEM),
        Either,
        Illegal,
    ),
    (
        "sfence.inval.ir",
        register_form(0b000_1100, 1, 0, 0, 0, SYSTEM),
        Either,
        Illegal,
    ),
    (
        "hinval.vvma",
        register_form(0b001_0011, 0, 0, 0, 0, SYSTEM),
        Either,
        Illegal,
    ),
    (
        "hinval.gvma",
        register_form(0b011_0011, 0, 0, 0, 0, SYSTEM),
        Either,
        Illegal,
    ),
    ("wfi", WFI, Completes, Either),
    ("sret", SRET, Either, Illegal),
    ("wrs.nto", 0x00d0_0073, Either, Either),
    ("wrs.sto", 0x01d0_0073, Either, Either),
    ("fence.i", 0x0000_100f, Completes, Completes),
    ("pause", 0x0100_000f, Completes, Completes),
    ("all zeros", 0, Illegal, Illegal),
    ("all ones", 0xffff_ffff, Illegal, Illegal),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encodings_agree_with_the_assembler() {
        // As `llvm-mc -triple=riscv64 -mattr=+a,+d,+h -show-encoding` prints them.
        assert_eq!(csr_read(0x600, A1), 0x6000_25f3);
        assert_eq!(csr_write(0x180, A0), 0x1805_1073);
        assert_eq!(jump(0u64.wrapping_sub(8)), 0xff9f_f06f);
        assert_eq!(jump(0x1234), 0x2340_106f);
        let named = |name| {
            ACCESSES
                .iter()
                .find(|access| access.0 == name)
                .map(|access| access.1)
        };
        assert_eq!(named("ld"), Some(0x0005_3583));
        assert_eq!(named("sd"), Some(0x00b5_3023));
        assert_eq!(named("amoswap.d"), Some(0x08b5_35af));
        assert_eq!(named("lr.w"), Some(0x1005_25af));
    }

    #[test]
    fn hypervisor_instructions_are_the_specifications() {
        let named = |name| {
            PRIVILEGED
                .iter()
                .find(|entry| entry.0 == name)
                .map(|entry| entry.1)
        };
        assert_eq!(named("hlv.d"), Some(0x6c05_45f3));
        assert_eq!(named("hfence.gvma"), Some(0x6200_0073));
        assert_eq!(named("hsv.d"), Some(0x6eb5_4073));
    }

    #[test]
    fn lowest_bits_mark_compressed_instructions() {
        assert!(is_compressed(0x9002) && !is_compressed(ECALL));
        assert_eq!(parcels(WFI), ([0x0073, 0x1050], 2));
    }
}
