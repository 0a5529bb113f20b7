//! One queue: the guest's rings on the one side, the device's on the other.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use super::chain::{self, Piece, Wrong, after, halfword, set_word};
use super::shadow::{MOST_ENTRIES, Shadow};
use crate::devices::trapped::Reach;
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical};

/// How many descriptors are read in one go at the guest's notification: some ten thousand instructions. The guest's store is then
/// done again, after others have had the hart.
const IN_ONE_GO: usize = 512;
/// Flag of the available ring: the driver wants no interrupts (virtio 1.2, §2.7.6).
const NO_INTERRUPT: u16 = 1;

/// Where a guest has put a queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Entries, as the guest chose them.
    pub size: u32,
    /// Descriptors, available ring and used ring.
    pub parts: [u64; 3],
}

/// A guest's queue that is in use.
#[derive(Debug)]
pub struct Queue {
    size: u16,
    descriptors: GuestPhysical,
    available: GuestPhysical,
    used: GuestPhysical,
    /// The next entry of the available ring that is looked at, and of the used ring that is written.
    next_available: u16,
    next_used: u16,
    shadow: Shadow,
    /// The chain at hand, so that no memory is asked for with each.
    pieces: Vec<Piece>,
}

/// What came of looking at a guest's available ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// Whether the device has got something to do.
    pub any: bool,
    /// Whether there is more that could be passed now.
    pub more: bool,
}

impl Queue {
    /// The queue that the guest has put at `place`, whose device's side has `entries` in `area`.
    ///
    /// # Errors
    /// [`Wrong::BadQueue`], and [`Wrong::Outside`].
    pub fn new(
        place: Place,
        area: HostPhysical,
        entries: u16,
        reach: &dyn Reach,
    ) -> Result<Self, Wrong> {
        let [descriptors, available, used] = place.parts.map(GuestPhysical::new);
        let size = u16::try_from(place.size).map_err(|_| Wrong::BadQueue)?;
        if !size.is_power_of_two() || size > entries || entries > MOST_ENTRIES {
            return Err(Wrong::BadQueue);
        }
        // Bytes and alignment of the parts (§2.7).
        let entries_of = u64::from(size);
        for (at, bytes, alignment) in [
            (descriptors, 16 * entries_of, 16),
            (available, 6 + 2 * entries_of, 2),
            (used, 6 + 8 * entries_of, 4),
        ] {
            if !at.is_aligned(alignment) {
                return Err(Wrong::BadQueue);
            }
            let region = GuestRegion::new(at, bytes).ok_or(Wrong::Outside(at))?;
            if !reach.memory().region().covers(region) {
                return Err(Wrong::Outside(at));
            }
        }
        Ok(Self {
            size,
            descriptors,
            available,
            used,
            next_available: 0,
            next_used: 0,
            shadow: Shadow::new(area, entries, reach.host()),
            pieces: Vec::with_capacity(entries.into()),
        })
    }

    /// Where the device finds its side of the queue.
    #[must_use]
    pub fn parts(&self) -> [HostPhysical; 3] {
        self.shadow.parts()
    }

    /// Passes on what the guest has made available, for as long as there is room and for a bounded time.
    ///
    /// # Errors
    /// [`Wrong`]: the driver broke the rules.
    pub fn pass(&mut self, reach: &dyn Reach) -> Result<Passed, Wrong> {
        let mut passed = Passed {
            any: false,
            more: false,
        };
        let index = halfword(reach, after(self.available, 2)?)?;
        if index.wrapping_sub(self.next_available) > self.size {
            return Err(Wrong::TooMany);
        }
        // The entries are read after the index that says that they are there.
        fence(Ordering::Acquire);
        let mut done = 0;
        while self.next_available != index {
            if done >= IN_ONE_GO {
                passed.more = true;
                break;
            }
            let entry = u64::from(self.next_available % self.size);
            let head = halfword(reach, after(self.available, 4 + 2 * entry)?)?;
            let (table, most) = ((self.descriptors, self.size), self.shadow.most());
            done += chain::read(reach, table, head, &mut self.pieces, most)?;
            if !self.shadow.put(head, &self.pieces, reach.host()) {
                // It is looked at again when something has ended.
                break;
            }
            self.next_available = self.next_available.wrapping_add(1);
            passed.any = true;
        }
        Ok(passed)
    }

    /// Returns to the guest what the device has ended. Says whether the guest is to be interrupted.
    ///
    /// # Errors
    /// [`Wrong`].
    pub fn return_ended(&mut self, reach: &dyn Reach) -> Result<bool, Wrong> {
        let mut any = false;
        // As many as can be under way: a device that goes on does not keep the hart.
        for _ in 0..self.shadow.most() {
            let Some((head, written)) = self.shadow.take(reach.host())? else {
                break;
            };
            let entry = u64::from(self.next_used % self.size);
            let at = after(self.used, 4 + 8 * entry)?;
            set_word(reach, at, head.into())?;
            set_word(reach, after(at, 4)?, written)?;
            self.next_used = self.next_used.wrapping_add(1);
            any = true;
        }
        if !any {
            return Ok(false);
        }
        // The entries, then the index, then the look at whether the driver wants to hear of it (§2.7.8, §2.7.7.2).
        fence(Ordering::Release);
        set_word(reach, self.used, u32::from(self.next_used) << 16)?;
        fence(Ordering::SeqCst);
        Ok(halfword(reach, self.available)? & NO_INTERRUPT == 0)
    }
}
