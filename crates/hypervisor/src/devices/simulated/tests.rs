//! A driver on the one side and a device on the other, both written out here; memory lies in two pieces that are far from each other.

use std::cell::{Cell, RefCell};

use super::register::*;
use super::*;
use crate::devices::wires::{Effect, SourceNumber, Sources};
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::memory::guest::{GuestMemory, HostMemory, Piece};

const RAM: u64 = 0x8000_0000;
const HALF: u64 = 0x1_0000;
/// Where the two halves lie, in the wrong order, and what is in front of, between and behind them is not the guest's.
const FIRST: u64 = 0x6_0000;
const SECOND: u64 = 0x2_0000;
const AREAS: u64 = 0x9_0000;
const HOST_BYTES: usize = 0xa_0000;
const REGISTERS: u64 = 0x1000_1000;
const ENTRIES: u32 = 8;

/// Where the guest has its queue and its buffers.
const TABLE: u64 = RAM;
const AVAILABLE: u64 = RAM + 0x1000;
const USED: u64 = RAM + 0x2000;
const BUFFERS: u64 = RAM + 0x4000;

struct World {
    memory: GuestMemory,
    host: Host,
    features: u64,
    accepted: Cell<u64>,
    select: Cell<u32>,
    status: Cell<u32>,
    interrupts: Cell<u32>,
    parts: RefCell<[u64; 3]>,
    notified: Cell<usize>,
    /// How much of the available ring the device has seen.
    seen: Cell<u16>,
    returned: Cell<u16>,
    /// How often the source was asked to send again.
    served: Cell<u32>,
}

#[derive(Default)]
struct Host(RefCell<Vec<u8>>);

impl Host {
    fn get<const N: usize>(&self, at: u64) -> [u8; N] {
        self.0.borrow()[at as usize..][..N].try_into().unwrap()
    }

    fn set(&self, at: u64, bytes: &[u8]) {
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
    fn memory(&self) -> &GuestMemory {
        &self.memory
    }

    fn host(&self) -> &dyn HostMemory {
        &self.host
    }

    fn device_load(&self, at: HostPhysical, width: Width) -> u64 {
        match at.raw() - REGISTERS {
            DEVICE_ID => 2,
            QUEUE_SIZE_MOST => ENTRIES.into(),
            DEVICE_FEATURES => self.features >> (32 * self.select.get()) & 0xffff_ffff,
            STATUS => self.status.get().into(),
            INTERRUPT_STATUS => self.interrupts.get().into(),
            0x100 => width.truncate(0x1122_3344_5566_7788),
            _ => 0,
        }
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

struct NoSources;

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
type Buffer = (u64, u32, bool);

impl World {
    fn new(features: u64) -> Self {
        let piece = |guest, host| Piece {
            guest: GuestRegion::new(GuestPhysical::new(guest), HALF).unwrap(),
            host: HostPhysical::new(host),
        };
        let pieces = vec![piece(RAM, FIRST), piece(RAM + HALF, SECOND)];
        Self {
            memory: GuestMemory::new(pieces).unwrap(),
            host: Host(RefCell::new(vec![0x5a; HOST_BYTES])),
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
        }
    }

    /// Where a guest's byte lies.
    fn place(at: u64) -> u64 {
        match at - RAM {
            offset if offset < HALF => FIRST + offset,
            offset => SECOND + offset - HALF,
        }
    }

    fn guest_sets(&self, at: u64, bytes: &[u8]) {
        self.host.set(Self::place(at), bytes);
    }

    fn guest_gets<const N: usize>(&self, at: u64) -> [u8; N] {
        self.host.get(Self::place(at))
    }

    /// The guest writes descriptor `number` of the table at `table`.
    fn describe(&self, table: u64, number: u64, address: u64, length: u32, flags: u16, next: u16) {
        let at = table + 16 * number;
        self.guest_sets(at, &address.to_le_bytes());
        self.guest_sets(at + 8, &length.to_le_bytes());
        self.guest_sets(at + 12, &flags.to_le_bytes());
        self.guest_sets(at + 14, &next.to_le_bytes());
    }

    /// The guest makes these heads available, from entry `from` on.
    fn offer(&self, from: u16, heads: &[u16]) {
        for (index, head) in (from..).zip(heads) {
            let entry = u64::from(index % ENTRIES as u16);
            self.guest_sets(AVAILABLE + 4 + 2 * entry, &head.to_le_bytes());
        }
        let index = from + heads.len() as u16;
        self.guest_sets(AVAILABLE + 2, &index.to_le_bytes());
    }

    /// The next chain that the device finds: its head and its buffers.
    fn device_takes(&self) -> Option<(u16, Vec<Buffer>)> {
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
    fn device_returns(&self, head: u32, written: u32) {
        let used = self.parts.borrow()[2];
        let at = used + 4 + 8 * u64::from(self.returned.get() % ENTRIES as u16);
        self.host.set(at, &head.to_le_bytes());
        self.host.set(at + 4, &written.to_le_bytes());
        self.returned.set(self.returned.get().wrapping_add(1));
        self.host.set(used + 2, &self.returned.get().to_le_bytes());
        self.interrupts.set(1);
    }
}

struct Guest {
    device: Simulated,
    world: World,
}

impl Guest {
    fn store(&mut self, offset: u64, value: u32) -> Result<(), NotNow> {
        let width = Width::Word;
        self.device
            .store(Access { offset, width }, value.into(), &self.world)
    }

    fn set(&mut self, offset: u64, value: u32) {
        assert_eq!(self.store(offset, value), Ok(()));
    }

    fn get(&mut self, offset: u64) -> u32 {
        let width = Width::Word;
        self.device.load(Access { offset, width }, &self.world) as u32
    }

    fn new(features: u64) -> Self {
        Self {
            device: Simulated::new(
                HostPhysical::new(REGISTERS),
                0x200,
                SourceNumber(7),
                HostPhysical::new(AREAS),
            ),
            world: World::new(features),
        }
    }

    /// §3.1.1, with these places for the queue's parts.
    fn start(&mut self, features: u64, size: u32, parts: [u64; 3]) {
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

    fn started() -> Self {
        let mut guest = Self::new(0);
        // Nothing is available yet.
        guest.world.guest_sets(AVAILABLE, &[0; 6]);
        guest.start(VERSION_1, ENTRIES, [TABLE, AVAILABLE, USED]);
        assert_eq!(guest.get(STATUS), 15);
        assert_eq!(guest.get(QUEUE_READY), 1);
        guest
    }

    fn is_broken(&mut self) -> bool {
        self.get(STATUS) & status::NEEDS_RESET != 0
    }
}

#[test]
fn an_operation_goes_to_the_device_and_its_end_to_the_guest() {
    let mut guest = Guest::started();
    let world = &guest.world;
    world.describe(TABLE, 3, BUFFERS, 16, 1, 5);
    world.describe(TABLE, 5, BUFFERS + 0x100, 512, 1 | 2, 0);
    world.describe(TABLE, 0, BUFFERS + 0x800, 1, 2, 0);
    world.offer(0, &[3]);
    guest.set(QUEUE_NOTIFY, 0);
    let (head, buffers) = guest.world.device_takes().unwrap();
    let place = World::place;
    assert_eq!(
        buffers,
        [
            (place(BUFFERS), 16, false),
            (place(BUFFERS + 0x100), 512, true),
            (place(BUFFERS + 0x800), 1, true)
        ]
    );
    assert!(!guest.device.wire());
    guest.world.device_returns(head.into(), 513);
    guest.device.look(&guest.world);
    assert!(guest.device.wire());
    assert_eq!(guest.get(INTERRUPT_STATUS), 1);
    // The guest's used ring: no flags, one entry, the head of its own chain.
    assert_eq!(guest.world.guest_gets::<4>(USED), [0, 0, 1, 0]);
    assert_eq!(
        guest.world.guest_gets::<8>(USED + 4),
        [3, 0, 0, 0, 1, 2, 0, 0]
    );
    guest.set(INTERRUPT_ACKNOWLEDGE, 1);
    assert!(!guest.device.wire());
    assert_eq!(guest.world.interrupts.get(), 0, "the device's too");
}

#[test]
fn a_buffer_that_crosses_pieces_is_split_and_an_indirect_table_is_followed() {
    let mut guest = Guest::started();
    let table = RAM + 0x3000;
    let across = RAM + HALF - 0x80;
    guest.world.describe(TABLE, 0, BUFFERS, 8, 1, 1);
    guest.world.describe(TABLE, 1, table, 32, 4, 0);
    guest.world.describe(table, 0, across, 0x100, 1 | 2, 1);
    guest.world.describe(table, 1, BUFFERS + 8, 1, 2, 0);
    guest.world.offer(0, &[0]);
    guest.set(QUEUE_NOTIFY, 0);
    let (_, buffers) = guest.world.device_takes().unwrap();
    assert_eq!(
        buffers,
        [
            (FIRST + 0x4000, 8, false),
            (FIRST + HALF - 0x80, 0x80, true),
            (SECOND, 0x80, true),
            (FIRST + 0x4008, 1, true)
        ]
    );
}

/// Whatever a hostile driver writes, the device is given nothing, the guest is told that it needs a reset, and after one all is well.
#[test]
fn what_is_not_the_guests_reaches_no_device() {
    type Write = fn(&World);
    let chains: [(&str, Write); 12] = [
        ("in front", |world| {
            world.describe(TABLE, 0, RAM - 8, 16, 0, 0)
        }),
        ("behind", |world| {
            world.describe(TABLE, 0, RAM + 2 * HALF - 8, 16, 0, 0);
        }),
        ("the hypervisor's", |world| {
            world.describe(TABLE, 0, AREAS, 16, 2, 0);
        }),
        ("round the end of the addresses", |world| {
            world.describe(TABLE, 0, u64::MAX - 7, 16, 2, 0);
        }),
        ("nothing", |world| {
            world.describe(TABLE, 0, BUFFERS, 0, 0, 0)
        }),
        ("a ring", |world| world.describe(TABLE, 0, BUFFERS, 8, 1, 0)),
        ("no such descriptor", |world| {
            world.describe(TABLE, 0, BUFFERS, 8, 1, ENTRIES as u16);
        }),
        ("a table of no descriptor", |world| {
            world.describe(TABLE, 0, BUFFERS, 0, 4, 0);
        }),
        ("a table of a part", |world| {
            world.describe(TABLE, 0, BUFFERS, 24, 4, 0);
        }),
        ("a table that goes on", |world| {
            world.describe(TABLE, 0, BUFFERS, 16, 4 | 1, 1);
        }),
        ("a table in a table", |world| {
            world.describe(TABLE, 0, BUFFERS, 16, 4, 0);
            world.describe(BUFFERS, 0, BUFFERS + 64, 16, 4, 0);
        }),
        ("a table elsewhere", |world| {
            world.describe(TABLE, 0, AREAS, 16, 4, 0);
        }),
    ];
    for (name, write) in chains {
        let mut guest = Guest::started();
        write(&guest.world);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        assert_eq!(guest.world.device_takes(), None, "{name}");
        assert!(guest.is_broken(), "{name}");
        assert_eq!(guest.get(INTERRUPT_STATUS), 2, "{name}");
        // It does nothing until it is reset.
        guest.world.describe(TABLE, 0, BUFFERS, 8, 0, 0);
        guest.set(QUEUE_NOTIFY, 0);
        assert_eq!(guest.world.device_takes(), None, "{name}");
        guest.world.guest_sets(AVAILABLE, &[0; 4]);
        guest.start(VERSION_1, ENTRIES, [TABLE, AVAILABLE, USED]);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        assert!(guest.world.device_takes().is_some(), "{name}");
        assert!(!guest.is_broken(), "{name}");
    }
}

#[test]
fn queues_lie_in_the_guests_memory_and_are_of_a_size_that_can_be() {
    let good = [TABLE, AVAILABLE, USED];
    for (name, size, parts) in [
        ("no power of two", 6, good),
        ("nothing", 0, good),
        ("more than there can be", 2 * ENTRIES, good),
        ("far more", 1 << 16 | ENTRIES, good),
        (
            "a table that is not aligned",
            8,
            [TABLE + 8, AVAILABLE, USED],
        ),
        ("a ring that is not", 8, [TABLE, AVAILABLE + 1, USED]),
        ("the other", 8, [TABLE, AVAILABLE, USED + 2]),
        ("in the hypervisor", 8, [AREAS, AVAILABLE, USED]),
        ("registers", 8, [TABLE, REGISTERS, USED]),
        ("over the end", 8, [TABLE, AVAILABLE, RAM + 2 * HALF - 64]),
        ("round the end", 8, [u64::MAX - 15, AVAILABLE, USED]),
    ] {
        let mut guest = Guest::new(0);
        guest.start(VERSION_1, size, parts);
        assert!(guest.is_broken(), "{name}");
        assert_eq!(guest.get(QUEUE_READY), 0, "{name}");
        assert_eq!(*guest.world.parts.borrow(), [0; 3], "{name}");
    }
}

#[test]
fn an_index_that_jumps_is_no_work() {
    let mut guest = Guest::started();
    guest.world.describe(TABLE, 0, BUFFERS, 8, 0, 0);
    let jump = ENTRIES as u16 + 1;
    guest.world.guest_sets(AVAILABLE + 2, &jump.to_le_bytes());
    guest.set(QUEUE_NOTIFY, 0);
    assert!(guest.is_broken());
    assert_eq!(guest.world.device_takes(), None);
}

#[test]
fn what_finds_no_room_waits_for_what_is_under_way() {
    let mut guest = Guest::started();
    // Three pieces each, by indirect tables, where there is room for eight.
    for chain in 0..4 {
        let table = BUFFERS + 0x100 * chain;
        guest.world.describe(TABLE, chain, table, 48, 4, 0);
        for (number, (flags, next)) in (0..).zip([(1, 1), (1, 2), (2, 0)]) {
            let buffer = BUFFERS + 0x1000 + 0x100 * chain + 0x10 * number;
            guest.world.describe(table, number, buffer, 16, flags, next);
        }
    }
    guest.world.offer(0, &[0, 1, 2, 3]);
    guest.set(QUEUE_NOTIFY, 0);
    let mut heads = Vec::new();
    while let Some((head, buffers)) = guest.world.device_takes() {
        assert_eq!(buffers.len(), 3);
        heads.push(head);
    }
    assert_eq!(heads.len(), 2);
    let mut ended = 0;
    while let Some(head) = heads.pop() {
        guest.world.device_returns(head.into(), 1);
        guest.device.look(&guest.world);
        ended += 1;
        let index = guest.world.guest_gets::<2>(USED + 2);
        assert_eq!(u16::from_le_bytes(index), ended);
        while let Some((head, _)) = guest.world.device_takes() {
            heads.push(head);
        }
    }
    assert_eq!(ended, 4);
}

#[test]
fn features_that_change_queues_are_not_offered_nor_taken() {
    let asked = 1 << 6 | 1 << 12 | 1 << 28 | 1 << 29 | ACCESS_PLATFORM | 1 << 34 | 1 << 40;
    let mut guest = Guest::new(asked);
    guest.set(DEVICE_FEATURES_SELECT, 0);
    assert_eq!(guest.get(DEVICE_FEATURES), 1 << 6 | 1 << 28);
    guest.set(DEVICE_FEATURES_SELECT, 1);
    assert_eq!(guest.get(DEVICE_FEATURES), 1);
    for refused in [0, VERSION_1 | 1 << 29, VERSION_1 | 1 << 34, 1 << 6] {
        guest.start(refused, ENTRIES, [TABLE, AVAILABLE, USED]);
        assert_eq!(guest.get(STATUS) & status::FEATURES_OK, 0, "{refused:#x}");
    }
    guest.world.guest_sets(AVAILABLE, &[0; 6]);
    guest.start(
        VERSION_1 | 1 << 28 | 1 << 6,
        ENTRIES,
        [TABLE, AVAILABLE, USED],
    );
    assert_eq!(guest.get(STATUS), 15);
    // The device's addresses are the host's, which it is told where it asks; it sees no indirect table.
    assert_eq!(
        guest.world.accepted.get(),
        VERSION_1 | ACCESS_PLATFORM | 1 << 6
    );
}

#[test]
fn a_guest_that_wants_no_interrupt_gets_none() {
    let mut guest = Guest::started();
    guest.world.guest_sets(AVAILABLE, &[1, 0]);
    guest.world.describe(TABLE, 0, BUFFERS, 8, 2, 0);
    guest.world.offer(0, &[0]);
    guest.set(QUEUE_NOTIFY, 0);
    let (head, _) = guest.world.device_takes().unwrap();
    guest.world.device_returns(head.into(), 8);
    guest.device.look(&guest.world);
    assert!(!guest.device.wire());
    assert_eq!(guest.world.guest_gets::<4>(USED), [0, 0, 1, 0]);
}

#[test]
fn a_device_that_returns_what_it_was_not_given_is_stopped() {
    for head in [0, 7, 8, u32::MAX] {
        let mut guest = Guest::started();
        guest.world.device_returns(head, 0);
        guest.device.look(&guest.world);
        assert!(guest.is_broken());
        assert_eq!(guest.world.guest_gets::<2>(USED + 2), [0x5a; 2]);
    }
}

/// A device of QEMU's that has found an operation wrong leaves its wire high until it is reset, and shows no interrupt.
#[test]
fn a_wire_that_stays_high_interrupts_once() {
    let guest = &mut Guest::started();
    guest.world.status.set(15 | status::NEEDS_RESET);
    guest.world.interrupts.set(2);
    guest.device.look(&guest.world);
    assert_eq!(guest.world.served.get(), 1);
    assert_eq!(guest.get(INTERRUPT_STATUS), 2);
    for _ in 0..10 {
        guest.device.look(&guest.world);
    }
    assert_eq!(guest.world.served.get(), 1);
    assert!(guest.is_broken());
}

#[test]
fn the_configuration_is_the_devices_and_nothing_lies_behind_it() {
    let mut guest = Guest::new(0);
    let mut load = |offset, width| guest.device.load(Access { offset, width }, &guest.world);
    assert_eq!(load(0x100, Width::Double), 0x1122_3344_5566_7788);
    assert_eq!(load(0x100, Width::Half), 0x7788);
    for (offset, width) in [
        (0x1fc, Width::Double),
        (0x200, Width::Byte),
        (0x101, Width::Half),
        (u64::MAX, Width::Byte),
        (u64::MAX - 6, Width::Double),
        (STATUS, Width::Byte),
    ] {
        assert_eq!(load(offset, width), 0, "{offset:#x}");
    }
}
