//! A disk that a program in another VM's guest serves: the operations of slices, and the lives of the program.

use alloc::boxed::Box;

use super::served::{Place, Served, Settled};
use super::{Backing, Disk, Ended, FLUSH, JustEnded, SLOTS, SliceNumber, SlotNumber};
use crate::devices::virtio::client::Clients;
use crate::devices::virtio::driver::Board;

impl Disk {
    /// A disk of so many sectors that a program serves.
    #[must_use]
    pub fn served(place: Place, sectors: u64, board: &dyn Board) -> Self {
        let served = Box::new(Served::new(place, board.host()));
        Self::new(Backing::Served(served), FLUSH, sectors)
    }

    /// State of the operations at the program, if one serves the disk.
    #[must_use]
    pub fn at_program(&self) -> Option<&Served> {
        match &self.backing {
            Backing::Board { .. } => None,
            Backing::Served(served) => Some(served),
        }
    }

    fn at_program_mut(&mut self) -> Option<&mut Served> {
        match &mut self.backing {
            Backing::Board { .. } => None,
            Backing::Served(served) => Some(served),
        }
    }

    /// Takes the answers of the program that serves the disk. Returns the devices to poll, and false if a hart may still reach pages that
    /// were taken back: then this is called again.
    pub fn take_answers(&mut self, board: &dyn Board) -> (Clients, bool) {
        if let Some(served) = self.at_program_mut() {
            served.take_answers(board);
        }
        let is_done = self.settle(board);
        let mut told = self.begin(board);
        self.tell_ended(&mut told);
        (told, is_done)
    }

    /// Looks whether the program or a client has anything to do that was missed. Returns the devices to poll.
    pub(super) fn look_at_program(&mut self, board: &dyn Board) -> Clients {
        let (mut told, _) = self.take_answers(board);
        if let Some(served) = self.at_program()
            && served.is_pending(board.host())
        {
            told.insert(served.place().client);
        }
        told
    }

    /// Takes everything back from the program, which asks and answers no more. What was under way waits for the next life in the order in which it was
    /// asked.
    pub fn stop_program(&mut self, board: &dyn Board) {
        if let Some(served) = self.at_program_mut() {
            served.stop(board);
            let _ = self.settle(board);
        }
    }

    /// Begins a life of the program. Returns the devices to poll; `None` while a hart may still reach pages of the last life: then this is called
    /// again.
    pub fn start_program(&mut self, board: &dyn Board) -> Option<Clients> {
        let _ = self.settle(board);
        let host = board.host();
        if !self.at_program_mut()?.start(host) {
            return None;
        }
        let mut told = self.begin(board);
        self.tell_ended(&mut told);
        Some(told)
    }

    /// Ends operations whose pages are gone. Returns false if a hart may still reach pages of others.
    fn settle(&mut self, board: &dyn Board) -> bool {
        let before = self.in_flight;
        self.just_ended.clear();
        let Backing::Served(served) = &mut self.backing else {
            return true;
        };
        if !served.are_pages_gone(board) {
            return false;
        }
        for _ in 0..SLOTS {
            let Backing::Served(served) = &mut self.backing else {
                break;
            };
            let Some(settled) = served.next_settled() else {
                break;
            };
            self.end(settled);
        }
        self.charge(board.time(), before);
        true
    }

    fn end(&mut self, settled: Settled) {
        let index = usize::from(settled.number) / SLOTS;
        let slot = SlotNumber(usize::from(settled.number) % SLOTS);
        let charged = settled.charged;
        let sectors = charged.work.sectors();
        let Some(slice) = self.slices.get_mut(index) else {
            return;
        };
        slice.in_flight = slice.in_flight.saturating_sub(1);
        slice.sectors = slice.sectors.saturating_sub(sectors);
        self.in_flight = self.in_flight.saturating_sub(1);
        self.sectors_in_flight = self.sectors_in_flight.saturating_sub(sectors);
        match settled.answer {
            Some(status) => {
                self.just_ended.push(JustEnded {
                    slice: index,
                    charged,
                });
                if !settled.is_dropped {
                    slice.ended.push_back(Ended {
                        slot,
                        status,
                        written: settled.written.saturating_add(1),
                    });
                }
            }
            None => {
                // The client is not charged for what was not done.
                self.fair.ends(index, charged.estimate, 0);
                if !settled.is_dropped {
                    slice.staged.push_front(slot);
                }
            }
        }
    }

    /// Drops all of a slice's operations. Returns true once no hart of the serving VM can reach their pages.
    pub(super) fn forget_served(&mut self, number: SliceNumber, board: &dyn Board) -> bool {
        if let Some(slice) = self.slices.get_mut(number.0) {
            let staged = slice.staged.drain(..);
            let ended = slice.ended.drain(..).map(|ended| ended.slot);
            for slot in staged.chain(ended) {
                slice.free |= 1 << slot.0;
            }
        }
        let Backing::Served(served) = &mut self.backing else {
            return true;
        };
        let is_of_slice = |of: u16| usize::from(of) / SLOTS == number.0;
        if !served.forget(board, is_of_slice) {
            return false;
        }
        if let Some(slice) = self.slices.get_mut(number.0) {
            slice.free = u32::MAX;
        }
        let _ = self.settle(board);
        true
    }
}
