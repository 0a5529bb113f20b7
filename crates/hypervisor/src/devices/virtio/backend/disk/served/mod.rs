//! Operations of a disk that a program in another VM's guest carries out: requests, grants and answers.
//!
//! An operation that begins takes a slot. The pages of its data appear in the slot's part of the serving VM's window, which is the grant: read-only
//! where the disk only reads. The request is written where the serving guest reads and does not write. The program answers in a page that it
//! writes, of which each word is read once. An answer counts if it is for an operation that is under way, and the first for it.
//!
//! A slot ends in two steps. First its pages leave the window. Then, when no hart can have a translation of them any more, the client is told.
//! A slot whose client is gone is taken back at once, and is not used again before the program has answered or begun another life: the
//! program may still work on what was asked there.
//!
//! Nothing here is allocated: the tables of the window and the rings were reserved when the system was assembled.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use core::sync::atomic::{Ordering, fence};

use abi::serve::{PIECES, SLOT_PAGES, SLOTS, WINDOW_BYTES, request, ring};
use riscv::virtio::block::SECTOR_BYTES;

use super::fair::{Charged, MAX_SECTORS};
use super::table::{Described, MAX_PIECES, outcome};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::driver::{Board, ServerNumber};
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::gstage::{Permissions, leaf};
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

/// Bytes of an entry of a table.
const ENTRY_BYTES: u64 = 8;
/// Bytes of the tables whose entries are a disk's part of the window.
pub const TABLE_BYTES: u64 = WINDOW_BYTES / PAGE_SIZE * ENTRY_BYTES;
/// Bytes of a disk's requests and answers.
pub const RING_BYTES: u64 = ring::USED_BYTES;
/// Pieces of a request of which each may lie in two pages: with more, a request may need more pages than a slot has.
pub const SEGMENTS: u32 = 112;

const _: () = assert!(PIECES == MAX_PIECES, "each operation can be asked");
const _: () =
    assert!(2 * SEGMENTS as u64 + MAX_SECTORS * SECTOR_BYTES / PAGE_SIZE <= SLOT_PAGES as u64);

/// Place of a served disk in the VM that serves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub server: ServerNumber,
    /// The device of the serving VM.
    pub client: Client,
    /// Requests and answers: [`RING_BYTES`].
    pub ring: OwnedRegion,
    /// The tables of the window: [`TABLE_BYTES`].
    pub tables: OwnedRegion,
}

/// Outcome of asking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Asked {
    /// The request is in the ring.
    Done,
    /// No slot is free, or no program serves.
    NoRoom,
    /// The data lies in more pages than a slot has.
    TooLong,
}

/// An operation whose slot is free again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Number by which it was asked.
    pub number: u16,
    /// The client wants to hear of it no more.
    pub is_dropped: bool,
    /// Status that the program has answered; none if it ended without an answer.
    pub answer: Option<u8>,
    /// Bytes of data that were written into the client's memory.
    pub written: u32,
    pub charged: Charged,
}

/// A slot in use.
#[derive(Clone, Copy, Debug)]
struct Slot {
    number: u16,
    id: u32,
    charged: Charged,
    /// Bytes of data, and whether the program writes them.
    bytes: u32,
    is_written: bool,
    /// Pages in the window.
    pages: usize,
    /// Set while a hart may have a translation of a page that has left the window.
    is_leaving: bool,
    is_dropped: bool,
    answer: Option<u8>,
}

/// State of the operations at the program.
#[derive(Debug)]
pub struct Served {
    place: Place,
    slots: [Option<Slot>; SLOTS],
    /// Set while a program serves.
    is_live: bool,
    /// Requests and answers of the program's life, modulo 2^32.
    asked: u32,
    answered: u32,
    next_id: u32,
    /// Generation of the serving VM's table after the last page left the window.
    generation: u64,
    /// Answers that were refused.
    refused: u32,
}

impl Served {
    /// State before the program's first life.
    #[must_use]
    pub fn new(place: Place, host: TheHost<'_>) -> Self {
        host.zero(place.ring);
        host.zero(place.tables);
        Self {
            place,
            slots: [None; SLOTS],
            is_live: false,
            asked: 0,
            answered: 0,
            next_id: 0,
            generation: 0,
            refused: 0,
        }
    }

    /// Its place.
    #[must_use]
    pub const fn place(&self) -> &Place {
        &self.place
    }

    /// Answers that were refused, modulo 2^32.
    #[must_use]
    pub const fn refused(&self) -> u32 {
        self.refused
    }

    /// Tests whether the program has requests that it has not seen, by its own account.
    #[must_use]
    pub fn is_pending(&self, host: TheHost<'_>) -> bool {
        let seen = (self.answers_page(host) >> 32) as u32;
        self.is_live && self.asked.wrapping_sub(seen).cast_signed() > 0
    }

    /// The words `ANSWERED` and `WAKE_AT`, read once.
    fn answers_page(&self, host: TheHost<'_>) -> u64 {
        u64::from_le(host.doubleword(self.place.ring.skip(ring::ANSWERED)))
    }

    /// Asks for an operation: grants its pages, and writes the request.
    pub fn ask(
        &mut self,
        number: u16,
        charged: Charged,
        page: OwnedRegion,
        host: TheHost<'_>,
    ) -> Asked {
        let operation = Described::read(page, host);
        let free = self.slots.iter().position(Option::is_none);
        let Some(place) = free.filter(|_| self.is_live) else {
            return Asked::NoRoom;
        };
        let id = self.next_id;
        let record = self.place.ring.skip(place as u64 * ring::REQUEST_BYTES);
        let entries = self.entries(place);
        let (mut pages, mut pieces, mut bytes, mut is_written) = (0, 0, 0_u64, false);
        let mut last = None;
        for (address, length, written) in operation.data(page, host) {
            is_written = written;
            let first = address.align_down(PAGE_SIZE);
            // A piece may go on where the one before it ends.
            let begins = pages - usize::from(last == Some(first));
            let offset = begins as u64 * PAGE_SIZE + (address.raw() - first.raw());
            let end = address.raw().saturating_add(length);
            let covered = end.saturating_sub(first.raw()).div_ceil(PAGE_SIZE);
            let needed = begins.saturating_add(covered as usize);
            if needed > SLOT_PAGES || pieces == PIECES {
                clear(entries, pages, host);
                return Asked::TooLong;
            }
            let permissions = match written {
                true => Permissions::DEVICE,
                false => Permissions::READ_ONLY,
            };
            for index in begins..needed {
                let at = HostPhysical::new(first.raw() + (index - begins) as u64 * PAGE_SIZE);
                let entry = entries.skip(index as u64 * ENTRY_BYTES);
                host.set_doubleword(entry, leaf(at, permissions));
                last = Some(at);
            }
            let piece = request::PIECE + pieces as u64 * request::PIECE_BYTES;
            host.set_doubleword(record.skip(piece), (offset | length << 32).to_le());
            (pages, pieces, bytes) = (needed, pieces + 1, bytes + length);
        }
        let head = [
            u64::from(id) | u64::from(operation.kind) << 32,
            operation.sector,
        ];
        host.set_pair(record, head.map(u64::to_le));
        let rest = bytes | (pieces as u64) << 32;
        host.set_doubleword(record.skip(request::DATA_BYTES), rest.to_le());
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = Some(Slot {
                number,
                id,
                charged,
                bytes: bytes as u32,
                is_written,
                pages,
                is_leaving: false,
                is_dropped: false,
                answer: None,
            });
        }
        self.next_id = id.wrapping_add(1);
        self.publish(place, host);
        Asked::Done
    }

    fn publish(&mut self, slot: usize, host: TheHost<'_>) {
        let entry = ring::ASKED_SLOTS + 4 * (self.asked as usize % SLOTS) as u64;
        host.set_word(self.place.ring.skip(entry), (slot as u32).to_le());
        self.asked = self.asked.wrapping_add(1);
        // The request, its pages and its entry come before the index that says that they are there.
        fence(Ordering::Release);
        host.set_word(self.place.ring.skip(ring::ASKED), self.asked.to_le());
        // What the program says that it has seen is read after that.
        fence(Ordering::SeqCst);
    }

    /// Takes the program's answers. Each slot that was answered is about to leave the window.
    pub fn take_answers(&mut self, board: &dyn Board) {
        let host = board.host();
        let new = (self.answers_page(host) as u32).wrapping_sub(self.answered);
        if !self.is_live || new == 0 {
            return;
        }
        if new as usize > SLOTS {
            self.refused = self.refused.wrapping_add(1);
            return;
        }
        // The answers are read after the index that says that they are there.
        fence(Ordering::Acquire);
        let mut any = false;
        for _ in 0..new {
            let place = ring::ANSWER_BYTES * (self.answered as usize % SLOTS) as u64;
            let at = self.place.ring.skip(ring::ANSWERS + place);
            let [first, second] = host.pair(at).map(u64::from_le);
            self.answered = self.answered.wrapping_add(1);
            match self.answer(first, second) {
                Some(slot) => any |= self.take_back(slot, host),
                None => self.refused = self.refused.wrapping_add(1),
            }
        }
        if any {
            self.generation = board.window_changed(self.place.server);
        }
    }

    /// Notes an answer; `None` if it is for no slot that waits for one.
    fn answer(&mut self, first: u64, second: u64) -> Option<usize> {
        let (place, id) = (first as u32 as usize, (first >> 32) as u32);
        let (status, bytes) = (second as u32, (second >> 32) as u32);
        let slot = self.slots.get_mut(place)?.as_mut()?;
        if slot.id != id || slot.answer.is_some() {
            return None;
        }
        let status = u8::try_from(status).unwrap_or(outcome::ERROR);
        slot.answer = Some(match status {
            outcome::OK if bytes == slot.bytes => outcome::OK,
            outcome::UNSUPPORTED => outcome::UNSUPPORTED,
            _ => outcome::ERROR,
        });
        Some(place)
    }

    /// Takes a slot's pages out of the window. Returns true if a hart may have translations of them.
    fn take_back(&mut self, place: usize, host: TheHost<'_>) -> bool {
        let entries = self.entries(place);
        let Some(Some(slot)) = self.slots.get_mut(place) else {
            return false;
        };
        let pages = core::mem::take(&mut slot.pages);
        clear(entries, pages, host);
        slot.is_leaving |= pages > 0;
        pages > 0
    }

    /// Takes back all slots for which `is_wanted` says so.
    fn take_back_all(&mut self, board: &dyn Board, is_wanted: impl Fn(u16) -> bool) {
        let mut any = false;
        for place in 0..SLOTS {
            let slot = self.slots.get(place).copied().flatten();
            if slot.is_some_and(|slot| is_wanted(slot.number)) {
                any |= self.take_back(place, board.host());
            }
        }
        if any {
            self.generation = board.window_changed(self.place.server);
        }
    }

    /// Takes back the operations of these numbers for good: their client is gone. Returns true once no hart can reach their pages. Until then
    /// this is called again.
    #[must_use]
    pub fn forget(&mut self, board: &dyn Board, is_wanted: impl Fn(u16) -> bool) -> bool {
        self.take_back_all(board, &is_wanted);
        if !self.are_pages_gone(board) {
            return false;
        }
        let slots = self.slots.iter_mut().flatten();
        for slot in slots.filter(|slot| is_wanted(slot.number)) {
            slot.is_dropped = true;
        }
        true
    }

    /// Ends the program's life: takes everything back, and asks for nothing more.
    pub fn stop(&mut self, board: &dyn Board) {
        self.is_live = false;
        self.take_back_all(board, |_| true);
    }

    /// Begins a life of the program, if all of the last one has [settled](Self::next_settled).
    #[must_use]
    pub fn start(&mut self, host: TheHost<'_>) -> bool {
        if self.slots.iter().any(Option::is_some) {
            return false;
        }
        host.zero(self.place.ring);
        (self.asked, self.answered) = (0, 0);
        self.is_live = true;
        true
    }

    /// Tests whether no hart has a translation of a page that has left the window. The harts that may have are told to leave their guest.
    #[must_use]
    pub fn are_pages_gone(&mut self, board: &dyn Board) -> bool {
        let mut slots = self.slots.iter_mut().flatten();
        if !slots.any(|slot| slot.is_leaving) {
            return true;
        }
        if board.uses_older(self.place.server, self.generation) {
            return false;
        }
        for slot in self.slots.iter_mut().flatten() {
            slot.is_leaving = false;
        }
        true
    }

    /// Frees a slot that has ended and whose pages are gone: one that was answered, the first that was asked before others; between two lives
    /// of the program any, the last that was asked before others.
    pub fn next_settled(&mut self) -> Option<Settled> {
        let (is_live, next) = (self.is_live, self.next_id);
        let slots = self.slots.iter().enumerate();
        let ended = slots.filter_map(|(place, slot)| {
            let slot = slot.as_ref()?;
            let has_ended = slot.answer.is_some() || !is_live;
            let age = next.wrapping_sub(slot.id);
            let key = if is_live { u32::MAX - age } else { age };
            (has_ended && !slot.is_leaving).then_some((key, place))
        });
        let (_, place) = ended.min()?;
        let slot = self.slots.get_mut(place)?.take()?;
        let is_read = slot.is_written && slot.answer == Some(outcome::OK);
        Some(Settled {
            number: slot.number,
            is_dropped: slot.is_dropped,
            answer: slot.answer,
            written: if is_read { slot.bytes } else { 0 },
            charged: slot.charged,
        })
    }

    /// Entries of a slot's pages.
    fn entries(&self, slot: usize) -> OwnedRegion {
        let bytes = SLOT_PAGES as u64 * ENTRY_BYTES;
        self.place.tables.skip(slot as u64 * bytes).take(bytes)
    }
}

/// Clears the first entries.
fn clear(entries: OwnedRegion, count: usize, host: TheHost<'_>) {
    for index in 0..count as u64 {
        host.set_doubleword(entries.skip(index * ENTRY_BYTES), 0);
    }
}
