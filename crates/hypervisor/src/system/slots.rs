//! The board's virtio-mmio slots, as the hypervisor itself reaches them (virtio 1.2, §4.2.2).

use crate::board::BoardDevice;

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

fn load(device: BoardDevice, register: u64) -> u32 {
    // SAFETY: the board's device tree names this slot as virtio-mmio, which has an aligned word at each of these offsets. Reading
    // them changes nothing.
    unsafe { ((device.base + register) as *const u32).read_volatile() }
}

fn store(device: BoardDevice, register: u64, value: u32) {
    // SAFETY: as above. Selecting a word of features changes nothing but what is read there, and a reset ends what the device does
    // to memory.
    unsafe { ((device.base + register) as *mut u32).write_volatile(value) };
}
