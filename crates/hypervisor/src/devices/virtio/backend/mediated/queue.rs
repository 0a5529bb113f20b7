//! One queue: the guest's rings on the one side, the device's on the other.

use core::sync::atomic::{Ordering, fence};

use riscv::virtio::queue::{NO_INTERRUPT, NO_NOTIFY};

use crate::devices::virtio::queue::area::Area;
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::queue::device::{DeviceQueue, MAX_ENTRIES};
use crate::devices::virtio::queue::layout::Checked;
use crate::devices::virtio::queue::polling::{AdaptivePolling, BATCH, MIN_POLLED};
use crate::devices::virtio::queue::rings::{Part, Rings, is_passed};
use crate::devices::virtio::queue::scattered;
use crate::memory::address::HostRegion;
use crate::memory::guest::{HostMemory, Memory, TheHost};

/// Most descriptors that one notification of the guest reads: some ten thousand instructions. The guest's store is then
/// done again, after others have had the hart.
const MAX_DESCRIPTORS_PER_NOTIFICATION: usize = 512;
/// Most descriptors that one poll reads. The rest is polled again after a completion, or after a while.
const MAX_DESCRIPTORS_PER_POLL: usize = 128;

/// A guest's queue that is in use.
#[derive(Debug)]
pub struct Queue {
    size: u16,
    rings: Rings,
    /// Set if chains are translated on the fast path.
    fast: bool,
    /// Set if each side names the index at which it is notified (VIRTIO_F_EVENT_IDX).
    event_indices: bool,
    /// Next entry of the available ring to read, and of the used ring to write.
    next_available: u16,
    next_used: u16,
    /// Index of the available ring at which the guest was asked to notify.
    asked: u16,
    /// Flags that the guest reads in front of the used ring's index.
    flags: u16,
    device: DeviceQueue,
    polling: AdaptivePolling,
    /// Chain that was passed on last, and the number of chains that the last poll with completions returned: at least one.
    newest: u16,
    returned: u16,
    /// Time between two polls, if the queue is polled. Meanwhile the guest notifies only when it has made as many chains available as it got
    /// back, and the device interrupts only for completions after a poll that found none.
    watched: Option<u64>,
    /// Set if an available chain was not passed on.
    backlog: bool,
    /// Set while the guest stops the queue: nothing is passed on any more.
    is_stopping: bool,
}

/// Outcome of polling a guest's available ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Set if chains were passed to the device.
    pub any: bool,
    /// Set if more chains could be passed now.
    pub more: bool,
    /// Chains on the fast path, and off it.
    pub fast: u32,
    pub general: u32,
}

/// Outcome of polling both sides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Set if the guest is to be interrupted.
    pub interrupt: bool,
    pub passed: Passed,
}

/// Method by which a queue is mediated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// Set if the fast path is taken where it can be.
    pub fast: bool,
    /// Set if the guest has negotiated VIRTIO_F_EVENT_IDX.
    pub event_indices: bool,
    /// Longest time between two polls of the queue, in ticks; 0 if it is never polled.
    pub patience: u64,
}

impl Queue {
    /// Queue at the place that the guest has set, with the device's side of it.
    #[must_use]
    pub fn new(
        (guest, size): Checked,
        device: DeviceQueue,
        method: Method,
        memory: Memory<'_>,
    ) -> Self {
        Self {
            size,
            rings: Rings {
                guest,
                area: method
                    .fast
                    .then(|| Area::acquire(memory.guest, guest, size))
                    .flatten(),
            },
            fast: method.fast,
            event_indices: method.event_indices,
            next_available: 0,
            next_used: 0,
            // The ring has the guest's old contents, so the first notification is asked for, too.
            asked: u16::MAX,
            flags: 0,
            device,
            polling: AdaptivePolling::new(method.patience),
            newest: 0,
            returned: 1,
            watched: None,
            backlog: false,
            is_stopping: false,
        }
    }

    /// Stops passing chains on.
    pub const fn stop_passing(&mut self) {
        self.is_stopping = true;
    }

    #[must_use]
    pub const fn device(&self) -> &DeviceQueue {
        &self.device
    }

    pub const fn device_mut(&mut self) -> &mut DeviceQueue {
        &mut self.device
    }

    /// Device's side of the queue.
    #[must_use]
    pub fn into_device_queue(self) -> DeviceQueue {
        self.device
    }

    /// Visits all of the guest's memory that chains in flight access.
    pub fn for_each_in_flight(&self, host: TheHost<'_>, visit: &mut dyn FnMut(HostRegion)) {
        self.device.for_each_in_flight(host, visit);
    }

    /// Returns true while a chain is in flight.
    #[must_use]
    pub const fn is_in_flight(&self) -> bool {
        self.device.in_flight() != 0
    }

    /// Returns true if so many chains are in flight, or the guest is busy for so long, that the queue is polled by time.
    #[inline]
    #[must_use]
    pub const fn is_busy(&self) -> bool {
        self.device.in_flight() >= MIN_POLLED || self.polling.is_guest_busy()
    }

    /// Returns true if enough chains are in flight that it may matter whether the guest is busy.
    #[inline]
    #[must_use]
    pub const fn may_depend_on_guest(&self) -> bool {
        self.device.in_flight() >= BATCH
    }

    /// Notes whether a poll has found the guest busy, which is checked if it matters. Returns true if enough polls in a row have.
    #[inline]
    pub fn note_guest(&mut self, is_at_work: impl FnOnce() -> bool) -> bool {
        self.polling.note_guest(self.device.in_flight(), is_at_work)
    }

    /// Returns true if a poll has only completions to look for.
    #[inline]
    #[must_use]
    pub const fn is_simple(&self) -> bool {
        !self.is_busy() && self.watched.is_none() && !self.backlog
    }

    /// Ticks until the next poll, if the queue is polled.
    #[inline]
    #[must_use]
    pub const fn next_poll(&self) -> Option<u64> {
        self.watched
    }

    /// An index modulo the size, which is a power of two, is what it has in common with this. (A division takes ten times as long.)
    #[inline]
    const fn mask(&self) -> u16 {
        self.size.wrapping_sub(1)
    }

    /// Passes available chains on, at the guest's notification: while there is room, and for a bounded time. `now` is the
    /// time where the queue [is busy](Self::is_busy).
    ///
    /// # Errors
    /// [`QueueError`]: the driver broke the rules.
    pub fn pass(&mut self, now: Option<u64>, memory: Memory<'_>) -> Result<Passed, QueueError> {
        self.pass_at_most(MAX_DESCRIPTORS_PER_NOTIFICATION, now, memory)
    }

    /// Passes chains of at most so many descriptors to the device.
    #[inline(always)]
    fn pass_at_most(
        &mut self,
        mut left: usize,
        now: Option<u64>,
        memory: Memory<'_>,
    ) -> Result<Passed, QueueError> {
        let mut passed = Passed::default();
        if self.is_stopping {
            return Ok(passed);
        }
        loop {
            let index = self.rings.half(memory, Part::Available, 2)?;
            if index.wrapping_sub(self.next_available) > self.size {
                return Err(QueueError::TooMany);
            }
            // The entries are read after the index that says that they are there.
            fence(Ordering::Acquire);
            self.pass_until(index, &mut left, &mut passed, memory)?;
            self.backlog = self.next_available != index;
            // While chains are left over, the guest need not notify of more.
            if self.backlog || !self.request_notification(memory)? {
                break;
            }
            // The guest notifies of chains from here on, and chains that it made available before it saw that are found now
            // (§2.7.10).
            if self.rings.half(memory, Part::Available, 2)? == self.next_available {
                break;
            }
        }
        if let (true, Some(now)) = (passed.any, now) {
            self.polling.begins(self.newest, now);
        }
        Ok(passed)
    }

    /// Asks the guest to notify. On a polled queue the guest notifies when it has made as many chains available as were returned last, so
    /// that a guest that asks for as much as it gets does not wait for the next poll; but not for fewer than complete until then, or one
    /// small poll would make all later ones small. Returns true if the guest may have made chains available without notifying.
    #[inline]
    fn request_notification(&mut self, memory: Memory<'_>) -> Result<bool, QueueError> {
        let asked = match self.watched {
            None => self.next_available,
            Some(_) => self.next_available.wrapping_add(self.behind()),
        };
        if !self.event_indices || self.asked == asked {
            return Ok(false);
        }
        self.asked = asked;
        let behind_entries = 4 + 8 * u64::from(self.size);
        self.rings
            .set_half(memory, Part::Used, behind_entries, asked)?;
        fence(Ordering::SeqCst);
        Ok(true)
    }

    /// Chains beyond the next one that the guest of a polled queue may make available before it notifies.
    #[inline(never)]
    fn behind(&self) -> u16 {
        let usual = self.polling.served(self.device.in_flight()) as u16;
        self.returned.max(usual).wrapping_sub(1)
    }

    /// Passes on the chains before `index`, while descriptors may be read and there is room.
    #[inline(always)]
    fn pass_until(
        &mut self,
        index: u16,
        left: &mut usize,
        passed: &mut Passed,
        memory: Memory<'_>,
    ) -> Result<(), QueueError> {
        while self.next_available != index {
            if *left == 0 {
                passed.more = true;
                break;
            }
            if self.rings.area.is_some() {
                self.pass_simple(index, left, passed, memory.host);
                if self.next_available == index || *left == 0 {
                    continue;
                }
            }
            if !self.pass_one(left, passed, memory)? {
                // The next completion polls it again.
                break;
            }
        }
        Ok(())
    }

    /// Passes chains on the fast path, up to the first chain that does not fit it.
    #[inline(never)]
    fn pass_simple(
        &mut self,
        index: u16,
        left: &mut usize,
        passed: &mut Passed,
        host: TheHost<'_>,
    ) {
        let Some(area) = &self.rings.area else { return };
        let [_, available, _] = *area.parts();
        let (size, mask, before) = (self.size, self.mask(), self.next_available);
        let mut descriptors = *left;
        while self.next_available != index && descriptors != 0 {
            let entry = u64::from(self.next_available & mask);
            let head = u16::from_le(host.half(available.skip(4 + 2 * entry)));
            let draft = self.device.draft();
            let Some((read, draft)) = area.translate(host, size, head, &self.device, draft) else {
                break;
            };
            descriptors = descriptors.saturating_sub(read);
            self.device.commit(draft, head, host);
            self.newest = head;
            self.next_available = self.next_available.wrapping_add(1);
        }
        *left = descriptors;
        let taken = self.next_available.wrapping_sub(before);
        if taken != 0 {
            self.device.publish(host);
            passed.any = true;
            passed.fast += u32::from(taken);
        }
    }

    /// Passes on the next chain, off the fast path. Returns false, and changes nothing, if there is no room. One at a time, out of line: a
    /// loop would keep on the stack what each chain needs.
    #[inline(never)]
    fn pass_one(
        &mut self,
        left: &mut usize,
        passed: &mut Passed,
        memory: Memory<'_>,
    ) -> Result<bool, QueueError> {
        let entry = u64::from(self.next_available & self.mask());
        let head = self.rings.half(memory, Part::Available, 4 + 2 * entry)?;
        let [table, ..] = self.rings.guest;
        let table = (table, self.size);
        let before = memory.guest.advances();
        let (read, draft) = match scattered::translate(memory, table, head, &self.device) {
            // Memory that had to be zeroed is in single pages meanwhile. The next look finds what was zeroed in one piece.
            Err(QueueError::TooLong) if memory.guest.advances() != before => {
                *left = 0;
                return Ok(true);
            }
            translated => translated?,
        };
        *left = left.saturating_sub(read);
        let Some(draft) = draft else {
            return Ok(false);
        };
        self.device.commit(draft, head, memory.host);
        self.device.publish(memory.host);
        // A chain whose memory is in one piece was tried on the fast path, and does not fit it.
        if self.fast && self.rings.area.is_none() {
            passed.fast += 1;
        } else {
            passed.general += 1;
        }
        self.next_available = self.next_available.wrapping_add(1);
        self.newest = head;
        passed.any = true;
        Ok(true)
    }

    /// Returns the next completed chain. Out of line: mostly there is one, for which a loop would prepare too much.
    #[inline(never)]
    fn return_one(&mut self, now: Option<u64>, memory: Memory<'_>) -> Result<(), QueueError> {
        let (head, written) = self.device.take(memory.host)?;
        let at = 4 + 8 * u64::from(self.next_used & self.mask());
        self.rings.set_entry(memory, at, (head.into(), written))?;
        self.next_used = self.next_used.wrapping_add(1);
        match now {
            Some(now) => self.polling.ends(head, now),
            None => self.polling.forget(),
        }
        Ok(())
    }

    /// Returns completed chains to the guest. The result says whether the guest is to be interrupted; `None` if there were none. `now` is as for
    /// [`Self::pass`].
    ///
    /// # Errors
    /// [`QueueError::Device`], and [`QueueError::OutsideMemory`].
    #[inline(always)]
    pub fn return_ended(
        &mut self,
        now: Option<u64>,
        memory: Memory<'_>,
    ) -> Result<Option<bool>, QueueError> {
        let before = self.next_used;
        // A device that goes on does not keep the hart.
        let ended = self.device.ended(memory.host);
        if ended == 0 {
            return Ok(None);
        }
        self.returned = ended.min(MAX_ENTRIES);
        for _ in 0..self.returned {
            self.return_one(now, memory)?;
        }
        // The entries, then the index, then the look at whether the driver wants to hear of it (§2.7.8, §2.7.7.2).
        fence(Ordering::Release);
        let index = u32::from(self.next_used) << 16 | u32::from(self.flags);
        self.rings.set_word(memory, 0, index)?;
        fence(Ordering::SeqCst);
        if self.event_indices {
            let behind_entries = 4 + 2 * u64::from(self.size);
            let wanted = self.rings.half(memory, Part::Available, behind_entries)?;
            return Ok(Some(is_passed(wanted, before, self.next_used)));
        }
        let flags = self.rings.half(memory, Part::Available, 0)?;
        Ok(Some(flags & NO_INTERRUPT == 0))
    }

    /// Polls both sides, for a bounded time: returns completed chains to the guest, and passes on chains that the guest may have made
    /// available without notifying. Decides whether the queue is polled from here on. `now` is as for [`Self::pass`].
    ///
    /// # Errors
    /// [`QueueError`]: the driver or the device broke the rules.
    pub fn serve(&mut self, now: Option<u64>, memory: Memory<'_>) -> Result<Served, QueueError> {
        let returned = self.return_ended(now, memory)?;
        let mut served = Served {
            interrupt: returned.unwrap_or(false),
            passed: Passed::default(),
        };
        if self.backlog || self.watched.is_some() {
            served.passed = self.pass_at_most(MAX_DESCRIPTORS_PER_POLL, now, memory)?;
        }
        if self.watched.is_some() || now.is_some() {
            let found = returned.is_some() || served.passed.any;
            let more = self.watch_or_not(found, now, memory)?;
            served.interrupt |= more.interrupt;
            served.passed.add(more.passed);
        }
        // A guest that got nothing back may be idle until a completion, for which the device interrupts.
        if self.watched.is_some() && returned.is_none() != self.device.interrupts() {
            self.device.set_interrupts(returned.is_none(), memory.host);
            if returned.is_none() {
                let returned = self.return_ended(now, memory)?;
                served.interrupt |= returned.unwrap_or(false);
            }
        }
        Ok(served)
    }

    /// Decides whether the queue is polled. A poll that `found` nothing ends the polling.
    #[inline(always)]
    fn watch_or_not(
        &mut self,
        found: bool,
        now: Option<u64>,
        memory: Memory<'_>,
    ) -> Result<Served, QueueError> {
        let pace = self.polling.interval(self.device.in_flight());
        let was_watched = self.watched.is_some();
        self.watched = pace.filter(|_| found);
        match self.watched.is_some() == was_watched {
            true => Ok(Served::default()),
            false => self.turn(now, memory),
        }
    }

    /// Switches notifications and interrupts off from here on, or on.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, now: Option<u64>, memory: Memory<'_>) -> Result<Served, QueueError> {
        let watched = self.watched.is_some();
        if !self.event_indices {
            self.flags = if watched { NO_NOTIFY } else { 0 };
            self.rings.set_half(memory, Part::Used, 0, self.flags)?;
        }
        self.device.set_interrupts(!watched, memory.host);
        if watched {
            return Ok(Served::default());
        }
        // Events before each side saw the switch are found now (§2.7.7.2, §2.7.10).
        let returned = self.return_ended(now, memory)?;
        Ok(Served {
            interrupt: returned.unwrap_or(false),
            passed: self.pass_at_most(MAX_DESCRIPTORS_PER_POLL, now, memory)?,
        })
    }
}

impl Passed {
    const fn add(&mut self, other: Self) {
        self.any |= other.any;
        self.more |= other.more;
        self.fast += other.fast;
        self.general += other.general;
    }
}
