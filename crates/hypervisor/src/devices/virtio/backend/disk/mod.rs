//! A disk of which several VMs have slices: one of the board, which the hypervisor drives, or one that a program in another VM's guest serves
//! ([`served`]).
//!
//! A VM's [`mod@slice`] reads what its guest asks for, checks it, and [puts](Disk::put) it here. Each such operation has a page of the hypervisor's
//! memory in which no guest changes anything: the header with the place on the whole disk, the table of the buffers, and the byte of the
//! status. [`fair`] chooses the next one. The slice [takes](Disk::ended) completions, under the lock of its own VM.

mod begin;
mod charge;
pub mod fair;
pub mod request;
pub mod served;
mod serving;
pub mod slice;
mod table;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

pub use riscv::virtio::block::feature::{FLUSH, READ_ONLY};
pub use riscv::virtio::block::{HEADER_BYTES, SECTOR_BYTES as SECTOR};

use self::fair::{Charged, Fair, MAX_SECTORS, Work};
use self::served::Served;
use self::table::{Described, STATUS_AT, write_out};
pub use self::table::{MAX_PIECES, Operation, outcome};
use crate::devices::irq::SourceNumber;
use crate::devices::virtio::client::{Client, Clients};
use crate::devices::virtio::driver::{Board, Driver, DriverError, Features, Interrupt};
use crate::devices::virtio::queue::chain::Piece;
use crate::devices::virtio::queue::device::{AREA, DeviceQueue, MAX_ENTRIES};
use crate::devices::virtio::{DeviceKind, INDIRECT_DESCRIPTORS};
use crate::memory::address::{HostRegion, PAGE_SIZE};
use crate::memory::guest::{HostMemory, TheHost};
use crate::memory::owned::OwnedRegion;

/// Operations that one slice can have here.
pub const SLOTS: usize = 32;
/// Bytes of memory for them.
pub const SLICE_BYTES: u64 = SLOTS as u64 * PAGE_SIZE;
/// Bytes of memory for the device's queue.
pub const QUEUE_BYTES: u64 = AREA;
/// Operations that the device has at a time. With fewer it would idle between them, with more a VM of few requests would wait for
/// all requests of another. Half as many more are kept for slices that have fewer than an equal part of them.
pub const DEPTH: usize = 32;
/// Sectors that the device has at a time: 512 KiB. A slice that has no operation there may have one more.
const MAX_SECTORS_IN_FLIGHT: u64 = 1024;

/// Segments that a guest may use for an operation at a device of the board: half of the pieces that there are, as each segment of a guest whose
/// memory lies in pages, of a page's length at most, may lie in two of them.
const SEGMENTS: u32 = MAX_PIECES as u32 / 2;
/// Offset of the number of sectors in the device's configuration (§5.2.4).
const CAPACITY: u64 = 0;
/// The queue that requests go through.
const REQUEST_QUEUE: usize = 0;

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

/// An operation that has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    pub slot: SlotNumber,
    pub status: u8,
    /// Bytes that the device has written, the status among them.
    pub written: u32,
}

/// State of one slice.
#[derive(Debug)]
struct Slice {
    client: Client,
    memory: OwnedRegion,
    /// A bit for each slot that is free.
    free: u32,
    /// By slot.
    operations: [Charged; SLOTS],
    staged: VecDeque<SlotNumber>,
    ended: VecDeque<Ended>,
    /// Operations that the device has, and their sectors.
    in_flight: usize,
    sectors: u64,
}

/// An operation that has just ended.
#[derive(Clone, Copy, Debug)]
struct JustEnded {
    slice: usize,
    charged: Charged,
}

/// Device or program that carries a disk's operations out.
#[derive(Debug)]
enum Backing {
    /// A device of the board, with its queue, which is used no more once the device has failed.
    Board { driver: Driver, ring: DeviceQueue },
    /// A program in another VM's guest.
    Served(Box<Served>),
}

/// A disk of which VMs have slices.
#[derive(Debug)]
pub struct Disk {
    backing: Backing,
    failed: bool,
    features: u64,
    sectors: u64,
    fair: Fair,
    slices: Vec<Slice>,
    /// Operations that the device has, and their sectors.
    in_flight: usize,
    sectors_in_flight: u64,
    /// Time at which an operation completed last, or began while there was none.
    busy_since: u64,
    /// Operations that completed together, so that nothing is allocated for each.
    just_ended: Vec<JustEnded>,
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
            needed: INDIRECT_DESCRIPTORS,
            wanted: READ_ONLY | FLUSH,
        };
        let features = driver.negotiate(DeviceKind::Disk, features, board)?;
        let ring = driver.queue(REQUEST_QUEUE, MAX_ENTRIES, area, board)?;
        driver.begin(board);
        let sectors = driver.configuration_pair(CAPACITY, board);
        Ok(Self::new(
            Backing::Board { driver, ring },
            features,
            sectors,
        ))
    }

    fn new(backing: Backing, features: u64, sectors: u64) -> Self {
        Self {
            backing,
            failed: false,
            features,
            sectors,
            fair: Fair::default(),
            slices: Vec::new(),
            in_flight: 0,
            sectors_in_flight: 0,
            busy_since: 0,
            just_ended: Vec::with_capacity(MAX_ENTRIES.into()),
        }
    }

    /// Its sectors.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Its source at the board's APLIC, if it is a device of the board.
    #[must_use]
    pub const fn source(&self) -> Option<SourceNumber> {
        match &self.backing {
            Backing::Board { driver, .. } => Some(driver.source),
            Backing::Served(_) => None,
        }
    }

    /// Segments that a guest may use for an operation.
    #[must_use]
    pub const fn segments(&self) -> u32 {
        match &self.backing {
            Backing::Board { .. } => SEGMENTS,
            Backing::Served(_) => served::SEGMENTS,
        }
    }

    /// Returns true if the device has the feature.
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
            operations: [Charged::NONE; SLOTS],
            staged: VecDeque::with_capacity(SLOTS),
            ended: VecDeque::with_capacity(SLOTS),
            in_flight: 0,
            sectors: 0,
        });
        number
    }

    /// Takes an operation on a slice, with `data` in [`MAX_PIECES`] pieces at most, all of which the device reads, or all of which it writes.
    /// It is begun by [`Self::begin`]. `None`, with nothing done, if the slice has as many as it can have.
    pub fn put(
        &mut self,
        slice: SliceNumber,
        operation: Operation,
        data: &[Piece],
        host: TheHost<'_>,
    ) -> Option<SlotNumber> {
        let own = self.slices.get_mut(slice.0)?;
        let is_short = data.len() <= MAX_PIECES && operation.sectors <= MAX_SECTORS;
        if own.free == 0 || !is_short {
            return None;
        }
        let slot = SlotNumber(own.free.trailing_zeros() as usize);
        own.free &= own.free - 1;
        write_out(own.page(slot), operation, data, host);
        if own.staged.is_empty() && own.in_flight == 0 {
            self.fair.activate(slice.0);
        }
        if let Some(charged) = own.operations.get_mut(slot.0) {
            charged.work = match operation.sectors {
                0 => Work::Flush,
                sectors => Work::Sectors(sectors),
            };
        }
        own.staged.push_back(slot);
        Some(slot)
    }

    /// Handles an interrupt of the disk, or answers of the program that serves it. Returns the devices to poll.
    pub fn serve(&mut self, board: &dyn Board) -> Clients {
        let Backing::Board { driver, .. } = &self.backing else {
            return self.look_at_program(board);
        };
        let failed = match driver.interrupt(board) {
            Interrupt::None => return Clients::NONE,
            Interrupt::Ended => !self.take_ended(board),
            Interrupt::Failed => true,
        };
        if failed {
            self.fail(board);
        }
        let _ = self.begin(board);
        let mut told = Clients::NONE;
        self.tell_ended(&mut told);
        told
    }

    /// Adds the devices whose operations have ended.
    fn tell_ended(&self, told: &mut Clients) {
        let ended = self.slices.iter().filter(|slice| !slice.ended.is_empty());
        ended.for_each(|slice| told.insert(slice.client));
    }

    /// Takes the device's completions. Returns false if it has returned an operation that it was not given.
    fn take_ended(&mut self, board: &dyn Board) -> bool {
        let host = board.host();
        let before = self.in_flight;
        if self.failed {
            return true;
        }
        let Backing::Board { ring, .. } = &mut self.backing else {
            return true;
        };
        self.just_ended.clear();
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
            slice.in_flight = slice.in_flight.saturating_sub(1);
            self.in_flight = self.in_flight.saturating_sub(1);
            if let Some(charged) = slice.operations.get(slot.0).copied() {
                let sectors = charged.work.sectors();
                slice.sectors = slice.sectors.saturating_sub(sectors);
                self.sectors_in_flight = self.sectors_in_flight.saturating_sub(sectors);
                let slice = index;
                self.just_ended.push(JustEnded { slice, charged });
            }
            slice.ended.push_back(Ended {
                slot,
                status,
                written,
            });
        }
        self.charge(board.time(), before);
        true
    }

    /// Stops a device that has failed for good, and every operation with it.
    #[cold]
    fn fail(&mut self, board: &dyn Board) {
        if let Backing::Board { driver, .. } = &self.backing {
            driver.reset(board);
        }
        self.failed = true;
        (self.in_flight, self.sectors_in_flight) = (0, 0);
        for slice in &mut self.slices {
            (slice.in_flight, slice.sectors) = (0, 0);
            slice.staged.clear();
            let known: u32 = slice.ended.iter().map(|ended| 1 << ended.slot.0).sum();
            for slot in (0..SLOTS).filter(|slot| (slice.free | known) & 1 << slot == 0) {
                slice.ended.push_back(Ended::failed(SlotNumber(slot)));
            }
        }
    }

    /// Takes a completed operation of a slice, whose slot is free from here on.
    #[inline]
    pub fn ended(&mut self, slice: SliceNumber) -> Option<Ended> {
        let slice = self.slices.get_mut(slice.0)?;
        let ended = slice.ended.pop_front()?;
        slice.free |= 1 << ended.slot.0;
        Some(ended)
    }

    /// Visits all memory that a slice's operations access. Completed ones that were not taken are among them.
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
            let data = Described::read(page, host).data(page, host);
            let data = data.filter_map(|(address, bytes, _)| HostRegion::new(address, bytes));
            data.for_each(&mut *visit);
        }
    }

    /// Drops all of a slice's operations that the device does not have. Returns true if it has none. What a program in another VM has is
    /// taken back from it.
    pub fn forget(&mut self, slice: SliceNumber, board: &dyn Board) -> bool {
        if let Backing::Served(_) = self.backing {
            return self.forget_served(slice, board);
        }
        let Some(slice) = self.slices.get_mut(slice.0) else {
            return true;
        };
        let staged = slice.staged.drain(..);
        let ended = slice.ended.drain(..).map(|ended| ended.slot);
        for slot in staged.chain(ended) {
            slice.free |= 1 << slot.0;
        }
        slice.in_flight == 0
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
    /// Sectors of the operation that is to begin next, if there is one.
    fn next_sectors(&self) -> Option<u64> {
        let slot = self.staged.front()?;
        let charged = self.operations.get(slot.0)?;
        Some(charged.work.sectors())
    }

    /// The page of an operation.
    fn page(&self, slot: SlotNumber) -> OwnedRegion {
        self.memory.skip(slot.0 as u64 * PAGE_SIZE).take(PAGE_SIZE)
    }
}
