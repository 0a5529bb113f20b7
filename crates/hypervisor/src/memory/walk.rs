//! A guest's own translation, walked by the hypervisor: from a guest-virtual to a guest-physical address.
//!
//! Sv39, Sv48 and Sv57 of the privileged architecture ("Virtual Address Translation Process"), for reading only and
//! without permission checks: the guest has just used the address itself. The result is a hint. The guest may change its
//! tables at any moment.

use crate::memory::address::{GuestPhysical, PAGE_SIZE};

const VALID: u64 = 1 << 0;
const LEAF: u64 = 0b1110;
const PPN_SHIFT: u32 = 10;
const PPN_BITS: u64 = (1 << 44) - 1;
const ENTRY_SIZE: u64 = 8;

/// Where `address` lies, with `vsatp` as the guest has it; `read` gives the doubleword at a guest-physical address.
/// `None` where the address is not mapped, or a table does not lie in what `read` knows.
pub fn translate(
    vsatp: u64,
    address: u64,
    mut read: impl FnMut(GuestPhysical) -> Option<u64>,
) -> Option<GuestPhysical> {
    let levels = match vsatp >> 60 {
        0 => return Some(GuestPhysical::new(address)),
        8 => 3,
        9 => 4,
        10 => 5,
        _ => return None,
    };
    // Bits above the top level's index copy its highest bit, or the access would have faulted.
    let unused = 64 - (12 + 9 * levels);
    if ((address << unused) as i64 >> unused) as u64 != address {
        return None;
    }
    let mut table = vsatp & PPN_BITS;
    for level in (0..levels).rev() {
        let index = address >> (12 + 9 * level) & 0x1ff;
        let entry = read(GuestPhysical::new(table * PAGE_SIZE + index * ENTRY_SIZE))?;
        if entry & VALID == 0 {
            return None;
        }
        let number = entry >> PPN_SHIFT & PPN_BITS;
        if entry & LEAF != 0 {
            let size = PAGE_SIZE << (9 * level);
            let base = (number * PAGE_SIZE) & !(size - 1);
            return Some(GuestPhysical::new(base | address & (size - 1)));
        }
        table = number;
    }
    None
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
    }

    impl Tables {
        fn new(levels: u32) -> Self {
            Self {
                words: HashMap::new(),
                next: 2,
                levels,
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
                    self.words.insert(at, page << PPN_SHIFT | VALID | 0b10);
                } else {
                    let next = self.next;
                    let entry = *self.words.entry(at).or_insert(next << PPN_SHIFT | VALID);
                    self.next += 1;
                    table = entry >> PPN_SHIFT;
                }
            }
        }

        fn find(&self, address: u64) -> Option<u64> {
            translate(self.vsatp(), address, |at| {
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
            let _ = translate(vsatp, address, |_| { reads += 1; Some(word) });
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
            translate(0, 0x1234, |_| None),
            Some(GuestPhysical::new(0x1234)),
            "bare"
        );
    }
}
