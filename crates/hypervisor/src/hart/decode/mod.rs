//! Decoding of a guest's load or store that trapped on an emulated device.
//!
//! Two sources say so: the instruction itself ([`MemoryOperation::decode`]), and `htinst`, where
//! the hart has written its transformation ([`TrapInstruction::from_htinst`]), which saves reading
//! the guest's memory. Only integer loads and stores are understood. Atomics and floating-point
//! accesses to a device get no answer, and the guest an access fault.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(test)]
mod tests;

use riscv::instruction::{LOAD, STORE};
pub use spinwait::{Register, Width};

/// The direction of an access, with the register that it fills or empties.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Access {
    /// Memory to `register`.
    Load {
        /// Destination of the value.
        register: Register,
        /// Set if the value's top bit fills the rest of the register; otherwise zeros do.
        sign_extend: bool,
    },
    /// `register` to memory.
    Store {
        /// Source of the value.
        register: Register,
    },
}

/// A guest's load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemoryOperation {
    /// Direction, and register.
    pub access: Access,
    /// Number of bytes.
    pub width: Width,
    /// Bytes of the instruction, 2 or 4: what `sepc` advances by when it is done.
    pub length: u64,
}

impl MemoryOperation {
    /// Decodes an instruction from its bits; the upper half counts only where the lower says that
    /// it is a 32-bit one. `None` for everything but an integer load or store.
    pub const fn decode(bits: u32) -> Option<Self> {
        match bits & 3 {
            0b00 => Self::decode_quadrant_0(bits),
            0b10 => Self::decode_quadrant_2(bits),
            0b11 => Self::decode_32(bits),
            _ => None,
        }
    }

    /// RV64I loads and stores: `funct3` holds the width, and bit 2 of it "unsigned".
    #[inline]
    const fn decode_32(bits: u32) -> Option<Self> {
        let funct3 = bits >> 12 & 7;
        let access = match bits & 0x7f {
            LOAD if funct3 != 7 => Access::Load {
                register: Register::from_field(bits >> 7),
                sign_extend: funct3 & 4 == 0,
            },
            STORE if funct3 < 4 => Access::Store {
                register: Register::from_field(bits >> 20),
            },
            _ => return None,
        };
        Some(Self {
            access,
            width: Width::from_field(funct3),
            length: 4,
        })
    }

    /// C.LW, C.LD, C.SW, C.SD and Zcb's C.LBU, C.LHU, C.LH, C.SB, C.SH.
    const fn decode_quadrant_0(bits: u32) -> Option<Self> {
        let register = Register::from_short_field(bits >> 2);
        let signed = Access::Load {
            register,
            sign_extend: true,
        };
        let unsigned = Access::Load {
            register,
            sign_extend: false,
        };
        let store = Access::Store { register };
        let (access, width) = match bits >> 13 & 7 {
            0b010 => (signed, Width::Word),
            0b011 => (signed, Width::Double),
            0b110 => (store, Width::Word),
            0b111 => (store, Width::Double),
            0b100 => match (bits >> 10 & 7, bits >> 6 & 1) {
                (0b000, _) => (unsigned, Width::Byte),
                (0b001, 0) => (unsigned, Width::Half),
                (0b001, _) => (signed, Width::Half),
                (0b010, _) => (store, Width::Byte),
                (0b011, 0) => (store, Width::Half),
                _ => return None,
            },
            _ => return None,
        };
        Some(Self {
            access,
            width,
            length: 2,
        })
    }

    /// C.LWSP, C.LDSP, C.SWSP, C.SDSP; the loads are reserved with `x0`.
    const fn decode_quadrant_2(bits: u32) -> Option<Self> {
        let destination = Register::from_field(bits >> 7);
        let source = Register::from_field(bits >> 2);
        let load = Access::Load {
            register: destination,
            sign_extend: true,
        };
        let store = Access::Store { register: source };
        let (access, width) = match bits >> 13 & 7 {
            0b010 if !destination.is_zero() => (load, Width::Word),
            0b011 if !destination.is_zero() => (load, Width::Double),
            0b110 => (store, Width::Word),
            0b111 => (store, Width::Double),
            _ => return None,
        };
        Some(Self {
            access,
            width,
            length: 2,
        })
    }

    /// Register's value after a load to which the device answered `value`.
    pub const fn loaded(self, value: u64) -> u64 {
        let value = self.width.truncate(value);
        let Access::Load {
            sign_extend: true, ..
        } = self.access
        else {
            return value;
        };
        match self.width {
            Width::Byte => value as u8 as i8 as i64 as u64,
            Width::Half => value as u16 as i16 as i64 as u64,
            Width::Word => value as u32 as i32 as i64 as u64,
            Width::Double => value,
        }
    }
}

/// Decoded `htinst` of a trap (privileged architecture, "Transformed Instruction or
/// Pseudoinstruction for `mtinst` or `htinst`").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TrapInstruction {
    /// No help: zero, or a value that is not understood and by the specification's own
    /// word may be taken for zero. The instruction has to be read from the guest's memory.
    Unknown,
    /// The guest's integer load or store.
    Operation(MemoryOperation),
    /// The guest's page tables were being read for a translation: the fault lies at an entry of
    /// theirs.
    WalkRead,
    /// The guest's page tables were being written, to set an accessed or dirty bit.
    WalkWrite,
}

impl TrapInstruction {
    /// Interprets the value of `htinst`.
    pub const fn from_htinst(htinst: u64) -> Self {
        // "software must also confirm that bits 63:32 are all zeros"
        if htinst >> 32 != 0 {
            return Self::Unknown;
        }
        let bits = htinst as u32;
        if bits & 1 == 0 {
            return match bits {
                0x2000 | 0x3000 => Self::WalkRead,
                0x2020 | 0x3020 => Self::WalkWrite,
                _ => Self::Unknown,
            };
        }
        // Bit 1 is zero where the instruction was a compressed one, whose expansion stands here.
        let length = if bits & 2 == 0 { 2 } else { 4 };
        match MemoryOperation::decode_32(bits | 2) {
            Some(operation) => Self::Operation(MemoryOperation {
                length,
                ..operation
            }),
            None => Self::Unknown,
        }
    }

    /// Decodes the instruction; `fetch` reads it from the guest's memory if `htinst` does not hold it.
    pub fn trapped(self, fetch: impl FnOnce() -> Option<u32>) -> Trapped {
        match self {
            Self::Operation(operation) => Trapped::Operation(operation),
            Self::Unknown => match fetch() {
                None => Trapped::Gone,
                Some(bits) => {
                    MemoryOperation::decode(bits).map_or(Trapped::Other, Trapped::Operation)
                }
            },
            Self::WalkRead | Self::WalkWrite => Trapped::Other,
        }
    }
}

/// Decoded instruction whose load or store trapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Trapped {
    /// Transformed load or store.
    Operation(MemoryOperation),
    /// Instruction that cannot be read any more: the guest has changed its tables since. The guest executes it again, and takes the fault
    /// that it finds then, if it finds one.
    Gone,
    /// No integer load or store, or an access of the page walk to the guest's tables.
    Other,
}
