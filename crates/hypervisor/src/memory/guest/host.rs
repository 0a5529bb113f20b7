//! The host's memory as devices reach it.

use super::HostMemory;
use crate::memory::owned::OwnedRegion;

/// Memory of this computer, so that an access is an instruction and not a call. Devices would otherwise be generic over it, and so would be
/// what holds them.
#[cfg(not(test))]
type Inner = crate::memory::physical::Physical;
#[cfg(test)]
type Inner = dyn HostMemory;

/// The host's memory: see [`HostMemory`] for what each access is.
#[derive(Clone, Copy)]
pub struct TheHost<'a>(&'a Inner);

impl core::fmt::Debug for TheHost<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        formatter.write_str("TheHost")
    }
}

impl<'a> TheHost<'a> {
    #[inline]
    #[must_use]
    pub const fn new(inner: &'a Inner) -> Self {
        Self(inner)
    }
}

impl HostMemory for TheHost<'_> {
    #[inline]
    fn byte(&self, at: OwnedRegion) -> u8 {
        self.0.byte(at)
    }

    #[inline]
    fn set_byte(&self, at: OwnedRegion, value: u8) {
        self.0.set_byte(at, value);
    }

    #[inline]
    fn set_word(&self, at: OwnedRegion, value: u32) {
        self.0.set_word(at, value);
    }

    #[inline]
    fn doubleword(&self, at: OwnedRegion) -> u64 {
        self.0.doubleword(at)
    }

    #[inline]
    fn half(&self, at: OwnedRegion) -> u16 {
        self.0.half(at)
    }

    #[inline]
    fn set_half(&self, at: OwnedRegion, value: u16) {
        self.0.set_half(at, value);
    }

    #[inline]
    fn set_doubleword(&self, at: OwnedRegion, value: u64) {
        self.0.set_doubleword(at, value);
    }

    #[inline]
    fn pair(&self, at: OwnedRegion) -> [u64; 2] {
        self.0.pair(at)
    }

    #[inline]
    fn set_pair(&self, at: OwnedRegion, values: [u64; 2]) {
        self.0.set_pair(at, values);
    }

    #[inline]
    fn move_bytes(&self, from: OwnedRegion, to: OwnedRegion, bytes: u64) {
        self.0.move_bytes(from, to, bytes);
    }

    #[inline]
    fn copy(&self, at: OwnedRegion, data: &[u8]) {
        self.0.copy(at, data);
    }

    #[inline]
    fn zero(&self, at: OwnedRegion) {
        self.0.zero(at);
    }
}
