//! Inbox of one receiver: the frames that wait, and the owners of its slots.
//!
//! A slot is free, [reserved](Inbox::reserve) by a sender that copies a frame into it, [waiting](Inbox::commit), or with the uplink's card. Half of
//! the slots are divided among the senders and kept for them, so that one that floods the receiver takes no slot of another's. The other half
//! is for senders that need more.

use alloc::collections::VecDeque;

use super::frame::Parcel;

/// The most members of a switch: a port for each VM, and the uplink.
pub const MEMBERS: usize = abi::system::MAX_VMS + 1;

/// Slots of an inbox, a bit each.
pub const SLOTS: u8 = u64::BITS as u8;

/// A sender to the inbox, by its number in the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sender(pub u8);

/// An inbox.
#[derive(Debug)]
pub struct Inbox {
    /// Set if its owner takes frames.
    open: bool,
    /// Free slots, a bit each.
    free: u64,
    /// Sender that has, or had, each slot.
    sender: [Sender; SLOTS as usize],
    /// Slots that each sender has, and slots that are reserved for it.
    held: [u8; MEMBERS],
    kept: u8,
    /// Free slots that are reserved for senders that have not as many yet.
    owed: u8,
    waiting: VecDeque<(u8, Parcel)>,
    missed: u32,
}

impl Inbox {
    /// An inbox of a switch with so many members, whose owner takes no frames yet.
    #[must_use]
    pub fn new(members: usize) -> Self {
        let others = members.clamp(2, MEMBERS) as u8 - 1;
        let kept = SLOTS / 2 / others;
        Self {
            open: false,
            free: u64::MAX,
            sender: [Sender(0); SLOTS as usize],
            held: [0; MEMBERS],
            kept,
            owed: kept * others,
            waiting: VecDeque::with_capacity(SLOTS.into()),
            missed: 0,
        }
    }

    /// Lets its owner take frames from now on.
    pub const fn open(&mut self) {
        self.open = true;
    }

    /// Lets its owner take no more frames, and drops the waiting ones. The senders free their reserved slots.
    pub fn close(&mut self) {
        self.open = false;
        self.missed = 0;
        while !self.waiting.is_empty() {
            self.drop_first();
        }
    }

    /// Reserves a slot for a frame. `None` if the owner takes no frames, or the sender has all its slots and the rest are reserved for others.
    pub fn reserve(&mut self, from: Sender) -> Option<u8> {
        if !self.open {
            return None;
        }
        let held = self.held.get_mut(usize::from(from.0))?;
        let is_kept = *held < self.kept;
        if !is_kept && self.free.count_ones() <= self.owed.into() {
            self.missed = self.missed.saturating_add(1);
            return None;
        }
        // What is owed is free.
        let slot = self.free.trailing_zeros() as u8;
        *held += 1;
        self.owed = self.owed.saturating_sub(is_kept.into());
        self.free &= !(1 << slot);
        if let Some(sender) = self.sender.get_mut(usize::from(slot)) {
            *sender = from;
        }
        Some(slot)
    }

    /// Commits a frame in its reserved slot. Returns false if the owner takes no frames any more.
    pub fn commit(&mut self, slot: u8, parcel: Parcel) -> bool {
        if self.open {
            self.waiting.push_back((slot, parcel));
        } else {
            self.free(slot);
        }
        self.open
    }

    /// Frees a slot.
    pub fn free(&mut self, slot: u8) {
        let bit = 1_u64.checked_shl(slot.into()).unwrap_or(0);
        if self.free & bit != 0 {
            return;
        }
        self.free |= bit;
        let sender = self.sender.get(usize::from(slot)).copied();
        let held = sender.and_then(|sender| self.held.get_mut(usize::from(sender.0)));
        if let Some(held) = held {
            *held = held.saturating_sub(1);
            self.owed += u8::from(*held < self.kept);
        }
    }

    /// Number of frames that wait.
    #[must_use]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Oldest waiting frame.
    #[must_use]
    pub fn first(&self) -> Option<(u8, Parcel)> {
        self.waiting.front().copied()
    }

    /// Drops the oldest waiting frame.
    pub fn drop_first(&mut self) {
        if let Some((slot, _)) = self.waiting.pop_front() {
            self.free(slot);
        }
    }

    /// Number of frames dropped for lack of room since the last call.
    pub const fn take_missed(&mut self) -> u32 {
        core::mem::replace(&mut self.missed, 0)
    }
}
