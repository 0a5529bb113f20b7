//! A short answer in front of the models: pages and lines of which it is certain that an access hits.
//!
//! Every page that a [`PageFilter`] names is in the TLB, and every line that a [`LineFilter`] names is in the
//! cache: what takes an entry out of one of them makes the filter forget it. Since a hit changes nothing in a
//! model, the filters may then answer in the models' place: an access whose page and line they know is free. A
//! filter may always forget more than it must: then the models answer.

use crate::base::PAGE_SHIFT;

/// Places of a filter of pages: as many as the host TLB has, so that translated code finds both alike.
pub(crate) const PAGE_PLACES: usize = 1024;
/// Places of a filter of lines.
pub(crate) const LINE_PLACES: usize = 4096;
/// Places of which one word of a [`Claims`] tells.
const WORD: usize = u64::BITS as usize;

/// The places of a filter of pages that may rest on one TLB entry, a bit each.
type Claims = [u64; PAGE_PLACES / WORD];

/// A page as an address space sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageName {
    /// The virtual page's address with a number of the address space in bits 11:3.
    pub tag: u64,
    /// Changes when numbers of address spaces lose their meaning.
    pub epoch: u32,
}

/// No page has this name: bits 2:0 of names are zero.
const NO_PAGE: u64 = u64::MAX;

/// Pages that are in a TLB. Names that lose their meaning ([`PageName::epoch`]) are forgotten when the next one
/// is noted, and not found before.
#[derive(Debug, Clone)]
pub struct PageFilter {
    tags: Box<[u64; PAGE_PLACES]>,
    /// By the slot of the TLB entry. What another entry's page has displaced keeps its bit.
    claims: Vec<Claims>,
    epoch: u32,
}

impl Default for PageFilter {
    fn default() -> Self {
        Self {
            tags: Box::new([NO_PAGE; PAGE_PLACES]),
            claims: Vec::new(),
            epoch: 0,
        }
    }
}

impl PageFilter {
    /// The first of the names, which lie one behind the other.
    pub const fn start(&self) -> *const u8 {
        self.tags.as_ptr().cast::<u8>()
    }

    const fn index(tag: u64) -> usize {
        (tag >> PAGE_SHIFT) as usize & (PAGE_PLACES - 1)
    }

    /// Tests whether the page is certainly in the TLB.
    #[inline(always)]
    pub fn vouches(&self, page: PageName) -> bool {
        self.tags[Self::index(page.tag)] == page.tag && self.epoch == page.epoch
    }

    /// Forgets what is not of an epoch.
    #[inline]
    pub fn begin(&mut self, epoch: u32) {
        if self.epoch != epoch {
            self.clear();
            self.epoch = epoch;
        }
    }

    /// Notes a page that the TLB serves; `slot` is that of the entry, if it takes one.
    pub fn insert(&mut self, page: PageName, slot: Option<usize>) {
        self.begin(page.epoch);
        let index = Self::index(page.tag);
        self.tags[index] = page.tag;
        let Some(slot) = slot else { return };
        if self.claims.len() <= slot {
            self.claims.resize(slot + 1, [0; PAGE_PLACES / WORD]);
        }
        if let Some(claims) = self.claims.get_mut(slot) {
            claims[index / WORD] |= 1 << (index % WORD);
        }
    }

    /// The entry for `pages` virtual pages from `page` on has left its slot of the TLB.
    pub fn forget_entry(&mut self, slot: usize, page: u64, pages: u64) {
        let Some(claims) = self.claims.get_mut(slot) else {
            return;
        };
        for (word, bits) in claims.iter_mut().enumerate() {
            while *bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                let tag = &mut self.tags[word * WORD + bit];
                if (*tag >> PAGE_SHIFT).wrapping_sub(page) < pages {
                    *tag = NO_PAGE;
                }
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.tags.fill(NO_PAGE);
        self.claims.fill([0; PAGE_PLACES / WORD]);
    }
}

/// Physical lines that are in a cache, modulo 2^32: unique, because RAM is contiguous and at most 256 GiB.
#[derive(Debug, Clone)]
pub struct LineFilter {
    lines: Box<[u32; LINE_PLACES]>,
}

impl Default for LineFilter {
    fn default() -> Self {
        Self {
            lines: Box::new(std::array::from_fn(Self::nothing)),
        }
    }
}

impl LineFilter {
    /// Mark of a place without a line: the number of one that has its place elsewhere.
    const fn nothing(index: usize) -> u32 {
        !(index as u32)
    }

    /// The first of the lines, which lie one behind the other.
    pub const fn start(&self) -> *const u8 {
        self.lines.as_ptr().cast::<u8>()
    }

    /// The number of a line's place.
    pub const fn index(line: u64) -> usize {
        line as usize & (LINE_PLACES - 1)
    }

    /// Tests whether the line is certainly in the cache.
    #[inline(always)]
    pub fn vouches(&self, line: u64) -> bool {
        self.lines[Self::index(line)] == line as u32
    }

    /// Notes a line that is in the cache.
    pub fn insert(&mut self, line: u64) {
        self.lines[Self::index(line)] = line as u32;
    }

    /// A line has left the cache.
    pub fn forget(&mut self, line: u64) {
        let index = Self::index(line);
        if self.lines[index] == line as u32 {
            self.lines[index] = Self::nothing(index);
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Places of the filters of the timing models, in the timing mode.
#[derive(Debug, Clone, Copy)]
pub struct FilterTables {
    /// Of pages of data.
    pub data_pages: *const u8,
    /// Of pages of code.
    pub code_pages: *const u8,
    /// Of lines to load.
    pub loads: *const u8,
    /// Of lines to store to.
    pub stores: *const u8,
    /// Of lines to fetch.
    pub fetches: *const u8,
    /// When the store buffer is empty, in cycles.
    pub stores_done: *const u64,
}

impl FilterTables {
    /// In the functional mode, where translated code does not look at them.
    pub const NONE: Self = Self {
        data_pages: std::ptr::null(),
        code_pages: std::ptr::null(),
        loads: std::ptr::null(),
        stores: std::ptr::null(),
        fetches: std::ptr::null(),
        stores_done: std::ptr::null(),
    };
}
