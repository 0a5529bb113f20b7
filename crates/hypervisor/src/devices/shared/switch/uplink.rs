//! The card of the board that joins a switch to the network outside: the hypervisor drives it (virtio 1.2, §5.1).
//!
//! Its buffers are memory of the hypervisor's: those for receiving are its own, and those for sending are the slots of the uplink's inbox.
//! It interrupts when it has received something. What it has sent is looked for when something is to be sent.

use super::frame::{Address, BODY, HEAD, HEADER, LONGEST, SLOT};
use super::inbox::Inbox;
use crate::devices::shared::Board;
use crate::devices::simulated::chain::{Piece, Wrong};
use crate::devices::simulated::shadow::{AREA, MOST_ENTRIES, Shadow};
use crate::devices::virtio::{ACCESS_PLATFORM, VERSION_1, register, status};
use crate::devices::wires::SourceNumber;
use crate::hart::decode::Width;
use crate::memory::address::{HostPhysical, HostRegion};
use crate::memory::guest::HostMemory;

/// The kind of a network card (virtio 1.2, §5.1.1), and VIRTIO_NET_F_MAC (§5.1.3).
pub const NETWORK_CARD: u32 = 1;
pub const HAS_ADDRESS: u64 = 1 << 5;
/// Its queues.
pub const RECEIVE: usize = 0;
pub const TRANSMIT: usize = 1;

/// Buffers that the card can receive into.
pub const BUFFERS: u16 = 64;
/// Where in its slot such a buffer begins, so that a frame's body is on 8 bytes, and its bytes.
const BUFFER: u64 = BODY - (HEADER + HEAD) as u64;
const BUFFER_BYTES: u64 = HEADER as u64 + LONGEST as u64;
/// Bytes of memory that an uplink needs besides its inbox: for its queues, and for buffers.
pub const BYTES: u64 = 2 * AREA + BUFFERS as u64 * SLOT;

/// What the hypervisor needs of a card of the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Means {
    /// Its registers.
    pub registers: HostPhysical,
    /// Its source at the board's APLIC, which the hypervisor has.
    pub source: SourceNumber,
    /// [`BYTES`] of memory that nobody else has, at a multiple of [`AREA`].
    pub memory: HostPhysical,
}

/// Why a device cannot be a switch's uplink.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoUplink {
    #[error("there is no network card")]
    NoCard,
    #[error("the network card does not take what virtio 1 has")]
    Features,
    #[error("the network card has no queue {0}")]
    NoQueue(usize),
}

/// The card that is a switch's uplink.
#[derive(Clone, Copy, Debug)]
pub struct Uplink {
    means: Means,
    address: Option<Address>,
}

/// The card's queues.
#[derive(Debug)]
pub struct Card {
    receive: Shadow,
    transmit: Shadow,
    /// Where the buffers are.
    buffers: HostPhysical,
    /// Whether it returned what it was not given. Then nothing is asked of it any more.
    broken: bool,
}

impl Uplink {
    /// Sets the card up (virtio 1.2, §3.1.1).
    ///
    /// # Errors
    /// [`NoUplink`]. The card is idle then.
    pub fn start(means: Means, board: &dyn Board) -> Result<(Self, Card), NoUplink> {
        let mut uplink = Self {
            means,
            address: None,
        };
        if uplink.word(register::DEVICE_ID, board) != NETWORK_CARD {
            return Err(NoUplink::NoCard);
        }
        let card = uplink.set_up(board);
        if card.is_err() {
            uplink.set(register::STATUS, 0, board);
        }
        card.map(|card| (uplink, card))
    }

    fn set_up(&mut self, board: &dyn Board) -> Result<Card, NoUplink> {
        const ACKNOWLEDGE: u32 = 1;
        const DRIVER: u32 = 2;
        self.set(register::STATUS, 0, board);
        self.set(register::STATUS, ACKNOWLEDGE | DRIVER, board);
        let half = |word: u32| {
            self.set(register::DEVICE_FEATURES_SELECT, word, board);
            u64::from(self.word(register::DEVICE_FEATURES, board))
        };
        let offered = half(0) | half(1) << 32;
        // The card's addresses are the host's, whatever it calls them.
        let chosen = offered & (VERSION_1 | ACCESS_PLATFORM | HAS_ADDRESS);
        for (word, half) in [(0, chosen as u32), (1, (chosen >> 32) as u32)] {
            self.set(register::DRIVER_FEATURES_SELECT, word, board);
            self.set(register::DRIVER_FEATURES, half, board);
        }
        let agreed = ACKNOWLEDGE | DRIVER | status::FEATURES_OK;
        self.set(register::STATUS, agreed, board);
        let taken = self.word(register::STATUS, board) & status::FEATURES_OK != 0;
        if chosen & VERSION_1 == 0 || !taken {
            return Err(NoUplink::Features);
        }
        if chosen & HAS_ADDRESS != 0 {
            self.address = Some(self.own_address(board));
        }
        let memory = self.means.memory.raw();
        let receive = self.queue(RECEIVE, HostPhysical::new(memory), board)?;
        let transmit = HostPhysical::new(memory.wrapping_add(AREA));
        let transmit = self.queue(TRANSMIT, transmit, board)?;
        let transmit = transmit.without_interrupts(board.host());
        let mut card = Card {
            receive,
            transmit,
            buffers: HostPhysical::new(memory.wrapping_add(2 * AREA)),
            broken: false,
        };
        for buffer in 0..BUFFERS {
            card.offer(buffer, board.host());
        }
        self.set(register::STATUS, agreed | status::DRIVER_OK, board);
        self.tell_of_buffers(board);
        Ok(card)
    }

    fn own_address(&self, board: &dyn Board) -> Address {
        let mut address = Address([0; 6]);
        for (offset, byte) in (0..).zip(&mut address.0) {
            *byte = board.load(self.at(register::CONFIGURATION + offset), Width::Byte) as u8;
        }
        address
    }

    /// Makes a queue of the card's ready, in `area`.
    fn queue(
        &self,
        number: usize,
        area: HostPhysical,
        board: &dyn Board,
    ) -> Result<Shadow, NoUplink> {
        self.set(register::QUEUE_SELECT, number as u32, board);
        let most = self.word(register::QUEUE_SIZE_MOST, board);
        let entries = match most.min(MOST_ENTRIES.into()) {
            0 => return Err(NoUplink::NoQueue(number)),
            most => 1 << most.ilog2(),
        };
        let queue = Shadow::new(area, entries, board.host());
        self.set(register::QUEUE_SIZE, entries.into(), board);
        for (register, part) in register::QUEUE_PARTS.into_iter().zip(queue.parts()) {
            self.set(register, part.raw() as u32, board);
            self.set(register + 4, (part.raw() >> 32) as u32, board);
        }
        self.set(register::QUEUE_READY, 1, board);
        Ok(queue)
    }

    /// Its source at the board's APLIC.
    #[must_use]
    pub const fn source(&self) -> SourceNumber {
        self.means.source
    }

    /// The card's own address, if it says one.
    #[must_use]
    pub const fn address(&self) -> Option<Address> {
        self.address
    }

    /// The register by which the card is told of something in a queue, whose number is written there.
    #[must_use]
    pub const fn notify(&self) -> HostPhysical {
        self.at(register::QUEUE_NOTIFY)
    }

    /// Whether the card has interrupted, which it is told was seen.
    pub fn has_interrupted(&self, board: &dyn Board) -> bool {
        let why = self.word(register::INTERRUPT_STATUS, board);
        if why == 0 {
            return false;
        }
        self.set(register::INTERRUPT_ACKNOWLEDGE, why, board);
        board.served(self.means.source);
        true
    }

    /// Tells the card of buffers that it can receive into.
    pub fn tell_of_buffers(&self, board: &dyn Board) {
        self.set(register::QUEUE_NOTIFY, RECEIVE as u32, board);
    }

    /// The registers are in the board's memory map, so that nothing overflows.
    const fn at(&self, register: u64) -> HostPhysical {
        HostPhysical::new(self.means.registers.raw().wrapping_add(register))
    }

    fn word(&self, register: u64, board: &dyn Board) -> u32 {
        board.load(self.at(register), Width::Word) as u32
    }

    fn set(&self, register: u64, value: u32, board: &dyn Board) {
        board.store(self.at(register), Width::Word, value.into());
    }
}

impl Card {
    /// Where a buffer for receiving is.
    #[must_use]
    pub fn buffer(&self, number: u16) -> HostPhysical {
        let before = u64::from(number) * SLOT + BUFFER;
        HostPhysical::new(self.buffers.raw().wrapping_add(before))
    }

    /// Lets the card receive into a buffer.
    pub fn offer(&mut self, number: u16, host: &dyn HostMemory) {
        if let Some(host_region) = HostRegion::new(self.buffer(number), BUFFER_BYTES) {
            let piece = Piece {
                host: host_region,
                written: true,
            };
            // A card whose queue is short has fewer buffers.
            let _ = self.receive.put(number, &[piece], host);
        }
    }

    /// Has the card send what lies in a slot of its inbox. False where it cannot.
    pub fn send(
        &mut self,
        slot: u8,
        (at, bytes): (HostPhysical, u64),
        host: &dyn HostMemory,
    ) -> bool {
        let Some(region) = HostRegion::new(at, bytes).filter(|_| !self.broken) else {
            return false;
        };
        let piece = Piece {
            host: region,
            written: false,
        };
        self.transmit.put(slot.into(), &[piece], host)
    }

    /// Frees the slots of what the card has sent.
    pub fn take_sent(&mut self, inbox: &mut Inbox, host: &dyn HostMemory) {
        if self.broken {
            return;
        }
        for _ in 0..self.transmit.ended(host).min(MOST_ENTRIES) {
            match self.transmit.take(host) {
                Ok((slot, _)) => inbox.free(slot as u8),
                Err(wrong) => return self.fail(wrong),
            }
        }
    }

    /// The next buffer that the card has received something into, and the bytes that it says it has written; `back` is a buffer that it may have
    /// again.
    pub fn take_received(
        &mut self,
        back: Option<u16>,
        host: &dyn HostMemory,
    ) -> Option<(u16, u32)> {
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
    fn fail(&mut self, _: Wrong) {
        self.broken = true;
    }
}
