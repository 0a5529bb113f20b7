//! Instructions that trap with cause 22 (virtual instruction).
//!
//! [`Instruction::decode`] only classifies the bits. The exit handlers decide which CSRs a guest has and what a fence does.
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

pub use riscv::instruction::WFI;
use riscv::instruction::{MISC_MEM, PAUSE, SYSTEM, WRS_NTO};

use crate::hart::decode::Register;

/// Returns true for CBO.INVAL, CBO.CLEAN and CBO.FLUSH (CMO, "Cache-Block Management Instructions").
#[must_use]
pub const fn manages_cache_block(bits: u32) -> bool {
    /// Opcode MISC-MEM with the funct3 of CBO, and no destination.
    const CBO: u32 = 0b010 << 12 | 0b000_1111;
    /// First immediate that names another operation.
    const FIRST_OTHER: u32 = 3;
    bits & 0x7fff == CBO && bits >> 20 < FIRST_OTHER
}

/// Operation of a CSR access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CsrOperation {
    /// CSRRW: the operand is written.
    Write,
    /// CSRRS: the operand's ones are set.
    Set,
    /// CSRRC: the operand's ones are cleared.
    Clear,
}

/// Operand of a CSR access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CsrOperand {
    /// A register.
    Register(Register),
    /// Five bits of the instruction.
    Immediate(u8),
}

/// An access to a CSR (unprivileged architecture, "Zicsr").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CsrAccess {
    /// CSR number of 12 bits.
    pub csr: u16,
    /// Operation.
    pub operation: CsrOperation,
    /// Operand.
    pub operand: CsrOperand,
    /// Destination of the old value.
    pub destination: Register,
}

impl CsrAccess {
    /// Returns true if the CSR is written: CSRRS and CSRRC with `x0` or an immediate of 0 "will not write to the CSR at all".
    pub fn writes(self) -> bool {
        let nothing = match self.operand {
            CsrOperand::Register(register) => register.is_zero(),
            CsrOperand::Immediate(bits) => bits == 0,
        };
        self.operation == CsrOperation::Write || !nothing
    }

    /// Value to write if `old` was read and the register has `operand`. An immediate operand is in the instruction.
    pub fn result(self, old: u64, operand: u64) -> u64 {
        let operand = match self.operand {
            CsrOperand::Register(_) => operand,
            CsrOperand::Immediate(bits) => u64::from(bits),
        };
        match self.operation {
            CsrOperation::Write => operand,
            CsrOperation::Set => old | operand,
            CsrOperation::Clear => old & !operand,
        }
    }
}

/// Memory-management fences.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FenceKind {
    /// SFENCE.VMA: trapped with `hstatus`.VTVM.
    SfenceVma,
    /// SINVAL.VMA: trapped with `hstatus`.VTVM.
    SinvalVma,
    /// SFENCE.W.INVAL.
    SfenceWInval,
    /// SFENCE.INVAL.IR.
    SfenceInvalIr,
    /// HFENCE.VVMA: never allowed in a guest.
    HfenceVvma,
    /// HFENCE.GVMA: never allowed in a guest.
    HfenceGvma,
    /// HINVAL.VVMA: never allowed in a guest.
    HinvalVvma,
    /// HINVAL.GVMA: never allowed in a guest.
    HinvalGvma,
}

/// A memory-management fence with its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fence {
    /// Kind of the fence.
    pub kind: FenceKind,
    /// Register of the address; `x0` stands for all.
    pub address: Register,
    /// Register of the ASID or VMID; `x0` stands for all.
    pub space: Register,
}

/// A cache-block operation (Zicbom, Zicboz), trapped where `henvcfg` does not admit it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CacheBlockOperation {
    /// CBO.INVAL.
    Invalidate,
    /// CBO.CLEAN.
    Clean,
    /// CBO.FLUSH.
    Flush,
    /// CBO.ZERO.
    Zero,
}

/// An instruction that can end in a virtual-instruction trap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Instruction {
    /// WFI, with `hstatus`.VTW set.
    WaitForInterrupt,
    /// WRS.NTO, with `hstatus`.VTW set: the guest spins.
    WaitOnReservation,
    /// PAUSE, at the end of a pause loop (`xpartitaple`, docs/reference/extensions.md).
    Pause,
    /// WRS.STO, which has a time limit and never traps by itself.
    WaitOnReservationShortly,
    /// SRET, with `hstatus`.VTSR set.
    SupervisorReturn,
    /// An access to a CSR.
    Csr(CsrAccess),
    /// A memory-management fence.
    Fence(Fence),
    /// HLV, HLVX or HSV: never allowed in a guest.
    HypervisorAccess,
    /// A cache-block operation on the block that the register's address lies in.
    CacheBlock(CacheBlockOperation, Register),
    /// Any other instruction: the guest gets an illegal-instruction exception.
    Other,
}

/// Length of WFI in bytes.
pub const WFI_BYTES: u64 = 4;
/// `funct3` of the privileged instructions, of HLV and its like, and of the cache-block operations.
const PRIVILEGED: u32 = 0;
const HYPERVISOR_ACCESS: u32 = 4;
const CACHE_BLOCK: u32 = 2;

impl Instruction {
    /// Classifies a 32-bit instruction.
    #[inline]
    pub fn decode(bits: u32) -> Self {
        match bits {
            WFI => Self::WaitForInterrupt,
            WRS_NTO => Self::WaitOnReservation,
            _ => Self::decode_other(bits),
        }
    }

    #[inline(never)]
    fn decode_other(bits: u32) -> Self {
        let funct3 = bits >> 12 & 7;
        match (bits & 0x7f, funct3) {
            (SYSTEM, PRIVILEGED) => Self::decode_privileged(bits),
            (SYSTEM, HYPERVISOR_ACCESS) => Self::decode_hypervisor_access(bits),
            (SYSTEM, _) => Self::decode_csr(bits, funct3),
            _ if bits == PAUSE => Self::Pause,
            (MISC_MEM, CACHE_BLOCK) => Self::decode_cache_block(bits),
            _ => Self::Other,
        }
    }

    fn decode_privileged(bits: u32) -> Self {
        let (address, space) = (
            Register::from_field(bits >> 15),
            Register::from_field(bits >> 20),
        );
        let destination = Register::from_field(bits >> 7);
        if !destination.is_zero() {
            return Self::Other;
        }
        let fence = |kind| {
            Self::Fence(Fence {
                kind,
                address,
                space,
            })
        };
        let bare = address.is_zero();
        // The high seven bits, and for those without operands also rs2.
        match (bits >> 25, space.number()) {
            (0b000_0000, 29) if bare => Self::WaitOnReservationShortly,
            (0b000_1000, 2) if bare => Self::SupervisorReturn,
            (0b000_1001, _) => fence(FenceKind::SfenceVma),
            (0b000_1011, _) => fence(FenceKind::SinvalVma),
            (0b000_1100, 0) if bare => fence(FenceKind::SfenceWInval),
            (0b000_1100, 1) if bare => Self::Fence(Fence {
                kind: FenceKind::SfenceInvalIr,
                address,
                space: Register::from_field(0),
            }),
            (0b001_0001, _) => fence(FenceKind::HfenceVvma),
            (0b001_0011, _) => fence(FenceKind::HinvalVvma),
            (0b011_0001, _) => fence(FenceKind::HfenceGvma),
            (0b011_0011, _) => fence(FenceKind::HinvalGvma),
            _ => Self::Other,
        }
    }

    /// HLV.B to HLV.D and HSV.B to HSV.D (hypervisor extension, "Hypervisor Virtual-Machine Load
    /// and Store Instructions"): `funct7` 0110xx0 loads, with the sign and HLVX in rs2, and 0110xx1
    /// stores.
    fn decode_hypervisor_access(bits: u32) -> Self {
        let width = bits >> 26 & 3;
        let is_store = bits >> 25 & 1 == 1;
        let variant = bits >> 20 & 0x1f;
        let destination = Register::from_field(bits >> 7);
        let known = match (is_store, variant) {
            (true, _) => destination.is_zero(),
            // Signed of any width; unsigned below 64 bits; HLVX for halves and words.
            (false, 0) => true,
            (false, 1) => width < 3,
            (false, 3) => width == 1 || width == 2,
            (false, _) => false,
        };
        if bits >> 28 == 0b0110 && known {
            Self::HypervisorAccess
        } else {
            Self::Other
        }
    }

    fn decode_csr(bits: u32, funct3: u32) -> Self {
        let operation = match funct3 & 3 {
            1 => CsrOperation::Write,
            2 => CsrOperation::Set,
            _ => CsrOperation::Clear,
        };
        let field = bits >> 15 & 0x1f;
        let operand = if funct3 & 4 == 0 {
            CsrOperand::Register(Register::from_field(field))
        } else {
            CsrOperand::Immediate(field as u8)
        };
        let destination = Register::from_field(bits >> 7);
        Self::Csr(CsrAccess {
            csr: (bits >> 20) as u16,
            operation,
            operand,
            destination,
        })
    }

    fn decode_cache_block(bits: u32) -> Self {
        let operation = match bits >> 20 {
            0 => CacheBlockOperation::Invalidate,
            1 => CacheBlockOperation::Clean,
            2 => CacheBlockOperation::Flush,
            4 => CacheBlockOperation::Zero,
            _ => return Self::Other,
        };
        if Register::from_field(bits >> 7).is_zero() {
            Self::CacheBlock(operation, Register::from_field(bits >> 15))
        } else {
            Self::Other
        }
    }
}
