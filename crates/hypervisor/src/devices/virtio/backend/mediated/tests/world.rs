//! A guest's driver on the one side and a device of the board on the other.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use abi::monitor::Event;

use super::super::*;
use crate::devices::irq::SourceNumber;
use crate::devices::testing::context::Alone;
use crate::devices::testing::device::{Buffer, Device as TestDevice};
use crate::devices::testing::memory::Host;
use crate::devices::trapped::TrappedDevice;
use crate::devices::virtio::DeviceKind;
use crate::devices::virtio::backend::disk::{Disk, DiskNumber};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::driver::Board;
use crate::devices::virtio::register::*;
use crate::devices::virtio::transport::MmioTransport;
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::{GuestMemory, Memory, Piece, TheHost};
use crate::memory::owned::OwnedRegion;

pub const RAM: u64 = 0x8000_0000;
pub const HALF: u64 = 0x1_0000;
/// Place of the two halves, in the wrong order; bytes before, between and behind them are not the guest's. In one piece, both lie
/// at the first's place.
pub const FIRST: u64 = 0x6_0000;
pub const SECOND: u64 = 0x2_0000;
pub const AREAS: u64 = 0x9_0000;
/// Behind the areas of the queues.
pub const PAGE: u64 = AREAS + QUEUE_BYTES;
pub const HOST_BYTES: usize = 0xa_0000;
pub const REGISTERS: u64 = 0x1000_1000;
pub const ENTRIES: u32 = 8;
/// The longest time between two looks.
pub const PATIENCE: u64 = 480;

/// Addresses of the guest's queue and of its buffers.
pub const TABLE: u64 = RAM;
pub const AVAILABLE: u64 = RAM + 0x1000;
pub const USED: u64 = RAM + 0x2000;
pub const BUFFERS: u64 = RAM + 0x4000;

/// Way of mediation, and layout of the guest's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The general way; memory in two pieces.
    General,
    /// The general way; memory in two pieces that stand for pages.
    InPages,
    /// The fast way, which nothing can take here: memory in two pieces.
    FastInPieces,
    /// The fast way; memory in one piece.
    Fast,
}

impl Way {
    pub const ALL: [Self; 3] = [Self::General, Self::FastInPieces, Self::Fast];

    const fn is_fast(self) -> bool {
        matches!(self, Self::FastInPieces | Self::Fast)
    }
}

pub struct World {
    way: Way,
    entries: u16,
    pub counts: RefCell<BTreeMap<Event, u32>>,
    /// The board's clock, and when the device is to be looked at, as it said last.
    pub time: Cell<u64>,
    pub poll_by: Cell<Option<u64>>,
    /// Set if the guest is busy.
    pub is_at_work: Cell<bool>,
    memory: GuestMemory,
    pub host: Host,
    /// The device of the board.
    pub board: TestDevice,
}

impl VirtioContext for World {
    fn time(&self) -> u64 {
        self.time.get()
    }

    fn is_guest_busy(&self) -> bool {
        self.is_at_work.get()
    }

    fn poll_by(&self, source: SourceNumber, at: u64) {
        assert_eq!(source, SourceNumber(7));
        self.poll_by.set(Some(at));
    }

    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: &self.memory,
            host: TheHost::new(&self.host),
        }
    }

    fn load_register(&self, at: HostPhysical, width: Width) -> Option<u64> {
        self.board.load(at, width)
    }

    fn count(&self, event: Event, times: u32) {
        *self.counts.borrow_mut().entry(event).or_default() += times;
    }

    fn with_disk(&self, _: DiskNumber, _: &mut dyn FnMut(&mut Disk, &dyn Board)) {
        panic!("nothing here is shared");
    }

    fn notify_client(&self, _: Client) {
        panic!("nothing here is shared");
    }

    fn resample(&self, source: SourceNumber) {
        assert_eq!(source, SourceNumber(7));
        self.board.served.set(self.board.served.get() + 1);
    }

    fn store_register(&self, at: HostPhysical, width: Width, value: u64) {
        self.board.store(at, width, value);
    }
}

impl World {
    pub fn new(way: Way, features: u64, entries: u16) -> Self {
        let piece = |guest, size, host| Piece {
            guest: GuestRegion::new(GuestPhysical::new(guest), size).unwrap(),
            host: OwnedRegion::for_test(host, size),
        };
        let pieces = match way {
            Way::Fast => vec![piece(RAM, 2 * HALF, FIRST)],
            _ => vec![piece(RAM, HALF, FIRST), piece(RAM + HALF, HALF, SECOND)],
        };
        let board = TestDevice::new(DeviceKind::Disk, REGISTERS, entries, features);
        board.configuration.set(0x1122_3344_5566_7788);
        Self {
            way,
            entries,
            counts: RefCell::default(),
            time: Cell::default(),
            is_at_work: Cell::new(false),
            poll_by: Cell::default(),
            memory: GuestMemory::new(pieces).unwrap(),
            host: Host::new(HOST_BYTES),
            board,
        }
    }

    /// Host address of a guest's byte.
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
        let mut index = from;
        for head in heads {
            let entry = u64::from(index % self.entries);
            self.guest_sets(AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
            index = index.wrapping_add(1);
        }
        self.guest_sets(AVAILABLE + 2, &index.to_le_bytes());
    }

    /// The next chain that the device finds: its head and its buffers.
    pub fn device_takes(&self) -> Option<(u16, Vec<Buffer>)> {
        self.board.takes(0, &self.host)
    }

    /// The device returns a chain, having written so many bytes, and interrupts.
    pub fn device_returns(&self, head: u32, written: u32) {
        self.board.returns(0, (head, written), &self.host);
        self.board.interrupts.set(1);
    }
}

pub struct Guest {
    pub device: MmioTransport<Mediated>,
    pub world: World,
}

impl Guest {
    pub fn store(&mut self, offset: u64, value: u32) -> Result<(), WouldBlock> {
        let width = Width::Word;
        self.device
            .store(Access { offset, width }, value.into(), &Alone(&self.world))
    }

    pub fn set(&mut self, offset: u64, value: u32) {
        assert_eq!(self.store(offset, value), Ok(()));
    }

    /// A guest that has a page in place of the registers reads that.
    pub fn get(&mut self, offset: u64) -> u32 {
        let width = Width::Word;
        if self.world.way.is_fast() {
            return u32::from_le_bytes(self.world.host.get(PAGE + offset));
        }
        self.device
            .load(Access { offset, width }, &Alone(&self.world)) as u32
    }

    pub fn new(way: Way, features: u64) -> Self {
        Self::with_entries(way, features, ENTRIES as u16)
    }

    pub fn with_entries(way: Way, features: u64, entries: u16) -> Self {
        let fast = way.is_fast();
        let config = BackendConfig {
            registers: HostPhysical::new(REGISTERS),
            source: SourceNumber(7),
            areas: OwnedRegion::for_test(AREAS, QUEUE_BYTES),
            fast,
            page: fast.then(|| OwnedRegion::for_test(PAGE, PAGE_SIZE)),
            in_pages: way == Way::InPages,
            patience: PATIENCE,
        };
        let mut guest = Self {
            device: MmioTransport::new(Mediated::new(config), config.page),
            world: World::new(way, features, entries),
        };
        guest.device.reset(&Alone(&guest.world));
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
