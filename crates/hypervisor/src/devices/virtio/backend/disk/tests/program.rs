//! The serving VM's guest: it reaches the window by the tables that the hypervisor keeps, as a hart does, and answers as it likes.

use abi::serve::{SLOT_BYTES, SLOT_PAGES, SLOTS, request, ring};
use riscv::page_table::{PPN_MASK, PPN_SHIFT, VALID, WRITE};

use super::super::served::{Place, RING_BYTES, TABLE_BYTES};
use super::super::*;
use super::guest::*;
use super::world::*;
use crate::devices::virtio::driver::ServerNumber;

const RING: u64 = 0x38_0000;
const TABLES: u64 = 0x3a_0000;
const SERVER: Client = match Client::new(200) {
    Some(client) => client,
    None => panic!("a client"),
};

/// A request as the program reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub slot: u32,
    pub id: u32,
    pub kind: u32,
    pub sector: u64,
    pub bytes: u32,
    /// Offsets in the slot's part of the window, and bytes.
    pub pieces: Vec<(u32, u32)>,
}

/// The guest.
#[derive(Default)]
pub struct Program {
    seen: u32,
    answers: u32,
}

/// A disk that a program serves, and the guests that have slices of it.
pub fn served_system(shares: &[u32]) -> (World, Vec<Guest>) {
    system_with(shares, 0, |world| {
        let place = Place {
            server: ServerNumber(9),
            client: SERVER,
            ring: OwnedRegion::for_test(RING, RING_BYTES),
            tables: OwnedRegion::for_test(TABLES, TABLE_BYTES),
        };
        Disk::served(place, first_of(shares.len()), world)
    })
}

/// Does something with the disk, and has the guests look that are told.
pub fn with_disk<T>(
    world: &World,
    guests: &mut [Guest],
    act: impl FnOnce(&mut Disk, &World) -> (Clients, T),
) -> T {
    let (mut told, result) = act(world.disk.borrow_mut().as_mut().unwrap(), world);
    // A guest that looks may ask for more, and so others may be told.
    for _ in 0..4 {
        for client in told.iter().filter(|client| *client != SERVER) {
            guests[client.index()].poll(world);
        }
        told = world.notified.take();
    }
    result
}

/// Begins a life of the program. Returns false if that has to wait.
pub fn start(world: &World, guests: &mut [Guest]) -> bool {
    with_disk(world, guests, |disk, world| {
        let told = disk.start_program(world);
        (told.unwrap_or(Clients::NONE), told.is_some())
    })
}

pub fn stop(world: &World) {
    let mut disk = world.disk.borrow_mut();
    disk.as_mut().unwrap().stop_program(world);
}

/// Rings the doorbell. Returns false if that has to wait.
pub fn ring_doorbell(world: &World, guests: &mut [Guest]) -> bool {
    with_disk(world, guests, |disk, world| disk.take_answers(world))
}

pub fn refused(world: &World) -> u32 {
    let disk = world.disk.borrow();
    disk.as_ref().unwrap().at_program().unwrap().refused()
}

pub fn is_pending(world: &World) -> bool {
    let disk = world.disk.borrow();
    let served = disk.as_ref().unwrap().at_program().unwrap();
    served.is_pending(world.host())
}

/// Entry of a page of the window.
pub fn entry(world: &World, page: usize) -> u64 {
    u64::from_le_bytes(world.host.get(TABLES + 8 * page as u64))
}

/// Pages of the window that lead somewhere: the page of the window, the host's page, and whether it can be written.
pub fn granted(world: &World) -> Vec<(usize, u64, bool)> {
    let pages = (0..SLOTS * SLOT_PAGES).map(|page| (page, entry(world, page)));
    let granted = pages.filter(|(_, entry)| entry & VALID != 0);
    granted
        .map(|(page, entry)| {
            let at = (entry >> PPN_SHIFT & PPN_MASK) * PAGE_SIZE;
            (page, at, entry & WRITE != 0)
        })
        .collect()
}

impl Program {
    fn word(world: &World, offset: u64) -> u32 {
        u32::from_le_bytes(world.host.get(RING + offset))
    }

    pub fn set_word(world: &World, offset: u64, value: u32) {
        world.host.set(RING + offset, &value.to_le_bytes());
    }

    /// The next request, if there is one.
    pub fn next(&mut self, world: &World) -> Option<Asked> {
        if Self::word(world, ring::ASKED) == self.seen {
            return None;
        }
        let entry = ring::ASKED_SLOTS + 4 * u64::from(self.seen % SLOTS as u32);
        let slot = Self::word(world, entry);
        self.seen = self.seen.wrapping_add(1);
        Some(Self::read(world, slot))
    }

    pub fn read(world: &World, slot: u32) -> Asked {
        let record = u64::from(slot) * ring::REQUEST_BYTES;
        let word = |offset| Self::word(world, record + offset);
        let pieces = (0..u64::from(word(request::PIECES))).map(|number| {
            let at = request::PIECE + number * request::PIECE_BYTES;
            (word(at), word(at + 4))
        });
        Asked {
            slot,
            id: word(request::ID),
            kind: word(request::KIND),
            sector: u64::from(word(request::SECTOR)) | u64::from(word(request::SECTOR + 4)) << 32,
            bytes: word(request::DATA_BYTES),
            pieces: pieces.collect(),
        }
    }

    pub fn all(&mut self, world: &World) -> Vec<Asked> {
        core::iter::from_fn(|| self.next(world)).collect()
    }

    /// Moves the data of a request, through the window.
    pub fn carry_out(world: &World, asked: &Asked) {
        let mut at = asked.sector as usize * 512;
        for (offset, bytes) in &asked.pieces {
            for byte in u64::from(*offset)..u64::from(offset + bytes) {
                assert!(byte < SLOT_BYTES);
                let page = asked.slot as usize * SLOT_PAGES + (byte / PAGE_SIZE) as usize;
                let entry = entry(world, page);
                assert!(entry & VALID != 0, "the page is granted");
                let place = (entry >> PPN_SHIFT & PPN_MASK) * PAGE_SIZE + byte % PAGE_SIZE;
                let mut sectors = world.sectors.borrow_mut();
                let stored = &mut sectors[at / 512][at % 512];
                match asked.kind {
                    0 => {
                        assert!(entry & WRITE != 0, "data that is read can be written");
                        world.host.set(place, &[*stored]);
                    }
                    _ => *stored = world.host.get::<1>(place)[0],
                }
                at += 1;
            }
        }
    }

    /// Puts an answer.
    pub fn put(&mut self, world: &World, answer: [u32; 4]) {
        let at = ring::ANSWERS + ring::ANSWER_BYTES * u64::from(self.answers % SLOTS as u32);
        for (offset, value) in (0..).step_by(4).zip(answer) {
            Self::set_word(world, at + offset, value);
        }
        self.answers = self.answers.wrapping_add(1);
        Self::set_word(world, ring::ANSWERED, self.answers);
    }

    /// Answers that a request went well.
    pub fn answer(&mut self, world: &World, asked: &Asked) {
        self.put(world, [asked.slot, asked.id, 0, asked.bytes]);
    }
}
