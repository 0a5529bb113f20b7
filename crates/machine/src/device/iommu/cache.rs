//! Caches of contexts and translations (chapter "Caching in-memory data structures").
//!
//! Each cache is fully associative, and the entry that came first has to go first.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::context::{DeviceContext, ProcessContext};
use super::entry::GLOBAL;

/// Address space that a translation belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    /// PSCID, if the first stage translates.
    pub process: Option<u32>,
    /// GSCID, if the second stage does.
    pub guest: Option<u16>,
}

/// A translation, of both stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Address space.
    pub space: Space,
    /// First address that it translates.
    pub address: u64,
    /// Bytes that it translates, a power of two.
    pub bytes: u64,
    /// Bytes of the page that the first stage's entry maps, and of the second's: an entry is dropped by any address of its page.
    pub pages: [u64; 2],
    /// Guest physical address of the first byte.
    pub guest: u64,
    /// Physical address of the first byte.
    pub physical: u64,
    /// The first stage's entry, with what its tables add to G.
    pub first: u64,
    /// The second stage's entry.
    pub second: u64,
    /// True if it comes from an MSI page table.
    pub is_message: bool,
}

/// The caches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Caches {
    contexts: Fifo<(u32, DeviceContext)>,
    processes: Fifo<((u32, u32), ProcessContext)>,
    translations: Fifo<Entry>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Fifo<T> {
    entries: VecDeque<T>,
    capacity: usize,
}

impl<T> Fifo<T> {
    fn new(capacity: usize) -> Self {
        Self {
            entries: VecDeque::new(),
            capacity,
        }
    }

    fn add(&mut self, entry: T) {
        if self.entries.len() >= self.capacity {
            self.entries.pop_front();
        }
        if self.capacity > 0 {
            self.entries.push_back(entry);
        }
    }
}

impl Caches {
    pub fn new(contexts: usize, entries: usize) -> Self {
        Self {
            contexts: Fifo::new(contexts),
            processes: Fifo::new(contexts),
            translations: Fifo::new(entries),
        }
    }

    pub fn context(&self, device: u32) -> Option<DeviceContext> {
        let mut entries = self.contexts.entries.iter();
        entries.find(|(own, _)| *own == device).map(|(_, it)| *it)
    }

    pub fn add_context(&mut self, device: u32, context: DeviceContext) {
        self.contexts.add((device, context));
    }

    pub fn process(&self, device: u32, process: u32) -> Option<ProcessContext> {
        let mut entries = self.processes.entries.iter();
        let own = entries.find(|(own, _)| *own == (device, process));
        own.map(|(_, it)| *it)
    }

    pub fn add_process(&mut self, device: u32, process: u32, context: ProcessContext) {
        self.processes.add(((device, process), context));
    }

    /// The translation of an address.
    pub fn find(&self, space: Space, address: u64) -> Option<Entry> {
        let mut entries = self.translations.entries.iter();
        let is_it = |entry: &&Entry| entry.space == space && entry.translates(address);
        entries.find(is_it).copied()
    }

    pub fn add(&mut self, entry: Entry) {
        self.translations.add(entry);
    }

    /// Drops what a first stage's address translates to, in a space.
    pub fn drop_address(&mut self, space: Space, address: u64) {
        let entries = &mut self.translations.entries;
        entries.retain(|entry| entry.space != space || !entry.translates(address));
    }

    /// Drops device contexts, of one device or all, with their process contexts.
    pub fn drop_contexts(&mut self, device: Option<u32>) {
        let stays = |own: u32| device.is_some_and(|device| device != own);
        self.contexts.entries.retain(|(own, _)| stays(*own));
        self.processes.entries.retain(|((own, _), _)| stays(*own));
    }

    /// Drops a process context.
    pub fn drop_process(&mut self, device: u32, process: u32) {
        let entries = &mut self.processes.entries;
        entries.retain(|(own, _)| *own != (device, process));
    }

    /// Drops translations that contain entries of first-stage tables: those of one guest, or of the host; of a process, except for
    /// global ones, or of all; of an address, or of all.
    pub fn drop_first(&mut self, guest: Option<u16>, process: Option<u32>, address: Option<u64>) {
        self.translations.entries.retain(|entry| {
            let Some(own) = entry.space.process else {
                return true;
            };
            let is_its = process.is_none_or(|process| process == own && !entry.is_global());
            let [page, _] = entry.pages;
            let is_there = address.is_none_or(|address| (address ^ entry.address) < page);
            entry.space.guest != guest || !is_its || !is_there
        });
    }

    /// Drops translations that contain entries of second-stage tables and of MSI page tables: those of one guest, or of all; of a guest
    /// physical address, or of all.
    pub fn drop_second(&mut self, guest: Option<u16>, address: Option<u64>) {
        self.translations.entries.retain(|entry| {
            let Some(own) = entry.space.guest else {
                return true;
            };
            let is_its = guest.is_none_or(|guest| guest == own);
            let [_, page] = entry.pages;
            let is_there = address.is_none_or(|address| (address ^ entry.guest) < page);
            !is_its || !is_there
        });
    }
}

impl Entry {
    const fn translates(&self, address: u64) -> bool {
        address.wrapping_sub(self.address) < self.bytes
    }

    const fn is_global(&self) -> bool {
        self.first & GLOBAL != 0
    }
}
