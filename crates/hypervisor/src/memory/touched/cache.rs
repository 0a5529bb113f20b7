//! Cache of a few pages' frames, to save walks of the tables.
//!
//! It belongs to the table: an entry is made and forgotten under the table's lock, and found without it. So what is found was in the table
//! at that moment, as with a walk, and [`reclaim`](crate::memory::reclaim) waits for users of both.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::address::{HostPhysical, PAGE_SIZE};

/// Entries, by the lowest bits of the page's number.
const ENTRIES: u64 = 64;
/// An entry: whether there is one, the rest of the page's number, the number of its frame (44 bits, as in a table).
const IS_THERE: u64 = 1 << 63;
const REST_SHIFT: u32 = 44;
const REST_LIMIT: u64 = 1 << (63 - REST_SHIFT);
const FRAME: u64 = (1 << REST_SHIFT) - 1;

/// The cache of one guest's pages, which it numbers from 0.
#[derive(Debug)]
pub struct PageCache([AtomicU64; ENTRIES as usize]);

impl PageCache {
    /// Empty cache.
    #[must_use]
    pub const fn new() -> Self {
        Self([const { AtomicU64::new(0) }; ENTRIES as usize])
    }

    fn entry(&self, page: u64) -> Option<&AtomicU64> {
        self.0.get((page % ENTRIES) as usize)
    }

    /// The frame of a page, if it is known.
    #[inline]
    #[must_use]
    pub fn find(&self, page: u64) -> Option<HostPhysical> {
        let entry = self.entry(page)?.load(Ordering::Acquire);
        let wanted = IS_THERE | (page / ENTRIES) << REST_SHIFT;
        let is_known = page / ENTRIES < REST_LIMIT && entry & !FRAME == wanted;
        is_known.then(|| HostPhysical::new((entry & FRAME) * PAGE_SIZE))
    }

    /// Notes that the page has this frame. The table's lock is held.
    pub fn keep(&self, page: u64, frame: HostPhysical) {
        let rest = page / ENTRIES;
        if let Some(entry) = self.entry(page).filter(|_| rest < REST_LIMIT) {
            let frame = (frame.raw() / PAGE_SIZE) & FRAME;
            entry.store(IS_THERE | rest << REST_SHIFT | frame, Ordering::Release);
        }
    }

    /// Notes that the page has no frame any more. The table's lock is held.
    pub fn forget(&self, page: u64) {
        if self.find(page).is_some()
            && let Some(entry) = self.entry(page)
        {
            entry.store(0, Ordering::SeqCst);
        }
    }

    /// Notes that no page has a frame any more. The table's lock is held.
    #[inline]
    pub fn clear(&self) {
        for entry in &self.0 {
            entry.store(0, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn frame(number: u64) -> HostPhysical {
        HostPhysical::new(number * PAGE_SIZE)
    }

    #[test]
    fn page_is_cached_until_replaced() {
        let cache = PageCache::new();
        cache.keep(3, frame(0x8_1234));
        cache.keep(3 + ENTRIES * (REST_LIMIT - 1), frame(FRAME));
        assert_eq!(cache.find(3), None);
        let last = 3 + ENTRIES * (REST_LIMIT - 1);
        assert_eq!(cache.find(last), Some(frame(FRAME)));
        // Another page of the same entry does not take it out.
        cache.forget(3);
        assert_eq!(cache.find(last), Some(frame(FRAME)));
        cache.forget(last);
        assert_eq!(cache.find(last), None);
    }

    #[test]
    fn unnameable_page_is_never_cached() {
        let cache = PageCache::new();
        cache.keep(ENTRIES * REST_LIMIT, frame(7));
        assert_eq!(cache.find(ENTRIES * REST_LIMIT), None);
        assert_eq!(cache.find(0), None);
    }

    proptest! {
        /// A lookup finds the value kept last and not forgotten.
        #[test]
        fn nothing_else_is_found(steps in prop::collection::vec((0..3u8, 0..300u64, 0..1000u64), 0..200)) {
            let cache = PageCache::new();
            let mut pages = HashMap::new();
            for (step, page, number) in steps {
                match step {
                    0 | 1 => {
                        pages.insert(page, frame(number));
                        cache.keep(page, frame(number));
                        prop_assert_eq!(cache.find(page), Some(frame(number)));
                    }
                    _ => {
                        pages.remove(&page);
                        cache.forget(page);
                    }
                }
                for page in 0..300 {
                    let found = cache.find(page);
                    prop_assert!(found.is_none() || found == pages.get(&page).copied());
                }
            }
            cache.clear();
            prop_assert!((0..300).all(|page| cache.find(page).is_none()));
        }
    }
}
