//! Slice of a disk, which one VM's guest sees as a disk of its own (virtio 1.2, §5.2).

use alloc::vec::Vec;

use abi::monitor::Event;
use riscv::virtio::block::feature::{BLOCK_SIZE, SEG_MAX, SIZE_MAX};

pub use riscv::virtio::block::IDENTITY_BYTES as IDENTITY;

mod split;

use super::request::{self, Request, kind};
use super::{
    DiskNumber, FLUSH, MAX_PIECES, Operation, READ_ONLY, SECTOR, SLOTS, SliceNumber, outcome,
};
use crate::devices::trapped::{VirtioContext, WouldBlock};
use crate::devices::virtio::queue::chain::{Piece, QueueError};
use crate::devices::virtio::queue::guest::{GuestQueue, MAX_ENTRIES};
use crate::devices::virtio::queue::polling::{AdaptivePolling, BATCH};
use crate::devices::virtio::transport::{Ids, Progress, QueueSetup, Queues, VirtioDevice};
use crate::devices::virtio::{DeviceKind, EMULATED_FEATURES, EVENT_INDEX, VENDOR};
use crate::memory::address::{HostRegion, PAGE_SIZE};
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;

/// Pieces of a chain, with its header and its status, which may lie in two pages.
const CHAIN: usize = MAX_PIECES + 4;
/// Most descriptors that one notification of the guest reads, and most pieces of memory that their buffers lie in.
const MAX_DESCRIPTORS_PER_NOTIFICATION: usize = 512;
/// Queues of a slice.
const QUEUES: usize = 1;

/// Slice of a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub disk: DiskNumber,
    pub slice: SliceNumber,
    /// The first sector, of the whole disk.
    pub first: u64,
    pub sectors: u64,
    /// Segments that the guest may use for an operation.
    pub segments: u32,
    /// Set if the guest may not write.
    pub read_only: bool,
    /// Set if writes are to be flushed.
    pub flushes: bool,
    /// Set if the guest's memory lies in pages.
    pub in_pages: bool,
    /// Longest time between two polls of the queue, in ticks.
    pub patience: u64,
    /// Device ID string that the guest reads.
    pub identity: [u8; IDENTITY],
}

/// A request that the disk works on: as many operations as it takes, of [`MAX_SECTORS`](super::fair::MAX_SECTORS) each.
#[derive(Clone, Copy, Debug)]
struct Pending {
    head: u16,
    status: OwnedRegion,
    /// Operations that have not ended, and whether more are to follow.
    operations: usize,
    is_split: bool,
    /// First error, and the bytes of data that were written.
    outcome: u8,
    written: u32,
}

/// The rest of a request of which some operations were put.
#[derive(Clone, Copy, Debug)]
struct Rest {
    request: usize,
    operation: Operation,
    /// Index of the next piece of the data, and the bytes of it that were used.
    piece: usize,
    used: u64,
}

/// A slice of a disk.
#[derive(Debug)]
pub struct Slice {
    part: Part,
    requests: [Option<Pending>; SLOTS],
    /// By slot: the request of the operation.
    slots: [usize; SLOTS],
    /// Present request, if not all of its operations were put. Its data is in `pieces`.
    rest: Option<Rest>,
    /// Set if a request found no free slot: an operation is in flight, and its completion goes on with the queue.
    backlog: bool,
    /// Operations in flight.
    in_flight: u16,
    polling: AdaptivePolling,
    /// Set if available requests can wait for a completion, so that notifications are off: an operation is in flight,
    /// and its completion polls the queue.
    can_wait: bool,
    unasked: bool,
    /// Set while the guest stops the queue: nothing more is taken from it.
    is_stopping: bool,
    /// Present chain, and the data of one of its operations, so that nothing is allocated for each.
    pieces: Vec<Piece>,
    part_pieces: Vec<Piece>,
}

/// Next step for a request.
enum Step {
    /// Complete: the status, and the bytes that were written besides.
    Over(u8, u32),
    /// To be carried out by the disk.
    Disk(Operation),
}

impl Slice {
    /// Slice in the state after power-on.
    #[must_use]
    pub fn new(part: Part) -> Self {
        Self {
            polling: AdaptivePolling::new(part.patience),
            part,
            requests: [None; SLOTS],
            slots: [0; SLOTS],
            rest: None,
            backlog: false,
            in_flight: 0,
            can_wait: false,
            unasked: false,
            is_stopping: false,
            pieces: Vec::with_capacity(CHAIN),
            part_pieces: Vec::with_capacity(CHAIN),
        }
    }

    /// Decides about a request whose data is in `pieces`.
    fn decide(&self, request: &Request, context: &dyn VirtioContext) -> Step {
        let part = &self.part;
        let error = Step::Over(outcome::ERROR, 0);
        match request.kind {
            kind::READ | kind::WRITE => {
                let is_read = request.kind == kind::READ;
                let Some(sectors) = request.sectors().filter(|sectors| *sectors > 0) else {
                    return error;
                };
                let last = request.sector.checked_add(sectors);
                let inside = last.is_some_and(|last| last <= part.sectors);
                if !inside || request.written != is_read || !is_read && part.read_only {
                    return error;
                }
                Step::Disk(Operation {
                    kind: request.kind,
                    // Both lie on the disk.
                    sector: part.first.wrapping_add(request.sector),
                    sectors,
                })
            }
            kind::FLUSH if part.flushes && request.bytes == 0 => Step::Disk(Operation {
                kind: kind::FLUSH,
                sector: 0,
                sectors: 0,
            }),
            kind::IDENTITY if request.written => {
                let host = context.memory().host;
                let places = self
                    .pieces
                    .iter()
                    .flat_map(|piece| (0..piece.host.size()).map(|offset| piece.host.skip(offset)));
                for (at, byte) in places.zip(part.identity) {
                    host.set_byte(at, byte);
                }
                Step::Over(outcome::OK, request.bytes.min(IDENTITY as u64) as u32)
            }
            _ => Step::Over(outcome::UNSUPPORTED, 0),
        }
    }

    /// Takes available requests, for a bounded time. Returns true if more could be taken now.
    fn pull(
        &mut self,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<bool, QueueError> {
        let memory = context.memory();
        let mut left = MAX_DESCRIPTORS_PER_NOTIFICATION;
        if !self.put_rest(context) {
            self.backlog = true;
            return Ok(false);
        }
        if self.is_stopping {
            return Ok(false);
        }
        loop {
            while let Some(head) = queue.next(memory)? {
                if left == 0 {
                    return Ok(true);
                }
                let read = queue.read(head, &mut self.pieces, CHAIN, memory)?;
                // A descriptor may name many pages.
                left = left.saturating_sub(read.max(self.pieces.len()));
                let request = request::parse(&mut self.pieces, memory.host)?;
                if self.pieces.len() > MAX_PIECES {
                    return Err(QueueError::TooLong);
                }
                match self.decide(&request, context) {
                    Step::Over(status, written) => {
                        memory.host.set_byte(request.status, status);
                        queue.take();
                        queue.put_used(head, written.saturating_add(1), memory)?;
                    }
                    Step::Disk(operation) => {
                        if !self.accept(head, request.status, operation, context) {
                            // The next completion continues with it.
                            self.backlog = true;
                            return Ok(false);
                        }
                        queue.take();
                        context.count(Event::RequestGeneral, 1);
                        if self.rest.is_some() {
                            self.backlog = true;
                            return Ok(false);
                        }
                    }
                }
            }
            self.backlog = false;
            self.unasked = self.can_wait && self.in_flight + 1 >= BATCH;
            if self.unasked || !queue.request_notification(memory)? {
                return Ok(false);
            }
        }
    }

    /// Takes available requests, and makes the disk begin.
    fn pull_and_begin(
        &mut self,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<bool, QueueError> {
        let more = self.pull(queue, context);
        context.with_disk(self.part.disk, &mut |disk, board| {
            let told = disk.begin(board);
            told.iter().for_each(|client| context.notify_client(client));
        });
        more
    }

    /// Returns completed requests to the guest.
    fn give_back(
        &mut self,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<(), QueueError> {
        let memory = context.memory();
        let now = context.time();
        for _ in 0..SLOTS {
            let mut ended = None;
            context.with_disk(self.part.disk, &mut |disk, _| {
                ended = disk.ended(self.part.slice);
            });
            let Some(ended) = ended else { break };
            self.in_flight = self.in_flight.saturating_sub(1);
            self.polling.ends(ended.slot.index() as u16, now);
            if let Some(pending) = self.note_ended(ended) {
                memory.host.set_byte(pending.status, pending.outcome);
                let written = pending.written.saturating_add(1);
                queue.put_used(pending.head, written, memory)?;
            }
        }
        Ok(())
    }
}

impl VirtioDevice for Slice {
    type Queue = GuestQueue;

    fn ids(&self) -> Ids {
        Ids {
            device: DeviceKind::Disk as u32,
            vendor: VENDOR,
        }
    }

    fn max_entries(&self, queue: usize) -> u16 {
        if queue < QUEUES { MAX_ENTRIES } else { 0 }
    }

    fn create_queue(
        &mut self,
        setup: QueueSetup,
        context: &dyn VirtioContext,
    ) -> Result<GuestQueue, QueueError> {
        let event_indices = setup.features & EVENT_INDEX != 0;
        GuestQueue::new(setup.layout, event_indices, context.memory())
    }

    fn features(&self) -> u64 {
        let when = |is: bool, feature| if is { feature } else { 0 };
        EMULATED_FEATURES
            | SEG_MAX
            | BLOCK_SIZE
            | when(self.part.in_pages, SIZE_MAX)
            | when(self.part.read_only, READ_ONLY)
            | when(self.part.flushes, FLUSH)
    }

    /// §5.2.4.
    fn configuration(&self, offset: u64) -> u8 {
        let (field, from) = match offset {
            0..8 => (self.part.sectors, 0),
            8..12 => (PAGE_SIZE, 8),
            12..16 => (self.part.segments.into(), 12),
            20..24 => (SECTOR, 20),
            _ => (0, offset),
        };
        (field >> (8 * (offset - from))) as u8
    }

    fn notify(
        &mut self,
        _: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let [Some(queue), ..] = queues else {
            return Ok(Progress::default());
        };
        let more = self.pull_and_begin(queue, context)?;
        Ok(Progress {
            interrupt: queue.publish_used(context.memory())?,
            more,
            ..Progress::default()
        })
    }

    fn poll(
        &mut self,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let [Some(queue), ..] = queues else {
            return Ok(Progress::default());
        };
        // Operations that have just completed were in flight until now.
        let in_flight = self.in_flight;
        self.can_wait = self.polling.can_wait(in_flight, || context.is_guest_busy());
        self.give_back(queue, context)?;
        if self.backlog || self.unasked {
            // More requests than one notification reads are refused ones, or they would find no slots: they wait for the guest's next
            // notification.
            self.pull_and_begin(queue, context)?;
        }
        Ok(Progress {
            interrupt: queue.publish_used(context.memory())?,
            ..Progress::default()
        })
    }

    /// Waits for the disk's operations, staged ones too.
    fn stop_queue(
        &mut self,
        _: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let [Some(queue), ..] = queues else {
            return Ok(Progress::default());
        };
        self.is_stopping = true;
        self.give_back(queue, context)?;
        if self.rest.is_some() {
            self.pull_and_begin(queue, context)?;
        }
        let more = self.in_flight > 0 || self.rest.is_some();
        if !more {
            self.is_stopping = false;
            (self.backlog, self.can_wait, self.unasked) = (false, false, false);
        }
        Ok(Progress {
            interrupt: queue.publish_used(context.memory())?,
            more,
            ..Progress::default()
        })
    }

    fn for_each_in_flight(
        &self,
        _: &Queues<GuestQueue>,
        context: &dyn VirtioContext,
        visit: &mut dyn FnMut(HostRegion),
    ) {
        for pending in self.requests.iter().flatten() {
            visit(pending.status.region());
        }
        if self.rest.is_some() {
            let pieces = self.pieces.iter();
            pieces.for_each(|piece| visit(piece.host.region()));
        }
        let host = context.memory().host;
        context.with_disk(self.part.disk, &mut |disk, _| {
            disk.for_each_in_flight(self.part.slice, host, visit);
        });
    }

    fn reset(&mut self, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        let mut is_quiet = true;
        context.with_disk(self.part.disk, &mut |disk, board| {
            is_quiet = disk.forget(self.part.slice, board);
        });
        if !is_quiet {
            return Err(WouldBlock);
        }
        (self.requests, self.rest) = ([None; SLOTS], None);
        self.is_stopping = false;
        (self.backlog, self.can_wait, self.unasked) = (false, false, false);
        self.in_flight = 0;
        self.polling.forget();
        Ok(())
    }
}
