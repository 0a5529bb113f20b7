//! A virtio device of the board: its registers (virtio 1.2, §4.2.2), and its side of its queues (§2.7).

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;

use super::memory::Host;
use crate::devices::virtio::register::*;
use crate::devices::virtio::{DeviceKind, QUEUE_PARTS, VERSION_1, with_high, with_low};
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;

/// A buffer as the device sees it: address, bytes, whether it is written.
pub type Buffer = (u64, u32, bool);

/// Queues that such a device has.
const QUEUES: usize = 2;

/// Descriptor: address and length of its buffer, flags, and the next descriptor.
pub struct Descriptor {
    pub at: u64,
    pub bytes: u32,
    pub flags: u16,
    pub next: u16,
}

impl Descriptor {
    pub fn read(at: u64, host: &Host) -> Self {
        Self {
            at: u64::from_le_bytes(host.get(at)),
            bytes: u32::from_le_bytes(host.get(at + 8)),
            flags: host.half(at + 12),
            next: host.half(at + 14),
        }
    }
}

/// The device. Fields that tests change or read are public.
pub struct Device {
    kind: DeviceKind,
    registers: u64,
    entries: u16,
    /// Features that the device offers.
    pub features: Cell<u64>,
    /// Features that the driver has accepted.
    pub accepted: Cell<u64>,
    pub status: Cell<u32>,
    pub interrupts: Cell<u32>,
    /// The first bytes of its configuration.
    pub configuration: Cell<u64>,
    /// Addresses of the descriptors, the available ring and the used ring of each queue.
    pub parts: RefCell<[[u64; 3]; QUEUES]>,
    /// Notifications by queue.
    pub notified: [Cell<u32>; QUEUES],
    /// Number of calls that asked the source to send again.
    pub served: Cell<u32>,
    /// Reads of the status until the reset is done.
    pub slow_resets: Cell<u32>,
    select: Cell<u32>,
    queue: Cell<usize>,
    /// Of each queue: how much of the available ring was taken, and of the used ring filled.
    taken: [Cell<u16>; QUEUES],
    used: [Cell<u16>; QUEUES],
    /// Every access of the hypervisor: its offset and its width.
    pub accesses: RefCell<BTreeSet<(u64, u64)>>,
}

impl Device {
    /// A device whose registers are there, whose queues have so many entries at most.
    pub fn new(kind: DeviceKind, registers: u64, entries: u16, features: u64) -> Self {
        Self {
            kind,
            registers,
            entries,
            features: Cell::new(features | VERSION_1),
            accepted: Cell::default(),
            status: Cell::default(),
            interrupts: Cell::default(),
            configuration: Cell::default(),
            parts: RefCell::default(),
            notified: Default::default(),
            served: Cell::default(),
            slow_resets: Cell::default(),
            select: Cell::default(),
            queue: Cell::default(),
            taken: Default::default(),
            used: Default::default(),
            accesses: RefCell::default(),
        }
    }

    /// Notes an access. Beyond registers and configuration the device answers with an access fault, as QEMU's do.
    fn note_access(&self, at: HostPhysical, width: Width) -> u64 {
        let offset = at.raw() - self.registers;
        self.accesses.borrow_mut().insert((offset, width.bytes()));
        offset
    }

    pub fn load(&self, at: HostPhysical, width: Width) -> Option<u64> {
        Some(match self.note_access(at, width) {
            DEVICE_ID => self.kind as u64,
            QUEUE_SIZE_MAX if self.queue.get() < QUEUES => self.entries.into(),
            DEVICE_FEATURES => self.features.get() >> (32 * self.select.get()) & 0xffff_ffff,
            STATUS => self.status.get().into(),
            INTERRUPT_STATUS => self.interrupts.get().into(),
            at @ CONFIGURATION..0x108 => {
                width.truncate(self.configuration.get() >> (8 * (at - CONFIGURATION)))
            }
            CONFIGURATION.. => return None,
            _ => 0,
        })
    }

    pub fn store(&self, at: HostPhysical, width: Width, value: u64) {
        let register = self.note_access(at, width);
        let word = value as u32;
        match register {
            DEVICE_FEATURES_SELECT | DRIVER_FEATURES_SELECT => self.select.set(word),
            QUEUE_SELECT => self.queue.set(word as usize),
            DRIVER_FEATURES => {
                let before = self.accepted.get();
                self.accepted.set(match self.select.get() {
                    0 => with_low(before, word),
                    _ => with_high(before, word),
                });
            }
            STATUS if word == 0 && self.slow_resets.get() > 0 => {
                self.slow_resets.set(self.slow_resets.get() - 1);
            }
            STATUS => {
                self.status.set(word);
                if word == 0 {
                    self.taken.iter().for_each(|taken| taken.set(0));
                    self.used.iter().for_each(|used| used.set(0));
                }
            }
            INTERRUPT_ACKNOWLEDGE => self.interrupts.set(self.interrupts.get() & !word),
            QUEUE_NOTIFY => {
                let count = &self.notified[word as usize];
                count.set(count.get() + 1);
            }
            _ => {
                let mut all = self.parts.borrow_mut();
                let parts = all.get_mut(self.queue.get());
                for (low, part) in QUEUE_PARTS.into_iter().zip(parts.into_iter().flatten()) {
                    if register == low {
                        *part = with_low(*part, word);
                    } else if register == low + 4 {
                        *part = with_high(*part, word);
                    }
                }
            }
        }
    }

    /// Takes the next chain of a queue: its head and its descriptors.
    pub fn takes_chain(&self, queue: usize, host: &Host) -> Option<(u16, Vec<Descriptor>)> {
        let [table, available, _] = self.parts.borrow()[queue];
        let taken = &self.taken[queue];
        if taken.get() == host.half(available + 2) {
            return None;
        }
        let entry = u64::from(taken.get() % self.entries);
        taken.set(taken.get().wrapping_add(1));
        let head = host.half(available + 4 + 2 * entry);
        let (mut number, mut chain) = (head, Vec::new());
        loop {
            let descriptor = Descriptor::read(table + 16 * u64::from(number), host);
            let (flags, next) = (descriptor.flags, descriptor.next);
            chain.push(descriptor);
            if flags & 1 == 0 {
                return Some((head, chain));
            }
            number = next;
        }
    }

    /// Takes the next chain of a queue: its head and its buffers.
    pub fn takes(&self, queue: usize, host: &Host) -> Option<(u16, Vec<Buffer>)> {
        let (head, chain) = self.takes_chain(queue, host)?;
        let buffer = |one: Descriptor| {
            assert_eq!(one.flags & 4, 0, "a buffer");
            (one.at, one.bytes, one.flags & 2 != 0)
        };
        Some((head, chain.into_iter().map(buffer).collect()))
    }

    /// Puts a chain into the used ring, with the number of bytes written.
    pub fn returns(&self, queue: usize, (head, written): (u32, u32), host: &Host) {
        let used = self.parts.borrow()[queue][2];
        let count = &self.used[queue];
        let at = used + 4 + 8 * u64::from(count.get() % self.entries);
        host.set(at, &head.to_le_bytes());
        host.set(at + 4, &written.to_le_bytes());
        count.set(count.get().wrapping_add(1));
        host.set(used + 2, &count.get().to_le_bytes());
    }
}
