//! A switch with its memory, and a card of the board with the network behind it, all written out here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use alloc::sync::Arc;

use abi::monitor::Event;

use super::super::frame::{Address, HEADER, SLOT};
use super::super::uplink::{self, Means, NETWORK_CARD, Uplink};
use super::super::{INBOX_BYTES, PortPlace, Switch};
use super::guest::Guest;
use crate::devices::shared::{Board, Client};
use crate::devices::trapped::Trapped;
use crate::devices::virtio::VERSION_1;
use crate::devices::virtio::register::*;
use crate::devices::wires::SourceNumber;
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;
use crate::memory::guest::HostMemory;

/// A guest's memory, of which the first half lies behind the second.
pub const RAM: u64 = 0x8000_0000;
pub const HALF: u64 = 0x1_0000;
/// Where a guest has a queue's parts, a page each, for queue 0 and queue 1.
pub const QUEUE: u64 = 0x4000;
/// Where its buffers begin, for each queue: the first of queue 1 lies across the two halves.
pub const BUFFERS: [u64; 2] = [RAM + 0x8000, RAM + HALF - 0x40];
pub const ENTRIES: u16 = 8;
/// Where the switch has its memory, and the guests theirs.
const INBOXES: u64 = 0x1_0000;
pub const GUESTS: u64 = 0x40_0000;
const REGISTERS: u64 = 0x1000_8000;
/// The card's queues are as long.
const CARD_ENTRIES: u16 = 64;

#[derive(Default)]
pub struct Host(RefCell<Vec<u8>>);

impl Host {
    pub fn get(&self, at: u64, bytes: usize) -> Vec<u8> {
        self.0.borrow()[at as usize..][..bytes].to_vec()
    }

    pub fn set(&self, at: u64, bytes: &[u8]) {
        self.0.borrow_mut()[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn half(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.get(at, 2).try_into().unwrap())
    }
}

impl HostMemory for Host {
    fn byte(&self, at: HostPhysical) -> u8 {
        self.0.borrow()[at.raw() as usize]
    }

    fn set_byte(&self, at: HostPhysical, value: u8) {
        self.set(at.raw(), &[value]);
    }

    fn set_word(&self, at: HostPhysical, value: u32) {
        assert!(at.is_aligned(4));
        self.set(at.raw(), &value.to_ne_bytes());
    }

    fn set_half(&self, at: HostPhysical, value: u16) {
        assert!(at.is_aligned(2));
        self.set(at.raw(), &value.to_ne_bytes());
    }

    fn set_doubleword(&self, at: HostPhysical, value: u64) {
        assert!(at.is_aligned(8));
        self.set(at.raw(), &value.to_ne_bytes());
    }

    fn doubleword(&self, at: HostPhysical) -> u64 {
        assert!(at.is_aligned(8));
        u64::from_ne_bytes(self.get(at.raw(), 8).try_into().unwrap())
    }

    fn copy(&self, at: HostPhysical, data: &[u8]) {
        self.set(at.raw(), data);
    }

    fn zero(&self, at: HostPhysical, length: u64) {
        self.set(at.raw(), &vec![0; length as usize]);
    }
}

/// A card, and the network behind it.
#[derive(Default)]
pub struct TestCard {
    select: Cell<u32>,
    status: Cell<u32>,
    pub interrupts: Cell<u32>,
    pub served: Cell<u32>,
    pub parts: RefCell<[[u64; 3]; 2]>,
    /// Of each queue: how much of the available ring was taken, and of the used ring filled.
    taken: [Cell<u16>; 2],
    used: [Cell<u16>; 2],
    pub notified: [Cell<u32>; 2],
}

pub struct World {
    pub host: Host,
    pub card: TestCard,
    pub switch: Arc<Switch>,
    pub told: Cell<u64>,
    pub counts: RefCell<BTreeMap<(usize, Event), u32>>,
}

impl Board for (&Host, &TestCard) {
    fn load(&self, at: HostPhysical, _: Width) -> u64 {
        let (_, card) = self;
        match at.raw() - REGISTERS {
            DEVICE_ID => NETWORK_CARD.into(),
            DEVICE_FEATURES => match card.select.get() {
                0 => 1 << 5 | 1 << 15,
                _ => VERSION_1 >> 32,
            },
            QUEUE_SIZE_MOST => CARD_ENTRIES.into(),
            STATUS => card.status.get().into(),
            INTERRUPT_STATUS => card.interrupts.get().into(),
            at @ 0x100..0x106 => at - 0x100,
            _ => 0,
        }
    }

    fn store(&self, at: HostPhysical, width: Width, value: u64) {
        assert_eq!(width, Width::Word);
        let (_, card) = self;
        let register = at.raw() - REGISTERS;
        match register {
            DEVICE_FEATURES_SELECT | QUEUE_SELECT => card.select.set(value as u32),
            STATUS => card.status.set(value as u32),
            INTERRUPT_ACKNOWLEDGE => card.interrupts.set(card.interrupts.get() & !(value as u32)),
            QUEUE_NOTIFY => {
                let count = &card.notified[value as usize];
                count.set(count.get() + 1);
            }
            DRIVER_FEATURES if card.select.get() == 0 => assert_eq!(value, 1 << 5),
            _ => {
                let parts = &mut card.parts.borrow_mut()[card.select.get() as usize % 2];
                for (low, part) in QUEUE_PARTS.into_iter().zip(parts) {
                    if register == low {
                        *part = *part >> 32 << 32 | value;
                    } else if register == low + 4 {
                        *part = value << 32 | *part & 0xffff_ffff;
                    }
                }
            }
        }
    }

    fn served(&self, source: SourceNumber) {
        assert_eq!(source, SourceNumber(9));
        self.1.served.set(self.1.served.get() + 1);
    }

    fn host(&self) -> &dyn HostMemory {
        self.0
    }
}

impl World {
    /// A switch with so many ports.
    pub fn new(ports: usize, uplink: bool) -> Self {
        let bytes = GUESTS + 4 * HALF * ports as u64;
        let host = Host(RefCell::new(vec![0x5a; bytes as usize]));
        let card = TestCard::default();
        let places = (0..ports).map(|number| PortPlace {
            address: address(number),
            client: Client::new(number + 3).unwrap(),
        });
        let size = Switch::bytes(ports, uplink);
        assert_eq!(size, (ports as u64 + u64::from(uplink)) * INBOX_BYTES);
        let means = Means {
            registers: HostPhysical::new(REGISTERS),
            source: SourceNumber(9),
            memory: HostPhysical::new(INBOXES + size),
        };
        assert!(INBOXES + size + uplink::BYTES <= GUESTS);
        let up = uplink.then(|| Uplink::start(means, &(&host, &card)).unwrap());
        let switch = Switch::new(places.collect(), up, HostPhysical::new(INBOXES));
        Self {
            host,
            card,
            switch: Arc::new(switch),
            told: Cell::new(0),
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

    /// Those who were told look.
    pub fn settle(&self, guests: &mut [Guest]) {
        for client in Client::in_bits(self.told.take()) {
            let guest = &mut guests[client.index() - 3];
            let view = guest.view(self);
            guest.device.look(&view);
        }
    }

    /// The card sends what it finds.
    pub fn card_sends(&self) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some((head, at, bytes, written)) = self.card_takes(1) {
            assert!(!written);
            let data = self.host.get(at, bytes as usize);
            assert_eq!(data[..HEADER], [0; HEADER]);
            all.push(data[HEADER..].to_vec());
            self.card_returns(1, head.into(), 0);
        }
        all
    }

    /// The next chain of a queue of the card's: its head, its buffer.
    pub fn card_takes(&self, queue: usize) -> Option<(u16, u64, u32, bool)> {
        let [table, available, _] = self.card.parts.borrow()[queue];
        let taken = &self.card.taken[queue];
        if taken.get() == self.host.half(available + 2) {
            return None;
        }
        assert_eq!(self.host.half(available), queue as u16, "interrupts");
        let entry = u64::from(taken.get() % CARD_ENTRIES);
        taken.set(taken.get().wrapping_add(1));
        let head = self.host.half(available + 4 + 2 * entry);
        let descriptor = self.host.get(table + 16 * u64::from(head), 16);
        let at = u64::from_le_bytes(descriptor[..8].try_into().unwrap());
        let bytes = u32::from_le_bytes(descriptor[8..12].try_into().unwrap());
        assert!(descriptor[12] & 5 == 0, "one buffer");
        Some((head, at, bytes, descriptor[12] & 2 != 0))
    }

    pub fn card_returns(&self, queue: usize, head: u32, written: u32) {
        let used = self.card.parts.borrow()[queue][2];
        let count = &self.card.used[queue];
        let at = used + 4 + 8 * u64::from(count.get() % CARD_ENTRIES);
        self.host.set(at, &head.to_le_bytes());
        self.host.set(at + 4, &written.to_le_bytes());
        count.set(count.get().wrapping_add(1));
        self.host.set(used + 2, &count.get().to_le_bytes());
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
        let told = self.switch.serve_uplink(&(&self.host, &self.card));
        self.told.set(self.told.get() | told);
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
