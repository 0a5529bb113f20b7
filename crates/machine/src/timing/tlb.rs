//! TLBs: which translations a hart keeps, by address space and virtual machine.

use serde::{Deserialize, Serialize};

use super::replacement::Replacement;
use super::{Geometry, ReplacementPolicy, Space, TlbProfile};
use crate::base::PAGE_SHIFT;

/// log2 of the bytes of the pages that entries are for: 4 KiB, 2 MiB, 1 GiB.
const SIZES: [u8; 3] = [12, 21, 30];

/// The largest size of an entry that a mapping of 2^`shift` bytes allows.
#[must_use]
pub fn entry_size(shift: u32) -> u8 {
    let sizes = SIZES.into_iter().rev();
    sizes
        .into_iter()
        .find(|&size| u32::from(size) <= shift)
        .unwrap_or(12)
}

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// Number of the first 4 KiB page.
    pub page: u64,
    /// log2 of the bytes; zero for a place without an entry.
    shift: u8,
    /// True if it holds in every address space of its virtual machine, or of the host.
    pub global: bool,
    /// The address space that it was made in.
    pub space: Space,
    /// Number of the first 4 KiB guest page that it leads to.
    guest_page: u64,
}

impl Entry {
    const EMPTY: Self = Self {
        page: 0,
        shift: 0,
        global: false,
        space: Space {
            virtualized: false,
            paged: false,
            asid: 0,
            vmid: 0,
        },
        guest_page: 0,
    };

    /// An entry for the page of a mapping of 2^`shift` bytes that `page` is in.
    #[must_use]
    pub fn new(page: u64, shift: u32, global: bool, space: Space) -> Self {
        let shift = entry_size(shift);
        Self {
            page: page >> (shift - 12) << (shift - 12),
            shift,
            global,
            space,
            guest_page: 0,
        }
    }

    /// The same entry, for a page that the first stage maps to this guest page. All of an entry's pages lie
    /// together there.
    #[must_use]
    pub const fn leading_to(self, guest_page: u64) -> Self {
        let guest_page = guest_page & !(self.pages() - 1);
        Self { guest_page, ..self }
    }

    /// Tests whether it leads to a guest page.
    #[must_use]
    pub const fn leads_to(&self, guest_page: u64) -> bool {
        guest_page.wrapping_sub(self.guest_page) < self.pages()
    }

    /// How many 4 KiB pages it covers.
    #[must_use]
    pub const fn pages(&self) -> u64 {
        1 << (self.shift - PAGE_SHIFT as u8)
    }

    /// Tests whether it covers a page.
    #[must_use]
    pub const fn covers(&self, page: u64) -> bool {
        page.wrapping_sub(self.page) < self.pages()
    }

    const fn serves(&self, page: u64, space: Space) -> bool {
        self.shift != 0
            && self.covers(page)
            && self.space.virtualized == space.virtualized
            && self.space.paged == space.paged
            && self.space.vmid == space.vmid
            && (self.global || self.space.asid == space.asid)
    }

    /// Tests whether there is a page that both serve in some address space.
    const fn overlaps(&self, other: &Self) -> bool {
        self.shift != 0
            && (self.covers(other.page) || other.covers(self.page))
            && self.space.virtualized == other.space.virtualized
            && self.space.paged == other.space.paged
            && self.space.vmid == other.space.vmid
            && (self.global || other.global || self.space.asid == other.space.asid)
    }

    /// The same translation as an entry of 4 KiB.
    const fn piece(self, page: u64) -> Self {
        Self {
            page,
            shift: PAGE_SHIFT as u8,
            guest_page: self.guest_page + (page - self.page),
            ..self
        }
    }
}

/// Entries, set-associative.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Array {
    sets: usize,
    ways: usize,
    entries: Vec<Entry>,
    replacement: Replacement,
}

impl Array {
    fn new(geometry: Geometry, policy: ReplacementPolicy) -> Self {
        let Geometry { sets, ways } = geometry;
        Self {
            sets,
            ways,
            entries: vec![Entry::EMPTY; sets * ways],
            replacement: Replacement::new(policy, geometry),
        }
    }

    fn is_of(&self, geometry: Geometry, policy: ReplacementPolicy) -> bool {
        let Geometry { sets, ways } = geometry;
        self.sets == sets
            && self.ways == ways
            && Some(self.entries.len()) == sets.checked_mul(ways)
            && self.replacement.is_of(policy, geometry)
            && self
                .entries
                .iter()
                .all(|e| e.shift == 0 || SIZES.contains(&e.shift))
    }

    const fn set(&self, page: u64) -> usize {
        page as usize & (self.sets - 1)
    }

    /// The place of the entry that serves a page.
    fn position(&self, page: u64, space: Space) -> Option<usize> {
        let start = self.set(page) * self.ways;
        let ways = self.entries.get(start..start + self.ways)?;
        let way = ways.iter().position(|entry| entry.serves(page, space))?;
        Some(start + way)
    }

    /// The entry in a place is used. Calls `demoted` with each whose next use may change something again.
    fn touch(&mut self, place: usize, mut demoted: impl FnMut(usize, Entry)) {
        let (set, way) = (place / self.ways, place % self.ways);
        let (entries, ways) = (&self.entries, self.ways);
        self.replacement.touch(set, way, |way| {
            let place = set * ways + way;
            if let Some(&entry) = entries.get(place).filter(|entry| entry.shift != 0) {
                demoted(place, entry);
            }
        });
    }

    /// Adds an entry in an empty place or in that of the entry that has to go; gives the place and that entry.
    fn insert(
        &mut self,
        page: u64,
        entry: Entry,
        demoted: impl FnMut(usize, Entry),
    ) -> (usize, Option<Entry>) {
        let set = self.set(page);
        let start = set * self.ways;
        let ways = &self.entries[start..start + self.ways];
        let empty = ways.iter().position(|entry| entry.shift == 0);
        let way = empty.unwrap_or_else(|| self.replacement.victim(set));
        let old = std::mem::replace(&mut self.entries[start + way], entry);
        self.touch(start + way, demoted);
        (start + way, (old.shift != 0).then_some(old))
    }
}

/// Places for hints.
const HINTS: usize = 64;

/// Slot of the entry that served a page last.
#[derive(Debug, Clone, Copy)]
struct Hint {
    page: u64,
    space: Space,
    slot: u16,
}

impl Hint {
    /// For no page: numbers of pages have 52 bits.
    const NONE: Self = Self {
        page: u64::MAX,
        space: Entry::EMPTY.space,
        slot: 0,
    };
}

fn no_hints() -> Box<[Hint; HINTS]> {
    Box::new([Hint::NONE; HINTS])
}

/// A TLB. Its entries have slots: first those for small pages, then those for large ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tlb {
    pages: Array,
    /// Entries for large pages, where they have places of their own.
    large: Option<Array>,
    /// True if `pages` takes entries of every size.
    any_size: bool,
    /// True if replacement looks at use and two entries have served one page: then the first slot does, and hints hold for the page and
    /// the address space that they were made for.
    ambiguous: bool,
    /// For the low bits of a page's number the entry that served such a page last, to look there first.
    #[serde(skip, default = "no_hints")]
    hints: Box<[Hint; HINTS]>,
}

impl Tlb {
    /// An empty TLB.
    #[must_use]
    pub fn new(profile: TlbProfile) -> Self {
        Self {
            pages: Array::new(profile.geometry(), profile.replacement),
            large: (profile.large_geometry())
                .map(|geometry| Array::new(geometry, profile.replacement)),
            any_size: profile.any_size,
            ambiguous: false,
            hints: no_hints(),
        }
    }

    /// Tests whether it is what a profile describes, and whole.
    #[must_use]
    pub fn is_of(&self, profile: TlbProfile) -> bool {
        self.any_size == profile.any_size
            && self.pages.is_of(profile.geometry(), profile.replacement)
            && match (&self.large, profile.large_geometry()) {
                (Some(large), Some(geometry)) => large.is_of(geometry, profile.replacement),
                (None, None) => true,
                _ => false,
            }
    }

    fn slot(&self, page: u64, space: Space) -> Option<usize> {
        let large = || {
            let position = self.large.as_ref()?.position(page, space)?;
            Some(self.pages.entries.len() + position)
        };
        self.pages.position(page, space).or_else(large)
    }

    pub(super) fn entry(&self, slot: usize) -> Option<&Entry> {
        let small = self.pages.entries.len();
        match slot.checked_sub(small) {
            None => self.pages.entries.get(slot),
            Some(slot) => self.large.as_ref()?.entries.get(slot),
        }
    }

    /// The entry in a slot is used. Calls `demoted` with each, and its slot, whose next use may change something again.
    pub fn touch(&mut self, slot: usize, mut demoted: impl FnMut(usize, Entry)) {
        let small = self.pages.entries.len();
        match slot.checked_sub(small) {
            None => self.pages.touch(slot, demoted),
            Some(place) => {
                if let Some(large) = &mut self.large {
                    large.touch(place, |place, entry| demoted(small + place, entry));
                }
            }
        }
    }

    /// Finds the entry that serves a page and uses it: where filters do not answer for the TLB.
    pub fn look_up(&mut self, page: u64, space: Space) -> Option<Entry> {
        let slot = self.slot(page, space)?;
        self.touch(slot, |_, _| {});
        self.entry(slot).copied()
    }

    /// The slot of an entry that serves a page.
    pub fn serves(&mut self, page: u64, space: Space) -> Option<usize> {
        let place = page as usize & (HINTS - 1);
        let hint = self.hints[place];
        let slot = usize::from(hint.slot);
        if (!self.ambiguous || (hint.page, hint.space) == (page, space))
            && self.entry(slot).is_some_and(|e| e.serves(page, space))
        {
            return Some(slot);
        }
        let slot = self.slot(page, space)?;
        // A slot too high for a hint is looked for each time.
        if let Ok(slot) = u16::try_from(slot) {
            self.hints[place] = Hint { page, space, slot };
        }
        Some(slot)
    }

    /// Adds an entry for a page that none serves; gives its slot and the entry that had to go from there.
    /// An entry for a large page that has no place becomes one for the 4 KiB page alone. `demoted` is that of [`Self::touch`].
    pub fn insert(
        &mut self,
        page: u64,
        entry: Entry,
        mut demoted: impl FnMut(usize, Entry),
    ) -> (usize, Option<Entry>) {
        let entry = self.fitting(page, entry);
        self.demote_overlapping(&entry, &mut demoted);
        self.place(page, entry, demoted)
    }

    /// Adds an entry as [`Self::insert`] does, to a TLB of which [`Self::look_up`] alone is asked: neither filters nor hints rest on it, so
    /// nothing has to be said of entries for the same page.
    pub fn insert_unfiltered(&mut self, page: u64, entry: Entry) {
        let entry = self.fitting(page, entry);
        self.place(page, entry, |_, _| {});
    }

    /// The entry, or the one for the 4 KiB page alone if entries for large pages have no place.
    const fn fitting(&self, page: u64, entry: Entry) -> Entry {
        if self.takes_whole(&entry) || self.large.is_some() {
            entry
        } else {
            entry.piece(page)
        }
    }

    /// Tests whether the places for small pages take an entry as it is.
    const fn takes_whole(&self, entry: &Entry) -> bool {
        entry.pages() == 1 || self.any_size
    }

    fn place(
        &mut self,
        page: u64,
        entry: Entry,
        mut demoted: impl FnMut(usize, Entry),
    ) -> (usize, Option<Entry>) {
        let whole = self.takes_whole(&entry);
        let small = self.pages.entries.len();
        match self.large.as_mut().filter(|_| !whole) {
            // Fully associative: one set.
            Some(large) => {
                let demoted = |place, entry| demoted(small + place, entry);
                let (position, evicted) = large.insert(0, entry, demoted);
                (small + position, evicted)
            }
            None => self.pages.insert(page, entry, demoted),
        }
    }

    /// Calls `demoted` with the entries that serve a page which another one is about to serve as well.
    fn demote_overlapping(&mut self, entry: &Entry, demoted: &mut impl FnMut(usize, Entry)) {
        if !self.pages.replacement.looks_at_use() {
            return;
        }
        let large = self.large.iter().flat_map(|large| &large.entries);
        let mut overlapping = false;
        for (slot, other) in self.pages.entries.iter().chain(large).enumerate() {
            if other.overlaps(entry) {
                overlapping = true;
                demoted(slot, *other);
            }
        }
        if overlapping {
            // Another slot may be the first of such pages now.
            self.ambiguous = true;
            self.hints = no_hints();
        }
    }

    /// Removes the entries that `matches` picks and shows each to `removed`, with its slot.
    pub fn remove_if(
        &mut self,
        matches: impl Fn(&Entry) -> bool,
        mut removed: impl FnMut(usize, Entry),
    ) {
        let large = self.large.iter_mut().flat_map(|large| &mut large.entries);
        let entries = self.pages.entries.iter_mut().chain(large);
        for (slot, entry) in entries.enumerate() {
            if entry.shift != 0 && matches(entry) {
                removed(slot, std::mem::replace(entry, Entry::EMPTY));
            }
        }
    }
}

#[cfg(test)]
mod tests;
