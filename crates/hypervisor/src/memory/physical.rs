//! The host's memory as the hypervisor reaches it: by physical address, untranslated.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::hart::copy;
use crate::memory::address::HostPhysical;
use crate::memory::guest::HostMemory;
use crate::memory::shifted;

/// The memory of this computer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Physical {
    /// Bytes of a block of CBO.ZERO, a power of two, where the hart that runs this has it.
    pub zero_block: Option<u64>,
}

impl Physical {
    /// Sets the doubleword at `at`, a multiple of 8 in a guest's memory, to `new` if it is `old`, in one access. Whether it was.
    #[must_use]
    pub fn exchange(self, at: HostPhysical, old: u64, new: u64) -> bool {
        // SAFETY: the address is a multiple of 8 and lies in a guest's memory, which no Rust object of the hypervisor's occupies. The
        // guest's own accesses to it are those of another hart, or the hart's own while this does not run.
        let word = unsafe { AtomicU64::from_ptr(at.raw() as *mut u64) };
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

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

    #[inline]
    fn half(&self, at: HostPhysical) -> u16 {
        // SAFETY: as for `byte`; the address is a multiple of 2.
        unsafe { (at.raw() as *const u16).read_volatile() }
    }

    #[inline]
    fn set_half(&self, at: HostPhysical, value: u16) {
        // SAFETY: as for `byte`; the address is a multiple of 2.
        unsafe { (at.raw() as *mut u16).write_volatile(value) };
    }

    #[inline]
    fn set_doubleword(&self, at: HostPhysical, value: u64) {
        // SAFETY: as for `byte`; the address is a multiple of 8.
        unsafe { (at.raw() as *mut u64).write_volatile(value) };
    }

    fn move_bytes(&self, from: HostPhysical, to: HostPhysical, bytes: u64) {
        let alike = (from.raw() ^ to.raw()).is_multiple_of(8);
        let (from, to) = (from.raw() as *const u8, to.raw() as *mut u8);
        // SAFETY: as for `byte`, for both ranges, which do not overlap. A guest that changes one meanwhile changes bytes that are copied and
        // not looked at.
        unsafe {
            match alike {
                true => copy::forward(from, to, bytes as usize),
                false => shifted::copy(from, to, bytes as usize),
            }
        }
    }

    fn copy(&self, at: HostPhysical, data: &[u8]) {
        // SAFETY: as for `byte`; `data` is the hypervisor's own or the system image's, neither of which overlaps a guest's
        // memory, and no vCPU of the guest runs.
        unsafe { copy::forward(data.as_ptr(), at.raw() as *mut u8, data.len()) };
    }

    fn zero(&self, at: HostPhysical, length: u64) {
        let (from, end) = (at.raw(), at.raw() + length);
        let (first, last) = match self.zero_block {
            Some(size) => (from.next_multiple_of(size).min(end), end & !(size - 1)),
            None => (end, end),
        };
        let last = last.max(first);
        // SAFETY: as for `byte`, for the bytes before the first block, the blocks, and those behind the last; no vCPU of the
        // guest runs, and the hart has CBO.ZERO where there are blocks.
        unsafe {
            copy::zero(from as *mut u8, (first - from) as usize);
            if let Some(size) = self.zero_block {
                copy::zero_blocks(first as *mut u8, (last - first) as usize, size as usize);
            }
            copy::zero(last as *mut u8, (end - last) as usize);
        }
    }
}
