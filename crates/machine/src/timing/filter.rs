//! A short answer in front of the models: lines of which it is certain that an access hits.
//!
//! What it remembers is in a TLB and in a cache: whoever takes an entry out of one of them makes
//! the filter forget what rests on it. Since a hit changes nothing in a model, the filter may
//! then answer in their place.

/// Places of a filter.
const PLACES: usize = 1024;
/// Lines of a page.
const PAGE_LINES: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place {
    /// The virtual line.
    line: u64,
    /// The address space.
    space: u32,
    /// The physical line modulo 2^32: unique, because RAM is contiguous and at most 256 GiB.
    physical: u32,
}

const EMPTY: Place = Place {
    line: u64::MAX,
    space: 0,
    physical: 0,
};

/// Lines known to be in a TLB and a cache.
#[derive(Debug, Clone)]
pub struct Filter {
    places: Box<[Place; PLACES]>,
}

impl Default for Filter {
    fn default() -> Self {
        Self {
            places: Box::new([EMPTY; PLACES]),
        }
    }
}

impl Filter {
    const fn index(line: u64) -> usize {
        line as usize & (PLACES - 1)
    }

    /// Whether an access to the virtual line, which is at the physical one, certainly hits.
    #[inline(always)]
    pub fn vouches(&self, line: u64, space: u32, physical: u64) -> bool {
        let place = &self.places[Self::index(line)];
        place.line == line && place.space == space && place.physical == physical as u32
    }

    /// Whether an access to the virtual line certainly hits where it led the last time.
    #[inline(always)]
    pub fn vouches_as_before(&self, line: u64, space: u32) -> bool {
        let place = &self.places[Self::index(line)];
        place.line == line && place.space == space
    }

    /// Notes a line that is in the models.
    pub fn insert(&mut self, line: u64, space: u32, physical: u64) {
        self.places[Self::index(line)] = Place {
            line,
            space,
            physical: physical as u32,
        };
    }

    /// A physical line has left the cache. Its places agree with it in the bits of the offset in
    /// a page.
    pub fn forget_line(&mut self, physical: u64) {
        let first = (physical & (PAGE_LINES - 1)) as usize;
        let step = PAGE_LINES as usize;
        for place in self.places.iter_mut().skip(first).step_by(step) {
            if place.physical == physical as u32 {
                *place = EMPTY;
            }
        }
    }

    /// `pages` virtual pages from `page` on have left a TLB.
    pub fn forget_pages(&mut self, page: u64, pages: u64) {
        let first = page.wrapping_mul(PAGE_LINES);
        if pages == 1 {
            for line in first..first + PAGE_LINES {
                let place = &mut self.places[Self::index(line)];
                if place.line == line {
                    *place = EMPTY;
                }
            }
            return;
        }
        for place in self.places.iter_mut() {
            if place.line.wrapping_sub(first) < pages * PAGE_LINES {
                *place = EMPTY;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(EMPTY);
    }
}
