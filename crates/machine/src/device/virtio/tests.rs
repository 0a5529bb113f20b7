//! A driver's side of the transport, and what devices do with good and bad drivers.

use super::*;
use crate::device::{Clock, Context, Cycles, Device, Effects, FlatMemory, LineChange, Memory};

const RAM: u64 = 0x4000_0000;
const RAM_SIZE: usize = 1 << 20;
/// Where the driver keeps things: three areas a queue, then indirect tables and data.
const AREAS: u64 = RAM;
const DATA: u64 = RAM + 0x4_0000;
const QUEUE_SIZE: u16 = 8;
const SOURCE: u32 = 3;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

const VERSION_1: u64 = 1 << 32;
const EVENT_INDEX: u64 = 1 << 29;
const NEEDS_RESET: u64 = 0x40;

/// A driver with a slot, RAM and a clock of one cycle a nanosecond.
struct Driver {
    slot: Slot,
    memory: FlatMemory,
    effects: Effects,
    now: Cycles,
    available: [u16; 4],
}

impl Driver {
    fn new(device: VirtioDevice) -> Self {
        let mut slot = Slot::new(SOURCE);
        slot.insert(device, false);
        let memory = FlatMemory::new(RAM, RAM_SIZE);
        let effects = Effects::default();
        Self {
            slot,
            memory,
            effects,
            now: Cycles(0),
            available: [0; 4],
        }
    }

    fn with<T>(&mut self, act: impl FnOnce(&mut Slot, &mut Context<'_>) -> T) -> T {
        let Self {
            slot,
            memory,
            effects,
            now,
            ..
        } = self;
        let clock = Clock::new(1_000_000_000, 10_000_000);
        act(
            slot,
            &mut Context {
                now: *now,
                clock,
                memory,
                effects,
            },
        )
    }

    fn read(&mut self, offset: u64) -> u64 {
        self.with(|slot, context| slot.read(offset, 4, context))
            .expect("a register")
    }

    fn write(&mut self, offset: u64, value: u64) {
        self.with(|slot, context| slot.write(offset, 4, value, context))
            .expect("a register");
    }

    /// §3.1.1: reset, acknowledge, features, queues, go.
    fn start(&mut self, features: u64) {
        self.write(0x70, 0);
        self.write(0x70, 1 | 2);
        for half in 0..2 {
            self.write(0x24, half);
            self.write(0x20, ((features | VERSION_1) >> (32 * half)) & 0xffff_ffff);
        }
        self.write(0x70, 1 | 2 | 8);
        assert_eq!(self.read(0x70), 1 | 2 | 8, "the features are accepted");
        self.available = [0; 4];
        for queue in 0..4 {
            self.write(0x30, queue);
            if self.read(0x34) == 0 {
                break;
            }
            self.memory
                .store(areas(queue).0, &[0; 0x3000])
                .expect("RAM");
            self.set_up_queue(queue, QUEUE_SIZE.into());
            assert_eq!(self.read(0x44), 1, "the queue is ready");
        }
        self.write(0x70, 1 | 2 | 8 | 4);
    }

    fn set_up_queue(&mut self, queue: u64, size: u64) {
        let (descriptors, driver, device) = areas(queue);
        self.write(0x30, queue);
        self.write(0x38, size);
        for (offset, address) in [(0x80, descriptors), (0x90, driver), (0xa0, device)] {
            self.write(offset, address & 0xffff_ffff);
            self.write(offset + 4, address >> 32);
        }
        self.write(0x44, 1);
    }

    fn store(&mut self, address: u64, bytes: &[u8]) {
        self.memory.store(address, bytes).expect("RAM");
    }

    fn load(&mut self, address: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.load(address, &mut bytes).expect("RAM");
        bytes
    }

    fn load_u16(&mut self, address: u64) -> u16 {
        let bytes = self.load(address, 2);
        u16::from_le_bytes([bytes[0], bytes[1]])
    }

    fn descriptor(&mut self, at: u64, address: u64, length: u32, flags: u16, next: u16) {
        let bytes = [
            &address.to_le_bytes()[..],
            &length.to_le_bytes(),
            &flags.to_le_bytes(),
            &next.to_le_bytes(),
        ];
        self.store(at, &bytes.concat());
    }

    /// Lays out a chain of buffers (address, length, device writes) from descriptor 0 on.
    fn chain(&mut self, queue: u64, buffers: &[(u64, u32, bool)]) {
        let table = areas(queue).0;
        for (index, &(address, length, write)) in (0_u16..).zip(buffers) {
            let last = usize::from(index) + 1 == buffers.len();
            let flags = if write { WRITE } else { 0 } | if last { 0 } else { NEXT };
            let at = table + 16 * u64::from(index);
            self.descriptor(at, address, length, flags, index + 1);
        }
    }

    /// Makes the chain at `head` available and notifies the device.
    fn offer(&mut self, queue: u64, head: u16) {
        let ring = areas(queue).1;
        let index = self.available[queue as usize];
        self.store(
            ring + 4 + 2 * u64::from(index % QUEUE_SIZE),
            &head.to_le_bytes(),
        );
        self.available[queue as usize] = index.wrapping_add(1);
        self.store(ring + 2, &index.wrapping_add(1).to_le_bytes());
        self.write(0x50, queue);
    }

    fn used_index(&mut self, queue: u64) -> u16 {
        self.load_u16(areas(queue).2 + 2)
    }

    /// The length of the used element at `index`.
    fn used_length(&mut self, queue: u64, index: u16) -> u32 {
        let at = areas(queue).2 + 4 + 8 * u64::from(index % QUEUE_SIZE);
        let bytes = self.load(at + 4, 4);
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }

    /// The level that the slot drives, after all changes.
    fn line(&self) -> bool {
        let own = |change: &&LineChange| change.source == SOURCE;
        self.effects
            .lines
            .iter()
            .rev()
            .find(own)
            .is_some_and(|change| change.level)
    }

    /// Lets machine time go on to the slot's next event.
    fn advance(&mut self) -> bool {
        let Some(at) = self.slot.next_event() else {
            return false;
        };
        self.now = at;
        self.with(|slot, context| slot.tick(context));
        true
    }
}

fn areas(queue: u64) -> (u64, u64, u64) {
    let base = AREAS + queue * 0x3000;
    (base, base + 0x1000, base + 0x2000)
}

fn block(service: Service, faults: Faults) -> VirtioDevice {
    let bytes = (0..64 * SECTOR).map(|at| (at / SECTOR) as u8).collect();
    let disk = Box::new(MemoryDisk::new(bytes));
    VirtioDevice::Block(Box::new(Block::new(
        disk, true, "disk-1", service, faults, 1,
    )))
}

fn instant() -> VirtioDevice {
    block(Service::default(), Faults::default())
}

/// A block request: header at DATA, data at DATA + 0x1000, status right behind the data.
fn request(driver: &mut Driver, kind: u32, sector: u64, data: u32) {
    let header = [&kind.to_le_bytes()[..], &[0; 4], &sector.to_le_bytes()].concat();
    driver.store(DATA, &header);
    let status = DATA + 0x1000 + u64::from(data);
    driver.store(status, &[0xff]);
    let reads = matches!(kind, 0 | 8);
    driver.chain(
        0,
        &[
            (DATA, 16, false),
            (DATA + 0x1000, data, reads),
            (status, 1, true),
        ],
    );
    driver.offer(0, 0);
}

fn status(driver: &mut Driver, data: u32) -> u8 {
    driver.load(DATA + 0x1000 + u64::from(data), 1)[0]
}

#[test]
fn an_empty_slot_says_so() {
    let mut driver = Driver::new(instant());
    driver.slot = Slot::new(SOURCE);
    assert_eq!(
        [driver.read(0), driver.read(4), driver.read(8)],
        [0x7472_6976, 2, 0]
    );
    driver.write(0x70, 0xf);
    driver.write(0x50, 0);
    assert_eq!(driver.slot.next_event(), None);
}

#[test]
fn features_that_were_not_offered_are_not_accepted() {
    let mut driver = Driver::new(instant());
    for features in [0_u64, VERSION_1 | 1 << 63] {
        driver.write(0x70, 0);
        driver.write(0x70, 3);
        for half in 0..2 {
            driver.write(0x24, half);
            driver.write(0x20, (features >> (32 * half)) & 0xffff_ffff);
        }
        driver.write(0x70, 3 | 8);
        assert_eq!(driver.read(0x70), 3, "{features:#x}");
    }
}

#[test]
fn a_read_fills_the_buffer_and_interrupts() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    request(&mut driver, 0, 5, 1024);
    assert_eq!(driver.used_index(0), 1);
    assert_eq!(driver.used_length(0, 0), 1025);
    assert_eq!(status(&mut driver, 1024), 0);
    assert_eq!(
        driver.load(DATA + 0x1000, 1024),
        [[5; 512], [6; 512]].concat()
    );
    assert!(driver.line());
    assert_eq!(driver.read(0x60), 1);
    driver.write(0x64, 1);
    assert!(!driver.line());
}

#[test]
fn what_was_written_is_read_again_and_the_disk_keeps_its_bytes() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.store(DATA + 0x1000, &[0xab; 512]);
    request(&mut driver, 1, 9, 512);
    assert_eq!((driver.used_length(0, 0), status(&mut driver, 512)), (1, 0));
    // Eight sectors across two clusters of the overlay, one of them untouched.
    request(&mut driver, 0, 6, 4096);
    let expected: Vec<u8> = [6, 7, 8, 0xab, 10, 11, 12, 13]
        .iter()
        .flat_map(|&b| [b; 512])
        .collect();
    assert_eq!(driver.load(DATA + 0x1000, 4096), expected);
}

#[test]
fn requests_that_make_no_sense_fail_alone() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    // Beyond the end, across the end, not whole sectors, an unknown type.
    let requests = [
        (0, 64, 512, 1),
        (0, u64::MAX, 512, 1),
        (0, 63, 1024, 1),
        (0, 0, 100, 1),
        (77, 0, 512, 2),
    ];
    for (index, (kind, sector, data, expected)) in (0..).zip(requests) {
        request(&mut driver, kind, sector, data);
        assert_eq!(driver.used_index(0), index + 1);
        let got = status(&mut driver, data);
        assert_eq!(got, expected, "type {kind}, sector {sector}, {data} bytes");
    }
    request(&mut driver, 0, 0, 512);
    assert_eq!(status(&mut driver, 512), 0, "the device goes on");
}

#[test]
fn the_identity_and_a_flush_are_answered() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    request(&mut driver, 8, 0, 20);
    assert_eq!(
        driver.load(DATA + 0x1000, 20),
        *b"disk-1\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
    );
    driver.chain(0, &[(DATA, 16, false), (DATA + 0x800, 1, true)]);
    driver.store(DATA, &4_u32.to_le_bytes());
    driver.store(DATA + 0x800, &[0xff]);
    driver.offer(0, 0);
    assert_eq!(driver.load(DATA + 0x800, 1), [0]);
}

#[test]
fn discarded_sectors_read_as_zeros() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    let range = [&3_u64.to_le_bytes()[..], &2_u32.to_le_bytes(), &[0; 4]].concat();
    driver.store(DATA + 0x1000, &range);
    request(&mut driver, 11, 0, 16);
    assert_eq!(status(&mut driver, 16), 0);
    request(&mut driver, 0, 2, 2048);
    let expected: Vec<u8> = [2, 0, 0, 5].iter().flat_map(|&b| [b; 512]).collect();
    assert_eq!(driver.load(DATA + 0x1000, 2048), expected);
}

#[test]
fn an_indirect_table_is_followed() {
    let mut driver = Driver::new(instant());
    driver.start(1 << 28);
    let table = DATA + 0x8000;
    driver.store(DATA, &[0; 16]);
    driver.descriptor(table, DATA, 16, NEXT, 1);
    driver.descriptor(table + 16, DATA + 0x1000, 512, NEXT | WRITE, 2);
    driver.descriptor(table + 32, DATA + 0x1200, 1, WRITE, 0);
    driver.descriptor(areas(0).0, table, 48, INDIRECT, 0);
    driver.offer(0, 0);
    assert_eq!((driver.used_index(0), driver.used_length(0, 0)), (1, 513));
}

/// Chains that break the rules: the device stops, tells so, and works again after a reset.
#[test]
fn broken_chains_need_a_reset() {
    type Breakage = fn(&mut Driver);
    let breakages: [(&str, Breakage); 10] = [
        ("a chain in a circle", |driver| {
            driver.descriptor(areas(0).0, DATA, 16, NEXT, 1);
            driver.descriptor(areas(0).0 + 16, DATA, 16, NEXT, 0);
        }),
        ("a next descriptor outside the table", |driver| {
            driver.descriptor(areas(0).0, DATA, 16, NEXT, QUEUE_SIZE);
        }),
        ("a buffer outside RAM", |driver| {
            driver.chain(
                0,
                &[(DATA, 16, false), (RAM + RAM_SIZE as u64 - 1, 512, true)],
            );
        }),
        ("a buffer at the end of the address space", |driver| {
            driver.chain(0, &[(u64::MAX - 3, 16, false), (DATA, 513, true)]);
        }),
        ("a readable buffer after a writable one", |driver| {
            driver.chain(0, &[(DATA, 513, true), (DATA, 16, false)]);
        }),
        ("no room for the status", |driver| {
            driver.chain(0, &[(DATA, 16, false)])
        }),
        ("half a header", |driver| {
            driver.chain(0, &[(DATA, 8, false), (DATA, 513, true)])
        }),
        ("an indirect table of no whole descriptors", |driver| {
            driver.descriptor(areas(0).0, DATA + 0x8000, 24, INDIRECT, 0);
        }),
        ("an indirect table within an indirect table", |driver| {
            driver.descriptor(areas(0).0, DATA + 0x8000, 16, INDIRECT, 0);
            driver.descriptor(DATA + 0x8000, DATA + 0x8000, 16, INDIRECT, 0);
        }),
        ("an indirect table outside RAM", |driver| {
            driver.descriptor(areas(0).0, u64::MAX - 15, 16, INDIRECT, 0);
        }),
    ];
    for (what, breakage) in breakages {
        let mut driver = Driver::new(instant());
        driver.start(0);
        breakage(&mut driver);
        driver.offer(0, 0);
        assert_eq!(driver.read(0x70) & NEEDS_RESET, NEEDS_RESET, "{what}");
        assert_eq!(
            driver.read(0x60) & 2,
            2,
            "{what}: a configuration interrupt"
        );
        assert!(driver.line(), "{what}");
        assert_eq!(driver.used_index(0), 0, "{what}");
        driver.write(0x50, 0);
        driver.start(0);
        assert!(!driver.line());
        request(&mut driver, 0, 0, 512);
        assert_eq!(driver.used_index(0), 1, "{what}: after the reset");
    }
}

#[test]
fn an_available_index_that_jumps_needs_a_reset() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.store(areas(0).1 + 2, &(QUEUE_SIZE + 1).to_le_bytes());
    driver.write(0x50, 0);
    assert_eq!(driver.read(0x70) & NEEDS_RESET, NEEDS_RESET);
}

#[test]
fn queues_that_cannot_be_are_refused() {
    for (size, descriptors) in [
        (0, AREAS),
        (3, AREAS),
        (512, AREAS),
        (8, AREAS + 8),
        (8, 0x1000),
    ] {
        let mut driver = Driver::new(instant());
        driver.write(0x70, 3);
        driver.set_up_queue(0, 8);
        driver.write(0x44, 0);
        driver.write(0x38, size);
        driver.write(0x80, descriptors & 0xffff_ffff);
        driver.write(0x84, descriptors >> 32);
        driver.write(0x44, 1);
        assert_eq!(
            driver.read(0x44),
            0,
            "size {size}, descriptors {descriptors:#x}"
        );
        assert_eq!(driver.read(0x70) & NEEDS_RESET, NEEDS_RESET);
    }
}

/// Whatever is in memory and in the registers: no panic, no hang.
#[test]
fn noise_is_survived() {
    let mut random = crate::device::Random::new(0x5eed);
    for round in 0..200 {
        let device = match round % 4 {
            0 => instant(),
            1 => VirtioDevice::Entropy(Box::new(Entropy::new(
                Service::default(),
                Faults::default(),
                1,
            ))),
            2 => net(),
            _ => VirtioDevice::Console(Box::new(Ports::new(vec![(
                "port".to_owned(),
                Box::new(crate::device::Silent),
            )]))),
        };
        let mut driver = Driver::new(device);
        driver.start(random.next() & (1 << 28 | 1 << 29));
        for _ in 0..50 {
            let at = AREAS + random.below(0xc000);
            let near_ram = RAM + random.below(RAM_SIZE as u64 + 64);
            driver.store(at & !7, &near_ram.to_le_bytes());
            driver.store(
                (AREAS + random.below(0xc000)) & !1,
                &(random.next() as u16 & 15).to_le_bytes(),
            );
            driver.write(0x50, random.below(5));
            let register = random.below(0x42) * 4;
            // Resets and queue set-ups by chance would make most rounds dull.
            if random.below(8) == 0 {
                driver.write(register, random.next() & 0xffff_ffff);
            }
            driver.read(register);
            driver.advance();
        }
    }
}

#[test]
fn a_driver_without_interest_in_interrupts_gets_none() {
    let mut driver = Driver::new(instant());
    driver.start(0);
    driver.store(areas(0).1, &1_u16.to_le_bytes());
    request(&mut driver, 0, 0, 512);
    assert_eq!((driver.used_index(0), driver.line()), (1, false));
}

#[test]
fn event_indices_choose_the_completion_that_interrupts() {
    let mut driver = Driver::new(instant());
    driver.start(EVENT_INDEX);
    // used_event = 1: the interrupt comes when the index goes from 1 to 2.
    driver.store(
        areas(0).1 + 4 + 2 * u64::from(QUEUE_SIZE),
        &1_u16.to_le_bytes(),
    );
    request(&mut driver, 0, 0, 512);
    assert!(!driver.line());
    request(&mut driver, 0, 0, 512);
    assert!(driver.line());
    let available_event = areas(0).2 + 4 + 8 * u64::from(QUEUE_SIZE);
    assert_eq!(
        driver.load_u16(available_event),
        2,
        "notify at the next one"
    );
}

#[test]
fn requests_take_their_service_time() {
    let service = Service {
        fixed_nanoseconds: 1000,
        picoseconds_per_byte: 1000,
        ..Service::default()
    };
    let mut driver = Driver::new(block(service, Faults::default()));
    driver.start(0);
    request(&mut driver, 0, 0, 512);
    assert_eq!(
        (driver.used_index(0), driver.slot.next_event()),
        (0, Some(Cycles(1512)))
    );
    driver.now = Cycles(1511);
    driver.with(|slot, context| slot.tick(context));
    assert_eq!(driver.used_index(0), 0);
    assert!(driver.advance());
    assert_eq!((driver.used_index(0), driver.now), (1, Cycles(1512)));
    assert!(!driver.advance());
}

#[test]
fn injected_faults_are_what_they_are_called() {
    let at = |number| Chance {
        per_million: 0,
        at: vec![number],
    };
    let faults = Faults {
        errors: at(0),
        short: at(1),
        lost_interrupts: at(2),
        late_interrupts: at(3),
        late_nanoseconds: 700,
    };
    let mut driver = Driver::new(block(Service::default(), faults));
    driver.start(0);
    request(&mut driver, 0, 1, 1024);
    assert_eq!(
        (status(&mut driver, 1024), driver.used_length(0, 0)),
        (1, 1)
    );
    driver.store(DATA + 0x1000, &[0; 1024]);
    request(&mut driver, 0, 1, 1024);
    assert_eq!(
        (status(&mut driver, 1024), driver.used_length(0, 1)),
        (1, 513)
    );
    assert_eq!(
        driver.load(DATA + 0x1000, 1024),
        [[1; 512], [0; 512]].concat()
    );
    driver.write(0x64, 1);
    request(&mut driver, 0, 1, 512);
    assert_eq!((driver.used_index(0), driver.line()), (3, false));
    assert_eq!(driver.slot.next_event(), None);
    request(&mut driver, 0, 1, 512);
    assert_eq!((driver.used_index(0), driver.line()), (4, false));
    assert_eq!(driver.slot.next_event(), Some(Cycles(700)));
    driver.advance();
    assert!(driver.line());
}

#[test]
fn a_reset_forgets_requests_in_service() {
    let service = Service {
        fixed_nanoseconds: 1000,
        ..Service::default()
    };
    let mut driver = Driver::new(block(service, Faults::default()));
    driver.start(0);
    request(&mut driver, 0, 0, 512);
    driver.start(0);
    assert!(!driver.advance());
    assert_eq!(driver.used_index(0), 0);
}

fn net() -> VirtioDevice {
    let mac = crate::device::MacAddress([2, 0, 0, 0, 0, 9]);
    let port = crate::device::PortId(1);
    VirtioDevice::Net(Box::new(Net::new(
        port,
        mac,
        Service::default(),
        Faults::default(),
        1,
    )))
}

#[test]
fn frames_go_out_and_come_in_with_their_header() {
    let mut driver = Driver::new(net());
    driver.start(1 << 5);
    assert_eq!(
        driver.read(0x100),
        0x0000_0002,
        "the address in the configuration space"
    );
    let frame: Vec<u8> = (0..60).collect();
    driver.store(DATA, &[&[0; 12][..], &frame].concat());
    driver.chain(1, &[(DATA, 12, false), (DATA + 12, 60, false)]);
    driver.offer(1, 0);
    assert_eq!(
        driver.effects.frames,
        [(crate::device::PortId(1), frame.clone())]
    );
    assert_eq!(driver.used_index(1), 1);

    let Some(VirtioDevice::Net(net)) = driver.slot.device_mut() else {
        panic!("a network device")
    };
    net.arrive(frame.clone());
    driver.with(|slot, context| slot.tick(context));
    assert_eq!(driver.used_index(0), 0, "no buffer, no frame");
    driver.chain(0, &[(DATA + 0x100, 1526, true)]);
    driver.offer(0, 0);
    assert_eq!((driver.used_index(0), driver.used_length(0, 0)), (1, 72));
    // num_buffers is 1, the rest of the header is zero (§5.1.6.4.1).
    let header = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(
        driver.load(DATA + 0x100, 72),
        [&header[..], &frame].concat()
    );
}

#[test]
fn entropy_follows_from_the_seed() {
    let bytes = |seed| {
        let service = (Service::default(), Faults::default());
        let entropy = Entropy::new(service.0, service.1, seed);
        let mut driver = Driver::new(VirtioDevice::Entropy(Box::new(entropy)));
        driver.start(0);
        driver.chain(0, &[(DATA, 32, true)]);
        driver.offer(0, 0);
        assert_eq!(driver.used_length(0, 0), 32);
        driver.load(DATA, 32)
    };
    assert_eq!(bytes(1), bytes(1));
    assert_ne!(bytes(1), bytes(2));
}

#[test]
fn console_ports_are_announced_named_and_carry_bytes() {
    use crate::device::Script;
    let script = Script::new([(Cycles(0), b"hello".to_vec())]);
    let heard = script.heard.clone();
    let ports: Vec<(String, Box<dyn crate::device::Console>)> = vec![
        (String::new(), Box::new(crate::device::Silent)),
        ("second".to_owned(), Box::new(script)),
    ];
    let mut driver = Driver::new(VirtioDevice::Console(Box::new(Ports::new(ports))));
    driver.start(2);
    assert_eq!(driver.read(0x104), 2, "max_nr_ports");

    // DEVICE_READY, then the announcements into eight buffers of the control queue.
    let control = |driver: &mut Driver, port: u32, event: u16, value: u16| {
        let message = [
            &port.to_le_bytes()[..],
            &event.to_le_bytes(),
            &value.to_le_bytes(),
        ];
        driver.store(DATA, &message.concat());
        driver.chain(3, &[(DATA, 8, false)]);
        driver.offer(3, 0);
    };
    let next = |driver: &mut Driver| {
        let before = driver.used_index(2);
        driver.store(DATA + 0x100, &[0; 64]);
        driver.chain(2, &[(DATA + 0x100, 64, true)]);
        driver.offer(2, 0);
        assert_eq!(driver.used_index(2), before + 1, "a message");
        let length = driver.used_length(2, before) as usize;
        driver.load(DATA + 0x100, length)
    };
    control(&mut driver, 0, 0, 1);
    assert_eq!(next(&mut driver), [0, 0, 0, 0, 1, 0, 1, 0]);
    assert_eq!(next(&mut driver), [1, 0, 0, 0, 1, 0, 1, 0]);
    control(&mut driver, 1, 3, 1);
    assert_eq!(
        next(&mut driver),
        [&[1, 0, 0, 0, 7, 0, 1, 0][..], b"second"].concat()
    );
    assert_eq!(next(&mut driver), [1, 0, 0, 0, 6, 0, 1, 0]);
    control(&mut driver, 1, 6, 1);

    // Port 1 has queues 4 and 5, which the driver sets up for itself.
    for queue in [4, 5] {
        driver
            .memory
            .store(areas(queue).0, &[0; 0x3000])
            .expect("RAM");
        driver.set_up_queue(queue, 8);
    }
    driver.chain(4, &[(DATA + 0x200, 64, true)]);
    driver.store(areas(4).1 + 2, &1_u16.to_le_bytes());
    driver.write(0x50, 4);
    assert_eq!(driver.load(DATA + 0x200, 5), *b"hello");
    driver.store(DATA + 0x300, b"out");
    driver.chain(5, &[(DATA + 0x300, 3, false)]);
    driver.store(areas(5).1 + 2, &1_u16.to_le_bytes());
    driver.write(0x50, 5);
    assert_eq!(*heard.lock().expect("one thread"), *b"out");
}
