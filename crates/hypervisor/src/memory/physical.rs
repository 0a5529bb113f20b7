//! The host's memory as the hypervisor reaches it: by physical address, untranslated.

use crate::hart::copy;
use crate::memory::address::HostPhysical;
use crate::memory::guest::HostMemory;

/// The memory of this computer.
#[derive(Clone, Copy, Debug)]
pub struct Physical;

impl HostMemory for Physical {
    #[inline]
    fn byte(&self, at: HostPhysical) -> u8 {
        // SAFETY: the address lies in a guest's memory, which no Rust object of the hypervisor's occupies.
        unsafe { (at.raw() as *const u8).read_volatile() }
    }

    #[inline]
    fn set_byte(&self, at: HostPhysical, value: u8) {
        // SAFETY: as for `byte`.
        unsafe { (at.raw() as *mut u8).write_volatile(value) };
    }

    #[inline]
    fn set_word(&self, at: HostPhysical, value: u32) {
        // SAFETY: as for `byte`; the address is a multiple of 4.
        unsafe { (at.raw() as *mut u32).write_volatile(value) };
    }

    #[inline]
    fn doubleword(&self, at: HostPhysical) -> u64 {
        // SAFETY: as for `byte`; the address is a multiple of 8.
        unsafe { (at.raw() as *const u64).read_volatile() }
    }

    fn copy(&self, at: HostPhysical, data: &[u8]) {
        // SAFETY: as for `byte`; `data` is the hypervisor's own or the system image's, neither of which overlaps a guest's
        // memory, and no vCPU of the guest runs.
        unsafe { copy::forward(data.as_ptr(), at.raw() as *mut u8, data.len()) };
    }

    fn zero(&self, at: HostPhysical, length: u64) {
        // SAFETY: as for `byte`; no vCPU of the guest runs.
        unsafe { copy::zero(at.raw() as *mut u8, length as usize) };
    }
}
