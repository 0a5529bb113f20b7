//! Host's memory by physical address, untranslated.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::hart::copy;
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;
use crate::memory::shifted;

/// The memory of this computer.
#[derive(Clone, Copy, Debug, Default)]
pub struct Physical {
    /// Bytes of a block of CBO.ZERO, a power of two, where the hart that runs this has it.
    pub zero_block: Option<u64>,
}

/// The place of the value that a region begins with; `None` where it is too short or not aligned.
#[inline]
fn place<T>(of: OwnedRegion) -> Option<*mut T> {
    of.fits(size_of::<T>() as u64)
        .then(|| of.base().raw() as *mut T)
}

/// The value that a region begins with; zero where it is too short or not aligned.
#[inline]
fn load<T: Default>(of: OwnedRegion) -> T {
    // SAFETY: the region is RAM in which no Rust object lies, and the value lies in it, aligned.
    place(of).map_or_else(T::default, |place: *mut T| unsafe { place.read_volatile() })
}

/// Sets the value that a region begins with; nothing where it is too short or not aligned.
#[inline]
fn store<T>(of: OwnedRegion, value: T) {
    if let Some(place) = place::<T>(of) {
        // SAFETY: as for `load`.
        unsafe { place.write_volatile(value) };
    }
}

/// The place of the two doublewords that a region begins with; `None` where it is too short or not aligned.
#[inline]
fn pair(of: OwnedRegion) -> Option<*mut u64> {
    place(of).filter(|_| 2 * size_of::<u64>() as u64 <= of.size())
}

impl Physical {
    /// Sets the doubleword at the start of `at` to `new` if it is `old`, in one access. Returns whether it was.
    #[must_use]
    pub fn exchange(self, at: OwnedRegion, old: u64, new: u64) -> bool {
        let Some(place) = place(at) else {
            return false;
        };
        // SAFETY: the region is RAM in which no Rust object lies, and the doubleword lies in it, aligned. The guest's own accesses to it
        // are those of another hart, or the hart's own while this does not run.
        let word = unsafe { AtomicU64::from_ptr(place) };
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }
}

impl HostMemory for Physical {
    #[inline]
    fn byte(&self, at: OwnedRegion) -> u8 {
        load(at)
    }

    #[inline]
    fn set_byte(&self, at: OwnedRegion, value: u8) {
        store(at, value);
    }

    #[inline]
    fn set_word(&self, at: OwnedRegion, value: u32) {
        store(at, value);
    }

    #[inline]
    fn doubleword(&self, at: OwnedRegion) -> u64 {
        load(at)
    }

    #[inline]
    fn half(&self, at: OwnedRegion) -> u16 {
        load(at)
    }

    #[inline]
    fn set_half(&self, at: OwnedRegion, value: u16) {
        store(at, value);
    }

    #[inline]
    fn set_doubleword(&self, at: OwnedRegion, value: u64) {
        store(at, value);
    }

    #[inline]
    fn pair(&self, at: OwnedRegion) -> [u64; 2] {
        let Some(place) = pair(at) else {
            return [0; 2];
        };
        // SAFETY: as for `load`, for both doublewords.
        unsafe { [place.read_volatile(), place.add(1).read_volatile()] }
    }

    #[inline]
    fn set_pair(&self, at: OwnedRegion, [first, second]: [u64; 2]) {
        if let Some(place) = pair(at) {
            // SAFETY: as for `load`, for both doublewords.
            unsafe {
                place.write_volatile(first);
                place.add(1).write_volatile(second);
            }
        }
    }

    fn move_bytes(&self, from: OwnedRegion, to: OwnedRegion, bytes: u64) {
        let bytes = bytes.min(from.size()).min(to.size());
        let alike = (from.base().raw() ^ to.base().raw()).is_multiple_of(8);
        let overlap = from.take(bytes).region().overlaps(to.take(bytes).region());
        let (from, to) = (from.base().raw() as *const u8, to.base().raw() as *mut u8);
        // SAFETY: both ranges are RAM in which no Rust object lies. A guest that changes one meanwhile changes bytes that are copied and
        // not looked at.
        unsafe {
            match (overlap, alike) {
                (true, _) => core::ptr::copy(from, to, bytes as usize),
                (false, true) => copy::forward(from, to, bytes as usize),
                (false, false) => shifted::copy(from, to, bytes as usize),
            }
        }
    }

    fn copy(&self, at: OwnedRegion, data: &[u8]) {
        let bytes = at.size().min(data.len() as u64) as usize;
        // SAFETY: the region is RAM in which no Rust object lies, and so does not overlap `data`.
        unsafe { copy::forward(data.as_ptr(), at.base().raw() as *mut u8, bytes) };
    }

    fn zero(&self, at: OwnedRegion) {
        let (from, end) = (at.base().raw(), at.base().raw().wrapping_add(at.size()));
        let (first, last) = match self.zero_block {
            Some(size) => (from.next_multiple_of(size).min(end), end & !(size - 1)),
            None => (end, end),
        };
        let last = last.max(first);
        // SAFETY: the region is RAM in which no Rust object lies. These are its bytes before the first block, the blocks, and those behind
        // the last; the hart has CBO.ZERO where there are blocks.
        unsafe {
            copy::zero(from as *mut u8, (first - from) as usize);
            if let Some(size) = self.zero_block {
                copy::zero_blocks(first as *mut u8, (last - first) as usize, size as usize);
            }
            copy::zero(last as *mut u8, (end - last) as usize);
        }
    }
}
