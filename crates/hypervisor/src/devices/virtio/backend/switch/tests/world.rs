//! A switch with its memory, and a card of the board with the network behind it, all written out here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use alloc::sync::Arc;

use abi::monitor::Event;

use super::super::frame::{Address, HEADER, SLOT};
use super::super::uplink::{self, Uplink};
use super::super::{INBOX_BYTES, PortPlace, Switch};
use super::guest::Guest;
use crate::devices::irq::SourceNumber;
use crate::devices::testing::context::Alone;
use crate::devices::testing::device::Device as TestDevice;
use crate::devices::testing::memory::Host;
use crate::devices::trapped::TrappedDevice;
use crate::devices::virtio::client::{Client, Clients};
use crate::devices::virtio::driver::Board;
use crate::devices::virtio::driver::Driver;
use crate::devices::virtio::{DeviceKind, VERSION_1};
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;
use crate::memory::owned::OwnedRegion;

/// A guest's memory, of which the first half lies behind the second.
pub const RAM: u64 = 0x8000_0000;
pub const HALF: u64 = 0x1_0000;
/// Addresses of the parts of queue 0 and queue 1, a page each.
pub const QUEUE: u64 = 0x4000;
/// Addresses of the buffers of each queue: the first of queue 1 lies across the two halves.
pub const BUFFERS: [u64; 2] = [RAM + 0x8000, RAM + HALF - 0x40];
pub const ENTRIES: u16 = 8;
/// Memory of the switch, and of the guests.
const INBOXES: u64 = 0x1_0000;
pub const GUESTS: u64 = 0x40_0000;
const REGISTERS: u64 = 0x1000_8000;
pub const DRIVER: Driver = Driver {
    registers: HostPhysical::new(REGISTERS),
    source: SourceNumber(9),
};
/// The card's queues are as long.
const CARD_ENTRIES: u16 = 64;

pub struct World {
    pub host: Host,
    /// The uplink's card.
    pub card: TestDevice,
    pub switch: Arc<Switch>,
    pub notified: Cell<Clients>,
    pub counts: RefCell<BTreeMap<(usize, Event), u32>>,
}

impl Board for (&Host, &TestDevice) {
    fn load(&self, at: HostPhysical, width: Width) -> Option<u64> {
        self.1.load(at, width)
    }

    fn store(&self, at: HostPhysical, width: Width, value: u64) {
        self.1.store(at, width, value);
    }

    fn resample(&self, source: SourceNumber) {
        assert_eq!(source, DRIVER.source);
        self.1.served.set(self.1.served.get() + 1);
    }

    fn time(&self) -> u64 {
        0
    }

    fn host(&self) -> TheHost<'_> {
        TheHost::new(self.0)
    }
}

impl World {
    /// A switch with so many ports.
    pub fn new(ports: usize, uplink: bool) -> Self {
        let bytes = GUESTS + 4 * HALF * ports as u64;
        let host = Host::new(bytes as usize);
        let card = TestDevice::new(
            DeviceKind::NetworkCard,
            REGISTERS,
            CARD_ENTRIES,
            1 << 5 | 1 << 15,
        );
        card.configuration.set(0x0706_0504_0302_0100);
        let places = (0..ports).map(|number| PortPlace {
            address: address(number),
            client: Client::new(number + 3).unwrap(),
        });
        let size = Switch::bytes(ports, uplink);
        assert_eq!(size, (ports as u64 + u64::from(uplink)) * INBOX_BYTES);
        assert!(INBOXES + size + uplink::BYTES <= GUESTS);
        let memory = OwnedRegion::for_test(INBOXES + size, uplink::BYTES);
        let up = uplink.then(|| {
            let up = Uplink::start(DRIVER, memory, &(&host, &card)).unwrap();
            assert_eq!(card.accepted.get(), VERSION_1 | 1 << 5);
            up
        });
        let switch = Switch::new(places.collect(), up, OwnedRegion::for_test(INBOXES, size));
        Self {
            host,
            card,
            switch: Arc::new(switch),
            notified: Cell::new(Clients::NONE),
            counts: RefCell::default(),
        }
    }

    pub fn count(&self, vm: usize, event: Event) -> u32 {
        let counts = self.counts.borrow();
        counts.get(&(vm, event)).copied().unwrap_or(0)
    }

    pub fn guests(&self, count: usize) -> Vec<Guest> {
        (0..count).map(|number| Guest::new(self, number)).collect()
    }

    /// Polls the ports that were notified.
    pub fn settle(&self, guests: &mut [Guest]) {
        for client in self.notified.take().iter() {
            let guest = &mut guests[client.index() - 3];
            let view = guest.view(self);
            guest.device.poll(&Alone(&view));
        }
    }

    /// The card sends what it finds.
    pub fn card_sends(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some((head, at, bytes, written)) = self.card_takes(1) {
            assert!(!written);
            let data = self.host.bytes(at, bytes as usize);
            assert_eq!(data[..HEADER], [0; HEADER]);
            all.push(data[HEADER..].to_vec());
            self.card_returns(1, head.into(), 0);
        }
        all
    }

    /// The next chain of a queue of the card's: its head, its buffer.
    pub fn card_takes(&self, queue: usize) -> Option<(u16, u64, u32, bool)> {
        let (head, buffers) = self.card.takes(queue, &self.host)?;
        let available = self.card.parts.borrow()[queue][1];
        assert_eq!(self.host.half(available), queue as u16, "interrupts");
        let [(at, bytes, written)] = buffers[..] else {
            panic!("one buffer");
        };
        Some((head, at, bytes, written))
    }

    pub fn card_returns(&self, queue: usize, head: u32, written: u32) {
        self.card.returns(queue, (head, written), &self.host);
    }

    /// A frame comes from outside, if the card has a buffer.
    pub fn card_receives(&self, frame: &[u8]) -> bool {
        let Some((head, at, bytes, written)) = self.card_takes(0) else {
            return false;
        };
        assert!(written && u64::from(bytes) <= SLOT && bytes as usize >= HEADER + frame.len());
        self.host.set(at, &[0; HEADER]);
        self.host.set(at + HEADER as u64, frame);
        self.card_returns(0, head.into(), (HEADER + frame.len()) as u32);
        self.card.interrupts.set(1);
        true
    }

    pub fn serve(&self) {
        let notified = self.switch.serve_uplink(&(&self.host, &self.card));
        let mut all = self.notified.get();
        all.add(notified);
        self.notified.set(all);
    }
}

/// The address of a port.
pub fn address(number: usize) -> Address {
    Address::of_port([1, 2, 3], 7, number as u8)
}

pub const BROADCAST: Address = Address([0xff; 6]);

/// A frame of so many bytes, whose body is made of `mark`.
pub fn frame(to: Address, from: Address, length: usize, mark: u8) -> Vec<u8> {
    let mut bytes = [&to.0[..], &from.0[..], &[8, 0]].concat();
    bytes.extend((0..length - 14).map(|at| (at as u8).wrapping_mul(3) ^ mark));
    bytes
}
