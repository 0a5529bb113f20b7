//! Pages of a VM's G-stage table that have changed, and their generations.
//!
//! Mostly the pages of its vCPUs' interrupt files change: at each change of hart, the page of the vCPU's file is another one. To drop all of
//! the VM's translations for that would cost as much as keeping them can save. Where the guest gives pages of its memory back,
//! many go at a time, and then everything may have changed.

use crate::memory::address::GuestPhysical;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Pages that are dropped one by one; for more, everything is dropped at once, which takes two fences.
const MAX_PAGES: usize = 4;

/// Changes of a table.
pub trait Changed {
    /// The pages that have changed since the table had `generation`; `None` where everything may have, or too many have to be dropped one by one.
    fn since(&self, generation: u64) -> Option<impl Iterator<Item = GuestPhysical>>;
}

/// Generation of the table after the last change of each of up to `N` pages.
#[derive(Debug)]
pub struct Changes<const N: usize> {
    page: fn(u32) -> GuestPhysical,
    last: [AtomicU64; N],
    /// No page from this index on has ever changed, so that a VM of few vCPUs is searched quickly.
    used: AtomicUsize,
    /// The generation that the last change of more than single pages led to; 0 where there was none.
    all: AtomicU64,
}

impl<const N: usize> Changes<N> {
    /// No changes yet. Page `index` of the table is `page(index)`.
    pub const fn new(page: fn(u32) -> GuestPhysical) -> Self {
        Self {
            page,
            last: [const { AtomicU64::new(0) }; N],
            used: AtomicUsize::new(0),
            all: AtomicU64::new(0),
        }
    }

    /// Notes that page `index` has changed, and that the table is about to have `generation`. Changes of one table are noted one after the other, each before
    /// its generation is shown.
    pub fn note(&self, index: u16, generation: u64) {
        let index = usize::from(index);
        if let Some(last) = self.last.get(index) {
            last.store(generation, Ordering::SeqCst);
            self.used.fetch_max(index + 1, Ordering::SeqCst);
        }
    }

    /// Notes that any page may have changed, and that the table is about to have `generation`. As [`Self::note`].
    pub fn note_all(&self, generation: u64) {
        self.all.store(generation, Ordering::SeqCst);
    }

    /// Tests whether more than single pages has changed since the table had `generation`.
    #[must_use]
    pub fn all_since(&self, generation: u64) -> bool {
        self.all.load(Ordering::Relaxed) > generation
    }

    /// The pages that may have changed, with the generation of each one's last change.
    fn used(&self) -> &[AtomicU64] {
        let used = self.used.load(Ordering::Relaxed);
        self.last.get(..used).unwrap_or(&self.last)
    }
}

impl<const N: usize> Changed for Changes<N> {
    #[inline]
    fn since(&self, generation: u64) -> Option<impl Iterator<Item = GuestPhysical>> {
        if generation == 0 || self.all_since(generation) {
            return None;
        }
        let mut later = [0; MAX_PAGES];
        let mut count = 0;
        for (index, last) in (0u32..).zip(self.used()) {
            // The reader has read a generation, and every change up to it was noted before it was shown. A change that is noted
            // later has a later generation, which the reader finds before the guest is entered.
            if last.load(Ordering::Relaxed) > generation {
                *later.get_mut(count)? = index;
                count += 1;
            }
        }
        Some(later.into_iter().take(count).map(self.page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(index: u32) -> GuestPhysical {
        GuestPhysical::new(0x2800_0000 + 0x1000 * u64::from(index))
    }

    #[inline]
    fn since<const N: usize>(changes: &Changes<N>, generation: u64) -> Option<Vec<u64>> {
        let pages = changes.since(generation)?;
        Some(pages.map(GuestPhysical::raw).collect())
    }

    #[test]
    fn only_later_changes_are_reported() {
        let changes = Changes::<8>::new(page);
        changes.note(0, 2);
        changes.note(3, 3);
        changes.note(0, 4);
        assert_eq!(since(&changes, 1), Some(vec![0x2800_0000, 0x2800_3000]));
        assert_eq!(since(&changes, 3), Some(vec![0x2800_0000]));
        assert_eq!(since(&changes, 4), Some(vec![]));
        // Who never saw a table cannot say what of it is old.
        assert_eq!(since(&changes, 0), None);
        // There is no such page.
        changes.note(8, 9);
        assert_eq!(since(&changes, 4), Some(vec![]));
    }

    #[test]
    fn unchanged_pages_are_not_visited() {
        let changes = Changes::<64>::new(page);
        assert!(changes.used().is_empty());
        changes.note(2, 2);
        changes.note(1, 3);
        assert_eq!(changes.used().len(), 3);
        changes.note(64, 4);
        assert_eq!(changes.used().len(), 3, "there is no such page");
        changes.note(63, 4);
        assert_eq!(changes.used().len(), 64);
        assert_eq!(since(&changes, 2), Some(vec![0x2800_1000, 0x2803_f000]));
    }

    #[test]
    fn full_change_is_reported_until_seen() {
        let changes = Changes::<8>::new(page);
        changes.note(0, 2);
        changes.note_all(3);
        changes.note(1, 4);
        assert_eq!(since(&changes, 2), None);
        assert_eq!(since(&changes, 3), Some(vec![0x2800_1000]));
    }

    #[test]
    fn many_pages_are_everything() {
        let changes = Changes::<8>::new(page);
        for index in 0..5 {
            changes.note(index, 2 + u64::from(index));
        }
        assert_eq!(since(&changes, 1), None);
        assert_eq!(since(&changes, 2).map(|pages| pages.len()), Some(MAX_PAGES));
    }
}
