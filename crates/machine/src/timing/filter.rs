//! A short answer in front of the models: lines of which it is certain that an access hits.
//!
//! What it remembers is in a TLB and in a cache: whoever takes an entry out of one of them makes
//! the filter forget what rests on it. Since a hit changes nothing in a model, the filter may
//! then answer in their place. It may always forget more than it must: then the models answer.

/// Places of a filter.
pub(crate) const PLACES: usize = 1024;
/// Lines of a page.
const PAGE_LINES: u64 = 64;
/// Places of which one word of a [`Claims`] tells.
const WORD: usize = u64::BITS as usize;

/// The places of a filter that may rest on one TLB entry, a bit each.
type Claims = [u64; PLACES / WORD];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(C)]
struct Place {
    /// The virtual line.
    line: u64,
    /// The address space.
    space: u32,
    /// The physical line modulo 2^32: unique, because RAM is contiguous and at most 256 GiB.
    physical: u32,
}

// Translated code reads places.
const _: () = assert!(size_of::<Place>() == 16 && std::mem::offset_of!(Place, line) == 0);
const _: () = assert!(std::mem::offset_of!(Place, space) == 8);
const _: () = assert!(std::mem::offset_of!(Place, physical) == 12);

const EMPTY: Place = Place {
    line: u64::MAX,
    space: 0,
    physical: 0,
};

/// Lines known to be in a TLB and a cache. Their places are found by the physical line where it is
/// known beforehand (`PHYSICAL`), so that a line which leaves a cache is found at once; else by the
/// virtual line.
#[derive(Debug, Clone)]
pub struct Filter<const PHYSICAL: bool> {
    places: Box<[Place; PLACES]>,
    /// By the slot of the TLB entry. What another entry's line has displaced keeps its bit.
    claims: Vec<Claims>,
}

impl<const PHYSICAL: bool> Default for Filter<PHYSICAL> {
    fn default() -> Self {
        Self {
            places: Box::new([EMPTY; PLACES]),
            claims: Vec::new(),
        }
    }
}

impl<const PHYSICAL: bool> Filter<PHYSICAL> {
    /// The first of the places, which lie one behind the other.
    pub const fn start(&self) -> *const u8 {
        self.places.as_ptr().cast::<u8>()
    }

    const fn index(line: u64, physical: u64) -> usize {
        (if PHYSICAL { physical } else { line }) as usize & (PLACES - 1)
    }

    /// Whether an access to the virtual line, which is at the physical one, certainly hits.
    #[inline(always)]
    pub fn vouches(&self, line: u64, space: u32, physical: u64) -> bool {
        let place = &self.places[Self::index(line, physical)];
        place.line == line && place.space == space && place.physical == physical as u32
    }

    /// Notes a line that is in the models; `slot` is that of the TLB entry that it rests on.
    pub fn insert(&mut self, line: u64, space: u32, physical: u64, slot: Option<usize>) {
        let index = Self::index(line, physical);
        self.places[index] = Place {
            line,
            space,
            physical: physical as u32,
        };
        let Some(slot) = slot else { return };
        if self.claims.len() <= slot {
            self.claims.resize(slot + 1, [0; PLACES / WORD]);
        }
        if let Some(claims) = self.claims.get_mut(slot) {
            claims[index / WORD] |= 1 << (index % WORD);
        }
    }

    /// A physical line has left the cache. By virtual lines its places agree with it in the bits of
    /// the offset in a page.
    pub fn forget_line(&mut self, physical: u64) {
        if PHYSICAL {
            let place = &mut self.places[Self::index(0, physical)];
            if place.physical == physical as u32 {
                *place = EMPTY;
            }
            return;
        }
        let first = (physical & (PAGE_LINES - 1)) as usize;
        let step = PAGE_LINES as usize;
        for place in self.places.iter_mut().skip(first).step_by(step) {
            if place.physical == physical as u32 {
                *place = EMPTY;
            }
        }
    }

    /// The entry for `pages` virtual pages from `page` on has left its slot of the TLB.
    pub fn forget_entry(&mut self, slot: usize, page: u64, pages: u64) {
        let first = page.wrapping_mul(PAGE_LINES);
        let Some(claims) = self.claims.get_mut(slot) else {
            return;
        };
        for (word, bits) in claims.iter_mut().enumerate() {
            while *bits != 0 {
                let bit = bits.trailing_zeros() as usize;
                *bits &= *bits - 1;
                let place = &mut self.places[word * WORD + bit];
                if place.line.wrapping_sub(first) < pages * PAGE_LINES {
                    *place = EMPTY;
                }
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(EMPTY);
        self.claims.fill([0; PLACES / WORD]);
    }
}

impl Filter<false> {
    /// A virtual page leads elsewhere than before.
    pub fn forget_page(&mut self, page: u64) {
        let first = page.wrapping_mul(PAGE_LINES);
        for line in first..first + PAGE_LINES {
            let place = &mut self.places[Self::index(line, 0)];
            if place.line == line {
                *place = EMPTY;
            }
        }
    }

    /// Whether an access to the virtual line certainly hits where it led the last time.
    #[inline(always)]
    pub fn vouches_as_before(&self, line: u64, space: u32) -> bool {
        let place = &self.places[Self::index(line, 0)];
        place.line == line && place.space == space
    }
}

/// Places of the filters of the timing models, in the measured gear.
#[derive(Debug, Clone, Copy)]
pub struct FilterTables {
    /// Of loads.
    pub loads: *const u8,
    /// Of stores.
    pub stores: *const u8,
    /// Of fetches.
    pub fetches: *const u8,
}

impl FilterTables {
    /// In the fast gear, where translated code does not look at them.
    pub const NONE: Self = Self {
        loads: std::ptr::null(),
        stores: std::ptr::null(),
        fetches: std::ptr::null(),
    };
}
