//! A disk of the board of which several VMs have slices: the hypervisor drives it.
//!
//! A VM's [`mod@slice`] reads what its guest asks for, checks it, and [puts](Disk::put) it here. Each such operation has a page of the hypervisor's
//! memory in which no guest changes anything: the header with the place on the whole disk, the table of the buffers, and the byte of the
//! status. [`fair`] says which is begun next. What has ended is [taken](Disk::ended) by the slice again, under the lock of its own VM.

pub mod fair;
pub mod request;
pub mod slice;
#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use self::fair::{Fair, Start};
use crate::devices::irq::SourceNumber;
use crate::devices::virtio::client::{Client, Clients};
use crate::devices::virtio::driver::{Board, Driver, DriverError, Features, Interrupt};
use crate::devices::virtio::queue::chain::{DESCRIPTOR, NEXT, Piece, WRITE};
use crate::devices::virtio::queue::device::{AREA, DeviceQueue, MAX_ENTRIES};
use crate::devices::virtio::{DeviceKind, INDIRECT_TABLES};
use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

/// VIRTIO_BLK_F_RO and VIRTIO_BLK_F_FLUSH (§5.2.3).
pub const READ_ONLY: u64 = 1 << 5;
pub const FLUSH: u64 = 1 << 9;
/// Bytes of a sector.
pub const SECTOR: u64 = 512;

/// Operations that one slice can have here.
pub const SLOTS: usize = 32;
/// Bytes of memory for them.
pub const SLICE_BYTES: u64 = SLOTS as u64 * PAGE_SIZE;
/// Bytes of memory for the device's queue.
pub const QUEUE_BYTES: u64 = AREA;
/// Operations that the device has at a time. With fewer it would idle between them, with more a VM that asks for little would wait for
/// all that another has asked for.
pub const DEPTH: usize = 32;

/// Where in an operation's page the header is, and its status; in front of them is the table.
const HEADER_AT: u64 = DESCRIPTOR * 254;
const STATUS_AT: u64 = HEADER_AT + HEADER_BYTES;
/// Bytes of a request's header (§5.2.6).
pub const HEADER_BYTES: u64 = 16;
/// Pieces of data that an operation can have.
pub const MAX_PIECES: usize = 252;
/// Where in its configuration the device says how many sectors it has (§5.2.4).
const CAPACITY: u64 = 0;
/// The queue that requests go through.
const REQUEST_QUEUE: usize = 0;

/// What became of an operation (§5.2.6).
pub mod outcome {
    pub const OK: u8 = 0;
    pub const ERROR: u8 = 1;
    pub const UNSUPPORTED: u8 = 2;
}

/// Names a disk that VMs share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DiskNumber(pub usize);

/// Names a slice among those of its disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SliceNumber(usize);

/// Names an operation among those of its slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotNumber(usize);

impl SlotNumber {
    /// Its place in a list of [`SLOTS`].
    #[must_use]
    pub const fn index(self) -> usize {
        self.0
    }
}

/// What is asked of the whole disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The type of the request (§5.2.6).
    pub kind: u32,
    /// The first sector.
    pub sector: u64,
    /// Sectors that are read or written.
    pub sectors: u64,
}

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub slot: SlotNumber,
    pub status: u8,
    /// Bytes that the device has written, the status among them.
    pub written: u32,
}

/// What one slice has here.
#[derive(Debug)]
struct Slice {
    client: Client,
    memory: OwnedRegion,
    /// A bit for each slot that is free.
    free: u32,
    staged: VecDeque<(SlotNumber, Start)>,
    ended: VecDeque<Ended>,
    /// Operations that the device has.
    under_way: u32,
}

/// A disk of the board.
#[derive(Debug)]
pub struct Disk {
    driver: Driver,
    /// The device's queue; none once the device has failed.
    ring: Option<DeviceQueue>,
    features: u64,
    sectors: u64,
    fair: Fair,
    slices: Vec<Slice>,
    under_way: usize,
}

impl Disk {
    /// Starts the disk, with a queue in the [`QUEUE_BYTES`] from `area` on.
    ///
    /// # Errors
    /// [`DriverError`].
    pub fn start(
        driver: Driver,
        area: OwnedRegion,
        board: &dyn Board,
    ) -> Result<Self, DriverError> {
        let features = Features {
            needed: INDIRECT_TABLES,
            wanted: READ_ONLY | FLUSH,
        };
        let features = driver.agree(DeviceKind::Disk, features, board)?;
        let ring = driver.queue(REQUEST_QUEUE, MAX_ENTRIES, area, board)?;
        driver.begin(board);
        Ok(Self {
            driver,
            ring: Some(ring),
            features,
            sectors: driver.configuration_pair(CAPACITY, board),
            fair: Fair::default(),
            slices: Vec::new(),
            under_way: 0,
        })
    }

    /// Its sectors.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Its source at the board's APLIC.
    #[must_use]
    pub const fn source(&self) -> SourceNumber {
        self.driver.source
    }

    /// Whether it has a feature.
    #[must_use]
    pub const fn has(&self, feature: u64) -> bool {
        self.features & feature != 0
    }

    /// Adds a slice, for the device `client`, whose operations have the [`SLICE_BYTES`] from `memory` on. `share` is its VM's.
    pub fn add(&mut self, client: Client, memory: OwnedRegion, share: u32) -> SliceNumber {
        let number = SliceNumber(self.slices.len());
        self.fair.add(share);
        self.slices.push(Slice {
            client,
            memory,
            free: u32::MAX,
            staged: VecDeque::with_capacity(SLOTS),
            ended: VecDeque::with_capacity(SLOTS),
            under_way: 0,
        });
        number
    }

    /// Takes an operation on a slice, with `data` in [`MAX_PIECES`] pieces at most, all of which the device reads, or all of which it writes.
    /// It is begun by [`Self::begin`]. `None` where the slice has as many as it can have, and nothing has happened.
    pub fn put(
        &mut self,
        slice: SliceNumber,
        operation: Operation,
        data: &[Piece],
        host: TheHost<'_>,
    ) -> Option<SlotNumber> {
        let own = self.slices.get_mut(slice.0)?;
        if own.free == 0 || data.len() > MAX_PIECES {
            return None;
        }
        let slot = SlotNumber(own.free.trailing_zeros() as usize);
        own.free &= own.free - 1;
        write_out(own.page(slot), operation, data, host);
        let start = self.fair.arrives(slice.0, operation.sectors);
        own.staged.push_back((slot, start));
        Some(slot)
    }

    /// Has the device begin what may begin now. Says which devices have something to look for: those whose operations have ended
    /// because the disk has failed.
    pub fn begin(&mut self, board: &dyn Board) -> Clients {
        if self.ring.is_none() {
            return self.end_staged();
        }
        let mut any = false;
        while self.under_way < DEPTH
            && let Some(next) = self.next()
        {
            if !self.begin_one(next, board.host()) {
                break;
            }
            any = true;
        }
        if any {
            self.driver.notify(REQUEST_QUEUE, board);
        }
        Clients::NONE
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
            slice
                .ended
                .extend(staged.map(|(slot, _)| Ended::failed(slot)));
            told.insert(slice.client);
        }
        told
    }

    /// The slice whose turn is next, if any has something staged: the first of those with the earliest start.
    fn next(&self) -> Option<usize> {
        let staged = self.slices.iter().enumerate();
        let staged = staged
            .filter_map(|(index, slice)| slice.staged.front().map(|(_, start)| (index, *start)));
        staged
            .min_by_key(|(_, start)| *start)
            .map(|(index, _)| index)
    }

    fn begin_one(&mut self, index: usize, host: TheHost<'_>) -> bool {
        let Some(slice) = self.slices.get_mut(index) else {
            return false;
        };
        let Some((slot, start)) = slice.staged.front().copied() else {
            return false;
        };
        let Some(ring) = &mut self.ring else {
            return false;
        };
        let page = slice.page(slot);
        let bytes = u64::from(descriptors(page, host)) * DESCRIPTOR;
        let number = (index * SLOTS + slot.0) as u16;
        if !ring.put_table(number, page.take(bytes).region(), host) {
            return false;
        }
        slice.staged.pop_front();
        slice.under_way += 1;
        self.under_way += 1;
        self.fair.begins(start);
        true
    }

    /// The disk has interrupted the hypervisor. Says which devices have something to look for.
    pub fn serve(&mut self, board: &dyn Board) -> Clients {
        let failed = match self.driver.interrupt(board) {
            Interrupt::None => return Clients::NONE,
            Interrupt::Ended => !self.take_ended(board.host()),
            Interrupt::Failed => true,
        };
        if failed {
            self.fail(board);
        }
        let _ = self.begin(board);
        let mut told = Clients::NONE;
        let ended = self.slices.iter().filter(|slice| !slice.ended.is_empty());
        ended.for_each(|slice| told.insert(slice.client));
        told
    }

    /// Notes what the device has ended. False where it has returned what it was not given.
    fn take_ended(&mut self, host: TheHost<'_>) -> bool {
        let Some(ring) = &mut self.ring else {
            return true;
        };
        let ended = ring.ended(host).min(MAX_ENTRIES);
        for _ in 0..ended {
            let Ok((number, written)) = ring.take(host) else {
                return false;
            };
            let (index, slot) = (
                usize::from(number) / SLOTS,
                SlotNumber(usize::from(number) % SLOTS),
            );
            let Some(slice) = self.slices.get_mut(index) else {
                return false;
            };
            let status = host.byte(slice.page(slot).skip(STATUS_AT));
            slice.under_way = slice.under_way.saturating_sub(1);
            self.under_way = self.under_way.saturating_sub(1);
            slice.ended.push_back(Ended {
                slot,
                status,
                written,
            });
        }
        true
    }

    /// The device has failed: it is stopped for good, and every operation with it.
    #[cold]
    fn fail(&mut self, board: &dyn Board) {
        self.driver.reset(board);
        self.ring = None;
        self.under_way = 0;
        for slice in &mut self.slices {
            slice.under_way = 0;
            slice.staged.clear();
            let known: u32 = slice.ended.iter().map(|ended| 1 << ended.slot.0).sum();
            for slot in (0..SLOTS).filter(|slot| (slice.free | known) & 1 << slot == 0) {
                slice.ended.push_back(Ended::failed(SlotNumber(slot)));
            }
        }
    }

    /// An operation of a slice that has ended, whose slot is free from here on.
    pub fn ended(&mut self, slice: SliceNumber) -> Option<Ended> {
        let slice = self.slices.get_mut(slice.0)?;
        let ended = slice.ended.pop_front()?;
        slice.free |= 1 << ended.slot.0;
        Some(ended)
    }

    /// Visits all memory that a slice's operations access. Those that have ended and were not taken are among them.
    pub fn for_each_in_flight(
        &self,
        slice: SliceNumber,
        host: TheHost<'_>,
        visit: &mut dyn FnMut(HostRegion),
    ) {
        let Some(slice) = self.slices.get(slice.0) else {
            return;
        };
        for slot in (0..SLOTS).filter(|slot| slice.free & 1 << slot == 0) {
            let page = slice.page(SlotNumber(slot));
            // Between the header and the status.
            for number in 1..u64::from(descriptors(page, host)).saturating_sub(1) {
                let [address, rest] = host.pair(page.skip(DESCRIPTOR * number)).map(u64::from_le);
                let bytes = rest & 0xffff_ffff;
                if let Some(data) = HostRegion::new(HostPhysical::new(address), bytes) {
                    visit(data);
                }
            }
        }
    }

    /// Forgets all of a slice's operations that the device does not have. Says whether it has none.
    pub fn forget(&mut self, slice: SliceNumber) -> bool {
        let Some(slice) = self.slices.get_mut(slice.0) else {
            return true;
        };
        let staged = slice.staged.drain(..).map(|(slot, _)| slot);
        let ended = slice.ended.drain(..).map(|ended| ended.slot);
        for slot in staged.chain(ended) {
            slice.free |= 1 << slot.0;
        }
        slice.under_way == 0
    }
}

impl Ended {
    const fn failed(slot: SlotNumber) -> Self {
        Self {
            slot,
            status: outcome::ERROR,
            written: 1,
        }
    }
}

impl Slice {
    /// The page of an operation.
    fn page(&self, slot: SlotNumber) -> OwnedRegion {
        self.memory.skip(slot.0 as u64 * PAGE_SIZE).take(PAGE_SIZE)
    }
}

/// Descriptors in the table of a page: kept behind the status, where nobody else writes.
fn descriptors(page: OwnedRegion, host: TheHost<'_>) -> u32 {
    (host.doubleword(page.skip(STATUS_AT)) >> 32) as u32
}

/// Writes an operation into its page.
fn write_out(page: OwnedRegion, operation: Operation, data: &[Piece], host: TheHost<'_>) {
    let header = [u64::from(operation.kind).to_le(), operation.sector.to_le()];
    host.set_pair(page.skip(HEADER_AT), header);
    let table = |number: usize, place: OwnedRegion, bytes: u64, flags: u16| {
        let next = u64::from(flags) << 32 | (number as u64 + 1) << 48;
        let next = if flags & NEXT == 0 {
            u64::from(flags) << 32
        } else {
            next
        };
        let pair = [place.base().raw().to_le(), (bytes | next).to_le()];
        host.set_pair(page.skip(DESCRIPTOR * number as u64), pair);
    };
    table(0, page.skip(HEADER_AT), HEADER_BYTES, NEXT);
    for (number, piece) in (1..).zip(data) {
        let flags = if piece.written { NEXT | WRITE } else { NEXT };
        table(number, piece.host, piece.host.size(), flags);
    }
    let last = data.len() + 1;
    table(last, page.skip(STATUS_AT), 1, WRITE);
    // A status that the device has not written is an error.
    let behind = (last as u64 + 1) << 32 | u64::from(outcome::ERROR);
    host.set_doubleword(page.skip(STATUS_AT), behind);
}
