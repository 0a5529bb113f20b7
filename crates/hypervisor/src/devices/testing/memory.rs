//! Memory for tests.

use std::cell::RefCell;

use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;

/// The host's memory, from address 0 on. An access beyond its end, or one that is not aligned, fails the test.
#[derive(Default)]
pub struct Host(RefCell<Vec<u8>>);

impl Host {
    /// Memory of so many bytes, none of which is zero.
    pub fn new(bytes: usize) -> Self {
        Self(RefCell::new(vec![0x5a; bytes]))
    }

    pub fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        self.0.borrow()[at as usize..][..N].try_into().unwrap()
    }

    pub fn bytes(&self, at: u64, count: usize) -> Vec<u8> {
        self.0.borrow()[at as usize..][..count].to_vec()
    }

    pub fn half(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.get(at))
    }

    pub fn set(&self, at: u64, bytes: &[u8]) {
        self.0.borrow_mut()[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl HostMemory for Host {
    fn byte(&self, at: OwnedRegion) -> u8 {
        assert!(at.fits(1));
        self.get::<1>(at.base().raw())[0]
    }

    fn set_byte(&self, at: OwnedRegion, value: u8) {
        assert!(at.fits(1));
        self.set(at.base().raw(), &[value]);
    }

    fn set_word(&self, at: OwnedRegion, value: u32) {
        assert!(at.fits(4));
        self.set(at.base().raw(), &value.to_ne_bytes());
    }

    fn set_half(&self, at: OwnedRegion, value: u16) {
        assert!(at.fits(2));
        self.set(at.base().raw(), &value.to_ne_bytes());
    }

    fn set_doubleword(&self, at: OwnedRegion, value: u64) {
        assert!(at.fits(8));
        self.set(at.base().raw(), &value.to_ne_bytes());
    }

    fn doubleword(&self, at: OwnedRegion) -> u64 {
        assert!(at.fits(8));
        u64::from_ne_bytes(self.get(at.base().raw()))
    }

    fn half(&self, at: OwnedRegion) -> u16 {
        assert!(at.fits(2));
        u16::from_ne_bytes(self.get(at.base().raw()))
    }

    fn copy(&self, at: OwnedRegion, data: &[u8]) {
        assert!(data.len() as u64 <= at.size());
        self.set(at.base().raw(), data);
    }

    fn zero(&self, at: OwnedRegion) {
        let (first, count) = (at.base().raw() as usize, at.size() as usize);
        self.0.borrow_mut()[first..][..count].fill(0);
    }
}
