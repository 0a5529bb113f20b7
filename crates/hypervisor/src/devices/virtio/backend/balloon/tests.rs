//! A driver of a balloon, and the pages that come back.

use std::cell::{Cell, RefCell};

use abi::monitor::Event;

use super::*;
use crate::devices::irq::SourceNumber;
use crate::devices::testing::context::Alone;
use crate::devices::testing::memory::Host;
use crate::devices::trapped::{Access, TrappedDevice};
use crate::devices::virtio::backend::disk::{Disk, DiskNumber};
use crate::devices::virtio::client::Client;
use crate::devices::virtio::driver::Board;
use crate::devices::virtio::transport::MmioTransport;
use crate::devices::virtio::{QUEUE_PARTS, VERSION_1, register, status};
use crate::hart::decode::Width;
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::guest::{GuestMemory, Memory, TheHost};
use crate::memory::owned::OwnedRegion;

const RAM: u64 = 0x8000_0000;
const SIZE: u64 = 0x20_0000;
const HOST: u64 = 0x1_0000;
/// Address of the queue of reports, followed by a table of descriptors.
const DESCRIPTORS: u64 = RAM;
const AVAILABLE: u64 = RAM + 0x1000;
const USED: u64 = RAM + 0x2000;
const TABLE: u64 = RAM + 0x3000;
const ENTRIES: u16 = 64;

struct World {
    host: Host,
    memory: GuestMemory,
    given: RefCell<Vec<(u64, u64)>>,
    /// Calls until pages have gone.
    patience: Cell<u32>,
    left: Cell<u32>,
    /// Pages that the guest is asked for, and says that it has given.
    asked: Cell<u32>,
    noted: Cell<u32>,
}

impl VirtioContext for World {
    fn memory(&self) -> Memory<'_> {
        Memory {
            guest: &self.memory,
            host: TheHost::new(&self.host),
        }
    }

    fn give_back(&self, pages: GuestRegion) -> bool {
        assert_eq!(self.left.get(), 0, "one after the other");
        let inside = self.memory.region().covers(pages);
        if inside {
            let pages = (pages.base().raw() - RAM, pages.size());
            self.given.borrow_mut().push(pages);
            self.left.set(self.patience.get());
        }
        inside
    }

    fn gives_back(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left != 0
    }

    fn asked_pages(&self) -> u32 {
        self.asked.get()
    }

    fn note_given_pages(&self, pages: u32) {
        self.noted.set(pages);
    }

    fn load_register(&self, _: HostPhysical, _: Width) -> Option<u64> {
        panic!("the board has nothing to do with it");
    }

    fn store_register(&self, _: HostPhysical, _: Width, _: u64) {
        panic!("the board has nothing to do with it");
    }

    fn count(&self, _: Event, _: u32) {}

    fn resample(&self, _: SourceNumber) {}

    fn time(&self) -> u64 {
        0
    }

    fn poll_by(&self, _: SourceNumber, _: u64) {}

    fn with_disk(&self, _: DiskNumber, _: &mut dyn FnMut(&mut Disk, &dyn Board)) {}

    fn notify_client(&self, _: Client) {}
}

impl World {
    fn new(patience: u32) -> Self {
        let region = GuestRegion::new(GuestPhysical::new(RAM), SIZE).unwrap();
        Self {
            host: Host::new((HOST + SIZE) as usize),
            memory: GuestMemory::in_one_piece(region, OwnedRegion::for_test(HOST, region.size()))
                .unwrap(),
            given: RefCell::default(),
            patience: Cell::new(patience),
            left: Cell::new(0),
            asked: Cell::new(0),
            noted: Cell::new(0),
        }
    }

    fn set(&self, at: u64, bytes: &[u8]) {
        self.host.set(HOST + at - RAM, bytes);
    }

    fn describe(&self, table: u64, number: u16, (at, bytes): (u64, u32), flags: u16) {
        let place = table + 16 * u64::from(number);
        self.set(place, &at.to_le_bytes());
        self.set(place + 8, &bytes.to_le_bytes());
        self.set(place + 12, &flags.to_le_bytes());
        self.set(place + 14, &(number + 1).to_le_bytes());
    }

    /// The chain at descriptor 0 is made available.
    fn offer(&self, index: u16) {
        let entry = u64::from((index - 1) % ENTRIES);
        self.set(AVAILABLE + 4 + 2 * entry, &0_u16.to_le_bytes());
        self.set(AVAILABLE + 2, &index.to_le_bytes());
    }

    fn returned(&self) -> u16 {
        self.host.half(HOST + USED - RAM + 2)
    }
}

fn store(device: &mut MmioTransport<Balloon>, world: &World, offset: u64, value: u32) -> bool {
    let access = Access {
        offset,
        width: Width::Word,
    };
    let alone = Alone(world);
    device.store(access, value.into(), &alone).is_ok()
}

fn load(device: &mut MmioTransport<Balloon>, world: &World, offset: u64) -> u32 {
    let access = Access {
        offset,
        width: Width::Word,
    };
    device.load(access, &Alone(world)) as u32
}

/// A balloon whose driver has started it, with the queue `number`.
fn started(world: &World, number: u32) -> MmioTransport<Balloon> {
    let mut device = MmioTransport::new(Balloon::new(), None);
    for at in [AVAILABLE, USED] {
        world.set(at, &[0; 0x400]);
    }
    for (offset, value) in [
        (register::STATUS, status::ACKNOWLEDGE | status::DRIVER),
        (register::DRIVER_FEATURES, PAGE_REPORTING as u32),
        (register::DRIVER_FEATURES_SELECT, 1),
        (register::DRIVER_FEATURES, (VERSION_1 >> 32) as u32),
        (register::STATUS, 3 | status::FEATURES_OK),
        (register::QUEUE_SELECT, number),
        (register::QUEUE_SIZE, ENTRIES.into()),
        (QUEUE_PARTS[0], DESCRIPTORS as u32),
        (QUEUE_PARTS[1], AVAILABLE as u32),
        (QUEUE_PARTS[2], USED as u32),
        (register::QUEUE_READY, 1),
        (register::STATUS, 11 | status::DRIVER_OK),
    ] {
        assert!(store(&mut device, world, offset, value));
    }
    assert_eq!(load(&mut device, world, register::STATUS), 15);
    device
}

/// Notifies until the store is taken; says how often.
fn notify(device: &mut MmioTransport<Balloon>, world: &World, number: u32) -> u32 {
    (1..1000)
        .find(|_| store(device, world, register::QUEUE_NOTIFY, number))
        .unwrap()
}

#[test]
fn reported_pages_go_before_the_report_returns() {
    for (patience, times) in [(0, 1), (3, 7)] {
        let world = World::new(patience);
        let mut device = started(&world, 2);
        assert_eq!(load(&mut device, &world, register::DEVICE_ID), 5);
        // A page and a half from the middle of one, and two pages.
        world.describe(DESCRIPTORS, 0, (RAM + 0x1_0800, 0x1800), 3);
        world.describe(DESCRIPTORS, 1, (RAM + 0x2_0000, 0x2000), 2);
        world.offer(1);
        assert_eq!(notify(&mut device, &world, 2), times);
        let given = world.given.borrow();
        assert_eq!(*given, [(0x2_0000, 0x2000), (0x1_1000, 0x1000)]);
        assert_eq!(world.returned(), 1);
        assert!(device.irq_level());
    }
}

#[test]
fn indirect_reports_touch_no_page() {
    let world = World::new(0);
    let mut device = started(&world, 2);
    for number in 0..32 {
        let page = RAM + 0x10_0000 + 0x1000 * u64::from(number);
        world.describe(
            TABLE,
            number,
            (page, 0x1000),
            if number < 31 { 3 } else { 2 },
        );
    }
    world.describe(DESCRIPTORS, 0, (TABLE, 32 * 16), 4);
    world.offer(1);
    assert_eq!(notify(&mut device, &world, 2), 1);
    assert_eq!(world.given.borrow().len(), 32);
    assert_eq!(
        world.host.bytes(HOST + 0x10_0000, 0x2_0000),
        vec![0x5a; 0x2_0000]
    );
}

/// No page lies whole in such buffers, so the device waits for nothing; a guest can make new ones for as long as it likes.
#[test]
fn empty_reports_take_bounded_time() {
    let world = World::new(0);
    let mut device = started(&world, 2);
    world.describe(DESCRIPTORS, 0, (RAM + 0x1_0010, 16), 2);
    let reports = 2 * REPORTS_IN_ONE_GO as u16 + 1;
    (1..=reports).for_each(|index| world.offer(index));
    assert!(!store(&mut device, &world, register::QUEUE_NOTIFY, 2));
    assert_eq!(u32::from(world.returned()), REPORTS_IN_ONE_GO);
    assert_eq!(notify(&mut device, &world, 2), 2);
    assert_eq!(world.returned(), reports);
    assert_eq!(*world.given.borrow(), []);
}

#[test]
fn foreign_pages_end_the_device() {
    for (at, bytes) in [
        (RAM + SIZE, 0x1000),
        (RAM - 0x1000, 0x2000),
        (u64::MAX - 0xfff, 0x2000),
        (RAM, 0),
    ] {
        let world = World::new(0);
        let mut device = started(&world, 2);
        world.describe(DESCRIPTORS, 0, (at, bytes), 2);
        world.offer(1);
        notify(&mut device, &world, 2);
        assert_eq!(*world.given.borrow(), [], "{at:#x}");
        let needs_reset = load(&mut device, &world, register::STATUS) & status::NEEDS_RESET;
        assert_ne!(needs_reset, 0, "{at:#x}");
    }
}

#[test]
fn resets_forget_the_rest_of_reports() {
    let world = World::new(1);
    let mut device = started(&world, 2);
    for number in 0..4 {
        let page = RAM + 0x1_0000 + 0x2000 * u64::from(number);
        world.describe(
            DESCRIPTORS,
            number,
            (page, 0x1000),
            if number < 3 { 3 } else { 2 },
        );
    }
    world.offer(1);
    assert!(!store(&mut device, &world, register::QUEUE_NOTIFY, 2));
    assert!(store(&mut device, &world, register::STATUS, 0));
    world.left.set(0);
    let mut device = started(&world, 2);
    assert_eq!(world.given.borrow().len(), 1);
    world.offer(1);
    notify(&mut device, &world, 2);
    assert_eq!(world.given.borrow().len(), 5);
}

/// Puts numbers of pages into a buffer, from the beginning of RAM on.
fn put_numbers(world: &World, at: u64, pages: &[u64]) {
    for (index, page) in (0..).zip(pages) {
        let number = (RAM / 0x1000 + page) as u32;
        world.set(at + 4 * index, &number.to_le_bytes());
    }
}

#[test]
fn numbered_pages_go_in_pieces() {
    let world = World::new(2);
    let mut device = started(&world, 0);
    // From an address that is a multiple of 4 alone, in any order, one of them twice.
    put_numbers(&world, RAM + 0x8004, &[0x13, 0x10, 0x12, 0x40, 0x11, 0x13]);
    world.describe(DESCRIPTORS, 0, (RAM + 0x8004, 6 * 4), 0);
    world.offer(1);
    notify(&mut device, &world, 0);
    assert_eq!(
        *world.given.borrow(),
        [(0x4_0000, 0x1000), (0x1_0000, 0x4000)]
    );
    assert_eq!(world.returned(), 1);
}

#[test]
fn numbers_of_foreign_pages_end_the_device() {
    let fails = |pages: &[u64], bytes: u32| {
        let world = World::new(0);
        let mut device = started(&world, 0);
        put_numbers(&world, RAM + 0x8000, pages);
        world.describe(DESCRIPTORS, 0, (RAM + 0x8000, bytes), 0);
        world.offer(1);
        notify(&mut device, &world, 0);
        assert_eq!(*world.given.borrow(), []);
        let status = load(&mut device, &world, register::STATUS);
        status & status::NEEDS_RESET != 0
    };
    assert!(fails(&[SIZE / 0x1000], 4));
    assert!(fails(&[u64::from(u32::MAX) - RAM / 0x1000], 4));
    // More numbers than a chain may have, in a buffer that ends beyond the guest's memory too.
    assert!(fails(&[], 4 * (MAX_NUMBERS as u32 + 1)));
    assert!(fails(&[], u32::MAX));
    // No whole number.
    assert!(!fails(&[0x10], 3));
}

#[test]
fn guest_hears_what_it_is_asked_for() {
    let world = World::new(0);
    let mut device = started(&world, 0);
    let asked = |device: &mut MmioTransport<Balloon>| load(device, &world, register::CONFIGURATION);
    assert_eq!(asked(&mut device), 0);
    device.poll(&Alone(&world));
    assert!(!device.irq_level());
    world.asked.set(0x1234);
    device.poll(&Alone(&world));
    assert!(device.irq_level());
    assert_eq!(asked(&mut device), 0x1234);
    assert!(store(
        &mut device,
        &world,
        register::CONFIGURATION + 4,
        0x1200
    ));
    assert_eq!(world.noted.get(), 0x1200);
    assert_eq!(
        load(&mut device, &world, register::CONFIGURATION + 4),
        0x1200
    );
    // A new driver finds the same, and has given nothing.
    device.reset(&Alone(&world));
    assert_eq!(asked(&mut device), 0x1234);
    assert_eq!(world.noted.get(), 0);
}

#[test]
fn deflated_pages_come_back_unread() {
    let world = World::new(0);
    let mut device = started(&world, 1);
    world.describe(DESCRIPTORS, 0, (RAM + 0x1_0000, 0x100), 0);
    for index in 1..=3 {
        world.offer(index);
    }
    assert_eq!(notify(&mut device, &world, 1), 1);
    assert_eq!(world.returned(), 3);
    assert_eq!(*world.given.borrow(), []);
}

/// Pages that go already are waited for; what was not begun stays with the guest (virtio 1.2, §4.2.2, `QueueReady`).
#[test]
fn a_stopped_queue_waits_for_pages() {
    let world = World::new(3);
    let mut device = started(&world, 2);
    world.describe(DESCRIPTORS, 0, (RAM + 0x8000, 0x4000), 2);
    world.offer(1);
    assert!(!store(&mut device, &world, register::QUEUE_NOTIFY, 2));
    let begun = world.given.borrow().len();
    let mut waited = 0;
    while !store(&mut device, &world, register::QUEUE_READY, 0) {
        assert_eq!(load(&mut device, &world, register::QUEUE_READY), 1);
        waited += 1;
    }
    assert!((1..100).contains(&waited));
    assert_eq!(load(&mut device, &world, register::QUEUE_READY), 0);
    assert_eq!(world.given.borrow().len(), begun);
    assert_eq!(world.returned(), 1);
    for at in [AVAILABLE, USED] {
        world.set(at, &[0; 0x400]);
    }
    assert!(store(&mut device, &world, register::QUEUE_READY, 1));
    world.offer(1);
    notify(&mut device, &world, 2);
    assert_eq!(world.returned(), 1);
}
