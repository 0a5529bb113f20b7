//! Network card of the board that joins a switch to the outside, driven by the hypervisor (virtio 1.2, §5.1).
//!
//! Its buffers are memory of the hypervisor's: those for receiving are its own, and those for sending are the slots of the uplink's inbox.
//! It interrupts for received frames. Sent frames are taken back when the next frame is to be sent.

use riscv::virtio::network::{self, feature};

use super::frame::{Address, BODY, HEAD, HEADER, LONGEST, SLOT};
use super::inbox::Inbox;
use crate::devices::irq::SourceNumber;
use crate::devices::virtio::DeviceKind;
use crate::devices::virtio::driver::{Board, Driver, DriverError, Features, Interrupt};
use crate::devices::virtio::queue::chain::{Piece, QueueError};
use crate::devices::virtio::queue::device::{AREA, DeviceQueue, MAX_ENTRIES};
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;
use crate::memory::owned::OwnedRegion;

/// Its queues.
pub const RECEIVE: usize = network::RECEIVE_QUEUE as usize;
pub const TRANSMIT: usize = network::TRANSMIT_QUEUE as usize;

/// Buffers that the card can receive into.
pub const BUFFERS: u16 = 64;
/// Offset of a receive buffer in its slot, so that a frame's body is aligned to 8 bytes, and its size.
const BUFFER: u64 = BODY - (HEADER + HEAD) as u64;
const BUFFER_BYTES: u64 = HEADER as u64 + LONGEST as u64;
/// Bytes of memory that an uplink needs besides its inbox: for its queues, and for buffers.
pub const BYTES: u64 = 2 * AREA + BUFFERS as u64 * SLOT;

/// The card that is a switch's uplink.
#[derive(Clone, Copy, Debug)]
pub struct Uplink {
    driver: Driver,
    address: Option<Address>,
}

/// The card's queues.
#[derive(Debug)]
pub struct Card {
    receive: DeviceQueue,
    transmit: DeviceQueue,
    /// Memory of the buffers.
    buffers: OwnedRegion,
    /// Set if the card returned what it was not given. It is used no more then.
    broken: bool,
}

impl Uplink {
    /// Sets the card up, with [`BYTES`] from `memory` on for the card alone, at a multiple of [`AREA`].
    ///
    /// # Errors
    /// [`DriverError`]. The card is idle then.
    pub fn start(
        driver: Driver,
        memory: OwnedRegion,
        board: &dyn Board,
    ) -> Result<(Self, Card), DriverError> {
        let features = Features {
            needed: 0,
            wanted: feature::MAC,
        };
        let features = driver.negotiate(DeviceKind::NetworkCard, features, board)?;
        let area = |number: u64| memory.skip(number * AREA);
        let transmit = driver.queue(TRANSMIT, 1, area(1), board)?;
        let mut card = Card {
            receive: driver.queue(RECEIVE, 1, area(0), board)?,
            transmit: transmit.without_interrupts(board.host()),
            buffers: area(2),
            broken: false,
        };
        for buffer in 0..BUFFERS {
            card.offer(buffer, board.host());
        }
        driver.begin(board);
        driver.notify(RECEIVE, board);
        let own = || {
            let bytes = [0, 1, 2, 3, 4, 5];
            Address(bytes.map(|offset| driver.configuration(offset, board)))
        };
        let address = (features & feature::MAC != 0).then(own);
        Ok((Self { driver, address }, card))
    }

    /// Its source at the board's APLIC.
    #[must_use]
    pub const fn source(&self) -> SourceNumber {
        self.driver.source
    }

    /// The card's own address, if it has one.
    #[must_use]
    pub const fn address(&self) -> Option<Address> {
        self.address
    }

    /// Notification register of the card, to which the number of a queue with new chains is written.
    #[must_use]
    pub const fn notification(&self) -> HostPhysical {
        self.driver.notification()
    }

    /// Acknowledges the card's interrupt; returns true if there was one.
    pub fn has_interrupted(&self, board: &dyn Board) -> bool {
        self.driver.interrupt(board) != Interrupt::None
    }

    /// Notifies the card of buffers that it can receive into.
    pub fn notify_of_buffers(&self, board: &dyn Board) {
        self.driver.notify(RECEIVE, board);
    }
}

impl Card {
    /// Memory of a receive buffer.
    #[must_use]
    pub fn buffer(&self, number: u16) -> OwnedRegion {
        let before = u64::from(number) * SLOT + BUFFER;
        self.buffers.skip(before).take(BUFFER_BYTES)
    }

    /// Lets the card receive into a buffer.
    pub fn offer(&mut self, number: u16, host: TheHost<'_>) {
        let piece = Piece {
            host: self.buffer(number),
            written: true,
        };
        // A card whose queue is short has fewer buffers.
        let _ = self.receive.put(number, &[piece], host);
    }

    /// Makes the card send the frame in a slot of its inbox. Returns false if it cannot.
    pub fn send(&mut self, slot: u8, frame: OwnedRegion, host: TheHost<'_>) -> bool {
        let piece = Piece {
            host: frame,
            written: false,
        };
        !self.broken && self.transmit.put(slot.into(), &[piece], host)
    }

    /// Frees the slots of the frames that the card has sent.
    pub fn take_sent(&mut self, inbox: &mut Inbox, host: TheHost<'_>) {
        if self.broken {
            return;
        }
        for _ in 0..self.transmit.ended(host).min(MAX_ENTRIES) {
            match self.transmit.take(host) {
                Ok((slot, _)) => inbox.free(slot as u8),
                Err(wrong) => return self.fail(wrong),
            }
        }
    }

    /// Takes the next buffer with a received frame, and the bytes that the card claims to have written; `back` is a buffer that it may have
    /// again.
    pub fn take_received(&mut self, back: Option<u16>, host: TheHost<'_>) -> Option<(u16, u32)> {
        if self.broken {
            return None;
        }
        if let Some(number) = back {
            self.offer(number, host);
        }
        if self.receive.ended(host) == 0 {
            return None;
        }
        match self.receive.take(host) {
            Ok(received) => Some(received),
            Err(wrong) => {
                self.fail(wrong);
                None
            }
        }
    }

    #[cold]
    fn fail(&mut self, _: QueueError) {
        self.broken = true;
    }
}
