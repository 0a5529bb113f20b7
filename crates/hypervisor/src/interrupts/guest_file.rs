//! Number of a guest interrupt file of a hart.

/// The number of a guest interrupt file of a hart: 1 to 63, as in `hstatus.VGEIN` and as the bits of `hgeip`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GuestFile(u8);

impl GuestFile {
    /// The largest number of guest files of a hart (GEILEN on RV64).
    pub const MAX_NUMBER: u8 = 63;

    /// File with this number, if a hart can have it.
    #[must_use]
    pub const fn new(number: u8) -> Option<Self> {
        if number >= 1 && number <= Self::MAX_NUMBER {
            Some(Self(number))
        } else {
            None
        }
    }

    /// Its number.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }

    /// Its bit in `hgeip` and `hgeie`.
    #[must_use]
    pub const fn bit(self) -> u64 {
        1 << self.0
    }

    /// The files whose bits are set in `bits`.
    pub fn in_bits(bits: u64) -> impl Iterator<Item = Self> {
        let mut left = bits & !1;
        core::iter::from_fn(move || {
            let file = Self::new(left.trailing_zeros() as u8)?;
            left &= left - 1;
            Some(file)
        })
    }
}
