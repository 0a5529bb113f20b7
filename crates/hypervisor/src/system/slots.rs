//! Access of the hypervisor itself to the board's virtio-mmio slots (virtio 1.2, §4.2.2).

use riscv::virtio::feature;
use riscv::virtio::mmio::register::{DEVICE_FEATURES, DEVICE_FEATURES_SELECT, DEVICE_ID, STATUS};

use crate::devices::board_controller::BoardController;
use crate::devices::irq::SourceNumber;
use crate::devices::virtio::driver::{Board, ServerNumber};
use crate::hart::decode::Width;
use crate::hart::{self, device, fence};
use crate::memory::address::HostPhysical;
use crate::memory::guest::TheHost;
use crate::memory::physical::Physical;
use crate::system::{generations, system};
use crate::vm::Vm;
use board::BoardDevice;

/// The word of `VIRTIO_F_ACCESS_PLATFORM` among the features, and its bit in it.
const ACCESS_PLATFORM: (u32, u32) = (1, (feature::ACCESS_PLATFORM >> 32) as u32);

/// Resets a virtio device, which also ends its accesses to memory. Returns true once the device says that the reset is done (virtio 1.2,
/// §4.2.2.1): until then it may still write to memory.
#[must_use]
pub fn reset_device(device: BoardDevice) -> bool {
    store(device, STATUS, 0);
    load(device, STATUS) == 0
}

/// Returns true if the driver of this device is to use the addresses that the platform gives to memory for devices. Only then may these
/// differ from the guest's. A slot without a device reaches no memory.
pub fn takes_platform_addresses(device: BoardDevice) -> bool {
    if load(device, DEVICE_ID) == 0 {
        return true;
    }
    let (word, bit) = ACCESS_PLATFORM;
    store(device, DEVICE_FEATURES_SELECT, word);
    load(device, DEVICE_FEATURES) & bit != 0
}

/// Loads a register of a virtio device; what the device wrote to memory before is seen afterwards. `None` where the device answers with a fault.
#[inline]
pub fn load_register(at: HostPhysical, width: Width) -> Option<u64> {
    // SAFETY: the caller names a register of a slot that the board's device tree has, aligned to its width. Reading registers of
    // virtio-mmio changes nothing that Rust knows of.
    let value = unsafe { device::load(at.raw(), width) };
    fence::devices();
    value
}

/// Sets a register of a virtio device, which then sees all that was written to memory before. What is read from memory afterwards is read
/// after that: an operation that ends while its interrupt is acknowledged is found, or interrupts again. A store that faults has no effect.
#[inline]
pub fn store_register(at: HostPhysical, width: Width, value: u64) {
    fence::devices();
    // SAFETY: as for a load. The device reaches the memory that its queues name, which are a guest's own or lie in an area that
    // was given to the device.
    let _ = unsafe { device::store(at.raw(), width, value) };
    fence::devices();
}

fn load(device: BoardDevice, register: u64) -> u32 {
    let at = HostPhysical::new(device.base + register);
    load_register(at, Width::Word).unwrap_or(0) as u32
}

fn store(device: BoardDevice, register: u64, value: u32) {
    let at = HostPhysical::new(device.base + register);
    store_register(at, Width::Word, value.into());
}

/// The board, for devices that the hypervisor drives itself; without an interrupt controller as long as none is set up.
#[derive(Clone, Copy, Debug)]
pub struct TheBoard<'a>(pub Option<&'a BoardController>);

impl Board for TheBoard<'_> {
    fn load(&self, at: HostPhysical, width: Width) -> Option<u64> {
        load_register(at, width)
    }

    fn store(&self, at: HostPhysical, width: Width, value: u64) {
        store_register(at, width, value);
    }

    fn resample(&self, source: SourceNumber) {
        if let Some(controller) = self.0 {
            controller.resample(source.0);
        }
    }

    fn time(&self) -> u64 {
        hart::time()
    }

    fn host(&self) -> TheHost<'_> {
        TheHost::new(&Physical { zero_block: None })
    }

    fn window_changed(&self, server: ServerNumber) -> u64 {
        let vm = system().and_then(|system| system.vms.get(server.0));
        vm.map_or(0, Vm::end_unmapping)
    }

    fn uses_older(&self, server: ServerNumber, generation: u64) -> bool {
        let Some(system) = system() else {
            return false;
        };
        let vm = system.vms.get(server.0);
        vm.is_some_and(|vm| generations::uses_older(system, vm, generation))
    }
}
