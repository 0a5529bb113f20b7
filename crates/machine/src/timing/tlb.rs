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
    /// True if replacement looks at use and two entries have served one page: then the first slot does, and no hint.
    ambiguous: bool,
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
        let hint = page as usize & (HINTS - 1);
        let slot = usize::from(self.hints[hint]);
        if !self.ambiguous && self.entry(slot).is_some_and(|e| e.serves(page, space)) {
            return Some(slot);
        }
        let slot = self.slot(page, space)?;
        // A slot too high for a hint is looked for each time.
        self.hints[hint] = u16::try_from(slot).unwrap_or(0);
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
        let whole = entry.pages() == 1 || self.any_size;
        let entry = if whole || self.large.is_some() {
            entry
        } else {
            entry.piece(page)
        };
        self.demote_overlapping(&entry, &mut demoted);
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
        for (slot, other) in self.pages.entries.iter().chain(large).enumerate() {
            if other.overlaps(entry) {
                self.ambiguous = true;
                demoted(slot, *other);
            }
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
            replacement: ReplacementPolicy::Fifo,
        })
    }

    /// Adds an entry, where nothing depends on its use.
    fn insert(tlb: &mut Tlb, page: u64, entry: Entry) -> (usize, Option<Entry>) {
        tlb.insert(page, entry, |_, _| {})
    }

    #[test]
    fn entries_serve_their_space_unless_global() {
        let mut tlb = tlb(0, false);
        insert(&mut tlb, 7, Entry::new(7, 12, false, guest(3, 5)));
        assert!(tlb.look_up(7, guest(3, 5)).is_some());
        for space in [
            guest(4, 5),
            guest(3, 6),
            HOST,
            Space {
                paged: false,
                ..guest(3, 5)
            },
        ] {
            assert!(tlb.look_up(7, space).is_none(), "{space:?}");
        }
        insert(&mut tlb, 8, Entry::new(8, 12, true, guest(3, 5)));
        assert!(tlb.look_up(8, guest(4, 5)).is_some());
        assert!(tlb.look_up(8, guest(3, 6)).is_none());
    }

    #[test]
    fn large_pages_take_one_entry_or_many() {
        for (mut tlb, reaches) in [
            (tlb(1, false), true),
            (tlb(0, true), true),
            (tlb(0, false), false),
        ] {
            insert(&mut tlb, 0x203, Entry::new(0x203, 21, false, HOST));
            assert!(tlb.look_up(0x203, HOST).is_some());
            assert_eq!(tlb.look_up(0x3ff, HOST).is_some(), reaches);
            assert!(tlb.look_up(0x400, HOST).is_none());
        }
    }

    #[test]
    fn empty_places_are_taken_before_the_oldest() {
        let mut tlb = tlb(0, false);
        for page in 0..4 {
            let entry = Entry::new(page, 12, false, HOST);
            assert_eq!(insert(&mut tlb, page, entry).1, None);
        }
        let (slot, evicted) = insert(&mut tlb, 4, Entry::new(4, 12, false, HOST));
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
        let entry = Entry::new(5, 12, false, HOST);
        assert_eq!(insert(&mut tlb, 5, entry), (2, None));
    }

    #[test]
    fn used_entries_stay_by_lru() {
        let mut tlb = Tlb::new(TlbProfile {
            entries: 2,
            ways: 2,
            large: 2,
            any_size: false,
            replacement: ReplacementPolicy::Lru,
        });
        for page in [0x203, 0x403] {
            insert(&mut tlb, page, Entry::new(page, 21, false, HOST));
        }
        let slot = tlb.serves(0x3ff, HOST).expect("there");
        let mut demoted = Vec::new();
        tlb.touch(slot, |slot, entry| demoted.push((slot, entry.page)));
        assert_eq!(demoted, [(3, 0x400)]);
        let (slot, evicted) = insert(&mut tlb, 0x603, Entry::new(0x603, 21, false, HOST));
        assert_eq!((slot, evicted.map(|entry| entry.page)), (3, Some(0x400)));
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
