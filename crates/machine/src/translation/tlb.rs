//! The host's shortcuts: translations and jump targets of one hart, kept between uses.
//!
//! They change no result that the architecture defines: an entry lives until a fence that covers
//! it, exactly as a TLB entry may. What they hold is part of a checkpoint, because software that
//! omits a fence can tell.

use super::{ContextKey, Contexts, View};
use crate::base::Fence;
use crate::base::{PAGE_BYTES, PAGE_SHIFT};
use crate::ram::{OpenPage, Scalar};

/// A translation of one page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
pub struct Entry {
    /// The virtual page's address with the context's number in bits 11:3. An access hits if the page
    /// of its *last* byte with its context is equal: an access that goes on in the next page asks the
    /// entry of its first one, and so finds another page there.
    pub tag: u64,
    /// Difference from the virtual address to get the offset in RAM.
    pub addend: u64,
}

impl Entry {
    /// Matches no access: bits 2:0 of what it is compared with are never all ones.
    pub(super) const EMPTY: Self = Self {
        tag: u64::MAX,
        addend: 0,
    };

    /// Tests whether all bytes of an access at `address` are in the page, in the context with this tag.
    #[inline(always)]
    #[must_use]
    pub const fn serves<T: Scalar>(&self, address: u64, tag: u64) -> bool {
        self.tag == address.wrapping_add(T::SIZE - 1) & !(PAGE_BYTES - 1) | tag
    }
}

/// Tag of accesses that no entry serves, and whose translations are not kept.
pub const NEVER: u64 = 7;

/// Entries of the load and the store table.
pub(crate) const DATA_ENTRIES: usize = 1024;
/// Entries of the fetch table.
pub(crate) const FETCH_ENTRIES: usize = 1024;

/// The half of all virtual addresses that one is in.
const fn half(address: u64) -> usize {
    (address >> 63) as usize
}

/// The translations that one hart has in use.
#[derive(Debug, Clone)]
pub struct HostTlb {
    pub(super) load: Box<[Entry; DATA_ENTRIES]>,
    pub(super) store: Box<[Entry; DATA_ENTRIES]>,
    pub(super) fetch: Box<[Entry; FETCH_ENTRIES]>,
    pub(super) contexts: Contexts,
    /// Range of virtual addresses that entries of pages larger than 4 KiB come from, in the lower half of
    /// addresses and in the upper one.
    pub(super) large: [Option<(u64, u64)>; 2],
    pub(super) epoch: u32,
}

impl HostTlb {
    /// An empty TLB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            load: Box::new([Entry::EMPTY; DATA_ENTRIES]),
            store: Box::new([Entry::EMPTY; DATA_ENTRIES]),
            fetch: Box::new([Entry::EMPTY; FETCH_ENTRIES]),
            contexts: Contexts::default(),
            large: [None; 2],
            epoch: 0,
        }
    }

    /// The first entry of the table of loads.
    #[must_use]
    pub(crate) const fn loads(&self) -> *const Entry {
        self.load.as_ptr()
    }

    /// The first entry of the table of stores.
    #[must_use]
    pub(crate) const fn stores(&self) -> *const Entry {
        self.store.as_ptr()
    }

    /// The first entry of the table of fetches.
    #[must_use]
    pub(crate) const fn fetches(&self) -> *const Entry {
        self.fetch.as_ptr()
    }

    /// The entry that an address's loads would use.
    #[inline(always)]
    #[must_use]
    pub fn load_entry(&self, address: u64) -> &Entry {
        &self.load[(address >> PAGE_SHIFT) as usize & (DATA_ENTRIES - 1)]
    }

    /// The entry that an address's stores would use.
    #[inline(always)]
    #[must_use]
    pub fn store_entry(&self, address: u64) -> &Entry {
        &self.store[(address >> PAGE_SHIFT) as usize & (DATA_ENTRIES - 1)]
    }

    /// The entry that an address's fetches would use.
    #[inline(always)]
    #[must_use]
    pub fn fetch_entry(&self, address: u64) -> &Entry {
        &self.fetch[(address >> PAGE_SHIFT) as usize & (FETCH_ENTRIES - 1)]
    }

    /// The offset in RAM that a fetch's address is known to have.
    #[inline]
    #[must_use]
    pub fn fetch_offset(&self, address: u64, tag: u64) -> Option<u64> {
        let entry = self.fetch_entry(address);
        (entry.tag == (address & !(PAGE_BYTES - 1)) | tag)
            .then(|| entry.addend.wrapping_add(address))
    }

    fn entry_for(address: u64, tag: u64, offset: u64) -> Entry {
        Entry {
            tag: (address & !(PAGE_BYTES - 1)) | tag,
            addend: offset.wrapping_sub(address),
        }
    }

    fn note_size(&mut self, address: u64, shift: u32) {
        if shift <= PAGE_SHIFT {
            return;
        }
        let mask = if shift >= 64 {
            u64::MAX
        } else {
            (1 << shift) - 1
        };
        let (low, high) = (address & !mask, address | mask);
        let known = &mut self.large[half(address)];
        let (known_low, known_high) = known.unwrap_or((low, high));
        *known = Some((low.min(known_low), high.max(known_high)));
    }

    /// Keeps a load translation. `offset` is that of `address` in RAM, the page all RAM.
    pub fn insert_load(&mut self, address: u64, tag: u64, offset: u64, shift: u32) {
        if tag == NEVER {
            return;
        }
        self.note_size(address, shift);
        self.load[(address >> PAGE_SHIFT) as usize & (DATA_ENTRIES - 1)] =
            Self::entry_for(address, tag, offset);
    }

    /// Keeps a store translation. `offset` is that of `address` in RAM, the page all RAM and open.
    pub fn insert_store(
        &mut self,
        address: u64,
        tag: u64,
        offset: u64,
        shift: u32,
        _open: OpenPage,
    ) {
        if tag == NEVER {
            return;
        }
        self.note_size(address, shift);
        self.store[(address >> PAGE_SHIFT) as usize & (DATA_ENTRIES - 1)] =
            Self::entry_for(address, tag, offset);
    }

    /// Keeps a fetch translation. `offset` is that of `address` in RAM, the page all RAM.
    pub fn insert_fetch(&mut self, address: u64, tag: u64, offset: u64, shift: u32) {
        self.note_size(address, shift);
        self.fetch[(address >> PAGE_SHIFT) as usize & (FETCH_ENTRIES - 1)] =
            Self::entry_for(address, tag, offset);
    }

    /// The tag bits of a context.
    pub fn tag(&mut self, key: ContextKey) -> u64 {
        if let Some(number) = self.contexts.number(key) {
            return u64::from(number) << 3;
        }
        self.clear();
        self.contexts
            .number(key)
            .map_or(0, |number| u64::from(number) << 3)
    }

    /// Tag of a place where a hart goes on: number of the context's tag, and epoch of the numbers.
    #[must_use]
    pub const fn jump_tag(&self, tag: u64) -> u32 {
        self.epoch << 9 | (tag >> 3) as u32
    }

    /// Forgets every translation.
    pub fn clear(&mut self) {
        self.load.fill(Entry::EMPTY);
        self.store.fill(Entry::EMPTY);
        self.fetch.fill(Entry::EMPTY);
        self.contexts.clear();
        self.large = [None; 2];
        self.next_epoch();
    }

    /// Numbers of contexts begin anew.
    fn next_epoch(&mut self) {
        self.epoch = self.epoch.wrapping_add(1);
    }

    /// The present epoch, modulo what fits in a jump tag.
    #[must_use]
    pub const fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Forgets what a fence covers, and possibly more. The contexts of what it forgets get new numbers,
    /// unless that is one page: then the answer is `false`.
    pub fn fence(&mut self, fence: Fence) -> bool {
        let (address, asid) = match fence {
            Fence::Supervisor { address, asid } | Fence::Virtual { address, asid, .. } => {
                (address, asid)
            }
            // Nothing here knows to which guest page an address led.
            Fence::Guest { vmid, .. } => {
                self.retire(|key| {
                    key.is_virtualized() && vmid.is_none_or(|vmid| key.vmid() == u64::from(vmid))
                });
                return true;
            }
            Fence::Everything => {
                self.retire(|_| true);
                self.clear();
                return true;
            }
        };
        if let Some(address) = address
            && !self.large[half(address)].is_some_and(|(low, high)| (low..=high).contains(&address))
        {
            self.forget_page(address);
            return false;
        }
        self.retire(|key| {
            let stage = match fence {
                Fence::Virtual { vmid, .. } => {
                    key.is_virtualized() && key.vmid() == u64::from(vmid)
                }
                _ => !key.is_virtualized() && key.is_translated(),
            };
            // With an ASID a fence leaves global mappings alone, and a context of all address spaces has no other.
            stage && asid.is_none_or(|asid| !key.is_everywhere() && key.asid() == u64::from(asid))
        });
        if address.is_none() && asid.is_none() {
            self.contexts.join(matches!(fence, Fence::Virtual { .. }));
        }
        true
    }

    /// Notes that an access with this key has used a mapping that is not global. Whether contexts have changed
    /// by that.
    pub fn note_local(&mut self, key: ContextKey) -> bool {
        let parts = self.contexts.is_shared(&key);
        if parts {
            self.contexts.part(key.is_virtualized());
        }
        parts
    }

    /// Tests whether all address spaces share the context of a view whose first stage translates.
    #[must_use]
    pub const fn shares(&self, view: View) -> bool {
        self.contexts.shares(view)
    }

    fn retire(&mut self, matches: impl Fn(&ContextKey) -> bool) {
        self.contexts.retire(&matches);
    }

    /// Forgets what is known of one page in every context.
    fn forget_page(&mut self, address: u64) {
        let page = address >> PAGE_SHIFT;
        let forget = |entry: &mut Entry| {
            if entry.tag >> PAGE_SHIFT == page {
                *entry = Entry::EMPTY;
            }
        };
        forget(&mut self.load[page as usize & (DATA_ENTRIES - 1)]);
        forget(&mut self.store[page as usize & (DATA_ENTRIES - 1)]);
        forget(&mut self.fetch[page as usize & (FETCH_ENTRIES - 1)]);
    }

    /// Forgets store translations that lead to the RAM page at `offset`.
    pub fn forget_stores_to(&mut self, offset: u64) {
        for entry in self.store.iter_mut() {
            let page = (entry.tag & !(PAGE_BYTES - 1)).wrapping_add(entry.addend);
            if entry.tag != Entry::EMPTY.tag && page == offset {
                *entry = Entry::EMPTY;
            }
        }
    }
}

impl Default for HostTlb {
    fn default() -> Self {
        Self::new()
    }
}
