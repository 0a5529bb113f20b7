//! TLBs: which translations a hart keeps, by address space and virtual machine.

use serde::{Deserialize, Serialize};

use super::round_robin::RoundRobin;
use super::{Geometry, Space, TlbProfile};
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

/// Entries, set-associative, each set with its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Array {
    sets: usize,
    ways: usize,
    entries: Vec<Entry>,
    next: RoundRobin,
}

impl Array {
    fn new(Geometry { sets, ways }: Geometry) -> Self {
        Self {
            sets,
            ways,
            entries: vec![Entry::EMPTY; sets * ways],
            next: RoundRobin::new(sets),
        }
    }

    fn is_of(&self, Geometry { sets, ways }: Geometry) -> bool {
        self.sets == sets
            && self.ways == ways
            && Some(self.entries.len()) == sets.checked_mul(ways)
            && self.next.is_of(sets)
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

    /// Adds an entry in an empty place or in that of the entry whose turn it is; gives the place and
    /// what had to go.
    fn insert(&mut self, page: u64, entry: Entry) -> (usize, Option<Entry>) {
        let set = self.set(page);
        let start = set * self.ways;
        let ways = &mut self.entries[start..start + self.ways];
        if let Some(way) = ways.iter().position(|entry| entry.shift == 0) {
            ways[way] = entry;
            return (start + way, None);
        }
        let way = self.next.replace(set, self.ways);
        (start + way, Some(std::mem::replace(&mut ways[way], entry)))
    }
}

/// Places for hints.
const HINTS: usize = 64;

fn no_hints() -> Box<[u16; HINTS]> {
    Box::new([0; HINTS])
}

/// A TLB. Its entries have slots: first those for small pages, then those for large ones.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Tlb {
    pages: Array,
    /// Entries for large pages, where they have places of their own.
    large: Option<Array>,
    /// True if `pages` takes entries of every size.
    any_size: bool,
    /// For the low bits of a page's number the slot of the entry that served such a page last, to look
    /// there first.
    #[serde(skip, default = "no_hints")]
    hints: Box<[u16; HINTS]>,
}

impl Tlb {
    /// An empty TLB.
    #[must_use]
    pub fn new(profile: TlbProfile) -> Self {
        Self {
            pages: Array::new(profile.geometry()),
            large: profile.large_geometry().map(Array::new),
            any_size: profile.any_size,
            hints: no_hints(),
        }
    }

    /// Tests whether it is what a profile describes, and whole.
    #[must_use]
    pub fn is_of(&self, profile: TlbProfile) -> bool {
        self.any_size == profile.any_size
            && self.pages.is_of(profile.geometry())
            && match (&self.large, profile.large_geometry()) {
                (Some(large), Some(geometry)) => large.is_of(geometry),
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

    /// The entry that serves a page.
    #[must_use]
    pub fn find(&self, page: u64, space: Space) -> Option<Entry> {
        self.entry(self.slot(page, space)?).copied()
    }

    /// The slot of an entry that serves a page.
    pub fn serves(&mut self, page: u64, space: Space) -> Option<usize> {
        let hint = page as usize & (HINTS - 1);
        let slot = usize::from(self.hints[hint]);
        if self.entry(slot).is_some_and(|e| e.serves(page, space)) {
            return Some(slot);
        }
        let slot = self.slot(page, space)?;
        // A slot too high for a hint is looked for each time.
        self.hints[hint] = u16::try_from(slot).unwrap_or(0);
        Some(slot)
    }

    /// Adds an entry for a page that none serves; gives its slot and the entry that had to go from there.
    /// An entry for a large page that has no place becomes one for the 4 KiB page alone.
    pub fn insert(&mut self, page: u64, entry: Entry) -> (usize, Option<Entry>) {
        if entry.pages() == 1 || self.any_size {
            return self.pages.insert(page, entry);
        }
        match &mut self.large {
            // Fully associative: one set.
            Some(large) => {
                let (position, evicted) = large.insert(0, entry);
                (self.pages.entries.len() + position, evicted)
            }
            None => self.pages.insert(page, entry.piece(page)),
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
mod tests {
    use super::*;

    const HOST: Space = Space {
        virtualized: false,
        paged: true,
        asid: 1,
        vmid: 0,
    };

    fn guest(asid: u16, vmid: u16) -> Space {
        Space {
            virtualized: true,
            paged: true,
            asid,
            vmid,
        }
    }

    fn tlb(large: u16, any_size: bool) -> Tlb {
        Tlb::new(TlbProfile {
            entries: 4,
            ways: 4,
            large,
            any_size,
        })
    }

    #[test]
    fn entries_serve_their_space_unless_global() {
        let mut tlb = tlb(0, false);
        tlb.insert(7, Entry::new(7, 12, false, guest(3, 5)));
        assert!(tlb.find(7, guest(3, 5)).is_some());
        for space in [
            guest(4, 5),
            guest(3, 6),
            HOST,
            Space {
                paged: false,
                ..guest(3, 5)
            },
        ] {
            assert!(tlb.find(7, space).is_none(), "{space:?}");
        }
        tlb.insert(8, Entry::new(8, 12, true, guest(3, 5)));
        assert!(tlb.find(8, guest(4, 5)).is_some());
        assert!(tlb.find(8, guest(3, 6)).is_none());
    }

    #[test]
    fn large_pages_take_one_entry_or_many() {
        for (mut tlb, reaches) in [
            (tlb(1, false), true),
            (tlb(0, true), true),
            (tlb(0, false), false),
        ] {
            tlb.insert(0x203, Entry::new(0x203, 21, false, HOST));
            assert!(tlb.find(0x203, HOST).is_some());
            assert_eq!(tlb.find(0x3ff, HOST).is_some(), reaches);
            assert!(tlb.find(0x400, HOST).is_none());
        }
    }

    #[test]
    fn empty_places_are_taken_before_the_oldest() {
        let mut tlb = tlb(0, false);
        for page in 0..4 {
            assert_eq!(tlb.insert(page, Entry::new(page, 12, false, HOST)).1, None);
        }
        let (slot, evicted) = tlb.insert(4, Entry::new(4, 12, false, HOST));
        assert_eq!((slot, tlb.serves(4, HOST)), (0, Some(0)));
        assert_eq!(evicted.map(|entry| entry.page), Some(0));
        let mut removed = Vec::new();
        assert_eq!(tlb.serves(2, HOST), Some(2));
        tlb.remove_if(
            |entry| entry.covers(2),
            |slot, entry| removed.push((slot, entry.page)),
        );
        assert_eq!(removed, [(2, 2)]);
        assert_eq!(tlb.serves(2, HOST), None);
        assert_eq!(tlb.insert(5, Entry::new(5, 12, false, HOST)), (2, None));
    }

    #[test]
    fn spaces_have_different_numbers() {
        let spaces = [
            HOST,
            guest(1, 0),
            guest(1, 1),
            guest(2, 1),
            Space::default(),
        ];
        for (index, one) in spaces.iter().enumerate() {
            for other in &spaces[..index] {
                assert_ne!(one.number(), other.number());
            }
        }
        assert_eq!(Space::default().number(), 0);
    }
}
