//! Memory patterns that tell which word, of which owner, at which time was written.

/// Pattern that an owner writes: each word is a function of the owner's key and of the word's own address, so
/// that neither another's write nor a page that moved can look right.
#[derive(Debug, Clone, Copy)]
pub struct Pattern {
    key: u64,
}

impl Pattern {
    /// The pattern of a key.
    #[must_use]
    pub const fn new(key: u64) -> Self {
        Self { key }
    }

    /// The word that belongs at `address`.
    #[must_use]
    pub const fn word(self, address: u64) -> u64 {
        let mixed = (address ^ self.key.rotate_left(29)).wrapping_mul(splitmix::GOLDEN_GAMMA);
        mixed ^ (mixed >> 32) ^ self.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_and_owners_differ() {
        let pattern = Pattern::new(3);
        assert_ne!(pattern.word(0x8000_0000), pattern.word(0x8000_0008));
        assert_ne!(pattern.word(0x8000_0000), Pattern::new(4).word(0x8000_0000));
    }
}
