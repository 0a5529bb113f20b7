//! A driver on the one side and a device on the other, both written out here.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use abi::monitor::Event;

use super::super::*;
use crate::devices::shared::disk::{Disk, DiskNumber};
use crate::devices::shared::{Board, Client};
use crate::devices::virtio::register::*;
use crate::devices::wires::{Effect, SourceNumber, Sources};
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::{GuestMemory, HostMemory, Memory, Piece};

pub const RAM: u64 = 0x8000_0000;
pub const HALF: u64 = 0x1_0000;
/// Where the two halves lie, in the wrong order, and what is in front of, between and behind them is not the guest's. In one piece, both lie
/// at the first's place.
pub const FIRST: u64 = 0x6_0000;
pub const SECOND: u64 = 0x2_0000;
pub const AREAS: u64 = 0x9_0000;
/// Behind the areas of the queues.
pub const PAGE: u64 = AREAS + QUEUE_BYTES;
const HOST_BYTES: usize = 0xa_0000;
pub const REGISTERS: u64 = 0x1000_1000;
pub const ENTRIES: u32 = 8;

/// Where the guest has its queue and its buffers.
pub const TABLE: u64 = RAM;
pub const AVAILABLE: u64 = RAM + 0x1000;
pub const USED: u64 = RAM + 0x2000;
pub const BUFFERS: u64 = RAM + 0x4000;

/// How a device is simulated, and how the guest's memory lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The general way; memory in two pieces.
    General,
    /// The fast way, which nothing can take here: memory in two pieces.
    FastInPieces,
    /// The fast way; memory in one piece.
    Fast,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::General, Self::FastInPieces, Self::Fast];
}

pub struct World {
    way: Way,
    pub counts: RefCell<BTreeMap<Event, u32>>,
    memory: GuestMemory,
    pub host: Host,
    pub features: u64,
    pub accepted: Cell<u64>,
    pub select: Cell<u32>,
    pub status: Cell<u32>,
    pub interrupts: Cell<u32>,
    pub parts: RefCell<[u64; 3]>,
    pub notified: Cell<usize>,
    /// How much of the available ring the device has seen.
    pub seen: Cell<u16>,
    pub returned: Cell<u16>,
    /// How often the source was asked to send again.
    pub served: Cell<u32>,
    /// How often the device is still to be asked until it has reset itself.
    pub slow_resets: Cell<u32>,
    /// The first bytes of the device's configuration.
    pub configuration: Cell<u64>,
}

#[derive(Default)]
pub struct Host(RefCell<Vec<u8>>);

impl Host {
    /// So many bytes.
    pub fn new(bytes: usize) -> Self {
        Self(RefCell::new(vec![0x5a; bytes]))
    }

    pub fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        self.0.borrow()[at as usize..][..N].try_into().unwrap()
    }

    pub fn set(&self, at: u64, bytes: &[u8]) {
        self.0.borrow_mut()[at as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

impl HostMemory for Host {
    fn byte(&self, at: HostPhysical) -> u8 {
        self.get::<1>(at.raw())[0]
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
        u64::from_ne_bytes(self.get(at.raw()))
    }

    fn copy(&self, at: HostPhysical, data: &[u8]) {
        self.set(at.raw(), data);
    }

    fn zero(&self, at: HostPhysical, length: u64) {
        self.set(at.raw(), &vec![0; length as usize]);
    }
}

impl Reach for World {
    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: &self.memory,
            host: &self.host,
        }
    }

    fn device_load(&self, at: HostPhysical, width: Width) -> u64 {
        match at.raw() - REGISTERS {
            DEVICE_ID => 2,
            QUEUE_SIZE_MOST => ENTRIES.into(),
            DEVICE_FEATURES => self.features >> (32 * self.select.get()) & 0xffff_ffff,
            STATUS => self.status.get().into(),
            INTERRUPT_STATUS => self.interrupts.get().into(),
            at @ 0x100..0x108 => width.truncate(self.configuration.get() >> (8 * (at - 0x100))),
            _ => 0,
        }
    }

    fn count(&self, event: Event, times: u32) {
        *self.counts.borrow_mut().entry(event).or_default() += times;
    }

    fn with_disk(&self, _: DiskNumber, _: &mut dyn FnMut(&mut Disk, &dyn Board)) {
        panic!("nothing here is shared");
    }

    fn tell(&self, _: Client) {
        panic!("nothing here is shared");
    }

    fn served(&self, source: SourceNumber) {
        assert_eq!(source, SourceNumber(7));
        self.served.set(self.served.get() + 1);
    }

    fn device_store(&self, at: HostPhysical, width: Width, value: u64) {
        assert_eq!(width, Width::Word);
        let register = at.raw() - REGISTERS;
        let word = value as u32;
        match register {
            DEVICE_FEATURES_SELECT | DRIVER_FEATURES_SELECT => self.select.set(word),
            DRIVER_FEATURES => {
                let shift = 32 * self.select.get();
                let others = self.accepted.get() & !(0xffff_ffff << shift);
                self.accepted.set(others | value << shift);
            }
            STATUS if word == 0 && self.slow_resets.get() > 0 => {
                self.slow_resets.set(self.slow_resets.get() - 1);
            }
            STATUS => self.status.set(word),
            INTERRUPT_ACKNOWLEDGE => self.interrupts.set(self.interrupts.get() & !word),
            QUEUE_NOTIFY => self.notified.set(self.notified.get() + 1),
            _ => {
                for (number, low) in QUEUE_PARTS.into_iter().enumerate() {
                    let part = &mut self.parts.borrow_mut()[number];
                    if register == low {
                        *part = *part >> 32 << 32 | value;
                    } else if register == low + 4 {
                        *part = value << 32 | *part & 0xffff_ffff;
                    }
                }
            }
        }
    }
}

pub struct NoSources;

impl Sources for NoSources {
    fn pending(&self, _: SourceNumber) -> bool {
        false
    }

    fn rectified_input(&self, _: SourceNumber) -> bool {
        false
    }
}

impl Outside for World {
    fn print(&self, _: u8) -> Result<(), NotNow> {
        Ok(())
    }

    fn typed(&self) -> Option<u8> {
        None
    }

    fn timer(&self) -> u64 {
        0
    }

    fn sources(&self) -> &dyn Sources {
        &NoSources
    }

    fn apply(&self, _: Effect) {}

    fn reach(&self) -> Option<&dyn Reach> {
        Some(self)
    }
}

/// A buffer as the device sees it: address, bytes, whether it is written.
pub type Buffer = (u64, u32, bool);

impl World {
    pub fn new(way: Way, features: u64) -> Self {
        let piece = |guest, size, host| Piece {
            guest: GuestRegion::new(GuestPhysical::new(guest), size).unwrap(),
            host: HostPhysical::new(host),
        };
        let pieces = match way {
            Way::Fast => vec![piece(RAM, 2 * HALF, FIRST)],
            _ => vec![piece(RAM, HALF, FIRST), piece(RAM + HALF, HALF, SECOND)],
        };
        Self {
            way,
            counts: RefCell::default(),
            memory: GuestMemory::new(pieces).unwrap(),
            host: Host::new(HOST_BYTES),
            features: features | VERSION_1,
            accepted: Cell::new(0),
            select: Cell::new(0),
            status: Cell::new(0),
            interrupts: Cell::new(0),
            parts: RefCell::default(),
            notified: Cell::new(0),
            seen: Cell::new(0),
            returned: Cell::new(0),
            served: Cell::new(0),
            slow_resets: Cell::new(0),
            configuration: Cell::new(0x1122_3344_5566_7788),
        }
    }

    /// Where a guest's byte lies.
    pub fn place(&self, at: u64) -> u64 {
        match at - RAM {
            offset if offset < HALF || self.way == Way::Fast => FIRST + offset,
            offset => SECOND + offset - HALF,
        }
    }

    pub fn guest_sets(&self, at: u64, bytes: &[u8]) {
        self.host.set(self.place(at), bytes);
    }

    pub fn guest_gets<const N: usize>(&self, at: u64) -> [u8; N] {
        self.host.get(self.place(at))
    }

    /// The guest writes descriptor `number` of the table at `table`.
    pub fn describe(
        &self,
        table: u64,
        number: u64,
        address: u64,
        length: u32,
        flags: u16,
        next: u16,
    ) {
        let at = table + 16 * number;
        self.guest_sets(at, &address.to_le_bytes());
        self.guest_sets(at + 8, &length.to_le_bytes());
        self.guest_sets(at + 12, &flags.to_le_bytes());
        self.guest_sets(at + 14, &next.to_le_bytes());
    }

    /// The guest makes these heads available, from entry `from` on.
    pub fn offer(&self, from: u16, heads: &[u16]) {
        for (index, head) in (from..).zip(heads) {
            let entry = u64::from(index % ENTRIES as u16);
            self.guest_sets(AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
        }
        let index = from + heads.len() as u16;
        self.guest_sets(AVAILABLE + 2, &index.to_le_bytes());
    }

    /// The next chain that the device finds: its head and its buffers.
    pub fn device_takes(&self) -> Option<(u16, Vec<Buffer>)> {
        let [table, available, _] = *self.parts.borrow();
        let index = u16::from_le_bytes(self.host.get(available + 2));
        if self.seen.get() == index {
            return None;
        }
        let entry = u64::from(self.seen.get() % ENTRIES as u16);
        let head = u16::from_le_bytes(self.host.get(available + 4 + 2 * entry));
        self.seen.set(self.seen.get().wrapping_add(1));
        let (mut number, mut buffers) = (head, Vec::new());
        loop {
            let at = table + 16 * u64::from(number);
            let flags = u16::from_le_bytes(self.host.get(at + 12));
            buffers.push((
                u64::from_le_bytes(self.host.get(at)),
                u32::from_le_bytes(self.host.get(at + 8)),
                flags & 2 != 0,
            ));
            if flags & 1 == 0 {
                return Some((head, buffers));
            }
            number = u16::from_le_bytes(self.host.get(at + 14));
        }
    }

    /// The device returns a chain, having written so many bytes, and interrupts.
    pub fn device_returns(&self, head: u32, written: u32) {
        let used = self.parts.borrow()[2];
        let at = used + 4 + 8 * u64::from(self.returned.get() % ENTRIES as u16);
        self.host.set(at, &head.to_le_bytes());
        self.host.set(at + 4, &written.to_le_bytes());
        self.returned.set(self.returned.get().wrapping_add(1));
        self.host.set(used + 2, &self.returned.get().to_le_bytes());
        self.interrupts.set(1);
    }
}

pub struct Guest {
    pub device: Simulated,
    pub world: World,
}

impl Guest {
    pub fn store(&mut self, offset: u64, value: u32) -> Result<(), NotNow> {
        let width = Width::Word;
        self.device
            .store(Access { offset, width }, value.into(), &self.world)
    }

    pub fn set(&mut self, offset: u64, value: u32) {
        assert_eq!(self.store(offset, value), Ok(()));
    }

    /// A guest that has a page in place of the registers reads that.
    pub fn get(&mut self, offset: u64) -> u32 {
        let width = Width::Word;
        if self.world.way != Way::General {
            return u32::from_le_bytes(self.world.host.get(PAGE + offset));
        }
        self.device.load(Access { offset, width }, &self.world) as u32
    }

    pub fn new(way: Way, features: u64) -> Self {
        let fast = way != Way::General;
        let mut guest = Self {
            device: Simulated::new(Means {
                registers: HostPhysical::new(REGISTERS),
                size: 0x200,
                source: SourceNumber(7),
                areas: HostPhysical::new(AREAS),
                fast,
                page: fast.then(|| HostPhysical::new(PAGE)),
            }),
            world: World::new(way, features),
        };
        guest.device.reset(&guest.world);
        guest
    }

    /// §3.1.1, with these places for the queue's parts.
    pub fn start(&mut self, features: u64, size: u32, parts: [u64; 3]) {
        self.set(STATUS, 0);
        self.set(STATUS, 1 | 2);
        for (word, half) in [(0, features as u32), (1, (features >> 32) as u32)] {
            self.set(DRIVER_FEATURES_SELECT, word);
            self.set(DRIVER_FEATURES, half);
        }
        self.set(STATUS, 1 | 2 | status::FEATURES_OK);
        self.set(QUEUE_SELECT, 0);
        self.set(QUEUE_SIZE, size);
        for (register, part) in QUEUE_PARTS.into_iter().zip(parts) {
            self.set(register, part as u32);
            self.set(register + 4, (part >> 32) as u32);
        }
        self.set(QUEUE_READY, 1);
        self.set(STATUS, 1 | 2 | status::FEATURES_OK | status::DRIVER_OK);
    }

    pub fn started(way: Way) -> Self {
        let mut guest = Self::new(way, 0);
        // Nothing is available yet.
        guest.world.guest_sets(AVAILABLE, &[0; 6]);
        guest.start(VERSION_1, ENTRIES, [TABLE, AVAILABLE, USED]);
        assert_eq!(guest.get(STATUS), 15);
        assert_eq!(guest.get(QUEUE_READY), 1);
        guest
    }

    pub fn is_broken(&mut self) -> bool {
        self.get(STATUS) & status::NEEDS_RESET != 0
    }
}
