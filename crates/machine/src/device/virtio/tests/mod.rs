//! A driver's side of the transport, and what devices do with good and bad drivers.

use riscv::virtio::feature::{EVENT_INDEX, VERSION_1};
use riscv::virtio::queue::{INDIRECT, NEXT, WRITE};

use super::*;
use crate::device::{Clock, Context, Cycles, Device, Effects, FlatMemory, LineChange, Memory};

mod block;
mod others;
mod transport;

const RAM: u64 = 0x4000_0000;
const RAM_SIZE: usize = 1 << 20;
/// Where the driver keeps things: three areas a queue, then indirect tables and data.
const AREAS: u64 = RAM;
const DATA: u64 = RAM + 0x4_0000;
const QUEUE_SIZE: u16 = 8;
const SOURCE: u32 = 3;

const NEEDS_RESET: u64 = riscv::virtio::status::NEEDS_RESET as u64;

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
