//! A port of a switch: what one VM's guest sees as a network card of its own (virtio 1.2, §5.1).

use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::monitor::Event;
use riscv::virtio::network::{LINK_UP, feature};

use super::frame::{Address, HEAD, HEADER, Head, LONGEST, MTU};
use super::uplink::{RECEIVE, TRANSMIT};
use super::{Member, Switch};
use crate::devices::trapped::{VirtioContext, WouldBlock};
use crate::devices::virtio::client::Clients;
use crate::devices::virtio::queue::chain::{Piece, QueueError};
use crate::devices::virtio::queue::guest::{GuestQueue, MAX_ENTRIES};
use crate::devices::virtio::transport::{Ids, Progress, QueueSetup, Queues, VirtioDevice};
use crate::devices::virtio::{DeviceKind, EMULATED_FEATURES, EVENT_INDEX, VENDOR};
use crate::hart::decode::Width;
use crate::memory::guest::{HostMemory, Memory, TheHost};
use crate::memory::owned::OwnedRegion;

/// Most descriptors that one notification of a guest reads, and most copies of frames that it makes. The guest's store is then
/// done again, after others have had the hart.
const MAX_DESCRIPTORS_PER_NOTIFICATION: usize = 512;
const COPIES: u32 = 32;
/// Queues of a port: [`RECEIVE`] and [`TRANSMIT`].
const QUEUES: usize = 2;
/// Pieces of a chain that is sent, and of one that is received into. The second are read in the time of the frame's sender, so
/// they are few; a driver needs no more than the pages of 1,526 bytes (§5.1.6.3.1).
const PIECES_SENT: usize = 256;
const PIECES_RECEIVED: usize = 32;

/// A port of a switch.
#[derive(Debug)]
pub struct Port {
    switch: Arc<Switch>,
    member: Member,
    address: Address,
    /// Set if the switch knows that the guest takes frames.
    open: bool,
    /// Present chain, so that nothing is allocated for each.
    pieces: Vec<Piece>,
}

/// Counts of the VM's frames.
#[derive(Clone, Copy, Debug, Default)]
struct Frames {
    passed: u32,
    dropped: u32,
}

/// Outcome of sending.
#[derive(Clone, Copy, Debug, Default)]
struct Sent {
    frames: Frames,
    /// Devices that are to be notified.
    notified: Clients,
    card: bool,
}

impl Port {
    /// Port of a switch with this number; `None` if the switch has no such port.
    #[must_use]
    pub fn new(switch: Arc<Switch>, number: usize) -> Option<Self> {
        let member = switch.member(number)?;
        let address = switch.address(member)?;
        Some(Self {
            switch,
            member,
            address,
            open: false,
            pieces: Vec::with_capacity(PIECES_SENT),
        })
    }

    /// Sends available frames, and notifies the receivers.
    fn transmit(
        &mut self,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let mut sent = Sent::default();
        let more = self.send_available(queue, &mut sent, context.memory());
        // Frames before a wrong chain are sent.
        if sent.card
            && let Some(uplink) = self.switch.uplink()
        {
            context.store_register(uplink.notification(), Width::Word, TRANSMIT as u64);
        }
        for client in sent.notified.iter() {
            context.notify_client(client);
        }
        count(context, Event::FrameSent, sent.frames);
        Ok(Progress {
            more: more?,
            interrupt: queue.publish_used(context.memory())?,
            ..Progress::default()
        })
    }

    /// Sends available frames, for a bounded time. Returns true if there are more.
    fn send_available(
        &mut self,
        queue: &mut GuestQueue,
        sent: &mut Sent,
        memory: Memory<'_>,
    ) -> Result<bool, QueueError> {
        let mut descriptors = MAX_DESCRIPTORS_PER_NOTIFICATION;
        let mut copies = COPIES;
        loop {
            let Some(head) = queue.next(memory)? else {
                if queue.request_notification(memory)? {
                    continue;
                }
                return Ok(false);
            };
            if descriptors == 0 || copies == 0 {
                return Ok(true);
            }
            let read = queue.read(head, &mut self.pieces, PIECES_SENT, memory)?;
            descriptors = descriptors.saturating_sub(read);
            if self.pieces.iter().any(|piece| piece.written) {
                return Err(QueueError::Misdirected);
            }
            let passed = self.send(memory.host);
            // A dropped frame takes as long as a short one.
            copies = copies.saturating_sub(passed.copies.max(1));
            sent.notified.add(passed.notified);
            sent.card |= passed.card;
            match passed.copies {
                0 => sent.frames.dropped += 1,
                _ => sent.frames.passed += 1,
            }
            queue.put_used(head, 0, memory)?;
            queue.take();
        }
    }

    /// Sends the frame in the present pieces.
    fn send(&self, host: TheHost<'_>) -> super::Passed {
        let all: u64 = self.pieces.iter().map(|piece| piece.host.size()).sum();
        let length = all.wrapping_sub(HEADER as u64);
        if !(HEAD as u64..=LONGEST.into()).contains(&length) {
            return super::Passed::default();
        }
        let mut head = Head([0; HEAD]);
        let bytes = head.0.iter_mut();
        for (place, byte) in bytes.zip(self.bytes_from(HEADER as u64)) {
            *place = host.byte(byte);
        }
        let begin = (HEADER + HEAD) as u64;
        let shift = self
            .bytes_from(begin)
            .next()
            .map_or(0, |at| at.base().raw() & 7);
        let frame = (length as u16, shift as u8);
        self.switch
            .pass(self.member, &head, frame, host, &mut |to| {
                let mut to = to;
                for from in self.rest_from(begin) {
                    host.move_bytes(from, to, from.size());
                    to = to.skip(from.size());
                }
            })
    }

    /// Present pieces without the first `skip` bytes.
    fn rest_from(&self, mut skip: u64) -> impl Iterator<Item = OwnedRegion> {
        self.pieces.iter().filter_map(move |piece| {
            let left = skip.min(piece.host.size());
            skip -= left;
            Some(piece.host.skip(left)).filter(|rest| rest.size() > 0)
        })
    }

    /// Memory of the present pieces, without the first `skip` bytes.
    fn bytes_from(&self, skip: u64) -> impl Iterator<Item = OwnedRegion> {
        let rest = self.rest_from(skip);
        rest.flat_map(|rest| (0..rest.size()).map(move |offset| rest.skip(offset)))
    }

    /// Gives the guest the frames that wait for it. A frame that comes meanwhile causes another notification.
    fn receive(
        &mut self,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<bool, QueueError> {
        let memory = context.memory();
        let (waiting, dropped) = self.switch.waiting(self.member);
        let mut frames = Frames { passed: 0, dropped };
        let mut done = false;
        for _ in 0..waiting {
            let Some(head) = next_or_request_notification(queue, memory)? else {
                break;
            };
            let first = self.switch.first(self.member, done);
            done = false;
            let Some((slot, parcel)) = first else { break };
            queue.read(head, &mut self.pieces, PIECES_RECEIVED, memory)?;
            if self.pieces.iter().any(|piece| !piece.written) {
                return Err(QueueError::Misdirected);
            }
            done = true;
            let bytes = parcel.bytes_with_header();
            if self.fill(parcel.begin(slot), bytes, memory.host) {
                queue.put_used(head, bytes as u32, memory)?;
                queue.take();
                frames.passed += 1;
            } else {
                // It stays for a shorter one.
                frames.dropped += 1;
            }
        }
        if done {
            // The next is left where it is.
            let _ = self.switch.first(self.member, done);
        }
        count(context, Event::FrameReceived, frames);
        queue.publish_used(memory)
    }

    /// Copies so many bytes into the present pieces. Returns false, and copies nothing, if they lack room.
    fn fill(&self, mut from: OwnedRegion, mut bytes: u64, host: TheHost<'_>) -> bool {
        let room: u64 = self.pieces.iter().map(|piece| piece.host.size()).sum();
        if room < bytes {
            return false;
        }
        for piece in &self.pieces {
            let here = piece.host.size().min(bytes);
            host.move_bytes(from, piece.host, here);
            from = from.skip(here);
            bytes -= here;
        }
        true
    }
}

/// Head of the next chain. If there is none, the guest is asked to notify of it.
fn next_or_request_notification(
    queue: &mut GuestQueue,
    memory: Memory<'_>,
) -> Result<Option<u16>, QueueError> {
    let next = queue.next(memory)?;
    if next.is_some() || !queue.request_notification(memory)? {
        return Ok(next);
    }
    queue.next(memory)
}

fn count(context: &dyn VirtioContext, event: Event, frames: Frames) {
    if frames.passed != 0 {
        context.count(event, frames.passed);
    }
    if frames.dropped != 0 {
        context.count(Event::FrameDropped, frames.dropped);
    }
}

impl VirtioDevice for Port {
    type Queue = GuestQueue;

    fn ids(&self) -> Ids {
        Ids {
            device: DeviceKind::NetworkCard as u32,
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
        EMULATED_FEATURES | feature::MAC | feature::MTU | feature::STATUS
    }

    fn configuration(&self, offset: u64) -> u8 {
        // §5.1.4: the address, the status, how many pairs of queues, the MTU.
        let [status, mtu] = [LINK_UP, MTU].map(u16::to_le_bytes);
        let mut bytes = (self.address.0.iter())
            .chain(&status)
            .chain(&[0; 2])
            .chain(&mtu);
        let found = usize::try_from(offset)
            .ok()
            .and_then(|offset| bytes.nth(offset));
        found.copied().unwrap_or(0)
    }

    fn notify(
        &mut self,
        queue: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let [receive, transmit, ..] = queues;
        match (queue, receive, transmit) {
            (RECEIVE, Some(receive), _) => {
                if !self.open {
                    self.open = true;
                    self.switch.open(self.member);
                }
                Ok(Progress {
                    interrupt: self.receive(receive, context)?,
                    ..Progress::default()
                })
            }
            (TRANSMIT, _, Some(transmit)) => self.transmit(transmit, context),
            _ => Ok(Progress::default()),
        }
    }

    fn poll(
        &mut self,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let [Some(receive), ..] = queues else {
            return Ok(Progress::default());
        };
        Ok(Progress {
            interrupt: self.receive(receive, context)?,
            ..Progress::default()
        })
    }

    /// Frames are copied at once, so that nothing is in flight.
    fn stop_queue(
        &mut self,
        number: usize,
        _: &mut Queues<GuestQueue>,
        _: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        if number == RECEIVE {
            self.open = false;
            self.switch.close(self.member);
        }
        Ok(Progress::default())
    }

    fn reset(&mut self, _: &dyn VirtioContext) -> Result<(), WouldBlock> {
        self.open = false;
        self.switch.close(self.member);
        Ok(())
    }
}
