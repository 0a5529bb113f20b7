//! Translations that a hart must drop after shadow tables have changed.

/// Address spaces that are kept for a vCPU.
pub const SPACES: usize = 32;

const _: () = assert!(SPACES <= u32::BITS as usize);

/// Pages that are dropped one by one; for more of a space, all of it goes.
const MAX_PAGES: usize = 8;

/// Translations that a hart must drop before the guest is entered again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Whole spaces, a bit each.
    spaces: u32,
    /// Single addresses and their spaces.
    pages: [(u8, u64); MAX_PAGES],
    count: usize,
}

impl Dropped {
    /// All of a space.
    pub const fn add_space(&mut self, number: usize) {
        self.spaces |= 1 << number;
    }

    /// Adds the mapping of a space at `address`.
    pub fn add_page(&mut self, number: usize, address: u64) {
        match self.pages.get_mut(self.count) {
            Some(page) => {
                *page = (number as u8, address);
                self.count = self.count.saturating_add(1);
            }
            None => self.add_space(number),
        }
    }

    /// Adds all of `other`.
    pub fn add(&mut self, other: Self) {
        self.spaces |= other.spaces;
        for (number, address) in other.pages.into_iter().take(other.count) {
            self.add_page(usize::from(number), address);
        }
    }

    /// Tests whether nothing must be dropped.
    #[must_use]
    pub const fn is_nothing(&self) -> bool {
        self.spaces == 0 && self.count == 0
    }

    /// The whole spaces.
    pub fn spaces(self) -> impl Iterator<Item = usize> {
        (0..SPACES).filter(move |number| self.spaces >> number & 1 != 0)
    }

    /// The addresses in other spaces.
    pub fn pages(self) -> impl Iterator<Item = (usize, u64)> {
        let pages = self.pages.into_iter().take(self.count);
        pages
            .map(|(number, address)| (usize::from(number), address))
            .filter(move |(number, _)| self.spaces >> number & 1 == 0)
    }
}
