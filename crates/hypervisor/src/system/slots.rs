//! The board's virtio-mmio slots, as the hypervisor itself reaches them (virtio 1.2, §4.2.2).

use crate::board::BoardDevice;
use crate::devices::board_aplic::AplicDriver;
use crate::devices::shared::Board;
use crate::devices::wires::SourceNumber;
use crate::hart::decode::Width;
use crate::hart::fence;
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;
use crate::memory::physical::Physical;

/// Which kind of device a slot holds; 0 where it holds none.
const DEVICE_ID: u64 = 0x008;
/// A word of the features that the device offers, and which word that is.
const DEVICE_FEATURES: u64 = 0x010;
const DEVICE_FEATURES_SELECT: u64 = 0x014;
/// Writing 0 resets the device.
const STATUS: u64 = 0x070;

/// `VIRTIO_F_ACCESS_PLATFORM`, feature 33 (§6), as the word and the bit in it.
const ACCESS_PLATFORM: (u32, u32) = (1, 1 << 1);

/// Resets a virtio device, which also ends its accesses to memory.
pub fn reset_device(device: BoardDevice) {
    store(device, STATUS, 0);
}

/// Whether the driver of this device is to use the addresses that the platform gives to memory for devices. Only then may these
/// differ from the guest's. A slot without a device reaches no memory.
pub fn takes_platform_addresses(device: BoardDevice) -> bool {
    if load(device, DEVICE_ID) == 0 {
        return true;
    }
    let (word, bit) = ACCESS_PLATFORM;
    store(device, DEVICE_FEATURES_SELECT, word);
    load(device, DEVICE_FEATURES) & bit != 0
}

/// What a register of a virtio device shows, and all that the device wrote to memory before is seen afterwards.
pub fn load_register(at: HostPhysical, width: Width) -> u64 {
    let at = at.raw();
    // SAFETY: the caller names a register of a slot that the board's device tree has, aligned to its width. Reading registers of
    // virtio-mmio changes nothing that Rust knows of.
    let value = unsafe {
        match width {
            Width::Byte => (at as *const u8).read_volatile().into(),
            Width::Half => (at as *const u16).read_volatile().into(),
            Width::Word => (at as *const u32).read_volatile().into(),
            Width::Double => (at as *const u64).read_volatile(),
        }
    };
    fence::devices();
    value
}

/// Sets a register of a virtio device, which then sees all that was written to memory before. What is read from memory afterwards is read
/// after that: an operation that ends while its interrupt is acknowledged is found, or interrupts again.
pub fn store_register(at: HostPhysical, width: Width, value: u64) {
    let at = at.raw();
    fence::devices();
    // SAFETY: as for a load. The device reaches the memory that its queues name, which are a guest's own or lie in an area that
    // was given to the device.
    unsafe {
        match width {
            Width::Byte => (at as *mut u8).write_volatile(value as u8),
            Width::Half => (at as *mut u16).write_volatile(value as u16),
            Width::Word => (at as *mut u32).write_volatile(value as u32),
            Width::Double => (at as *mut u64).write_volatile(value),
        }
    }
    fence::devices();
}

fn load(device: BoardDevice, register: u64) -> u32 {
    load_register(HostPhysical::new(device.base + register), Width::Word) as u32
}

fn store(device: BoardDevice, register: u64, value: u32) {
    let at = HostPhysical::new(device.base + register);
    store_register(at, Width::Word, value.into());
}

/// The board, for what the hypervisor drives itself; without an APLIC as long as none is set up.
#[derive(Clone, Copy, Debug)]
pub struct TheBoard<'a>(pub Option<&'a AplicDriver>);

impl Board for TheBoard<'_> {
    fn load(&self, at: HostPhysical, width: Width) -> u64 {
        load_register(at, width)
    }

    fn store(&self, at: HostPhysical, width: Width, value: u64) {
        store_register(at, width, value);
    }

    fn served(&self, source: SourceNumber) {
        if let Some(aplic) = self.0 {
            aplic.served(source.0);
        }
    }

    fn host(&self) -> TheHost<'_> {
        TheHost::new(&Physical { zero_block: None })
    }
}
