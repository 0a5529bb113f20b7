//! G-stage tables (Sv39x4), temporary.

use alloc::vec::Vec;
use hypervisor::address::{GuestPhysical, HostPhysical};

#[derive(Debug)]
pub struct Table { root: u64, pool: u64, used: usize, _unused: Vec<u8> }

const FLAGS: u64 = 0b1101_1111; // D A U X W R V (no G)

impl Table {
    pub fn new(pool: u64) -> Self {
        // pool: 16 KiB aligned, 64 pages
        unsafe { core::ptr::write_bytes(pool as *mut u8, 0, 64 * 4096) };
        Self { root: pool, pool, used: 4, _unused: Vec::new() }
    }
    pub fn register(&self) -> u64 { 8 << 60 | self.root >> 12 }
    fn entry(&mut self, address: u64, level: u32) -> *mut u64 {
        let mut table = self.root;
        let mut at = 2;
        loop {
            let index = if at == 2 { address >> 30 & 0x7ff } else { address >> (12 + 9 * at) & 0x1ff };
            let pointer = (table + index * 8) as *mut u64;
            if at == level { return pointer; }
            let mut value = unsafe { pointer.read() };
            if value & 1 == 0 {
                let page = self.pool + self.used as u64 * 4096;
                self.used += 1;
                value = page >> 12 << 10 | 1;
                unsafe { pointer.write(value) };
            }
            table = value >> 10 << 12;
            at -= 1;
        }
    }
    pub fn map(&mut self, guest: u64, host: u64, size: u64) {
        let mut done = 0;
        while done < size {
            let (g, h, left) = (guest + done, host + done, size - done);
            let level = if (g | h) & ((1 << 30) - 1) == 0 && left >= 1 << 30 { 2 } else if (g | h) & ((1 << 21) - 1) == 0 && left >= 1 << 21 { 1 } else { 0 };
            let entry = self.entry(g, level);
            unsafe { entry.write(h >> 12 << 10 | (FLAGS & !0x20)) };
            done += 1 << (12 + 9 * level);
        }
    }
    pub fn set_page(&mut self, page: GuestPhysical, host: Option<HostPhysical>) {
        let entry = self.entry(page.raw(), 0);
        unsafe { entry.write_volatile(host.map_or(0, |h| h.raw() >> 12 << 10 | (FLAGS & !0x20))) };
        unsafe { core::arch::asm!("fence rw, rw") };
    }
}
