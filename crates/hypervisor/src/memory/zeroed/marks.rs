//! Marks of the pages of a guest's memory that are zero or the guest's own. No page outside the memory is marked.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::memory::address::PAGE_SIZE;
use crate::memory::frames::FrameSize;

/// Pages of a word, and words of a leaf.
const PAGES: u64 = u64::BITS as u64;
const WORDS: u64 = FrameSize::Megapage.bytes() / PAGE_SIZE / PAGES;
/// Bytes of the marks of a leaf.
pub const BYTES_A_LEAF: usize = WORDS as usize * size_of::<AtomicU64>();
/// Words that one search for the end of a run, or one test of a buffer, reads at most: those of two leaves.
const MAX_WORDS: u64 = 2 * WORDS;

/// Marks of one guest's memory.
#[derive(Debug)]
pub struct Marks {
    words: Box<[AtomicU64]>,
    /// Number of times that pages were marked.
    advances: AtomicU64,
}

/// The words that hold the pages of the bytes from `offset` to before `end`, each with the bits of these pages.
fn words(offset: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    let (first, last) = (offset / PAGE_SIZE, end.saturating_sub(1) / PAGE_SIZE);
    (first / PAGES..=last / PAGES).map(move |word| {
        let from = first.saturating_sub(word * PAGES);
        let behind = ((word + 1) * PAGES).saturating_sub(last + 1);
        (
            word,
            u64::MAX << (from % PAGES) & u64::MAX >> (behind % PAGES),
        )
    })
}

impl Marks {
    /// Marks of so many leaves, of which none is set.
    #[must_use]
    pub fn new(leaves: u64) -> Self {
        Self {
            words: (0..leaves * WORDS).map(|_| AtomicU64::new(0)).collect(),
            advances: AtomicU64::new(0),
        }
    }

    /// Number of times that pages were marked: it grows for each page once in a run.
    #[must_use]
    pub fn advances(&self) -> u64 {
        self.advances.load(Ordering::Relaxed)
    }

    #[inline]
    fn word(&self, number: u64) -> Option<&AtomicU64> {
        self.words.get(usize::try_from(number).ok()?)
    }

    #[inline]
    fn load(&self, number: u64) -> u64 {
        let word = self.word(number);
        word.map_or(0, |word| word.load(Ordering::Acquire))
    }

    /// Tests whether all pages of `size` bytes from `offset` are marked; an empty range is, and one of more words than are read is not.
    #[inline]
    #[must_use]
    pub fn are_set(&self, offset: u64, size: u64) -> bool {
        if size == 0 {
            return true;
        }
        let end = offset.saturating_add(size);
        let (first, last) = (offset / PAGE_SIZE, (end - 1) / PAGE_SIZE);
        let word = first / PAGES;
        if word != last / PAGES {
            return self.are_set_in_words(offset, end);
        }
        // Nearly always.
        let bits = u64::MAX << (first % PAGES) & u64::MAX >> (PAGES - 1 - last % PAGES);
        self.load(word) & bits == bits
    }

    /// Tests whether all pages from `offset` to before `end` are marked, which several words tell.
    #[cold]
    fn are_set_in_words(&self, offset: u64, end: u64) -> bool {
        let is_short = end - offset < (MAX_WORDS - 1) * PAGES * PAGE_SIZE;
        is_short && words(offset, end).all(|(word, bits)| self.load(word) & bits == bits)
    }

    /// Tests whether a page of `size` bytes from `offset` is marked.
    #[must_use]
    pub fn has_any(&self, offset: u64, size: u64) -> bool {
        let end = offset.saturating_add(size);
        size != 0 && words(offset, end).any(|(word, bits)| self.load(word) & bits != 0)
    }

    /// Marks the pages of `size` bytes from `offset`, after they were zeroed.
    pub fn set(&self, offset: u64, size: u64) {
        self.advances.fetch_add(1, Ordering::Relaxed);
        for (word, bits) in words(offset, offset.saturating_add(size)) {
            if let Some(word) = self.word(word) {
                word.fetch_or(bits, Ordering::Release);
            }
        }
    }

    /// Offset of the first page that is not marked behind the marked one at `offset`, or of one before it where the search ends. `None` if
    /// the page is not marked.
    #[must_use]
    pub fn end_of_run(&self, offset: u64) -> Option<u64> {
        let page = offset / PAGE_SIZE;
        let (first, within) = (page / PAGES, page % PAGES);
        let run = u64::from((self.load(first) >> within).trailing_ones());
        if run == 0 {
            return None;
        }
        let mut end = page + run;
        let mut word = first + 1;
        while end == word * PAGES && word < first + MAX_WORDS {
            end += u64::from(self.load(word).trailing_ones());
            word += 1;
        }
        Some(end * PAGE_SIZE)
    }

    /// Offset of the first page that is not marked in the leaf at `leaf`.
    #[must_use]
    pub fn first_clear(&self, leaf: u64) -> Option<u64> {
        let first = leaf / PAGE_SIZE / PAGES;
        (first..first + WORDS).find_map(|number| {
            let run = u64::from(self.load(number).trailing_ones());
            (run < PAGES).then_some((number * PAGES + run) * PAGE_SIZE)
        })
    }

    /// Clears the marks of the leaf at `leaf`. Returns whether all of them were set.
    pub fn clear_leaf(&self, leaf: u64) -> bool {
        let first = leaf / PAGE_SIZE / PAGES;
        let words = (first..first + WORDS).filter_map(|number| self.word(number));
        let were_set = words.filter(|word| word.swap(0, Ordering::AcqRel) == u64::MAX);
        were_set.count() as u64 == WORDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: u64 = FrameSize::Megapage.bytes();

    #[test]
    fn marks_are_of_whole_pages() {
        let marks = Marks::new(2);
        assert_eq!((marks.end_of_run(0), marks.first_clear(0)), (None, Some(0)));
        marks.set(3 * PAGE_SIZE, 62 * PAGE_SIZE);
        assert_eq!(marks.end_of_run(3 * PAGE_SIZE), Some(65 * PAGE_SIZE));
        assert!(marks.are_set(3 * PAGE_SIZE + 7, 62 * PAGE_SIZE - 7));
        assert!(!marks.are_set(3 * PAGE_SIZE - 1, 2) && !marks.are_set(65 * PAGE_SIZE - 1, 2));
        assert!(marks.has_any(0, 4 * PAGE_SIZE) && !marks.has_any(0, 3 * PAGE_SIZE));
        assert!(!marks.clear_leaf(0) && !marks.has_any(0, 2 * LEAF));
        marks.set(LEAF, LEAF);
        assert_eq!(marks.end_of_run(LEAF), Some(2 * LEAF));
        assert_eq!(marks.first_clear(LEAF), None);
        // What lies outside is not marked.
        marks.set(2 * LEAF, PAGE_SIZE);
        assert!(!marks.are_set(2 * LEAF - 1, 2) && !marks.are_set(u64::MAX - 1, 9));
        assert!(marks.are_set(u64::MAX, 0));
        assert!(marks.clear_leaf(LEAF) && !marks.clear_leaf(LEAF));
    }
}
