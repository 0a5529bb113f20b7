//! Board with a disk that carries out what the hypervisor gives to it.

use std::cell::{Cell, RefCell};

use super::super::*;
use crate::devices::testing::device::{Descriptor, Device as TestDevice};
use crate::devices::testing::memory::Host;
use crate::devices::virtio::driver::ServerNumber;
use crate::devices::virtio::register::*;
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;

pub const REGISTERS: u64 = 0x1000_1000;
pub const DRIVER: Driver = Driver {
    registers: HostPhysical::new(REGISTERS),
    source: SourceNumber(7),
};
pub const HALF: u64 = 0x1_0000;
pub const OPERATIONS: u64 = 0x10_0000;
pub const MEMORY: u64 = 0x20_0000;
/// Sectors of a slice; the disk has some more on both sides.
pub const SECTORS: u64 = 512;

/// Operation in flight at the disk.
#[derive(Clone, Debug)]
pub struct Operation {
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
    pub operations: RefCell<Vec<Operation>>,
    pub sectors: RefCell<Vec<[u8; 512]>>,
    pub guests: usize,
    pub notified: Cell<Clients>,
    pub time: Cell<u64>,
    /// Set if the guests are busy.
    pub at_work: Cell<bool>,
    /// Of a VM that serves the disk: the generation of its table, and the one that another hart of it uses, if one does.
    pub generation: Cell<u64>,
    pub used_generation: Cell<Option<u64>>,
}

impl Board for World {
    fn load(&self, at: HostPhysical, width: Width) -> Option<u64> {
        self.device.load(at, width)
    }

    fn store(&self, at: HostPhysical, width: Width, value: u64) {
        self.device.store(at, width, value);
        if at.raw() - REGISTERS == QUEUE_NOTIFY {
            self.take_operations();
        }
    }

    fn resample(&self, _: SourceNumber) {}

    fn time(&self) -> u64 {
        self.time.get()
    }

    fn host(&self) -> TheHost<'_> {
        TheHost::new(&self.host)
    }

    fn window_changed(&self, _: ServerNumber) -> u64 {
        self.generation.set(self.generation.get() + 1);
        self.generation.get()
    }

    fn uses_older(&self, _: ServerNumber, generation: u64) -> bool {
        self.used_generation
            .get()
            .is_some_and(|used| used < generation)
    }
}

impl World {
    /// The disk takes what it is given. All of it must be the hypervisor's, or memory of the guest whose sectors they are.
    fn take_operations(&self) {
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
            self.operations.borrow_mut().push(Operation {
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
    pub fn complete(&self, number: usize, outcome: u8) {
        let given = self.operations.borrow_mut().remove(number);
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
        self.put_used(given.head, written);
    }

    /// The disk says that it has ended this.
    pub fn put_used(&self, head: u32, written: u32) {
        self.device.returns(0, (head, written), &self.host);
        let interrupts = &self.device.interrupts;
        interrupts.set(interrupts.get() | 1);
    }

    /// The device has failed: it needs a reset.
    pub fn fail(&self) {
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
