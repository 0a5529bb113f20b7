//! A short answer in front of the models: lines of which it is certain that an access hits.

use serde::{Deserialize, Serialize};

/// Places of a filter.
const PLACES: usize = 1024;
/// Lines of a page.
const PAGE_LINES: u64 = 64;

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
struct Place {
    /// The virtual line.
    line: u64,
    /// The context of the translation.
    tag: u64,
    /// The physical line.
    physical: u64,
}

const EMPTY: Place = Place {
    line: u64::MAX,
    tag: u64::MAX,
    physical: u64::MAX,
};

/// Lines known to be in a TLB and a cache.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Filter {
    places: Vec<Place>,
}

impl Filter {
    /// An empty filter.
    pub fn new() -> Self {
        Self {
            places: vec![EMPTY; PLACES],
        }
    }

    /// Whether it has its places.
    pub const fn is_whole(&self) -> bool {
        self.places.len() == PLACES
    }

    const fn index(line: u64) -> usize {
        line as usize & (PLACES - 1)
    }

    /// Whether an access to the line certainly hits.
    #[inline(always)]
    pub fn vouches(&self, line: u64, tag: u64) -> bool {
        match self.places.get(Self::index(line)) {
            Some(place) => place.line == line && place.tag == tag,
            None => false,
        }
    }

    /// Notes a line that is in the models.
    pub fn insert(&mut self, line: u64, tag: u64, physical: u64) {
        if let Some(place) = self.places.get_mut(Self::index(line)) {
            *place = Place {
                line,
                tag,
                physical,
            };
        }
    }

    /// A physical line has left the cache. Its places agree with it in the bits of the offset in
    /// a page.
    pub fn forget_line(&mut self, physical: u64) {
        let first = (physical & (PAGE_LINES - 1)) as usize;
        for place in self
            .places
            .iter_mut()
            .skip(first)
            .step_by(PAGE_LINES as usize)
        {
            if place.physical == physical {
                *place = EMPTY;
            }
        }
    }

    /// A virtual page has left the TLB.
    pub fn forget_page(&mut self, page: u64) {
        for line in page * PAGE_LINES..(page + 1) * PAGE_LINES {
            if let Some(place) = self.places.get_mut(Self::index(line))
                && place.line == line
            {
                *place = EMPTY;
            }
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.places.fill(EMPTY);
    }
}
