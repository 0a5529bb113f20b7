//! Registers of a vCPU while it is off the hart. The assembly of the world switch takes its offsets from here.

use alloc::boxed::Box;
use alloc::vec;

use riscv::csr::{hstatus, status};

/// The integer registers and the return state of a vCPU.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct GuestContext {
    /// x1..x31; index 0 holds the hypervisor's stack pointer while the guest runs.
    pub(super) registers: [u64; 32],
    /// Address of the guest's next instruction.
    pub program_counter: u64,
    /// sstatus for the guest: SPP gives its mode (VS or VU), FS the state of its floating-point registers.
    pub sstatus: u64,
    /// hstatus for the guest: SPV, VTW, VGEIN.
    pub hstatus: u64,
}

impl GuestContext {
    /// A vCPU that starts at `entry` in VS-mode with `a0` and `a1` in these registers.
    #[must_use]
    pub fn starting_at(entry: u64, a0: u64, a1: u64) -> Self {
        let mut context = Self {
            registers: [0; 32],
            program_counter: entry,
            sstatus: status::SPP | status::SPIE | status::FS_INITIAL,
            hstatus: hstatus::SPV | hstatus::SPVP | hstatus::VSXL_64,
        };
        context.set(10, a0);
        context.set(11, a1);
        context
    }

    /// The integer register x`index`; x0 and numbers that do not exist read as 0.
    #[inline]
    #[must_use]
    pub fn get(&self, index: u8) -> u64 {
        match index {
            1..=31 => self.registers[usize::from(index)],
            _ => 0,
        }
    }

    /// Sets x`index`; x0 stays 0.
    #[inline]
    pub fn set(&mut self, index: u8, value: u64) {
        if let 1..=31 = index {
            self.registers[usize::from(index)] = value;
        }
    }

    /// Returns true if the guest was in VU-mode.
    #[must_use]
    pub fn in_user_mode(&self) -> bool {
        self.sstatus & status::SPP == 0
    }
}

/// The floating-point registers of a vCPU.
#[repr(C, align(16))]
#[derive(Clone, Debug, Default)]
pub struct FloatContext {
    pub(super) registers: [u64; 32],
    pub(super) control: u64,
}

/// Vector CSRs of a vCPU ("V" extension, section "Vector Extension Programmer's Model").
#[repr(C)]
#[derive(Clone, Debug)]
pub struct VectorControl {
    pub(super) vstart: u64,
    pub(super) vcsr: u64,
    pub(super) vl: u64,
    pub(super) vtype: u64,
}

impl VectorControl {
    /// The state out of reset: vtype is illegal (vill) until the guest sets it.
    pub const RESET: Self = Self {
        vstart: 0,
        vcsr: 0,
        vl: 0,
        vtype: 1 << 63,
    };
}

/// The vector registers of a vCPU.
#[derive(Debug)]
pub struct VectorContext {
    pub(super) control: VectorControl,
    /// v0 to v31, one after another.
    pub(super) registers: Box<[u8]>,
}

/// Number of vector registers.
const VECTOR_REGISTERS: usize = 32;

impl VectorContext {
    /// Registers of `vlenb` bytes each, all zero.
    #[must_use]
    pub fn of_length(vlenb: usize) -> Self {
        Self {
            control: VectorControl::RESET,
            registers: vec![0; Self::bytes(vlenb)].into_boxed_slice(),
        }
    }

    /// Bytes of all registers of `vlenb` bytes each.
    #[must_use]
    pub const fn bytes(vlenb: usize) -> usize {
        VECTOR_REGISTERS * vlenb
    }

    /// The state out of reset.
    pub fn reset(&mut self) {
        self.control = VectorControl::RESET;
        self.registers.fill(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The firmware may have left the hart's vectors on, with the registers of another VM in them.
    #[test]
    fn vectors_are_off_in_a_new_context() {
        let context = GuestContext::starting_at(0x8020_0000, 0, 0);
        assert_eq!(context.sstatus & status::VS, 0);
    }
}
