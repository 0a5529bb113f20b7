//! A guest's own translation, walked by the hypervisor: from a guest-virtual to a guest-physical address.
//!
//! Sv39, Sv48 and Sv57 of the privileged architecture ("Virtual Address Translation Process"), with every check
//! that the guest's own access would pass: user pages and supervisor pages, SUM, MXR, and entries that are reserved. Memory that a
//! program of the guest could not read is not read for it. The guest may change its tables at any moment, so each entry is
//! read once.

use riscv::csr::address_translation::PPN;
use riscv::page_table::{
    ACCESSED, CONTIGUOUS, DIRTY, EXECUTE, MEMORY_TYPE, PPN_MASK, PPN_SHIFT, READ, RESERVED, USER,
    VALID, WRITE,
};

use crate::memory::address::{GuestPhysical, PAGE_SIZE};

const ENTRY_SIZE: u64 = 8;

/// Privilege and rights of a read of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reader {
    /// Set for a program in VU-mode; otherwise the kernel in VS-mode reads.
    pub user: bool,
    /// Set if the kernel may read its programs' pages (vsstatus.SUM).
    pub reads_user_pages: bool,
    /// Set if pages of code without R can be read (vsstatus.MXR).
    pub reads_code: bool,
}

/// Kind of a memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// An instruction is fetched.
    Fetch,
    /// A load.
    Load,
    /// A store, or an AMO.
    Store,
}

impl Reader {
    /// Tests whether an access to the page with this entry is allowed, apart from its A and D bits.
    #[must_use]
    #[inline]
    pub const fn may(self, access: Access, entry: u64) -> bool {
        let user_page = entry & USER != 0;
        let owned = match (self.user, access) {
            (true, _) => user_page,
            // A kernel never executes its programs' pages.
            (false, Access::Fetch) => !user_page,
            (false, Access::Load | Access::Store) => !user_page || self.reads_user_pages,
        };
        let allowed = match access {
            Access::Fetch => entry & EXECUTE != 0,
            Access::Load => entry & READ != 0 || self.reads_code && entry & EXECUTE != 0,
            Access::Store => entry & WRITE != 0,
        };
        owned && allowed
    }
}

/// Bits that an entry must have before an access goes on: A, and for a store D.
#[must_use]
pub const fn marks(access: Access) -> u64 {
    match access {
        Access::Fetch | Access::Load => ACCESSED,
        Access::Store => ACCESSED | DIRTY,
    }
}

/// Optional bits of the entries that the guest may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Svnapot.
    pub contiguous: bool,
    /// Svpbmt.
    pub memory_types: bool,
}

impl Features {
    /// All of them.
    pub const ALL: Self = Self {
        contiguous: true,
        memory_types: true,
    };

    /// The bits that are reserved in every entry.
    const fn reserved(self) -> u64 {
        let contiguous = if self.contiguous { 0 } else { CONTIGUOUS };
        let types = if self.memory_types { 0 } else { MEMORY_TYPE };
        RESERVED | contiguous | types
    }
}

/// Reason why there is no leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoLeaf {
    /// The access takes a page fault.
    Fault,
    /// A table is not in readable memory.
    NotMemory,
}

/// A leaf of the guest's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    /// Its entry, as it was read.
    pub entry: u64,
    /// Address of the entry.
    pub at: GuestPhysical,
    /// 0 for 4 KiB, and for the 64 KiB of Svnapot.
    pub level: u32,
    /// Set for one of 16 entries that Svnapot makes one.
    pub contiguous: bool,
    /// Translated address.
    pub to: GuestPhysical,
}

/// Translates `address` for a load of `reader`, with `vsatp` as the guest has it; `read` gives the doubleword at a
/// guest-physical address. `None` where the load would fault, or a table does not lie in what `read` knows. The result is a hint.
pub fn translate(
    vsatp: u64,
    address: u64,
    reader: Reader,
    read: impl FnMut(GuestPhysical) -> Option<u64>,
) -> Option<GuestPhysical> {
    if vsatp >> 60 == 0 {
        return Some(GuestPhysical::new(address));
    }
    let leaf = find_leaf(vsatp, address, Features::ALL, read).ok()?;
    // Without the A bit the load would fault, or set it: then it has not happened yet.
    let readable = reader.may(Access::Load, leaf.entry) && leaf.entry & ACCESSED != 0;
    readable.then_some(leaf.to)
}

/// The leaf that `address` has under `vsatp`, which is not Bare; `read` gives the doubleword at a guest-physical address.
///
/// # Errors
/// [`NoLeaf`], where there is none.
pub fn find_leaf(
    vsatp: u64,
    address: u64,
    features: Features,
    mut read: impl FnMut(GuestPhysical) -> Option<u64>,
) -> Result<Leaf, NoLeaf> {
    let levels = match vsatp >> 60 {
        8 => 3,
        9 => 4,
        10 => 5,
        _ => return Err(NoLeaf::Fault),
    };
    // Bits above the top level's index copy its highest bit, or the access would have faulted.
    let unused = 64 - (12 + 9 * levels);
    if ((address << unused) as i64 >> unused) as u64 != address {
        return Err(NoLeaf::Fault);
    }
    let mut table = vsatp & PPN;
    for level in (0..levels).rev() {
        let index = address >> (12 + 9 * level) & 0x1ff;
        let at = GuestPhysical::new(table * PAGE_SIZE + index * ENTRY_SIZE);
        let entry = read(at).ok_or(NoLeaf::NotMemory)?;
        let kind = entry & (READ | WRITE | EXECUTE);
        if entry & VALID == 0 || entry & features.reserved() != 0 || kind & (READ | WRITE) == WRITE
        {
            return Err(NoLeaf::Fault);
        }
        let number = entry >> PPN_SHIFT & PPN_MASK;
        if kind != 0 {
            if entry & MEMORY_TYPE == MEMORY_TYPE {
                return Err(NoLeaf::Fault);
            }
            let size = leaf_size(level, entry, number).ok_or(NoLeaf::Fault)?;
            let base = (number * PAGE_SIZE) & !(size - 1);
            return Ok(Leaf {
                entry,
                at,
                level,
                contiguous: entry & CONTIGUOUS != 0,
                to: GuestPhysical::new(base | address & (size - 1)),
            });
        }
        if entry & (USER | ACCESSED | DIRTY | CONTIGUOUS | MEMORY_TYPE) != 0 {
            return Err(NoLeaf::Fault);
        }
        table = number;
    }
    Err(NoLeaf::Fault)
}

/// Bytes that a leaf maps; `None` where the entry is reserved.
fn leaf_size(level: u32, entry: u64, number: u64) -> Option<u64> {
    if entry & CONTIGUOUS != 0 {
        // Svnapot knows 64 KiB alone, coded as 8 in the lowest four bits of the PPN.
        return (level == 0 && number & 0xf == 8).then_some(16 * PAGE_SIZE);
    }
    let size = PAGE_SIZE << (9 * level);
    // A leaf that is not aligned to its size faults.
    ((number * PAGE_SIZE) & (size - 1) == 0).then_some(size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    /// Tables that map pages one by one, at any number of levels.
    struct Tables {
        words: HashMap<u64, u64>,
        next: u64,
        levels: u32,
        /// Bits of the leaf besides its page.
        bits: u64,
    }

    const KERNEL: Reader = Reader {
        user: false,
        reads_user_pages: false,
        reads_code: false,
    };
    const READABLE: u64 = VALID | READ | ACCESSED;

    impl Tables {
        fn new(levels: u32) -> Self {
            Self {
                words: HashMap::new(),
                next: 2,
                levels,
                bits: READABLE,
            }
        }

        fn vsatp(&self) -> u64 {
            u64::from(self.levels + 5) << 60 | 1
        }

        fn map(&mut self, address: u64, page: u64, leaf_level: u32) {
            let mut table = 1;
            for level in (leaf_level..self.levels).rev() {
                let at = table * PAGE_SIZE + (address >> (12 + 9 * level) & 0x1ff) * ENTRY_SIZE;
                if level == leaf_level {
                    self.words.insert(at, page << PPN_SHIFT | self.bits);
                } else {
                    let next = self.next;
                    let entry = *self.words.entry(at).or_insert(next << PPN_SHIFT | VALID);
                    self.next += 1;
                    table = entry >> PPN_SHIFT;
                }
            }
        }

        fn find(&self, address: u64) -> Option<u64> {
            self.find_for(KERNEL, address)
        }

        fn find_for(&self, reader: Reader, address: u64) -> Option<u64> {
            translate(self.vsatp(), address, reader, |at| {
                self.words.get(&at.raw()).copied()
            })
            .map(GuestPhysical::raw)
        }
    }

    fn canonical(address: u64, levels: u32) -> u64 {
        let unused = 64 - (12 + 9 * levels);
        ((address << unused) as i64 >> unused) as u64
    }

    proptest! {
        #[test]
        fn a_mapped_page_is_found(levels in 3u32..=5, leaf in 0u32..3, raw in any::<u64>(), page in 0u64..1 << 30) {
            let address = canonical(raw, levels);
            let aligned = page >> (9 * leaf) << (9 * leaf);
            let mut tables = Tables::new(levels);
            tables.map(address, aligned, leaf);
            let offset = address & ((PAGE_SIZE << (9 * leaf)) - 1);
            prop_assert_eq!(tables.find(address), Some(aligned * PAGE_SIZE + offset));
        }

        #[test]
        fn any_tables_end_the_walk(vsatp in any::<u64>(), address in any::<u64>(), word in any::<u64>()) {
            let mut reads = 0;
            let _ = translate(vsatp, address, KERNEL, |_| { reads += 1; Some(word) });
            prop_assert!(reads <= 5);
        }
    }

    #[test]
    fn what_is_not_mapped_is_not_found() {
        let mut tables = Tables::new(3);
        tables.map(0x1000, 7, 0);
        assert_eq!(tables.find(0x1008), Some(0x7008));
        assert_eq!(tables.find(0x2008), None);
        assert_eq!(tables.find(1 << 50), None, "not canonical");
        assert_eq!(
            translate(0, 0x1234, KERNEL, |_| None),
            Some(GuestPhysical::new(0x1234)),
            "bare"
        );
    }

    /// A page at 0x1000 whose entry has these bits.
    fn page(bits: u64) -> Tables {
        let mut tables = Tables::new(3);
        tables.bits = bits;
        tables.map(0x1000, 7, 0);
        tables
    }

    const USER_PROGRAM: Reader = Reader {
        user: true,
        ..KERNEL
    };

    #[test]
    fn user_mode_cannot_read_kernel_memory() {
        let kernels = page(READABLE);
        assert_eq!(kernels.find_for(USER_PROGRAM, 0x1000), None);
        assert_eq!(kernels.find_for(KERNEL, 0x1000), Some(0x7000));
    }

    #[test]
    fn kernel_reads_user_memory_with_sum() {
        let programs = page(READABLE | USER);
        assert_eq!(programs.find_for(USER_PROGRAM, 0x1000), Some(0x7000));
        assert_eq!(programs.find_for(KERNEL, 0x1000), None);
        let allowed = Reader {
            reads_user_pages: true,
            ..KERNEL
        };
        assert_eq!(programs.find_for(allowed, 0x1000), Some(0x7000));
    }

    #[test]
    fn code_is_readable_with_mxr() {
        let code = page(VALID | EXECUTE | ACCESSED);
        assert_eq!(code.find(0x1000), None);
        let allowed = Reader {
            reads_code: true,
            ..KERNEL
        };
        assert_eq!(code.find_for(allowed, 0x1000), Some(0x7000));
    }

    #[test]
    fn what_faults_is_not_read() {
        for bits in [
            VALID | READ,
            VALID | WRITE | ACCESSED,
            VALID | WRITE | EXECUTE | ACCESSED,
            READABLE | 1 << 54,
            READABLE | 1 << 60,
            READABLE & !VALID,
            READABLE | CONTIGUOUS,
        ] {
            assert_eq!(page(bits).find(0x1000), None, "{bits:#x}");
        }
        let mut misaligned = Tables::new(3);
        misaligned.map(1 << 21, 7, 1);
        assert_eq!(misaligned.find(1 << 21), None);
        let mut table_with_user_bit = page(READABLE);
        let root = table_with_user_bit.words.get_mut(&PAGE_SIZE);
        *root.expect("the root's first entry") |= USER;
        assert_eq!(table_with_user_bit.find(0x1000), None);
    }

    #[test]
    fn contiguous_pages_are_known_by_one_entry() {
        let mut tables = Tables::new(3);
        tables.bits = READABLE | CONTIGUOUS;
        tables.map(0x3000, 0x48, 0);
        assert_eq!(tables.find(0x3010), Some(0x43010));
    }
}
