//! The world switch: what a vCPU's registers are while it is out, and how it enters and leaves VS-mode.
//!
//! The hypervisor runs with sstatus.SIE = 0 throughout, so that nothing is nested: a hart is in a guest, or in the
//! hypervisor on its own stack. `sscratch` holds the address of the [`GuestContext`] while a guest runs and 0 else;
//! the one trap vector tells the two apart by it.

use super::csr::{self, number, status};
use super::isa;

/// The integer registers and the return state of a vCPU.
#[repr(C, align(64))]
#[derive(Clone, Debug)]
pub struct GuestContext {
    /// x1..x31; index 0 holds the hypervisor's stack pointer while the guest runs.
    registers: [u64; 32],
    /// Where the guest goes on.
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
            hstatus: csr::hstatus::SPV | csr::hstatus::SPVP | csr::hstatus::VSXL_64,
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

    /// True where the guest was in VU-mode.
    #[must_use]
    pub fn in_user_mode(&self) -> bool {
        self.sstatus & status::SPP == 0
    }
}

/// The floating-point registers of a vCPU.
#[repr(C, align(16))]
#[derive(Clone, Debug, Default)]
pub struct FloatContext {
    registers: [u64; 32],
    control: u64,
}

impl FloatContext {
    /// Takes the hart's floating-point registers in.
    pub fn save(&mut self) {
        // SAFETY: FS is set to Dirty first, so the stores are legal; the pointer is to 33 words of our own.
        unsafe {
            csr::set::<{ number::SSTATUS }>(status::FS_DIRTY);
            isa::float_save(self);
        }
    }

    /// Puts these registers onto the hart.
    pub fn restore(&self) {
        // SAFETY: as for `save`; the hypervisor itself holds nothing in floating-point registers.
        unsafe {
            csr::set::<{ number::SSTATUS }>(status::FS_DIRTY);
            isa::float_restore(self);
        }
    }
}

/// Runs the guest until it traps to HS-mode. The cause is then in scause, stval, htval and htinst.
#[inline]
pub fn enter(context: &mut GuestContext) {
    // SAFETY: the routine saves and restores all registers that the calling convention preserves, and the guest's
    // accesses are confined by hgatp, which the caller has set for this vCPU.
    unsafe { isa::enter_guest(context) };
}

/// Installs the trap vector of this hart and marks it as being in the hypervisor.
pub fn install_vector() {
    // SAFETY: the vector is the one routine below; bit 1:0 = 0 selects direct mode, and it is 4-byte aligned.
    unsafe {
        csr::write::<{ number::SSCRATCH }>(0);
        csr::write::<{ number::STVEC }>(isa::trap_vector as *const () as u64);
    }
}
