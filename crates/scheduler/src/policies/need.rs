//! Need of a VM for its harts together: time that it loses at locks, measured one way and the other.

use crate::base::ticks::Ticks;

/// Time of a VM's vCPUs in a window, in slices.
const WINDOW_SLICES: u64 = 8;
/// Windows after which a VM that has a gang's slices is measured without them for one window.
const WINDOWS_AS_GANG: u8 = 64;
/// Loss is measured in parts of this.
const WHOLE: u64 = 1 << 10;

/// Loss of a VM at locks, and what follows from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Need {
    /// Time lost and used in this window.
    lost: u64,
    used: u64,
    /// Parts lost vCPU by vCPU, and as a gang, when last measured.
    alone: u16,
    together: Option<u16>,
    is_gang: bool,
    windows: u8,
}

impl Need {
    /// Returns true if the VM gets its harts together.
    #[inline]
    pub(crate) const fn is_gang(&self) -> bool {
        self.is_gang
    }

    /// Adds a stay on a hart of `used` ticks, of which the VM has lost `lost` by leaving at a lock. A context switch and back takes `round_trip`.
    #[inline]
    pub(crate) fn add(&mut self, used: Ticks, lost: Ticks, (slice, round_trip): (Ticks, Ticks)) {
        self.used += used.get();
        self.lost += lost.get();
        if self.used >= WINDOW_SLICES * slice.get() {
            self.end_window(slice, round_trip);
        }
    }

    /// Decides at the end of a window: a VM gets its harts together if it loses more by itself than so, and than the switches of a slice cost.
    #[cold]
    #[inline(never)]
    fn end_window(&mut self, slice: Ticks, round_trip: Ticks) {
        let parts = self.lost.saturating_mul(WHOLE) / self.used.max(1);
        let parts = u16::try_from(parts).unwrap_or(u16::MAX);
        match self.is_gang {
            true => self.together = Some(parts),
            false => self.alone = parts,
        }
        let cost = round_trip.get().saturating_mul(WHOLE) / slice.get().max(1);
        let cost = u16::try_from(cost).unwrap_or(u16::MAX);
        let better = self.alone > self.together.unwrap_or(0).saturating_add(cost);
        let was_gang = self.is_gang;
        self.windows = if was_gang { self.windows + 1 } else { 0 };
        self.is_gang = better && self.windows < WINDOWS_AS_GANG;
        if !was_gang {
            // It is measured as a gang anew.
            self.together = None;
            self.is_gang = self.alone > cost;
        }
        self.lost = 0;
        self.used = 0;
    }
}
