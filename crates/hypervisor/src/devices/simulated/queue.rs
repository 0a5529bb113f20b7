//! One queue: the guest's rings on the one side, the device's on the other.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use super::chain::{self, Piece, Wrong};
use super::fast::Area;
use super::rings::{Part, Rings};
use super::shadow::{MOST_ENTRIES, Shadow};
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical};
use crate::memory::guest::Memory;

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

impl Place {
    /// The parts and the size of a queue that lies there, of at most so many `entries`: one that virtio 1.2, §2.7, allows, and all of it
    /// the guest's memory.
    ///
    /// # Errors
    /// [`Wrong::BadQueue`], and [`Wrong::Outside`].
    pub fn checked(
        self,
        entries: u16,
        memory: Memory<'_>,
    ) -> Result<([GuestPhysical; 3], u16), Wrong> {
        let guest @ [descriptors, available, used] = self.parts.map(GuestPhysical::new);
        let size = u16::try_from(self.size).map_err(|_| Wrong::BadQueue)?;
        if !size.is_power_of_two() || size > entries {
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
            if !memory.guest.region().covers(region) {
                return Err(Wrong::Outside(at));
            }
        }
        Ok((guest, size))
    }
}

/// A guest's queue that is in use.
#[derive(Debug)]
pub struct Queue {
    size: u16,
    rings: Rings,
    /// Whether each side says at which index it wants to hear of the other (VIRTIO_F_EVENT_IDX).
    event_indices: bool,
    /// The next entry of the available ring that is looked at, and of the used ring that is written.
    next_available: u16,
    next_used: u16,
    /// At which index of the available ring the guest was asked to tell.
    asked: u16,
    shadow: Shadow,
    /// Whether something that the guest has made available was not passed on.
    backlog: bool,
    /// The chain at hand, so that no memory is asked for with each.
    pieces: Vec<Piece>,
}

/// What came of looking at a guest's available ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Whether the device has got something to do.
    pub any: bool,
    /// Whether there is more that could be passed now.
    pub more: bool,
    /// How many chains took the fast path, and how many did not.
    pub fast: u32,
    pub general: u32,
}

/// What came of returning to a guest what has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Returned {
    /// Whether the guest is to be interrupted.
    pub interrupt: bool,
    /// Whether something that it has made available is still to be passed on.
    pub backlog: bool,
}

/// How a queue is worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct How {
    /// Whether by the fast path, where that can be.
    pub fast: bool,
    /// Whether the guest has chosen VIRTIO_F_EVENT_IDX.
    pub event_indices: bool,
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
        how: How,
        memory: Memory<'_>,
    ) -> Result<Self, Wrong> {
        let (guest, size) = place.checked(entries.min(MOST_ENTRIES), memory)?;
        Ok(Self {
            size,
            rings: Rings {
                guest,
                area: how
                    .fast
                    .then(|| Area::acquire(memory.guest, guest))
                    .flatten(),
            },
            event_indices: how.event_indices,
            next_available: 0,
            next_used: 0,
            // What lies in the ring is whatever the guest has left there, so that the first is asked for, too.
            asked: u16::MAX,
            shadow: Shadow::new(area, entries, memory.host),
            backlog: false,
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
    pub fn pass(&mut self, memory: Memory<'_>) -> Result<Passed, Wrong> {
        let mut passed = Passed::default();
        let mut left = IN_ONE_GO;
        loop {
            let index = self.rings.half(memory, Part::Available, 2)?;
            if index.wrapping_sub(self.next_available) > self.size {
                return Err(Wrong::TooMany);
            }
            // The entries are read after the index that says that they are there.
            fence(Ordering::Acquire);
            self.pass_until(index, &mut left, &mut passed, memory)?;
            self.backlog = self.next_available != index;
            // As long as something is left over, nobody needs to tell of more.
            if !self.event_indices || self.backlog || self.asked == self.next_available {
                return Ok(passed);
            }
            // The guest tells of what it makes available from here on, and what it has made available before it saw that is found now
            // (§2.7.10).
            self.asked = self.next_available;
            let behind_entries = 4 + 8 * u64::from(self.size);
            self.rings
                .set_half(memory, Part::Used, behind_entries, self.asked)?;
            fence(Ordering::SeqCst);
            if self.rings.half(memory, Part::Available, 2)? == self.next_available {
                return Ok(passed);
            }
        }
    }

    /// Passes on the chains in front of `index`, as long as descriptors may be read and there is room.
    #[inline(always)]
    fn pass_until(
        &mut self,
        index: u16,
        left: &mut usize,
        passed: &mut Passed,
        memory: Memory<'_>,
    ) -> Result<(), Wrong> {
        while self.next_available != index {
            if *left == 0 {
                passed.more = true;
                break;
            }
            if !self.pass_one(left, passed, memory)? {
                // It is looked at again when something has ended.
                break;
            }
        }
        Ok(())
    }

    /// Passes on the next chain. False where there is no room for it, and nothing has happened. One at a time, out of line: a loop would keep
    /// on the stack what each chain needs.
    #[inline(never)]
    fn pass_one(
        &mut self,
        left: &mut usize,
        passed: &mut Passed,
        memory: Memory<'_>,
    ) -> Result<bool, Wrong> {
        let entry = u64::from(self.next_available % self.size);
        let head = self.rings.half(memory, Part::Available, 4 + 2 * entry)?;
        let draft = self.shadow.draft();
        let simple =
            self.rings.area.as_ref().and_then(|area| {
                area.translate(memory.host, self.size, head, &mut self.shadow, draft)
            });
        if let Some((read, draft)) = simple {
            *left = left.saturating_sub(read);
            self.shadow.commit(draft, head, memory.host);
            passed.fast += 1;
        } else {
            let most = self.shadow.most();
            let [table, ..] = self.rings.guest;
            let read = chain::read(memory, (table, self.size), head, &mut self.pieces, most)?;
            *left = left.saturating_sub(read);
            if !self.shadow.put(head, &self.pieces, memory.host) {
                return Ok(false);
            }
            passed.general += 1;
        }
        self.next_available = self.next_available.wrapping_add(1);
        passed.any = true;
        Ok(true)
    }

    /// Returns the next chain that has ended. Out of line as [`Self::pass_one`].
    #[inline(never)]
    fn return_one(&mut self, memory: Memory<'_>) -> Result<(), Wrong> {
        let (head, written) = self.shadow.take(memory.host)?;
        let at = 4 + 8 * u64::from(self.next_used % self.size);
        self.rings.set_word(memory, at, head.into())?;
        self.rings.set_word(memory, at + 4, written)?;
        self.next_used = self.next_used.wrapping_add(1);
        Ok(())
    }

    /// Returns to the guest what the device has ended.
    ///
    /// # Errors
    /// [`Wrong`].
    pub fn return_ended(&mut self, memory: Memory<'_>) -> Result<Returned, Wrong> {
        let before = self.next_used;
        // A device that goes on does not keep the hart.
        let ended = self.shadow.ended(memory.host);
        let mut returned = Returned {
            interrupt: false,
            backlog: self.backlog,
        };
        if ended == 0 {
            return Ok(returned);
        }
        for _ in 0..ended.min(MOST_ENTRIES) {
            self.return_one(memory)?;
        }
        // The entries, then the index, then the look at whether the driver wants to hear of it (§2.7.8, §2.7.7.2).
        fence(Ordering::Release);
        self.rings
            .set_word(memory, 0, u32::from(self.next_used) << 16)?;
        fence(Ordering::SeqCst);
        returned.interrupt = if self.event_indices {
            let behind_entries = 4 + 2 * u64::from(self.size);
            let wanted = self.rings.half(memory, Part::Available, behind_entries)?;
            is_passed(wanted, before, self.next_used)
        } else {
            self.rings.half(memory, Part::Available, 0)? & NO_INTERRUPT == 0
        };
        Ok(returned)
    }
}

/// Whether an index has come by `wanted` on its way from `before` to `after`, modulo 2^16 (§2.7.10).
pub const fn is_passed(wanted: u16, before: u16, after: u16) -> bool {
    after.wrapping_sub(wanted).wrapping_sub(1) < after.wrapping_sub(before)
}
