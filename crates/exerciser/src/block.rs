//! A virtio block device on virtio-mmio (virtio 1.2, §4.2, §5.2), both interfaces: version 2, and version 1,
//! which QEMU offers by default. One queue, three descriptors a request or more, reads only.

use crate::arch::memory::{device_load32, device_store32, load, load16, load32, store, store16};
use crate::arch::sync::Lock;
use crate::board::{Slot, board};
use crate::frames::{self, FRAME};
use crate::harts::Hart;
use crate::interrupts;
use exerciser::workload::Trigger;
use riscv::virtio::mmio::{MAGIC, legacy_register, register};
use riscv::virtio::queue::{NEXT, NO_NOTIFY, WRITE};
use riscv::virtio::{BLOCK_DEVICE, feature, status};

/// Low halves of a queue's three addresses.
const QUEUE_ADDRESSES: [u64; 3] = [
    register::QUEUE_DESCRIPTORS,
    register::QUEUE_DRIVER,
    register::QUEUE_DEVICE,
];

/// Status of a driver that has begun (§2.1).
const STARTED: u32 = status::ACKNOWLEDGE | status::DRIVER;
/// VIRTIO_F_VERSION_1 and VIRTIO_F_ACCESS_PLATFORM, as bits of the second word of features (§6).
const VERSION_1: u32 = (feature::VERSION_1 >> 32) as u32;
const ACCESS_PLATFORM: u32 = (feature::ACCESS_PLATFORM >> 32) as u32;
/// VIRTIO_F_EVENT_IDX, as a bit of the first word.
const EVENT_INDEX: u32 = feature::EVENT_INDEX as u32;

/// Entries of the queue, and the most requests that fit: three descriptors each at least.
pub const ENTRIES: u64 = 128;
pub const REQUESTS: usize = 42;
/// Where each ring has the index at which the other side wants to hear: behind its entries.
const AVAILABLE_EVENT: u64 = 4 + 8 * ENTRIES;
const USED_EVENT: u64 = 4 + 2 * ENTRIES;

/// State of a queue that the harts share.
#[derive(Debug)]
struct Queue {
    /// The terminal that each request in flight is for.
    owners: [Option<usize>; REQUESTS],
    available: u16,
    used: u16,
    /// Where the source is an edge: how many interrupts were acknowledged.
    acknowledged: u64,
}

impl Queue {
    const EMPTY: Self = Self {
        owners: [None; REQUESTS],
        available: 0,
        used: 0,
        acknowledged: 0,
    };
}

/// The device.
#[derive(Debug)]
pub struct Disk {
    slot: Slot,
    sectors: u64,
    /// Offset of the device's addresses from a hart's, modulo 2^64.
    offset: u64,
    /// The queue's parts: descriptors, available ring, used ring; then headers and data of the requests.
    descriptors: u64,
    available: u64,
    used: u64,
    requests: u64,
    data: u64,
    queue: Lock<Queue>,
    trigger: Trigger,
    /// Buffers of a read, each of which has a descriptor.
    buffers: u64,
    /// True if the device is told of what it asks for alone, and by event indices.
    asked: bool,
    event_indices: bool,
    /// True if a read that fails is tried again.
    retries: bool,
}

impl Disk {
    /// Finds the first block device and starts it.
    ///
    /// # Errors
    /// Why there is none to use.
    pub fn find(trigger: Trigger, asked: bool, retries: bool) -> Result<Self, &'static str> {
        let slot = board()
            .slots
            .iter()
            .take(board().slot_count)
            .find(|slot| {
                device_load32(slot.address + register::MAGIC) == MAGIC
                    && device_load32(slot.address + register::DEVICE_ID) == BLOCK_DEVICE
            })
            .ok_or("no virtio slot holds a block device")?;
        // Descriptors and available ring in the first frame, the used ring in the second (§2.7.2).
        let rings = frames::take(2).ok_or("memory is out")?;
        let requests = frames::take(1).ok_or("memory is out")?;
        let data = frames::take(REQUESTS as u64).ok_or("memory is out")?;
        let mut disk = Self {
            slot: *slot,
            sectors: 0,
            offset: 0,
            descriptors: rings,
            available: rings + 16 * ENTRIES,
            used: rings + FRAME,
            requests,
            data,
            queue: Lock::new(Queue::EMPTY),
            trigger,
            buffers: 1,
            asked,
            event_indices: false,
            retries,
        };
        disk.start()?;
        Ok(disk)
    }

    /// The same, whose reads have so many buffers, 1 to 8.
    #[must_use]
    pub fn with_buffers(mut self, buffers: u64) -> Self {
        self.buffers = buffers.clamp(1, exerciser::workload::MAX_SECTORS);
        self
    }

    /// Descriptors of a request: its header, its buffers, and its status.
    const fn length(&self) -> u64 {
        self.buffers + 2
    }

    /// Starts the device anew (§3.1.1), with nothing under way.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn start(&mut self) -> Result<(), &'static str> {
        let at = self.slot.address;
        let version = device_load32(at + register::VERSION);
        device_store32(at + register::STATUS, 0);
        for at in (0..FRAME).step_by(8) {
            store(self.descriptors + at, 0);
            store(self.used + at, 0);
        }
        *self.queue.lock() = Queue::EMPTY;
        device_store32(at + register::STATUS, STARTED);
        device_store32(at + register::DEVICE_FEATURES_SELECT, 1);
        let platform = device_load32(at + register::DEVICE_FEATURES) & ACCESS_PLATFORM;
        self.offset = match platform {
            0 => 0,
            _ => board().device_offset,
        };
        device_store32(at + register::DEVICE_FEATURES_SELECT, 0);
        let offered = device_load32(at + register::DEVICE_FEATURES) & EVENT_INDEX;
        let events = if self.asked { offered } else { 0 };
        self.event_indices = events != 0;
        let platform = if version >= 2 {
            VERSION_1 | platform
        } else {
            0
        };
        for (word, features) in [(0, events), (1, platform)] {
            device_store32(at + register::DRIVER_FEATURES_SELECT, word);
            device_store32(at + register::DRIVER_FEATURES, features);
        }
        if version >= 2 {
            device_store32(at + register::STATUS, STARTED | status::FEATURES_OK);
            if device_load32(at + register::STATUS) & status::FEATURES_OK == 0 {
                return Err("the device refuses the features");
            }
        }
        device_store32(at + register::QUEUE_SELECT, 0);
        if u64::from(device_load32(at + register::QUEUE_SIZE_MAX)) < ENTRIES {
            return Err("the device's queue is too short");
        }
        device_store32(at + register::QUEUE_SIZE, ENTRIES as u32);
        if version >= 2 {
            let parts = [self.descriptors, self.available, self.used];
            for (register, part) in QUEUE_ADDRESSES.into_iter().zip(parts) {
                let part = part.wrapping_add(self.offset);
                device_store32(at + register, part as u32);
                device_store32(at + register + 4, (part >> 32) as u32);
            }
            device_store32(at + register::QUEUE_READY, 1);
        } else {
            device_store32(at + legacy_register::PAGE_SIZE, FRAME as u32);
            device_store32(at + legacy_register::QUEUE_ALIGN, FRAME as u32);
            device_store32(
                at + legacy_register::QUEUE_FRAME,
                (self.descriptors / FRAME) as u32,
            );
        }
        self.sectors = u64::from(device_load32(at + register::CONFIGURATION))
            | u64::from(device_load32(at + register::CONFIGURATION + 4)) << 32;
        device_store32(
            at + register::STATUS,
            STARTED | status::DRIVER_OK | if version >= 2 { status::FEATURES_OK } else { 0 },
        );
        if self.sectors < 8 {
            return Err("the disk is smaller than a page");
        }
        Ok(())
    }

    /// Tests whether the device has found its driver to break the rules (§2.1).
    pub fn needs_reset(&self) -> bool {
        device_load32(self.slot.address + register::STATUS) & status::NEEDS_RESET != 0
    }

    /// Tells the device that something is available, whatever is.
    pub fn notify(&self) {
        core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
        device_store32(self.slot.address + register::QUEUE_NOTIFY, 0);
    }

    /// The queue as bytes: where its descriptors lie, its available ring, and the data of its requests.
    pub const fn places(&self) -> (u64, u64, u64) {
        (self.descriptors, self.available, self.data)
    }

    /// Sectors of the disk.
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Address by which the device reaches what a hart reaches at `address`.
    pub const fn device_address(&self, address: u64) -> u64 {
        address.wrapping_add(self.offset)
    }

    /// Index of the used ring: requests that the device has ended, modulo 2^16.
    pub fn used_index(&self) -> u16 {
        load16(self.used + 2)
    }

    /// Has the APLIC send the device's interrupts to a hart as `identity` (AIA chapter 4, MSI delivery), or the PLIC where there are no interrupt files.
    pub fn route(&self, hart: &Hart, identity: u64) {
        let status = self.slot.address + register::INTERRUPT_STATUS;
        let is_level = self.trigger == Trigger::Level;
        interrupts::route(self.slot, Some(status), is_level, (hart, identity));
    }

    /// Starts a read for `owner` at a place chosen by `random`. False when as many are under way as fit.
    pub fn read(&self, owner: usize, random: u64, sectors: u64) -> bool {
        let mut queue = self.queue.lock();
        let fit = (ENTRIES / self.length()) as usize;
        let mut owners = queue.owners.iter().take(fit);
        let Some(number) = owners.position(Option::is_none) else {
            return false;
        };
        if let Some(slot) = queue.owners.get_mut(number) {
            *slot = Some(owner);
        }
        let number = number as u64;
        // Header: type 0 (in), reserved, sector; then the status byte (§5.2.6).
        let header = self.requests + 32 * number;
        store(header, 0);
        store(header + 8, random % (self.sectors / 8) * 8);
        store(header + 16, 0xff);
        let first = self.length() * number;
        self.describe(first, header, 16, NEXT.into(), first + 1);
        let size = 512 * (sectors / self.buffers).max(1);
        for buffer in 0..self.buffers {
            let (at, place) = (first + 1 + buffer, self.data + FRAME * number);
            self.describe(
                at,
                place + size * buffer,
                size,
                (NEXT | WRITE).into(),
                at + 1,
            );
        }
        self.describe(first + 1 + self.buffers, header + 16, 1, WRITE.into(), 0);
        self.offer(&mut queue, first as u16);
        true
    }

    /// Makes the chain that begins with this descriptor available, and says so.
    fn offer(&self, queue: &mut Queue, first: u16) {
        store16(
            self.available + 4 + 2 * (u64::from(queue.available) % ENTRIES),
            first,
        );
        queue.available = queue.available.wrapping_add(1);
        core::sync::atomic::fence(core::sync::atomic::Ordering::Release);
        store16(self.available + 2, queue.available);
        if !self.asked || self.is_to_be_told(queue.available) {
            device_store32(self.slot.address + register::QUEUE_NOTIFY, 0);
        }
    }

    /// Tests whether the device wants to hear of the last chain before this index of the available ring (§2.7.10).
    fn is_to_be_told(&self, index: u16) -> bool {
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        match self.event_indices {
            true => load16(self.used + AVAILABLE_EVENT).wrapping_add(1) == index,
            false => load16(self.used) & NO_NOTIFY == 0,
        }
    }

    /// Asks for an interrupt at the next chain that is used. Says whether there is one already (§2.7.7.2).
    fn asks(&self, queue: &Queue) -> bool {
        if !self.event_indices {
            return false;
        }
        store16(self.available + USED_EVENT, queue.used);
        core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
        load16(self.used + 2) != queue.used
    }

    fn describe(&self, number: u64, address: u64, length: u64, flags: u64, next: u64) {
        let at = self.descriptors + 16 * number;
        store(at, self.device_address(address));
        store(at + 8, length | flags << 32 | next << 48);
    }

    /// Calls `done` with the owner of each read that has ended. So many `interrupts` of the device were taken until now.
    pub fn collect(&self, interrupts: u64, mut done: impl FnMut(usize)) {
        let mut queue = self.queue.lock();
        let is_told = self.trigger == Trigger::Edge && interrupts != queue.acknowledged;
        if load16(self.used + 2) == queue.used && !is_told {
            return;
        }
        match self.trigger {
            // What ends while others are being collected raises the line again. It must not stay high unseen: a line that is high
            // already announces nothing.
            Trigger::Level => {
                while self.acknowledge() {
                    self.take_ended(&mut queue, &mut done);
                }
            }
            // What ends after the acknowledgement makes a new edge. A read may be seen before its interrupt is, which is acknowledged then.
            Trigger::Edge => {
                if is_told {
                    queue.acknowledged = interrupts;
                    self.acknowledge();
                }
                self.take_ended(&mut queue, &mut done);
            }
        }
        while self.asks(&queue) {
            self.take_ended(&mut queue, &mut done);
        }
    }

    fn take_ended(&self, queue: &mut Queue, done: &mut impl FnMut(usize)) {
        while load16(self.used + 2) != queue.used {
            core::sync::atomic::fence(core::sync::atomic::Ordering::Acquire);
            let entry = self.used + 4 + 8 * (u64::from(queue.used) % ENTRIES);
            queue.used = queue.used.wrapping_add(1);
            let number = (u64::from(load32(entry)) / self.length()) as usize;
            let status = self.requests + 32 * number as u64 + 16;
            if load(status) as u8 != 0 {
                if !self.retries {
                    crate::start::fail(format_args!("a read failed"));
                }
                store(status, 0xff);
                self.offer(queue, (self.length() * number as u64) as u16);
                continue;
            }
            if let Some(owner) = queue.owners.get_mut(number).and_then(Option::take) {
                done(owner);
            }
        }
    }

    /// Tells the device and the interrupt controller that the interrupt was seen: while its line is high, a level source
    /// sends another message only after `setipnum_le` (AIA §4.7, §4.9.2). False where there was none.
    pub fn acknowledge(&self) -> bool {
        let status = device_load32(self.slot.address + register::INTERRUPT_STATUS);
        if status == 0 {
            return false;
        }
        device_store32(self.slot.address + register::INTERRUPT_ACKNOWLEDGE, status);
        interrupts::end(self.slot, self.trigger == Trigger::Level);
        true
    }
}
