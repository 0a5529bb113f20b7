//! The host's shortcuts as a checkpoint keeps them: translations in use.

use serde::{Deserialize, Serialize};

use super::tlb::HostTlb;
use super::{Contexts, Entry};
use crate::base::PAGE_BYTES;
use crate::instruction::CodeIndex;

/// Targets of shortcuts, against which restored shortcuts are checked.
pub trait Kept {
    /// Bytes of RAM.
    fn size(&self) -> u64;
    /// Opens the page of RAM at an offset to stores that go straight to RAM; says whether they may.
    fn open_page(&mut self, offset: u64) -> bool;
    /// Changes when indices of decoded instructions have lost their meaning.
    fn generation(&self) -> u64;
    /// Tests whether there is a decoded instruction, discarded or not, at an index.
    fn is_decoded(&self, index: CodeIndex) -> bool;
}

/// A translation and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct SavedEntry {
    table: u8,
    index: u16,
    tag: u64,
    addend: u64,
}

/// The translations that a hart has in use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedTlb {
    entries: Vec<SavedEntry>,
    contexts: Contexts,
    large: [Option<(u64, u64)>; 2],
    epoch: u32,
}

impl HostTlb {
    /// The translations as a checkpoint keeps them.
    #[must_use]
    pub fn save(&self) -> SavedTlb {
        let mut entries = Vec::new();
        for (table, slots) in (0_u8..).zip([&self.load[..], &self.store[..], &self.fetch[..]]) {
            for (index, entry) in (0_u16..).zip(slots) {
                if *entry != Entry::EMPTY {
                    entries.push(SavedEntry {
                        table,
                        index,
                        tag: entry.tag,
                        addend: entry.addend,
                    });
                }
            }
        }
        SavedTlb {
            entries,
            contexts: self.contexts.clone(),
            large: self.large,
            epoch: self.epoch,
        }
    }

    /// Puts saved translations back. `None` if one does not lead to a page of RAM, or stores to a
    /// page that they must not go straight to.
    #[must_use]
    pub fn restore(&mut self, saved: &SavedTlb, memory: &mut impl Kept) -> Option<()> {
        self.clear();
        for saved in &saved.entries {
            let page = (saved.tag & !(PAGE_BYTES - 1)).wrapping_add(saved.addend);
            if !page.is_multiple_of(PAGE_BYTES) || page >= memory.size() || saved.tag & 7 != 0 {
                return None;
            }
            let slots = match saved.table {
                0 => &mut self.load[..],
                1 => {
                    if !memory.open_page(page) {
                        return None;
                    }
                    &mut self.store[..]
                }
                2 => &mut self.fetch[..],
                _ => return None,
            };
            *slots.get_mut(usize::from(saved.index))? = Entry {
                tag: saved.tag,
                addend: saved.addend,
            };
        }
        self.contexts = saved.contexts.clone();
        self.large = saved.large;
        self.epoch = saved.epoch;
        Some(())
    }
}
