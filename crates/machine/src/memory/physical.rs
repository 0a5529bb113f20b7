//! RAM together with everything that depends on its contents.

use serde::{Deserialize, Serialize};

use super::{Observed, OpenPage, PAGE_BYTES, PAGE_SHIFT, Ram, Scalar, Watches};
use crate::base::{AccessFault, HartId, Memory};
use crate::code::{CodeCache, CodeIndex, Discarded, SavedCode};
use crate::translation::Kept;

/// Reasons why stores to a page may not take the short way, as bits of a page's flags.
mod flag {
    /// Some of it is decoded.
    pub const CODE: u8 = 1;
    /// A hart waits for a store to it.
    pub const WATCHED: u8 = 2;
    /// It holds the word by which a bare program talks to its host.
    pub const HOST: u8 = 4;
    /// Somebody listens to stores to a word of it. No part of what the machine is.
    pub const OBSERVED: u8 = 8;
}

/// Side effects of a store.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreOutcome {
    /// The block of the instruction that stored is no longer what memory holds.
    pub discarded_current: bool,
}

/// Transfer between a device and RAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfer {
    /// Physical address of the first byte.
    pub physical: u64,
    /// Bytes.
    pub length: u64,
    /// True if it was written.
    pub store: bool,
}

/// State of memory in a checkpoint besides the bytes of RAM.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct SavedMemory {
    code: SavedCode,
    watches: Watches,
    /// Pages with flags, and the flags.
    flags: Vec<(u32, u8)>,
    host_word: Option<u64>,
    host_written: bool,
}

/// RAM, the instructions decoded from it, and the harts that watch it.
///
/// Decoded instructions always agree with memory: a store discards what it overlaps, whoever
/// makes it. So FENCE.I has nothing to do but cost time, and no result depends on what happens to
/// be decoded.
#[derive(Debug)]
pub struct PhysicalMemory {
    /// The bytes.
    pub ram: Ram,
    /// Decoded instructions.
    pub code: CodeCache,
    watches: Watches,
    flags: Vec<u8>,
    host_word: Option<u64>,
    host_written: bool,
    /// How many stores devices have made.
    device_stores: u64,
    /// Transfers of devices since the last call of the taker, if they are noted.
    transfers: Option<Vec<Transfer>>,
    observed: Observed,
    /// Pages that stores of every hart must stop taking the short way to, in order of notice.
    restricted: Vec<u64>,
}

impl PhysicalMemory {
    /// Memory around `ram`.
    #[must_use]
    pub fn new(ram: Ram) -> Self {
        let pages = (ram.size() >> PAGE_SHIFT) as usize;
        Self {
            code: CodeCache::new(pages),
            flags: vec![0; pages],
            watches: Watches::default(),
            host_word: None,
            host_written: false,
            device_stores: 0,
            transfers: None,
            observed: Observed::default(),
            restricted: Vec::new(),
            ram,
        }
    }

    /// The index of the page at an offset from the base of RAM.
    const fn page_index(offset: u64) -> usize {
        (offset >> PAGE_SHIFT) as usize
    }

    /// Opens the RAM page at `offset` to stores that go straight to RAM, if they may.
    #[must_use]
    pub fn open(&mut self, offset: u64) -> Option<OpenPage> {
        if self.flags.get(Self::page_index(offset)) != Some(&0) {
            return None;
        }
        self.ram.open(offset)
    }

    fn restrict(&mut self, offset: u64, reason: u8) {
        let Some(flags) = self.flags.get_mut(Self::page_index(offset)) else {
            return;
        };
        if *flags == 0 {
            self.restricted.push(offset & !(PAGE_BYTES - 1));
        }
        *flags |= reason;
    }

    /// How many restrictions have been noted since the list was last emptied.
    #[inline]
    #[must_use]
    pub fn restrictions(&self) -> usize {
        self.restricted.len()
    }

    /// The restricted pages from the `seen`th on, as offsets from the base of RAM.
    #[must_use]
    pub fn restricted_since(&self, seen: usize) -> &[u64] {
        self.restricted.get(seen..).unwrap_or_default()
    }

    /// Empties the list of restrictions, once every hart has seen all of it.
    pub fn forget_restrictions(&mut self) {
        self.restricted.clear();
    }

    /// Notes that instructions in the page at `offset` are decoded.
    pub fn mark_code(&mut self, offset: u64) {
        self.restrict(offset, flag::CODE);
    }

    /// Makes `hart` wait for a store to the reservation set at `line`.
    pub fn watch(&mut self, hart: HartId, line: u64) {
        self.watches.insert(hart, line);
        if let Some(offset) = self.ram.offset(line, 1) {
            self.restrict(offset, flag::WATCHED);
        }
    }

    /// Ends the hart's wait; says whether a store hit.
    pub fn unwatch(&mut self, hart: HartId) -> bool {
        let Some(watch) = self.watches.remove(hart) else {
            return false;
        };
        if !self.watches.any_in_page(watch.line / PAGE_BYTES)
            && let Some(offset) = self.ram.offset(watch.line, 1)
            && let Some(flags) = self.flags.get_mut(Self::page_index(offset))
        {
            *flags &= !flag::WATCHED;
        }
        watch.hit
    }

    /// Tests whether a store has hit what the hart watches.
    #[must_use]
    pub fn is_hit(&self, hart: HartId) -> bool {
        self.watches.is_hit(hart)
    }

    /// How many harts' waits a store has hit.
    #[inline]
    #[must_use]
    pub fn hits(&self) -> usize {
        self.watches.hits()
    }

    /// Watches the doubleword by which a bare program talks to its host.
    pub fn set_host_word(&mut self, physical: u64) {
        self.host_word = Some(physical);
        if let Some(offset) = self.ram.offset(physical, 8) {
            self.restrict(offset, flag::HOST);
        }
    }

    /// Listens to stores to a word from now on; `true` if nobody did yet.
    pub fn observe(&mut self, physical: u64, size: u64) -> bool {
        let Some(offset) = self.ram.offset(physical, size) else {
            return false;
        };
        let new = self.observed.insert(physical, size);
        if new {
            self.restrict(offset, flag::OBSERVED);
        }
        new
    }

    /// Listens to no store any more.
    pub fn stop_observing(&mut self) {
        self.observed = Observed::default();
        for flags in &mut self.flags {
            *flags &= !flag::OBSERVED;
        }
    }

    /// Tests whether a hart has stored to a word that is listened to.
    #[inline]
    #[must_use]
    pub const fn has_observed(&self) -> bool {
        self.observed.has_stored()
    }

    /// The words that are listened to and that a hart has stored to: their addresses and sizes.
    pub fn take_observed(&mut self) -> Vec<(u64, u64)> {
        self.observed.take_stored()
    }

    /// Tests whether the host's word has been stored to since this was last asked.
    pub fn take_host_written(&mut self) -> bool {
        std::mem::take(&mut self.host_written)
    }

    /// Tests whether the host's word has been stored to.
    #[inline]
    #[must_use]
    pub const fn host_written(&self) -> bool {
        self.host_written
    }

    /// Notes what is read and written by [`Memory`] from now on, until it is taken, if `wanted`.
    pub fn note_transfers(&mut self, wanted: bool) {
        self.transfers = wanted.then(Vec::new);
    }

    /// Takes what was noted.
    pub fn take_transfers(&mut self) -> Vec<Transfer> {
        self.transfers.take().unwrap_or_default()
    }

    fn note_transfer(&mut self, physical: u64, length: usize, store: bool) {
        if let Some(transfers) = &mut self.transfers {
            let length = length as u64;
            transfers.push(Transfer {
                physical,
                length,
                store,
            });
        }
    }

    /// How many stores devices have made since the machine was made or restored.
    #[inline]
    #[must_use]
    pub const fn device_stores(&self) -> u64 {
        self.device_stores
    }

    /// A store that looks after everything that depends on memory; `None` unless all is RAM.
    ///
    /// `current` is the decoded instruction that stores, 0 if it is not one.
    pub fn store_scalar<T: Scalar>(
        &mut self,
        physical: u64,
        value: T,
        current: CodeIndex,
    ) -> Option<StoreOutcome> {
        let offset = self.ram.offset(physical, T::SIZE)?;
        self.ram.write(physical, value)?;
        if self
            .flags
            .get(Self::page_index(offset))
            .copied()
            .unwrap_or(0)
            & flag::OBSERVED
            != 0
        {
            self.observed.note_store(physical, T::SIZE);
        }
        Some(self.note_store(offset, T::SIZE, current))
    }

    /// Does what a store of `length` bytes at `offset` entails.
    fn note_store(&mut self, offset: u64, length: u64, current: CodeIndex) -> StoreOutcome {
        let mut outcome = StoreOutcome::default();
        let (mut at, end) = (offset, offset + length);
        while at < end {
            let next = ((at | (PAGE_BYTES - 1)) + 1).min(end);
            let page = Self::page_index(at);
            let flags = self.flags.get(page).copied().unwrap_or(0);
            let physical = self.ram.base() + at;
            if flags & flag::CODE != 0 {
                let discarded = self.code.discard(page, physical, next - at, current);
                outcome.discarded_current |= discarded == Discarded::Current;
                if !self.code.has_page(page)
                    && let Some(flags) = self.flags.get_mut(page)
                {
                    *flags &= !flag::CODE;
                }
            }
            if flags & flag::WATCHED != 0 {
                self.watches.note_store(physical, next - at);
            }
            if flags & flag::HOST != 0
                && self
                    .host_word
                    .is_some_and(|word| physical < word + 8 && word < physical + (next - at))
            {
                self.host_written = true;
            }
            at = next;
        }
        outcome
    }

    /// State of memory for a checkpoint besides the bytes of RAM.
    #[must_use]
    pub fn save(&self) -> SavedMemory {
        let flags = self.flags.iter().map(|flags| flags & !flag::OBSERVED);
        let noted = (0_u32..).zip(flags).filter(|&(_, flags)| flags != 0);
        SavedMemory {
            code: self.code.save(&self.ram),
            watches: self.watches.clone(),
            flags: noted.collect(),
            host_word: self.host_word,
            host_written: self.host_written,
        }
    }

    /// Puts back what was saved, once RAM holds what it held. `None` if the two do not agree.
    #[must_use]
    pub fn restore(&mut self, saved: SavedMemory) -> Option<()> {
        self.flags.fill(0);
        for (page, flags) in saved.flags {
            *self.flags.get_mut(page as usize)? = flags;
        }
        self.code.restore(&saved.code, &self.ram)?;
        // A store to decoded instructions must be noticed.
        for (page, flags) in self.flags.iter().enumerate() {
            if flags & flag::CODE == 0 && self.code.has_page(page) {
                return None;
            }
        }
        self.watches = saved.watches;
        self.host_word = saved.host_word;
        self.host_written = saved.host_written;
        self.restricted.clear();
        Some(())
    }

    /// Discards everything decoded, for instance because memory was replaced as a whole.
    pub fn discard_all_code(&mut self) {
        self.code.clear();
        for flags in &mut self.flags {
            *flags &= !flag::CODE;
        }
    }
}

impl Kept for PhysicalMemory {
    fn size(&self) -> u64 {
        self.ram.size()
    }

    fn open_page(&mut self, offset: u64) -> bool {
        self.open(offset).is_some()
    }

    fn generation(&self) -> u64 {
        self.code.generation()
    }

    fn is_decoded(&self, index: CodeIndex) -> bool {
        self.code.is_decoded(index)
    }
}

impl Memory for PhysicalMemory {
    fn load(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), AccessFault> {
        let offset = self
            .ram
            .offset(address, buffer.len() as u64)
            .ok_or(AccessFault)? as usize;
        let bytes = self
            .ram
            .bytes()
            .get(offset..offset + buffer.len())
            .ok_or(AccessFault)?;
        buffer.copy_from_slice(bytes);
        self.note_transfer(address, buffer.len(), false);
        Ok(())
    }

    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), AccessFault> {
        let offset = self
            .ram
            .offset(address, bytes.len() as u64)
            .ok_or(AccessFault)?;
        self.ram
            .bytes_mut(offset, bytes.len() as u64)
            .ok_or(AccessFault)?
            .copy_from_slice(bytes);
        self.note_store(offset, bytes.len() as u64, 0);
        self.device_stores += 1;
        self.note_transfer(address, bytes.len(), true);
        Ok(())
    }

    fn contains(&self, address: u64, length: u64) -> bool {
        self.ram.offset(address, length).is_some()
    }
}
