//! The operations that begin next.

use super::fair::{Charged, Work};
use super::served::Asked;
use super::table::descriptors;
use super::{Backing, DEPTH, Disk, Ended, MAX_SECTORS_IN_FLIGHT, REQUEST_QUEUE, SLOTS};
use crate::devices::virtio::client::Clients;
use crate::devices::virtio::driver::Board;
use crate::devices::virtio::queue::chain::DESCRIPTOR_BYTES;
use crate::memory::guest::TheHost;

impl Disk {
    /// Starts the operations that may start now. Returns the devices to poll: those whose operations have ended
    /// because the disk has failed, and the device of the VM that serves the disk.
    pub fn begin(&mut self, board: &dyn Board) -> Clients {
        if self.failed {
            return self.end_staged();
        }
        let (mut any, now) = (false, board.time());
        let mut told = Clients::NONE;
        while let Some(next) = self.next() {
            if !self.begin_one(next, now, board.host(), &mut told) {
                break;
            }
            any = true;
        }
        match &self.backing {
            Backing::Board { driver, .. } if any => driver.notify(REQUEST_QUEUE, board),
            Backing::Served(served) if any => told.insert(served.place().client),
            _ => {}
        }
        told
    }

    /// Ends what is staged for a device that has failed.
    #[cold]
    fn end_staged(&mut self) -> Clients {
        let mut told = Clients::NONE;
        for slice in self
            .slices
            .iter_mut()
            .filter(|slice| !slice.staged.is_empty())
        {
            let staged = slice.staged.drain(..);
            slice.ended.extend(staged.map(Ended::failed));
            told.insert(slice.client);
        }
        told
    }

    /// Slice that begins next: the one with the least virtual time, among those with a staged operation. None while there is no room for it, since
    /// the others have had more, or while it is far ahead of a slice with operations in flight: those may be all that the other can have, and it
    /// would not get its share behind this one's. Every completion makes the choice again.
    fn next(&self) -> Option<usize> {
        let slices = || self.slices.iter().enumerate();
        let staged = slices().filter_map(|(index, slice)| Some((index, slice.next_sectors()?)));
        let (index, sectors) = staged.min_by_key(|(index, _)| self.fair.time(*index))?;
        let slice = self.slices.get(index)?;
        let active = slices().filter(|(_, slice)| slice.in_flight > 0);
        let least = active.map(|(index, _)| self.fair.time(index)).min();
        let ahead = Work::Sectors(MAX_SECTORS_IN_FLIGHT);
        if least.is_some_and(|least| self.fair.is_ahead(index, least, ahead)) {
            return None;
        }
        let part = (DEPTH / 2 / self.slices.len()).max(1);
        let has_depth = self.in_flight < DEPTH || slice.in_flight < part;
        let fits = self.sectors_in_flight + sectors <= MAX_SECTORS_IN_FLIGHT;
        (has_depth && (fits || slice.in_flight == 0)).then_some(index)
    }

    /// Begins the next operation of a slice. Returns false if there is no room for it.
    fn begin_one(&mut self, index: usize, now: u64, host: TheHost<'_>, told: &mut Clients) -> bool {
        let Some(slice) = self.slices.get_mut(index) else {
            return false;
        };
        let Some(slot) = slice.staged.front().copied() else {
            return false;
        };
        let page = slice.page(slot);
        let number = (index * SLOTS + slot.0) as u16;
        let mut begun = Charged::NONE;
        if let Some(charged) = slice.operations.get_mut(slot.0) {
            charged.began = now;
            charged.estimate = self.fair.estimate(charged.work);
            begun = *charged;
        }
        let asked = match &mut self.backing {
            Backing::Board { ring, .. } => {
                let bytes = u64::from(descriptors(page, host)) * DESCRIPTOR_BYTES;
                match ring.put_table(number, page.take(bytes).region(), host) {
                    true => Asked::Done,
                    false => Asked::NoRoom,
                }
            }
            Backing::Served(served) => served.ask(number, begun, page, host),
        };
        if asked == Asked::NoRoom {
            return false;
        }
        slice.staged.pop_front();
        if asked == Asked::TooLong {
            slice.ended.push_back(Ended::failed(slot));
            told.insert(slice.client);
            return true;
        }
        if self.in_flight == 0 {
            self.busy_since = now;
        }
        slice.in_flight += 1;
        self.in_flight += 1;
        slice.sectors += begun.work.sectors();
        self.sectors_in_flight += begun.work.sectors();
        self.fair.begins(index, begun.estimate);
        true
    }
}
