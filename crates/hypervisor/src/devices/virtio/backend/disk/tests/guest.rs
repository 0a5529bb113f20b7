//! Guests with a slice each, written out here without the hypervisor's drivers.

use std::cell::{Cell, RefCell};

use abi::monitor::Event;

use super::super::slice::{IDENTITY, Part, Slice};
use super::super::*;
use super::world::*;
use crate::devices::testing::context::Alone;
use crate::devices::testing::device::Device as TestDevice;
use crate::devices::testing::memory::Host;
use crate::devices::trapped::{Access, TrappedDevice, VirtioContext, WouldBlock};
use crate::devices::virtio::QUEUE_PARTS;
use crate::devices::virtio::register::*;
use crate::devices::virtio::transport::MmioTransport;
use crate::hart::decode::Width;
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical};
use crate::memory::guest::{GuestMemory, Memory, Piece, TheHost};
use crate::memory::owned::OwnedRegion;

const QUEUE_AREA: u64 = 0x2000;
pub const RAM: u64 = 0x8000_0000;
/// Longest time between two polls of the device, in ticks.
pub const PATIENCE: u64 = 480;
/// Entries of a guest's queue.
pub const ENTRIES: u16 = 256;
/// Requests that a guest can have at a time.
pub const REQUESTS: u16 = 64;
pub const TABLE: u64 = RAM;
const AVAILABLE: u64 = RAM + 0x1000;
const USED: u64 = RAM + 0x2000;
/// Of each request: header, status, table, data. Some lie across the two halves of the memory.
pub const BUFFERS: u64 = RAM + 0x4100;
const BUFFER: u64 = 0x400;
pub const IDENTITY_BYTES: usize = IDENTITY;

/// Page that a guest reads in place of registers.
fn page_of(guest: usize) -> OwnedRegion {
    OwnedRegion::for_test(0x8000 + guest as u64 * PAGE_SIZE, PAGE_SIZE)
}

/// A guest with a slice.
pub struct Guest {
    number: usize,
    pub device: MmioTransport<Slice>,
    memory: GuestMemory,
    /// Entries put into the available ring, and taken from the used ring.
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
        let mut notified = self.world.notified.get();
        notified.insert(client);
        self.world.notified.set(notified);
    }
}

/// Request of a guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRequest {
    pub kind: u32,
    pub sector: u64,
    pub bytes: u32,
    pub written: bool,
}

pub const fn read(sector: u64) -> BlockRequest {
    BlockRequest {
        kind: 0,
        sector,
        bytes: 512,
        written: true,
    }
}

pub const fn write(sector: u64) -> BlockRequest {
    BlockRequest {
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

    pub fn poll(&mut self, world: &World) {
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

    /// Host address of a guest's byte.
    pub fn place(&self, at: u64) -> u64 {
        let at = GuestPhysical::new(at);
        self.memory.in_one(at, 1).unwrap().base().raw()
    }

    pub fn write(&self, world: &World, at: u64, bytes: &[u8]) {
        for (at, byte) in (at..).zip(bytes) {
            world.host.set(self.place(at), &[*byte]);
        }
    }

    pub fn read<const N: usize>(&self, world: &World, at: u64) -> [u8; N] {
        std::array::from_fn(|index| world.host.get::<1>(self.place(at + index as u64))[0])
    }

    /// Adds so many single pages behind the guest's memory, all of them one page of the host's. Returns their address.
    pub fn add_pages(&mut self, count: u64) -> u64 {
        let mut pieces = self.memory.mapped().to_vec();
        let (behind, host) = (self.memory.region().end(), pieces[0].host.take(PAGE_SIZE));
        pieces.extend((0..count).map(|page| {
            Piece {
                guest: GuestRegion::new(
                    GuestPhysical::new(behind.raw() + page * PAGE_SIZE),
                    PAGE_SIZE,
                )
                .unwrap(),
                host,
            }
        }));
        self.memory = GuestMemory::new(pieces).unwrap();
        behind.raw()
    }

    /// §3.1.1.
    pub fn start(&mut self, world: &World) {
        self.write(world, AVAILABLE, &[0; 6]);
        self.write(world, USED, &[0; 6]);
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
        let [status] = self.read(world, BUFFERS + BUFFER * u64::from(request) + 0x10);
        status
    }

    pub fn describe(&self, world: &World, at: u64, place: u64, bytes: u32, flags: u16, next: u16) {
        let rest = u64::from(bytes) | u64::from(flags) << 32 | u64::from(next) << 48;
        self.write(world, at, &place.to_le_bytes());
        self.write(world, at + 8, &rest.to_le_bytes());
    }

    /// Makes a request available: an odd one by an indirect table.
    pub fn ask(&mut self, world: &World, request: u16, asked: BlockRequest) {
        let own = BUFFERS + BUFFER * u64::from(request);
        self.write(world, own, &asked.kind.to_le_bytes());
        self.write(world, own + 8, &asked.sector.to_le_bytes());
        self.write(world, own + 0x10, &[0xee]);
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
        self.write(world, AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        self.write(world, AVAILABLE + 2, &self.available.to_le_bytes());
    }

    /// The request whose end the guest finds next.
    pub fn take_completion(&mut self, world: &World) -> Option<(u16, u32)> {
        let index = u16::from_le_bytes(self.read(world, USED + 2));
        if index == self.used {
            return None;
        }
        let entry = USED + 4 + 8 * u64::from(self.used % ENTRIES);
        self.used = self.used.wrapping_add(1);
        let head = u32::from_le_bytes(self.read(world, entry)) as u16;
        let written = u32::from_le_bytes(self.read(world, entry + 4));
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
    system_with(shares, features, |world| {
        let area = OwnedRegion::for_test(QUEUE_AREA, QUEUE_BYTES);
        Disk::start(DRIVER, area, world).unwrap()
    })
}

/// The same with a disk of another making.
pub fn system_with(
    shares: &[u32],
    features: u64,
    make: impl Fn(&World) -> Disk,
) -> (World, Vec<Guest>) {
    let guests = shares.len();
    let sectors = first_of(guests) as usize;
    let device = TestDevice::new(
        DeviceKind::Disk,
        REGISTERS,
        256,
        INDIRECT_DESCRIPTORS | features,
    );
    device.configuration.set(sectors as u64);
    let world = World {
        host: Host::new(0x40_0000),
        disk: RefCell::new(None),
        device,
        operations: RefCell::default(),
        sectors: RefCell::new((0..sectors).map(|sector| [sector as u8; 512]).collect()),
        guests,
        notified: Cell::new(Clients::NONE),
        time: Cell::new(0),
        at_work: Cell::new(false),
        generation: Cell::new(1),
        used_generation: Cell::new(None),
    };
    let mut disk = make(&world);
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
                    segments: disk.segments(),
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

/// The hypervisor attends to the disk's interrupt: every guest that is notified looks.
pub fn serve(world: &World, guests: &mut [Guest]) {
    let mut notified = world.disk.borrow_mut().as_mut().unwrap().serve(world);
    notified.add(world.notified.take());
    for guest in guests {
        if notified.iter().any(|client| client.index() == guest.number) {
            guest.poll(world);
        }
    }
}
