//! Sets of counters, as calls name them.

/// Number of `cycle`.
pub const CYCLE: u8 = 0;
/// Number of `instret`.
pub const INSTRET: u8 = 2;
/// Programmable counters, which have the numbers of the hart's. 0 and 2 are cycle and instret, and 1 is time.
pub const HARDWARE_COUNTERS: core::ops::RangeInclusive<u8> = 3..=31;
/// Firmware counters of a vCPU.
pub const FIRMWARE_COUNTERS: u8 = 8;
/// The first firmware counter's number.
pub(super) const FIRST_FIRMWARE: u8 = 32;
/// One more than the last number.
pub(super) const TOTAL: usize = (FIRST_FIRMWARE + FIRMWARE_COUNTERS) as usize;

const FIRMWARE: u64 = ((1 << FIRMWARE_COUNTERS) - 1) << FIRST_FIRMWARE;
const HARDWARE: u64 = 0xffff_fff8;
const FIXED_COUNTERS: u64 = 1 << CYCLE | 1 << INSTRET;

/// Some of a vCPU's counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterSet(u64);

impl CounterSet {
    pub const EMPTY: Self = Self(0);
    /// All firmware counters.
    pub const FIRMWARE: Self = Self(FIRMWARE);
    /// `cycle` and `instret`.
    pub const FIXED: Self = Self(FIXED_COUNTERS);

    /// The counters that `mask` has bits for, from `base` on: nothing where one is not in `present`.
    #[must_use]
    pub fn named(base: u64, mask: u64, present: Self) -> Option<Self> {
        if mask == 0 {
            return Some(Self::EMPTY);
        }
        let base = u32::try_from(base).ok().filter(|base| *base < u64::BITS)?;
        let bits = mask << base;
        (bits >> base == mask && bits & !present.0 == 0).then_some(Self(bits))
    }

    /// The hart's counters with bits in `mask`.
    #[must_use]
    pub const fn of_hardware(mask: u32) -> Self {
        Self(mask as u64 & HARDWARE)
    }

    /// One counter; none where there is no such number.
    #[must_use]
    pub const fn only(counter: u8) -> Self {
        if (counter as usize) < TOTAL {
            Self(1 << counter)
        } else {
            Self::EMPTY
        }
    }

    #[must_use]
    pub const fn has(self, counter: u8) -> bool {
        self.0 & Self::only(counter).0 != 0
    }

    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    #[must_use]
    pub const fn or(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// Members that are the hart's.
    #[must_use]
    pub const fn hardware(self) -> Self {
        Self(self.0 & HARDWARE)
    }

    /// Members that are firmware's.
    #[must_use]
    pub const fn firmware(self) -> Self {
        Self(self.0 & FIRMWARE)
    }

    /// The hart's counters, a bit each.
    #[must_use]
    pub const fn bits_of_hardware(self) -> u32 {
        (self.0 & HARDWARE) as u32
    }

    /// Members from the counter `base` on, a bit each; none from 64 on.
    #[must_use]
    pub const fn bits_from(self, base: u64) -> u64 {
        if base < u64::BITS as u64 {
            self.0 >> base
        } else {
            0
        }
    }

    /// Their numbers, from the lowest.
    pub fn iter(self) -> impl Iterator<Item = u8> {
        (0..TOTAL as u8).filter(move |counter| self.has(*counter))
    }
}
