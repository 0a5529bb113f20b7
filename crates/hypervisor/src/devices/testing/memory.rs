//! Memory for tests.

use std::cell::RefCell;

use crate::memory::address::HostPhysical;
use crate::memory::guest::HostMemory;

/// The host's memory, from address 0 on. An access beyond its end, or one that is not aligned, fails the test.
#[derive(Default)]
pub struct Host(RefCell<Vec<u8>>);

impl Host {
    /// So many bytes, none of which is zero.
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
    fn byte(&self, at: HostPhysical) -> u8 {
        self.get::<1>(at.raw())[0]
    }

    fn set_byte(&self, at: HostPhysical, value: u8) {
        self.set(at.raw(), &[value]);
    }

    fn set_word(&self, at: HostPhysical, value: u32) {
        assert!(at.is_aligned(4));
        self.set(at.raw(), &value.to_ne_bytes());
    }

    fn set_half(&self, at: HostPhysical, value: u16) {
        assert!(at.is_aligned(2));
        self.set(at.raw(), &value.to_ne_bytes());
    }

    fn set_doubleword(&self, at: HostPhysical, value: u64) {
        assert!(at.is_aligned(8));
        self.set(at.raw(), &value.to_ne_bytes());
    }

    fn doubleword(&self, at: HostPhysical) -> u64 {
        assert!(at.is_aligned(8));
        u64::from_ne_bytes(self.get(at.raw()))
    }

    fn copy(&self, at: HostPhysical, data: &[u8]) {
        self.set(at.raw(), data);
    }

    fn zero(&self, at: HostPhysical, length: u64) {
        self.set(at.raw(), &vec![0; length as usize]);
    }
}
