//! Queue that a device of the board really works on: it lies in the hypervisor's memory, where no guest changes it.
//!
//! Its descriptors, its available ring and its used ring follow each other in one area of [`AREA`] bytes. The hypervisor keeps
//! its own state of the queue: from the area it reads only the device's completions.

use alloc::vec::Vec;
use core::sync::atomic::{Ordering, fence};

use riscv::virtio::queue::NO_INTERRUPT;

use super::chain::{DESCRIPTOR_BYTES, INDIRECT, NEXT, Piece, QueueError, WRITE};
use crate::memory::address::{HostPhysical, HostRegion};
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;
use crate::sort::sort_by_key;

/// The most entries of a queue, its descriptors: a chain has as many pieces at most.
pub const MAX_ENTRIES: u16 = 256;
/// Bytes of an area: for the descriptors, the available ring and the used ring of as many entries as there can be.
pub const AREA: u64 = 8 << 10;
/// Offsets of the available ring and of the used ring, whose entries are aligned to 8 bytes so (virtio 1.2, §2.7.6 and §2.7.8).
const AVAILABLE: u64 = DESCRIPTOR_BYTES * MAX_ENTRIES as u64;
const USED: u64 = (AVAILABLE + AVAILABLE_BYTES).next_multiple_of(8) + 4;
const AVAILABLE_BYTES: u64 = 6 + 2 * MAX_ENTRIES as u64;
const USED_BYTES: u64 = 6 + 8 * MAX_ENTRIES as u64;
/// A device writes all of a used ring: it must not reach into the next queue's descriptors.
const _: () = assert!(USED + USED_BYTES <= AREA);

/// Chain in flight.
#[derive(Clone, Copy, Debug)]
struct Chain {
    /// Head of the guest's chain that it stands for.
    guest: u16,
    /// Number of its descriptors, and the last of them.
    length: u16,
    last: u16,
    /// The index of the available ring that it was put at.
    order: u16,
}

/// Chain that is being built of free descriptors.
#[derive(Clone, Copy, Debug)]
pub struct Draft {
    /// Index of its next descriptor, and of its last one.
    next: u16,
    last: u16,
    length: u16,
}

/// A queue of the device. It keeps its storage for as long as there is the device, whoever uses it.
#[derive(Debug)]
pub struct DeviceQueue {
    area: OwnedRegion,
    /// 0 while it is not in use.
    entries: u16,
    /// Successor of each descriptor: in its chain, or among the free descriptors.
    next: Vec<u16>,
    /// The first descriptor that is free, and how many are.
    first_free: u16,
    free: u16,
    /// Chains in flight, by head, and their number.
    in_flight: Vec<Option<Chain>>,
    count: u16,
    available: u16,
    used: u16,
    /// Flags that the device reads in front of the available ring's index (virtio 1.2, §2.7.6).
    flags: u16,
}

impl DeviceQueue {
    /// A queue in `area` that is not in use yet, with storage for [`MAX_ENTRIES`].
    #[must_use]
    pub fn reserve(area: OwnedRegion) -> Self {
        Self {
            area,
            entries: 0,
            next: Vec::with_capacity(MAX_ENTRIES.into()),
            first_free: 0,
            free: 0,
            in_flight: Vec::with_capacity(MAX_ENTRIES.into()),
            count: 0,
            available: 0,
            used: 0,
            flags: 0,
        }
    }

    /// Begins an empty queue of `entries`, a power of two and at most [`MAX_ENTRIES`].
    pub fn begin(&mut self, entries: u16, host: TheHost<'_>) {
        host.zero(self.area.take(AREA));
        self.entries = entries.min(MAX_ENTRIES);
        self.next.clear();
        self.next.extend(1..=self.entries);
        self.in_flight.clear();
        self.in_flight.resize(self.entries.into(), None);
        (self.first_free, self.free, self.count) = (0, self.entries, 0);
        (self.available, self.used, self.flags) = (0, 0, 0);
    }

    /// Ends its use, by a device that was reset.
    pub fn end(&mut self) {
        self.entries = 0;
    }

    /// Returns true while the queue is in use by the device.
    #[must_use]
    pub const fn is_in_use(&self) -> bool {
        self.entries != 0
    }

    /// Queue whose completions do not interrupt. No chain has been put there yet.
    #[must_use]
    pub fn without_interrupts(mut self, host: TheHost<'_>) -> Self {
        self.set_interrupts(false, host);
        self
    }

    /// Switches the device's interrupts on completions. Completions before the device saw that are found by a [poll](Self::ended) afterwards.
    #[inline]
    pub fn set_interrupts(&mut self, wanted: bool, host: TheHost<'_>) {
        self.flags = if wanted { 0 } else { NO_INTERRUPT };
        self.show_available(host);
        fence(Ordering::SeqCst);
    }

    /// Returns true if the device interrupts on completions.
    #[inline]
    #[must_use]
    pub const fn interrupts(&self) -> bool {
        self.flags != NO_INTERRUPT
    }

    /// Chains in flight.
    #[inline]
    #[must_use]
    pub const fn in_flight(&self) -> u16 {
        self.count
    }

    /// Shows the device the flags and the index of the available ring.
    #[inline]
    fn show_available(&self, host: TheHost<'_>) {
        let index = u32::from(self.available) << 16;
        host.set_word(self.at(AVAILABLE), (index | u32::from(self.flags)).to_le());
    }

    /// Addresses of the descriptors, the available ring and the used ring, for the device.
    #[must_use]
    pub fn parts(&self) -> [HostPhysical; 3] {
        [0, AVAILABLE, USED].map(|offset| self.at(offset).base())
    }

    /// Mask that takes an index modulo the entries, which are a power of two. (A division takes ten times as long.)
    #[inline]
    const fn mask(&self) -> u16 {
        self.entries.wrapping_sub(1)
    }

    /// Pieces that a chain can have, which are the entries of the queue.
    #[must_use]
    pub fn max_pieces(&self) -> usize {
        self.entries.into()
    }

    /// The bytes of the area behind the first `offset`.
    fn at(&self, offset: u64) -> OwnedRegion {
        self.area.skip(offset)
    }

    /// A chain without a descriptor yet.
    #[inline]
    #[must_use]
    pub const fn draft(&self) -> Draft {
        Draft {
            next: self.first_free,
            last: self.first_free,
            length: 0,
        }
    }

    /// Adds so many bytes from an address of the host to a draft, which the device does not see yet. Returns false if there is no room.
    #[inline]
    pub fn add(
        &self,
        draft: &mut Draft,
        (address, bytes): (u64, u32),
        written: bool,
        is_last: bool,
        host: TheHost<'_>,
    ) -> bool {
        let number = draft.next;
        let Some(&following) = self.next.get(usize::from(number)) else {
            return false;
        };
        if draft.length >= self.free {
            return false;
        }
        let written = if written { WRITE } else { 0 };
        let link = match is_last {
            true => 0,
            false => u64::from(following) << 48 | u64::from(NEXT) << 32,
        };
        let rest = u64::from(bytes) | u64::from(written) << 32 | link;
        let at = self.at(DESCRIPTOR_BYTES * u64::from(number));
        host.set_pair(at, [address.to_le(), rest.to_le()]);
        draft.last = number;
        draft.next = following;
        draft.length += 1;
        true
    }

    /// Adds the draft to the available ring, for the guest's chain `guest`; the device sees it once it is [published](Self::publish).
    #[inline]
    pub fn commit(&mut self, draft: Draft, guest: u16, host: TheHost<'_>) {
        let head = self.first_free;
        if let Some(place) = self.in_flight.get_mut(usize::from(head)) {
            *place = Some(Chain {
                guest,
                length: draft.length,
                last: draft.last,
                order: self.available,
            });
        }
        self.first_free = draft.next;
        self.free -= draft.length;
        self.count += 1;
        let place = u64::from(self.available & self.mask());
        host.set_half(self.at(AVAILABLE + 4 + 2 * place), head.to_le());
        self.available = self.available.wrapping_add(1);
    }

    /// Shows the device the chains that were [committed](Self::commit).
    #[inline]
    pub fn publish(&self, host: TheHost<'_>) {
        // The device must see the chains before it sees that there are some (virtio 1.2, §2.7.13.3).
        fence(Ordering::Release);
        self.show_available(host);
    }

    /// Gives the guest's chain `guest` to the device. Returns false, and changes nothing, if there is no room.
    pub fn put(&mut self, guest: u16, pieces: &[Piece], host: TheHost<'_>) -> bool {
        if pieces.is_empty() {
            return false;
        }
        let mut draft = self.draft();
        for (index, piece) in pieces.iter().enumerate() {
            let place = (piece.host.base().raw(), piece.host.size() as u32);
            let is_last = index + 1 == pieces.len();
            if !self.add(&mut draft, place, piece.written, is_last, host) {
                return false;
            }
        }
        self.commit(draft, guest, host);
        self.publish(host);
        true
    }

    /// Gives an indirect table of descriptors (virtio 1.2, §2.7.5.3) to the device, for the chain `guest`.
    /// Returns false, and changes nothing, if there is no room.
    pub fn put_table(&mut self, guest: u16, table: HostRegion, host: TheHost<'_>) -> bool {
        let number = self.first_free;
        let Some(&following) = self.next.get(usize::from(number)) else {
            return false;
        };
        if self.free == 0 {
            return false;
        }
        let rest = u64::from(INDIRECT) << 32 | table.size() & 0xffff_ffff;
        let at = self.at(DESCRIPTOR_BYTES * u64::from(number));
        host.set_pair(at, [table.base().raw().to_le(), rest.to_le()]);
        let draft = Draft {
            next: following,
            last: number,
            length: 1,
        };
        self.commit(draft, guest, host);
        self.publish(host);
        true
    }

    /// Visits all memory that chains in flight access, completed ones that were not taken included.
    pub fn for_each_in_flight(&self, host: TheHost<'_>, visit: &mut dyn FnMut(HostRegion)) {
        for (head, chain) in self.in_flight.iter().enumerate() {
            let Some(chain) = chain else { continue };
            let mut number = head as u16;
            for _ in 0..chain.length {
                let at = self.at(DESCRIPTOR_BYTES * u64::from(number));
                let [address, rest] = host.pair(at).map(u64::from_le);
                let bytes = rest & 0xffff_ffff;
                if let Some(region) = HostRegion::new(HostPhysical::new(address), bytes) {
                    visit(region);
                }
                let Some(&next) = self.next.get(usize::from(number)) else {
                    break;
                };
                number = next;
            }
        }
    }

    /// Forgets all chains in flight, which a device that was reset does not have any more.
    pub fn abandon(&mut self) {
        for (next, following) in self.next.iter_mut().zip(1..) {
            *next = following;
        }
        (self.first_free, self.free, self.count) = (0, self.entries, 0);
        self.in_flight.fill(None);
    }

    /// Gives the chains in flight to a device that was reset, in their former order.
    pub fn restart(&mut self, host: TheHost<'_>) {
        let mut heads: [(u16, u16); MAX_ENTRIES as usize] = [(0, 0); MAX_ENTRIES as usize];
        let mut count = 0;
        let chains = (0..).zip(&self.in_flight);
        let chains = chains.filter_map(|(head, chain)| Some((head, (*chain)?.order)));
        for ((head, order), place) in chains.zip(&mut heads) {
            *place = (self.available.wrapping_sub(order), head);
            count += 1;
        }
        let heads = heads.get_mut(..count).unwrap_or_default();
        sort_by_key(heads, |(age, _)| core::cmp::Reverse(*age));
        host.zero(self.at(AVAILABLE).take(AREA - AVAILABLE));
        (self.available, self.used) = (0, 0);
        for (_, head) in heads {
            let place = u64::from(self.available & self.mask());
            host.set_half(self.at(AVAILABLE + 4 + 2 * place), head.to_le());
            if let Some(Some(chain)) = self.in_flight.get_mut(usize::from(*head)) {
                chain.order = self.available;
            }
            self.available = self.available.wrapping_add(1);
        }
        self.publish(host);
    }

    /// Completions that were not taken yet, as the device counts them; it may claim any number.
    #[must_use]
    pub fn ended(&self, host: TheHost<'_>) -> u16 {
        // The used ring's first word shares its doubleword with padding in front of it.
        let index = (u64::from_le(host.doubleword(self.at(USED - 4))) >> 48) as u16;
        fence(Ordering::Acquire);
        index.wrapping_sub(self.used)
    }

    /// Takes the next [completed](Self::ended) chain: the head of the guest's chain, and the bytes that were written.
    ///
    /// # Errors
    /// [`QueueError::Device`], if the chain was not in flight.
    #[inline]
    pub fn take(&mut self, host: TheHost<'_>) -> Result<(u16, u32), QueueError> {
        let offset = USED + 4 + 8 * u64::from(self.used & self.mask());
        let entry = u64::from_le(host.doubleword(self.at(offset)));
        self.used = self.used.wrapping_add(1);
        let (head, written) = (entry as u32, (entry >> 32) as u32);
        let place = self.in_flight.get_mut(head as usize);
        let chain = place.and_then(Option::take).ok_or(QueueError::Device)?;
        // Its descriptors are the first that are free.
        if let Some(next) = self.next.get_mut(usize::from(chain.last)) {
            *next = self.first_free;
        }
        self.first_free = head as u16;
        self.free += chain.length;
        self.count -= 1;
        Ok((chain.guest, written))
    }
}
