//! The queue that a device of the board really works on: it lies in the hypervisor's memory, where no guest changes it.
//!
//! Its descriptors, its available ring and its used ring follow each other in one area of [`AREA`] bytes. What the hypervisor needs to
//! know of it, it keeps itself: from the area it reads nothing but what the device has returned.

use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use super::chain::{DESCRIPTOR, Piece, Wrong, descriptor};
use crate::memory::address::HostPhysical;
use crate::memory::guest::HostMemory;

/// The most entries of a queue, its descriptors: a chain has as many pieces at most.
pub const MOST_ENTRIES: u16 = 256;
/// Bytes of an area: for the descriptors, the available ring and the used ring of as many entries as there can be.
pub const AREA: u64 = 8 << 10;
/// Where in the area the available ring begins, and the used ring, whose entries begin on 8 bytes so.
const AVAILABLE: u64 = DESCRIPTOR * MOST_ENTRIES as u64;
const USED: u64 = AVAILABLE + 0x804;

/// A chain under way.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// The head of the guest's chain that it stands for.
    guest: u16,
    /// How many descriptors it has.
    length: u16,
}

/// A queue of the device.
#[derive(Debug)]
pub struct Shadow {
    area: HostPhysical,
    entries: u16,
    free: Vec<u16>,
    /// What follows each descriptor in its chain.
    next: Vec<u16>,
    /// By head: what is under way.
    under_way: Vec<Option<Chain>>,
    available: u16,
    used: u16,
}

impl Shadow {
    /// An empty queue of `entries`, a power of two and at most [`MOST_ENTRIES`], in `area`.
    #[must_use]
    pub fn new(area: HostPhysical, entries: u16, host: &dyn HostMemory) -> Self {
        let count = usize::from(entries);
        host.zero(area, AREA);
        Self {
            area,
            entries,
            free: (0..entries).rev().collect(),
            next: vec![0; count],
            under_way: vec![None; count],
            available: 0,
            used: 0,
        }
    }

    /// Where the device finds the descriptors, the available ring and the used ring.
    #[must_use]
    pub fn parts(&self) -> [HostPhysical; 3] {
        [0, AVAILABLE, USED].map(|offset| self.at(offset))
    }

    /// How many pieces a chain can have.
    #[must_use]
    pub fn most(&self) -> usize {
        self.entries.into()
    }

    /// The area lies in the host's memory, so that its addresses do not overflow.
    fn at(&self, offset: u64) -> HostPhysical {
        HostPhysical::new(self.area.raw().wrapping_add(offset))
    }

    /// Has the device do what the guest's chain `guest` asks for. False where there is no room, and nothing has happened.
    pub fn put(&mut self, guest: u16, pieces: &[Piece], host: &dyn HostMemory) -> bool {
        if pieces.is_empty() || pieces.len() > self.free.len() {
            return false;
        }
        let mut following = None;
        for piece in pieces.iter().rev() {
            let Some(number) = self.free.pop() else {
                return false;
            };
            let words = descriptor(*piece, following).map(u64::to_le);
            host.set_pair(self.at(DESCRIPTOR * u64::from(number)), words);
            if let Some(next) = self.next.get_mut(usize::from(number)) {
                *next = following.unwrap_or_default();
            }
            following = Some(number);
        }
        let Some(head) = following else { return false };
        if let Some(place) = self.under_way.get_mut(usize::from(head)) {
            *place = Some(Chain {
                guest,
                length: pieces.len() as u16,
            });
        }
        let place = u64::from(self.available % self.entries);
        host.set_half(self.at(AVAILABLE + 4 + 2 * place), head.to_le());
        self.available = self.available.wrapping_add(1);
        // The device must see the chain before it sees that there is one (virtio 1.2, §2.7.13.3).
        fence(Ordering::Release);
        // Flags zero: the device interrupts.
        host.set_word(
            self.at(AVAILABLE),
            (u32::from(self.available) << 16).to_le(),
        );
        true
    }

    /// The next chain that the device has ended: the head of the guest's, and the bytes that were written.
    ///
    /// # Errors
    /// [`Wrong::Device`], where it is none that was under way.
    pub fn take(&mut self, host: &dyn HostMemory) -> Result<Option<(u16, u32)>, Wrong> {
        // The used ring's first word shares its doubleword with padding in front of it.
        let index = (u64::from_le(host.doubleword(self.at(USED - 4))) >> 48) as u16;
        if index == self.used {
            return Ok(None);
        }
        fence(Ordering::Acquire);
        let offset = USED + 4 + 8 * u64::from(self.used % self.entries);
        let entry = u64::from_le(host.doubleword(self.at(offset)));
        self.used = self.used.wrapping_add(1);
        let (head, written) = (entry as u32, (entry >> 32) as u32);
        let place = self.under_way.get_mut(head as usize);
        let chain = place.and_then(Option::take).ok_or(Wrong::Device)?;
        let mut number = head as u16;
        for _ in 0..chain.length {
            self.free.push(number);
            let next = self.next.get(usize::from(number));
            number = next.copied().unwrap_or_default();
        }
        Ok(Some((chain.guest, written)))
    }
}
