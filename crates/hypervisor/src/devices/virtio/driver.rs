//! Virtio device of the board that the hypervisor drives itself: registers, negotiation of features, set-up of queues (virtio 1.2,
//! §3.1.1 and §4.2.3).

use super::queue::device::{DeviceQueue, MAX_ENTRIES};
use super::{
    ACCESS_PLATFORM, CONFIGURATION_CHANGE, DeviceKind, QUEUE_PARTS, VERSION_1, register, status,
};
use crate::devices::irq::SourceNumber;
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;
use crate::memory::owned::OwnedRegion;

/// Access to the board for a device that the hypervisor drives.
pub trait Board {
    /// Loads a register of a device; `None` where the device answers with a fault. Reads of memory afterwards see the device's
    /// earlier writes.
    fn load(&self, at: HostPhysical, width: Width) -> Option<u64>;

    /// Sets a register of a device, which sees what was written to memory before. A store that faults has no effect.
    fn store(&self, at: HostPhysical, width: Width, value: u64);

    /// Makes a level-sensitive source of the board, which was served, send again if its line is still high.
    fn resample(&self, source: SourceNumber);

    /// The time, in ticks of the board's timebase.
    fn time(&self) -> u64;

    /// The board's memory.
    fn host(&self) -> TheHost<'_>;

    /// Notes that pages have left the window of a VM that serves disks. Returns the generation of its table, without them.
    fn window_changed(&self, server: ServerNumber) -> u64 {
        let _ = server;
        0
    }

    /// Tests whether another hart may use a translation of the VM from before this generation. Such a hart is kicked, so that it enters its
    /// guest anew.
    fn uses_older(&self, server: ServerNumber, generation: u64) -> bool {
        let _ = (server, generation);
        false
    }
}

/// A VM that serves disks to others, by its number in the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServerNumber(pub usize);

/// Reason why a device cannot be driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    #[error("there is no {0}")]
    NoDevice(DeviceKind),
    #[error("the {kind} does not offer what is needed: the bits {missing:#x} of its features")]
    NotOffered { kind: DeviceKind, missing: u64 },
    #[error("the {0} does not take the hypervisor's choice of features")]
    Refused(DeviceKind),
    #[error("queue {queue} of the device has room for {room} entries: {needed} are needed")]
    ShortQueue {
        queue: usize,
        room: u32,
        needed: u16,
    },
}

/// Features that the hypervisor asks of a device.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// Features without which the device cannot be driven. VIRTIO_F_VERSION_1 is always one.
    pub needed: u64,
    /// Features that are used if the device has them.
    pub wanted: u64,
}

/// A device of the board, on its bus of registers.
#[derive(Clone, Copy, Debug)]
pub struct Driver {
    /// Address of its registers.
    pub registers: HostPhysical,
    /// Its source at the board's APLIC, which the hypervisor has.
    pub source: SourceNumber,
}

/// Cause of a device's interrupt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interrupt {
    /// No interrupt.
    None,
    /// Operations may have completed.
    Ended,
    /// The device has failed, and does nothing more before it is reset.
    Failed,
}

impl Driver {
    const DRIVING: u32 = status::ACKNOWLEDGE | status::DRIVER;

    /// Resets the device and negotiates features, which are returned. Its queues come next, and then [`Self::begin`].
    ///
    /// # Errors
    /// [`DriverError`], after which the device is idle.
    pub fn negotiate(
        &self,
        kind: DeviceKind,
        features: Features,
        board: &dyn Board,
    ) -> Result<u64, DriverError> {
        if self.word(register::DEVICE_ID, board) != kind as u32 {
            return Err(DriverError::NoDevice(kind));
        }
        self.reset(board);
        self.set(register::STATUS, Self::DRIVING, board);
        let half = |word: u32| {
            self.set(register::DEVICE_FEATURES_SELECT, word, board);
            u64::from(self.word(register::DEVICE_FEATURES, board))
        };
        let offered = half(0) | half(1) << 32;
        let needed = features.needed | VERSION_1;
        let missing = needed & !offered;
        if missing != 0 {
            self.reset(board);
            return Err(DriverError::NotOffered { kind, missing });
        }
        // The device's own addresses are the host's, whatever it calls them.
        let chosen = needed | offered & (features.wanted | ACCESS_PLATFORM);
        for (word, half) in [(0, chosen as u32), (1, (chosen >> 32) as u32)] {
            self.set(register::DRIVER_FEATURES_SELECT, word, board);
            self.set(register::DRIVER_FEATURES, half, board);
        }
        self.set(register::STATUS, Self::DRIVING | status::FEATURES_OK, board);
        if self.word(register::STATUS, board) & status::FEATURES_OK == 0 {
            self.reset(board);
            return Err(DriverError::Refused(kind));
        }
        Ok(chosen)
    }

    /// Makes a queue of the device's ready, in `area`, with as many entries as it takes, [`MAX_ENTRIES`] at most.
    ///
    /// # Errors
    /// [`DriverError::ShortQueue`] if it has room for fewer than `needed`; the device is idle then.
    pub fn queue(
        &self,
        queue: usize,
        needed: u16,
        area: OwnedRegion,
        board: &dyn Board,
    ) -> Result<DeviceQueue, DriverError> {
        self.set(register::QUEUE_SELECT, queue as u32, board);
        let room = self.word(register::QUEUE_SIZE_MAX, board);
        if room < needed.max(1).into() {
            self.reset(board);
            return Err(DriverError::ShortQueue {
                queue,
                room,
                needed,
            });
        }
        let entries = 1 << room.min(MAX_ENTRIES.into()).ilog2();
        let mut ring = DeviceQueue::reserve(area);
        ring.begin(entries, board.host());
        self.set(register::QUEUE_SIZE, entries.into(), board);
        for (register, part) in QUEUE_PARTS.into_iter().zip(ring.parts()) {
            self.set(register, part.raw() as u32, board);
            self.set(register + 4, (part.raw() >> 32) as u32, board);
        }
        self.set(register::QUEUE_READY, 1, board);
        Ok(ring)
    }

    /// Lets the device work on its queues.
    pub fn begin(&self, board: &dyn Board) {
        let begun = Self::DRIVING | status::FEATURES_OK | status::DRIVER_OK;
        self.set(register::STATUS, begun, board);
    }

    /// Resets the device.
    pub fn reset(&self, board: &dyn Board) {
        self.set(register::STATUS, 0, board);
    }

    /// Notifies the device of new chains in a queue.
    pub fn notify(&self, queue: usize, board: &dyn Board) {
        self.set(register::QUEUE_NOTIFY, queue as u32, board);
    }

    /// Notification register, to which the number of a queue with new chains is written.
    #[must_use]
    pub const fn notification(&self) -> HostPhysical {
        self.at(register::QUEUE_NOTIFY)
    }

    /// Reads and acknowledges the cause of the device's interrupt.
    #[inline]
    pub fn interrupt(&self, board: &dyn Board) -> Interrupt {
        let why = self.word(register::INTERRUPT_STATUS, board);
        if why == 0 {
            return Interrupt::None;
        }
        self.set(register::INTERRUPT_ACKNOWLEDGE, why, board);
        board.resample(self.source);
        let failed = why & CONFIGURATION_CHANGE != 0
            && self.word(register::STATUS, board) & status::NEEDS_RESET != 0;
        match failed {
            true => Interrupt::Failed,
            false => Interrupt::Ended,
        }
    }

    /// A byte of the configuration.
    #[must_use]
    pub fn configuration(&self, offset: u64, board: &dyn Board) -> u8 {
        let at = self.at(register::CONFIGURATION.wrapping_add(offset));
        board.load(at, Width::Byte).unwrap_or(0) as u8
    }

    /// Two words of the configuration, as one number.
    #[must_use]
    pub fn configuration_pair(&self, offset: u64, board: &dyn Board) -> u64 {
        let word = |offset: u64| {
            let register = register::CONFIGURATION.wrapping_add(offset);
            u64::from(self.word(register, board))
        };
        word(offset) | word(offset.wrapping_add(4)) << 32
    }

    /// The registers are in the board's memory map, so that nothing overflows.
    const fn at(&self, register: u64) -> HostPhysical {
        HostPhysical::new(self.registers.raw().wrapping_add(register))
    }

    fn word(&self, register: u64, board: &dyn Board) -> u32 {
        board.load(self.at(register), Width::Word).unwrap_or(0) as u32
    }

    fn set(&self, register: u64, value: u32, board: &dyn Board) {
        board.store(self.at(register), Width::Word, value.into());
    }
}
