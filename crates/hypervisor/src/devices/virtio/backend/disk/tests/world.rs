//! Guests with a slice each, and the disk of the board: all written out here.

use std::cell::{Cell, RefCell};

use abi::monitor::Event;

use super::super::slice::{IDENTITY, Part, Slice};
use super::super::*;
use crate::devices::testing::context::Alone;
use crate::devices::testing::device::{Descriptor, Device as TestDevice};
use crate::devices::testing::memory::Host;
use crate::devices::trapped::{Access, TrappedDevice, VirtioContext, WouldBlock};
use crate::devices::virtio::register::*;
use crate::devices::virtio::transport::MmioTransport;
use crate::hart::decode::Width;
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::{GuestMemory, Memory, Piece, TheHost};
use crate::memory::owned::OwnedRegion;

const REGISTERS: u64 = 0x1000_1000;
pub const DRIVER: Driver = Driver {
    registers: HostPhysical::new(REGISTERS),
    source: SourceNumber(7),
};
pub const RAM: u64 = 0x8000_0000;
pub const HALF: u64 = 0x1_0000;
const QUEUE_AREA: u64 = 0x2000;
const OPERATIONS: u64 = 0x10_0000;
const MEMORY: u64 = 0x20_0000;
/// Where the page lies that the guest with a number reads in place of registers.
fn page_of(guest: usize) -> OwnedRegion {
    OwnedRegion::for_test(0x8000 + guest as u64 * PAGE_SIZE, PAGE_SIZE)
}
/// For how long something may wait, in ticks.
pub const PATIENCE: u64 = 480;
/// Entries of a guest's queue.
pub const ENTRIES: u16 = 256;
/// Sectors of a slice; the disk has some more on both sides.
pub const SECTORS: u64 = 512;
/// Requests that a guest can have at a time.
pub const REQUESTS: u16 = 64;

pub const TABLE: u64 = RAM;
const AVAILABLE: u64 = RAM + 0x1000;
const USED: u64 = RAM + 0x2000;
/// Of each request: header, status, table, data. Some lie across the two halves of the memory.
pub const BUFFERS: u64 = RAM + 0x4100;
const BUFFER: u64 = 0x400;

/// Operation that the disk has been given and has not completed.
#[derive(Clone, Debug)]
pub struct Given {
    head: u32,
    pub guest: usize,
    pub kind: u32,
    pub sector: u64,
    pub data: Vec<(u64, u32, bool)>,
    status: u64,
}

/// The board: its memory, and a disk.
pub struct World {
    pub host: Host,
    pub disk: RefCell<Option<Disk>>,
    pub device: TestDevice,
    pub given: RefCell<Vec<Given>>,
    pub sectors: RefCell<Vec<[u8; 512]>>,
    guests: usize,
    pub told: Cell<Clients>,
    pub time: Cell<u64>,
    /// True if the guests are at work.
    pub at_work: Cell<bool>,
}

impl Board for World {
    fn load(&self, at: HostPhysical, width: Width) -> Option<u64> {
        self.device.load(at, width)
    }

    fn store(&self, at: HostPhysical, width: Width, value: u64) {
        self.device.store(at, width, value);
        if at.raw() - REGISTERS == QUEUE_NOTIFY {
            self.look();
        }
    }

    fn resample(&self, _: SourceNumber) {}

    fn time(&self) -> u64 {
        self.time.get()
    }

    fn host(&self) -> TheHost<'_> {
        TheHost::new(&self.host)
    }
}

impl World {
    /// The disk takes what it is given. All of it must be the hypervisor's, or memory of the guest whose sectors they are.
    fn look(&self) {
        while let Some((head, chain)) = self.device.takes_chain(0, &self.host) {
            let Descriptor {
                at: own,
                bytes,
                flags,
                ..
            } = chain[0];
            assert_eq!((chain.len(), flags), (1, 4), "an indirect table alone");
            let slots = OPERATIONS..OPERATIONS + self.guests as u64 * SLICE_BYTES;
            assert!(slots.contains(&own), "{own:#x}");
            let guest = (own - OPERATIONS) / SLICE_BYTES;
            let all: Vec<_> = (0..u64::from(bytes) / 16)
                .map(|number| Descriptor::read(own + 16 * number, &self.host))
                .collect();
            for (number, one) in all.iter().enumerate() {
                let is_last = number + 1 == all.len();
                assert_eq!(one.flags & 1 != 0, !is_last);
                assert!(is_last || usize::from(one.next) == number + 1);
            }
            let [header, .., status] = &all[..] else {
                panic!("a header and a status");
            };
            let shape = (header.at & !0xfff, header.bytes, header.flags);
            assert_eq!(shape, (own, 16, 1));
            let kind = u32::from_le_bytes(self.host.get(header.at));
            let sector = u64::from_le_bytes(self.host.get(header.at + 8));
            let shape = (status.at & !0xfff, status.bytes, status.flags);
            assert_eq!(shape, (own, 1, 2));
            let data: Vec<_> = all[1..all.len() - 1]
                .iter()
                .map(|one| (one.at, one.bytes, one.flags & 2 != 0))
                .collect();
            let total: u64 = data.iter().map(|(_, bytes, _)| u64::from(*bytes)).sum();
            let place = MEMORY + guest * 0x4_0000;
            for (at, bytes, _) in &data {
                let inside = |base: u64| {
                    (base..base + HALF).contains(at) && at + u64::from(*bytes) <= base + HALF
                };
                assert!(inside(place) || inside(place + 0x2_0000), "{at:#x}");
            }
            if kind == 4 {
                assert_eq!(total, 0);
            } else {
                assert!(kind < 2 && total > 0 && total.is_multiple_of(512));
                assert!(data.iter().all(|(_, _, written)| *written == (kind == 0)));
                let first = first_of(guest as usize);
                let last = sector + total / 512;
                assert!(first <= sector && last <= first + SECTORS, "{sector}");
            }
            self.given.borrow_mut().push(Given {
                head: head.into(),
                guest: guest as usize,
                kind,
                sector,
                data,
                status: status.at,
            });
        }
    }

    /// The disk does one of the operations that it has, with this outcome, and interrupts.
    pub fn ends(&self, number: usize, outcome: u8) {
        let given = self.given.borrow_mut().remove(number);
        let mut at = given.sector as usize * 512;
        let mut written = 1;
        for (place, bytes, is_written) in &given.data {
            for byte in *place..place + u64::from(*bytes) {
                let mut sectors = self.sectors.borrow_mut();
                let stored = &mut sectors[at / 512][at % 512];
                match (outcome, is_written) {
                    (0, true) => self.host.set(byte, &[*stored]),
                    (0, false) => *stored = self.host.get::<1>(byte)[0],
                    _ => {}
                }
                at += 1;
                written += u32::from(*is_written);
            }
        }
        self.host.set(given.status, &[outcome]);
        self.returns(given.head, written);
    }

    /// The disk says that it has ended this.
    pub fn returns(&self, head: u32, written: u32) {
        self.device.returns(0, (head, written), &self.host);
        let interrupts = &self.device.interrupts;
        interrupts.set(interrupts.get() | 1);
    }

    /// The device has failed: it needs a reset.
    pub fn breaks(&self) {
        self.device.status.set(self.device.status.get() | 64);
        self.device.interrupts.set(2);
    }

    pub fn is_stopped(&self) -> bool {
        self.device.status.get() == 0
    }
}

/// The first sector of a guest's slice.
pub const fn first_of(guest: usize) -> u64 {
    8 + guest as u64 * (SECTORS + 8)
}

/// A guest with a slice.
pub struct Guest {
    number: usize,
    pub device: MmioTransport<Slice>,
    memory: GuestMemory,
    /// How much of the available ring was written, and of the used ring read.
    available: u16,
    used: u16,
}

/// Environment of a guest's device.
struct View<'a> {
    world: &'a World,
    memory: &'a GuestMemory,
}

impl VirtioContext for View<'_> {
    fn time(&self) -> u64 {
        self.world.time.get()
    }

    fn is_guest_busy(&self) -> bool {
        self.world.at_work.get()
    }

    fn poll_by(&self, _: SourceNumber, _: u64) {}

    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: self.memory,
            host: TheHost::new(&self.world.host),
        }
    }

    fn load_register(&self, _: HostPhysical, _: Width) -> Option<u64> {
        panic!("a slice reaches the disk alone");
    }

    fn count(&self, _: Event, _: u32) {}

    fn resample(&self, _: SourceNumber) {}

    fn store_register(&self, _: HostPhysical, _: Width, _: u64) {
        panic!("a slice reaches the disk alone");
    }

    fn with_disk(&self, disk: DiskNumber, act: &mut dyn FnMut(&mut Disk, &dyn Board)) {
        assert_eq!(disk, DiskNumber(0));
        act(self.world.disk.borrow_mut().as_mut().unwrap(), self.world);
    }

    fn notify_client(&self, client: Client) {
        let mut told = self.world.told.get();
        told.insert(client);
        self.world.told.set(told);
    }
}

/// Request of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    pub kind: u32,
    pub sector: u64,
    pub bytes: u32,
    pub written: bool,
}

pub const fn read(sector: u64) -> Asked {
    Asked {
        kind: 0,
        sector,
        bytes: 512,
        written: true,
    }
}

pub const fn write(sector: u64) -> Asked {
    Asked {
        kind: 1,
        sector,
        bytes: 512,
        written: false,
    }
}

impl Guest {
    pub fn store(&mut self, world: &World, offset: u64, value: u32) -> Result<(), WouldBlock> {
        let view = View {
            world,
            memory: &self.memory,
        };
        let width = Width::Word;
        self.device
            .store(Access { offset, width }, value.into(), &Alone(&view))
    }

    pub fn load(&mut self, world: &World, offset: u64, width: Width) -> u64 {
        let view = View {
            world,
            memory: &self.memory,
        };
        let value = self.device.load(Access { offset, width }, &Alone(&view));
        if width == Width::Word {
            let shown = world.host.get(page_of(self.number).base().raw() + offset);
            assert_eq!(u64::from(u32::from_le_bytes(shown)), value, "{offset:#x}");
        }
        value
    }

    pub fn look(&mut self, world: &World) {
        let memory = &self.memory;
        self.device.poll(&Alone(&View { world, memory }));
    }

    pub fn reset(&mut self, world: &World) -> bool {
        let memory = &self.memory;
        let view = View { world, memory };
        self.device.reset(&Alone(&view));
        (self.available, self.used) = (0, 0);
        self.device.is_quiescent(&Alone(&view))
    }

    /// Where a guest's byte lies.
    pub fn place(&self, at: u64) -> u64 {
        let at = GuestPhysical::new(at);
        self.memory.in_one(at, 1).unwrap().base().raw()
    }

    pub fn sets(&self, world: &World, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            world.host.set(self.place(at), &[*byte]);
        }
    }

    pub fn gets<const N: usize>(&self, world: &World, at: u64) -> [u8; N] {
        std::array::from_fn(|index| world.host.get::<1>(self.place(at + index as u64))[0])
    }

    /// §3.1.1.
    pub fn start(&mut self, world: &World) {
        self.sets(world, AVAILABLE, &[0; 6]);
        self.sets(world, USED, &[0; 6]);
        let indirect = 1 << 28;
        for (offset, value) in [
            (STATUS, 0),
            (STATUS, 3),
            (DRIVER_FEATURES_SELECT, 0),
            (DRIVER_FEATURES, indirect),
            (DRIVER_FEATURES_SELECT, 1),
            (DRIVER_FEATURES, 1),
            (STATUS, 11),
            (QUEUE_SELECT, 0),
            (QUEUE_SIZE, ENTRIES.into()),
        ] {
            self.store(world, offset, value).unwrap();
        }
        for (register, part) in QUEUE_PARTS.into_iter().zip([TABLE, AVAILABLE, USED]) {
            self.store(world, register, part as u32).unwrap();
            self.store(world, register + 4, (part >> 32) as u32)
                .unwrap();
        }
        self.store(world, QUEUE_READY, 1).unwrap();
        self.store(world, STATUS, 15).unwrap();
        assert_eq!(self.load(world, STATUS, Width::Word), 15);
        (self.available, self.used) = (0, 0);
    }

    pub const fn data(request: u16) -> u64 {
        BUFFERS + BUFFER * request as u64 + 0x200
    }

    pub fn status(&self, world: &World, request: u16) -> u8 {
        let [status] = self.gets(world, BUFFERS + BUFFER * u64::from(request) + 0x10);
        status
    }

    pub fn describe(&self, world: &World, at: u64, place: u64, bytes: u32, flags: u16, next: u16) {
        let rest = u64::from(bytes) | u64::from(flags) << 32 | u64::from(next) << 48;
        self.sets(world, at, &place.to_le_bytes());
        self.sets(world, at + 8, &rest.to_le_bytes());
    }

    /// Makes a request available: an odd one by an indirect table.
    pub fn ask(&mut self, world: &World, request: u16, asked: Asked) {
        let own = BUFFERS + BUFFER * u64::from(request);
        self.sets(world, own, &asked.kind.to_le_bytes());
        self.sets(world, own + 8, &asked.sector.to_le_bytes());
        self.sets(world, own + 0x10, &[0xee]);
        let data = if asked.written { 2 } else { 0 };
        let mut parts = vec![(own, 16, 0)];
        if asked.bytes > 0 {
            parts.push((own + 0x200, asked.bytes, data));
        }
        parts.push((own + 0x10, 1, 2));
        let (table, first) = match request % 2 {
            0 => (TABLE, 3 * request),
            _ => (own + 0x20, 0),
        };
        for (number, (place, bytes, flags)) in (first..).zip(&parts) {
            let is_last = number + 1 == first + parts.len() as u16;
            let flags = flags | u16::from(!is_last);
            let at = table + 16 * u64::from(number);
            self.describe(world, at, *place, *bytes, flags, number + 1);
        }
        let mut head = first;
        if request % 2 == 1 {
            head = 192 + request;
            let bytes = 16 * parts.len() as u32;
            self.describe(world, TABLE + 16 * u64::from(head), table, bytes, 4, 0);
        }
        self.offer(world, head);
    }

    /// Makes a chain available.
    pub fn offer(&mut self, world: &World, head: u16) {
        let entry = u64::from(self.available % ENTRIES);
        self.sets(world, AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        self.sets(world, AVAILABLE + 2, &self.available.to_le_bytes());
    }

    /// The request whose end the guest finds next.
    pub fn finds(&mut self, world: &World) -> Option<(u16, u32)> {
        let index = u16::from_le_bytes(self.gets(world, USED + 2));
        if index == self.used {
            return None;
        }
        let entry = USED + 4 + 8 * u64::from(self.used % ENTRIES);
        self.used = self.used.wrapping_add(1);
        let head = u32::from_le_bytes(self.gets(world, entry)) as u16;
        let written = u32::from_le_bytes(self.gets(world, entry + 4));
        Some((if head < 192 { head / 3 } else { head - 192 }, written))
    }

    pub fn notify(&mut self, world: &World) {
        while self.store(world, QUEUE_NOTIFY, 0).is_err() {}
    }

    pub fn is_broken(&mut self, world: &World) -> bool {
        self.load(world, STATUS, Width::Word) & 64 != 0
    }
}

/// The disk with so many slices, of VMs with these shares, and their guests.
pub fn system(shares: &[u32], features: u64) -> (World, Vec<Guest>) {
    let guests = shares.len();
    let sectors = first_of(guests) as usize;
    let device = TestDevice::new(DeviceKind::Disk, REGISTERS, 256, INDIRECT_TABLES | features);
    device.configuration.set(sectors as u64);
    let world = World {
        host: Host::new(0x30_0000),
        disk: RefCell::new(None),
        device,
        given: RefCell::default(),
        sectors: RefCell::new((0..sectors).map(|sector| [sector as u8; 512]).collect()),
        guests,
        told: Cell::new(Clients::NONE),
        time: Cell::new(0),
        at_work: Cell::new(false),
    };
    let mut disk = Disk::start(
        DRIVER,
        OwnedRegion::for_test(QUEUE_AREA, QUEUE_BYTES),
        &world,
    )
    .unwrap();
    let guests = shares.iter().enumerate().map(|(number, share)| {
        let operations =
            OwnedRegion::for_test(OPERATIONS + number as u64 * SLICE_BYTES, SLICE_BYTES);
        let slice = disk.add(Client::new(number).unwrap(), operations, *share);
        let piece = |guest, host| Piece {
            guest: GuestRegion::new(GuestPhysical::new(guest), HALF).unwrap(),
            host: OwnedRegion::for_test(host, HALF),
        };
        let place = MEMORY + number as u64 * 0x4_0000;
        let pieces = vec![piece(RAM, place), piece(RAM + HALF, place + 0x2_0000)];
        Guest {
            number,
            device: MmioTransport::new(
                Slice::new(Part {
                    disk: DiskNumber(0),
                    slice,
                    first: first_of(number),
                    sectors: SECTORS,
                    read_only: false,
                    flushes: disk.has(FLUSH),
                    in_pages: false,
                    patience: PATIENCE,
                    identity: *b"partita-slice-1\0\0\0\0\0",
                }),
                Some(page_of(number)),
            ),
            memory: GuestMemory::new(pieces).unwrap(),
            available: 0,
            used: 0,
        }
    });
    let mut guests: Vec<Guest> = guests.collect();
    world.disk.replace(Some(disk));
    for guest in &mut guests {
        assert!(guest.reset(&world));
        guest.start(&world);
    }
    (world, guests)
}

/// The hypervisor attends to the disk's interrupt: every guest that is told looks.
pub fn serve(world: &World, guests: &mut [Guest]) {
    let mut told = world.disk.borrow_mut().as_mut().unwrap().serve(world);
    told.add(world.told.take());
    for guest in guests {
        if told.iter().any(|client| client.index() == guest.number) {
            guest.look(world);
        }
    }
}

pub const IDENTITY_BYTES: usize = IDENTITY;
