//! The world switch: how a vCPU enters and leaves VS-mode.
//!
//! The hypervisor runs with sstatus.SIE = 0 throughout, so that nothing is nested: a hart is in a guest, or in the
//! hypervisor on its own stack. `sscratch` holds the address of the [`GuestContext`] while a guest runs and 0 otherwise;
//! the one trap vector tells the two apart by it.

use super::context::{FloatContext, GuestContext, VectorContext};
use super::csr::{self, number, status};
use super::isa;

impl FloatContext {
    /// Saves the hart's fcsr, and its floating-point registers if they have changed.
    pub fn save(&mut self, registers_changed: bool) {
        // SAFETY: FS is set to Dirty first, so the stores are legal; the pointer is to 33 words of our own.
        unsafe {
            csr::set::<{ number::SSTATUS }>(status::FS_DIRTY);
            match registers_changed {
                true => isa::float_save(self),
                false => self.control = csr::read::<{ number::FCSR }>(),
            }
        }
    }

    /// Loads these registers into the hart.
    pub fn restore(&self) {
        // SAFETY: as for `save`; the hypervisor itself holds nothing in floating-point registers.
        unsafe {
            csr::set::<{ number::SSTATUS }>(status::FS_DIRTY);
            isa::float_restore(self);
        }
    }
}

impl VectorContext {
    /// Saves the hart's vector CSRs, and its vector registers, which are as long as these, if they have changed.
    pub fn save(&mut self, registers_changed: bool) {
        // SAFETY: VS is set to Dirty first, so the stores are legal. All harts have registers of the length for which the
        // memory was made: a hart of another length is refused when it starts.
        unsafe {
            csr::set::<{ number::SSTATUS }>(status::VS_DIRTY);
            isa::vector_save_control(&raw mut self.control);
            if registers_changed {
                isa::vector_save(self.registers.as_mut_ptr());
            }
        }
    }

    /// Loads these registers into the hart.
    pub fn restore(&self) {
        // SAFETY: as for `save`; the hypervisor itself holds nothing in vector registers.
        unsafe {
            csr::set::<{ number::SSTATUS }>(status::VS_DIRTY);
            isa::vector_restore(&raw const self.control, self.registers.as_ptr());
        }
    }
}

/// Bytes of a vector register of this hart, which has the V extension.
#[must_use]
pub fn vector_length() -> Option<usize> {
    // SAFETY: guests get sstatus from their own contexts, and the hypervisor uses no vectors.
    unsafe { csr::set::<{ number::SSTATUS }>(status::VS_DIRTY) };
    let length = isa::trial::vector_length().and_then(|bytes| usize::try_from(bytes).ok());
    // SAFETY: as above.
    unsafe { csr::clear::<{ number::SSTATUS }>(status::VS) };
    // The specification's bound of VLEN is 65,536 bits.
    length.filter(|bytes| bytes.is_power_of_two() && *bytes <= 1 << 13)
}

/// Runs the guest until it traps to HS-mode. The cause is then in scause, stval, htval and htinst.
#[inline]
pub fn enter(context: &mut GuestContext) {
    // SAFETY: the guest's accesses are confined by hgatp, which the caller has set for this vCPU.
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
