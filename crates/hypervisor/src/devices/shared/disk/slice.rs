//! A slice of a disk: what one VM's guest sees as a disk of its own (virtio 1.2, §5.2).

use alloc::vec::Vec;

use abi::monitor::Event;

use super::request::{self, Request, kind};
use super::{
    DiskNumber, FLUSH, MOST_PIECES, Operation, READ_ONLY, SECTOR, SLOTS, SliceNumber, SlotNumber,
    outcome,
};
use crate::devices::shared::front::{Kind, Queues, Worked};
use crate::devices::shared::queue::GuestQueue;
use crate::devices::simulated::chain::{Piece, Wrong};
use crate::devices::simulated::pace::{BATCH, Pace};
use crate::devices::trapped::{NotNow, Reach};
use crate::devices::virtio::DeviceKind;
use crate::memory::address::{HostRegion, PAGE_SIZE};
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;

/// VIRTIO_BLK_F_SIZE_MAX, VIRTIO_BLK_F_SEG_MAX and VIRTIO_BLK_F_BLK_SIZE (§5.2.3).
const SIZE_MOST: u64 = 1 << 1;
const SEGMENTS_MOST: u64 = 1 << 2;
const BLOCK_SIZE: u64 = 1 << 6;

/// Segments of an operation that the guest is told it can have: half of the pieces that there are, as each segment of a guest
/// whose memory lies in pages, of a page's length at most, may lie in two of them.
const SEGMENTS: u32 = MOST_PIECES as u32 / 2;
/// Pieces of a chain, with its header and its status, which may lie in two pages.
const CHAIN: usize = MOST_PIECES + 4;
/// How many descriptors are read in one go at the guest's notification.
const IN_ONE_GO: usize = 512;
/// Bytes of a disk's identity (§5.2.6).
pub const IDENTITY: usize = 20;

/// Which part of which disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    pub disk: DiskNumber,
    pub slice: SliceNumber,
    /// The first sector, of the whole disk.
    pub first: u64,
    pub sectors: u64,
    /// Whether the guest may not write.
    pub read_only: bool,
    /// Whether what was written is to be flushed.
    pub flushes: bool,
    /// Whether the guest's memory lies in pages.
    pub in_pages: bool,
    /// For how long what the guest has made available may wait, in ticks.
    pub patience: u64,
    /// What the guest is told when it asks.
    pub identity: [u8; IDENTITY],
}

/// An operation that the disk has.
#[derive(Clone, Copy, Debug)]
struct Pending {
    head: u16,
    status: OwnedRegion,
}

/// A slice of a disk.
#[derive(Debug)]
pub struct Slice {
    part: Part,
    /// By slot.
    pending: [Option<Pending>; SLOTS],
    /// Whether the guest has made something available for which there was no slot: so something is under way, and when it ends it is looked
    /// at again.
    backlog: bool,
    /// How many operations are under way.
    under_way: u16,
    pace: Pace,
    /// Whether what the guest makes available can wait until something ends, and whether the guest was not asked to tell of it: so something is under way,
    /// and when it ends it is looked at.
    can_wait: bool,
    unasked: bool,
    /// The chain at hand, so that no memory is asked for with each.
    pieces: Vec<Piece>,
}

/// What is done about a request.
enum Step {
    /// It is over: its status, and the bytes that were written besides.
    Over(u8, u32),
    /// The disk does it.
    Disk(Operation),
}

impl Slice {
    /// The slice as after power-on.
    #[must_use]
    pub fn new(part: Part) -> Self {
        Self {
            pace: Pace::new(part.patience),
            part,
            pending: [None; SLOTS],
            backlog: false,
            under_way: 0,
            can_wait: false,
            unasked: false,
            pieces: Vec::with_capacity(CHAIN),
        }
    }

    /// Decides about a request whose data is in `pieces`.
    fn decide(&self, request: &Request, reach: &dyn Reach) -> Step {
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
                let host = reach.memory().host;
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

    /// Takes what the guest has made available, for a bounded time. Says whether there is more that could be taken now.
    fn pull(&mut self, queue: &mut GuestQueue, reach: &dyn Reach) -> Result<bool, Wrong> {
        let memory = reach.memory();
        let mut left = IN_ONE_GO;
        loop {
            while let Some(head) = queue.next(memory)? {
                if left == 0 {
                    return Ok(true);
                }
                let read = queue.read(head, &mut self.pieces, CHAIN, memory)?;
                left = left.saturating_sub(read);
                let request = request::take_apart(&mut self.pieces, memory.host)?;
                if self.pieces.len() > MOST_PIECES {
                    return Err(Wrong::TooLong);
                }
                match self.decide(&request, reach) {
                    Step::Over(status, written) => {
                        memory.host.set_byte(request.status, status);
                        queue.take();
                        queue.give_back(head, written.saturating_add(1), memory)?;
                    }
                    Step::Disk(operation) => {
                        let Some(slot) = self.put(operation, reach) else {
                            // It is looked at again when something has ended.
                            self.backlog = true;
                            return Ok(false);
                        };
                        queue.take();
                        reach.count(Event::ChainGeneral, 1);
                        self.note_begun(
                            slot,
                            Pending {
                                head,
                                status: request.status,
                            },
                            reach,
                        );
                    }
                }
            }
            self.backlog = false;
            self.unasked = self.can_wait && self.under_way + 1 >= BATCH;
            if self.unasked || !queue.ask(memory)? {
                return Ok(false);
            }
        }
    }

    #[inline]
    fn note_begun(&mut self, slot: SlotNumber, pending: Pending, reach: &dyn Reach) {
        if let Some(place) = self.pending.get_mut(slot.index()) {
            *place = Some(pending);
            self.under_way += 1;
            self.pace.begins(slot.index() as u16, reach.time());
        }
    }

    fn put(&self, operation: Operation, reach: &dyn Reach) -> Option<SlotNumber> {
        let mut slot = None;
        let host = reach.memory().host;
        reach.with_disk(self.part.disk, &mut |disk, _| {
            slot = disk.put(self.part.slice, operation, &self.pieces, host);
        });
        slot
    }

    /// Takes what there is, and has the disk begin.
    fn pull_and_begin(&mut self, queue: &mut GuestQueue, reach: &dyn Reach) -> Result<bool, Wrong> {
        let more = self.pull(queue, reach);
        reach.with_disk(self.part.disk, &mut |disk, board| {
            let told = disk.begin(board);
            told.iter().for_each(|client| reach.tell(client));
        });
        more
    }

    /// Returns what has ended.
    fn give_back(&mut self, queue: &mut GuestQueue, reach: &dyn Reach) -> Result<(), Wrong> {
        let memory = reach.memory();
        let now = reach.time();
        for _ in 0..SLOTS {
            let mut ended = None;
            reach.with_disk(self.part.disk, &mut |disk, _| {
                ended = disk.ended(self.part.slice);
            });
            let Some(ended) = ended else { break };
            let pending = self.pending.get_mut(ended.slot.index());
            if let Some(pending) = pending.and_then(Option::take) {
                self.under_way = self.under_way.saturating_sub(1);
                self.pace.ends(ended.slot.index() as u16, now);
                memory.host.set_byte(pending.status, ended.status);
                queue.give_back(pending.head, ended.written, memory)?;
            }
        }
        Ok(())
    }
}

impl Kind for Slice {
    fn id(&self) -> DeviceKind {
        DeviceKind::Disk
    }

    fn queues(&self) -> usize {
        1
    }

    fn features(&self) -> u64 {
        let when = |is: bool, feature| if is { feature } else { 0 };
        SEGMENTS_MOST
            | BLOCK_SIZE
            | when(self.part.in_pages, SIZE_MOST)
            | when(self.part.read_only, READ_ONLY)
            | when(self.part.flushes, FLUSH)
    }

    /// §5.2.4.
    fn configuration(&self, offset: u64) -> u8 {
        let (field, from) = match offset {
            0..8 => (self.part.sectors, 0),
            8..12 => (PAGE_SIZE, 8),
            12..16 => (SEGMENTS.into(), 12),
            20..24 => (SECTOR, 20),
            _ => (0, offset),
        };
        (field >> (8 * (offset - from))) as u8
    }

    fn work(&mut self, _: usize, queues: &mut Queues, reach: &dyn Reach) -> Result<Worked, Wrong> {
        let [Some(queue), ..] = queues else {
            return Ok(Worked::default());
        };
        let more = self.pull_and_begin(queue, reach)?;
        let interrupt = queue.show(reach.memory())?;
        Ok(Worked { interrupt, more })
    }

    fn look(&mut self, queues: &mut Queues, reach: &dyn Reach) -> Result<Worked, Wrong> {
        let [Some(queue), ..] = queues else {
            return Ok(Worked::default());
        };
        // What has just ended was under way until now.
        let under_way = self.under_way;
        self.can_wait = self.pace.can_wait(under_way, || reach.is_at_work());
        self.give_back(queue, reach)?;
        if self.backlog || self.unasked {
            // More than is read in one go is made of requests that are refused, or it would not find slots: it waits for the guest's next
            // notification.
            self.pull_and_begin(queue, reach)?;
        }
        let interrupt = queue.show(reach.memory())?;
        let more = false;
        Ok(Worked { interrupt, more })
    }

    fn under_way(&self, reach: &dyn Reach, tell: &mut dyn FnMut(HostRegion)) {
        for pending in self.pending.iter().flatten() {
            tell(pending.status.region());
        }
        let host = reach.memory().host;
        reach.with_disk(self.part.disk, &mut |disk, _| {
            disk.under_way(self.part.slice, host, tell);
        });
    }

    fn stop(&mut self, reach: &dyn Reach) -> Result<(), NotNow> {
        let mut is_quiet = true;
        reach.with_disk(self.part.disk, &mut |disk, _| {
            is_quiet = disk.forget(self.part.slice);
        });
        if !is_quiet {
            return Err(NotNow);
        }
        self.pending = [None; SLOTS];
        (self.backlog, self.can_wait, self.unasked) = (false, false, false);
        self.under_way = 0;
        self.pace.forget();
        Ok(())
    }
}
