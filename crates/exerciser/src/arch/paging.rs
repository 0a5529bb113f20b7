//! Sv39 translation tables (privileged specification, "Sv39: Page-Based 39-bit Virtual-Memory System").

use super::memory;
use crate::frames;

/// Valid.
const V: u64 = 1 << 0;
/// Readable.
pub const R: u64 = 1 << 1;
/// Writable.
pub const W: u64 = 1 << 2;
/// Executable.
pub const X: u64 = 1 << 3;
/// For user mode.
pub const U: u64 = 1 << 4;
/// Accessed and dirty, set beforehand so that no hart has to write the table.
const A_D: u64 = 1 << 6 | 1 << 7;

/// The first address of the upper half, where windows are mapped that the identity map does not cover.
pub const WINDOW: u64 = 0xffff_ffc0_0000_0000;
/// The end of the lower half: what an identity map reaches.
pub const IDENTITY_END: u64 = 1 << 38;

/// Size of a leaf at each level: 4 KiB, 2 MiB, 1 GiB.
const LEAF: [u64; 3] = [1 << 12, 1 << 21, 1 << 30];

/// One address space.
#[derive(Debug, Clone, Copy)]
pub struct Space {
    root: u64,
}

impl Space {
    /// An address space that maps nothing; `None` when memory is out.
    pub fn new() -> Option<Self> {
        Some(Self {
            root: frames::take(1)?,
        })
    }

    /// The `satp` value of this space under an address space identifier.
    pub const fn satp(self, asid: u64) -> u64 {
        8 << 60 | asid << 44 | self.root >> 12
    }

    /// Maps `length` bytes at `from` to `to`, in the largest leaves that fit, all multiples of 4 KiB. Parts
    /// that are mapped already are left as they are when a larger leaf covers them.
    ///
    /// `None` when memory for tables is out.
    pub fn map(self, from: u64, to: u64, length: u64, flags: u64) -> Option<()> {
        let mut done = 0;
        while done < length {
            let (virtual_address, physical) = (from.wrapping_add(done), to.wrapping_add(done));
            let rest = length - done;
            let fits = |size: u64| (virtual_address | physical) % size == 0 && rest >= size;
            let level = if fits(LEAF[2]) {
                2
            } else if fits(LEAF[1]) {
                1
            } else {
                0
            };
            let entry = self.entry(virtual_address, level)?;
            memory::store(entry, physical >> 12 << 10 | flags | V | A_D);
            done += LEAF[level];
        }
        Some(())
    }

    /// Shows `other`'s gigabytes from `address` on here too, table and all: `count` root entries.
    pub fn share(self, other: Self, address: u64, count: u64) {
        for slot in index(address, 2)..(index(address, 2) + count).min(512) {
            memory::store(self.root + 8 * slot, memory::load(other.root + 8 * slot));
        }
    }

    /// The address of the entry that maps `virtual_address` at `level` (0 = 4 KiB), tables made as needed.
    pub fn entry(self, virtual_address: u64, level: usize) -> Option<u64> {
        let mut table = self.root;
        for depth in (level + 1..3).rev() {
            let slot = table + 8 * index(virtual_address, depth);
            let found = memory::load(slot);
            table = if found & V == 0 {
                let fresh = frames::take(1)?;
                memory::store(slot, fresh >> 12 << 10 | V);
                fresh
            } else if found & (R | W | X) == 0 {
                found >> 10 << 12
            } else {
                return None;
            };
        }
        Some(table + 8 * index(virtual_address, level))
    }

    /// The leaf entry that maps one 4 KiB page to `physical` with `flags`.
    pub const fn leaf(physical: u64, flags: u64) -> u64 {
        physical >> 12 << 10 | flags | V | A_D
    }
}

/// Translates by `space` under an ASID from now on, without a fence. The space must show the kernel where it
/// is: all that the exercises enter have the identity map.
pub fn enter(space: Space, asid: u64) {
    // SAFETY: by the identity map the next fetch, load and store find what they found before.
    unsafe { super::csr::set_translation(space.satp(asid)) };
}

/// Translates no more.
pub fn turn_off() {
    // SAFETY: bare addresses are where the identity map showed them.
    unsafe {
        super::csr::set_translation(0);
    }
    super::csr::fence_translation(None, None);
}

const fn index(virtual_address: u64, level: usize) -> u64 {
    virtual_address >> (12 + 9 * level) & 0x1ff
}
