//! Puts a guest's kernel, initial RAM disk and device tree into its memory.

use hypervisor::address::{GuestPhysical, GuestRegion};
use hypervisor::guest_tree::{self, GuestDescription, VirtioDevice, isa};

use alloc::vec::Vec;

use crate::board::BoardDevice;
use crate::hart::csr::{self, number};
use crate::hart::fence;
use crate::system::Hypervisor;
use crate::vm::Vm;

/// Where a loaded guest begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub entry: GuestPhysical,
    pub tree: GuestPhysical,
}

/// Why a guest cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("temporary: {0}")]
    Bad(&'static str),
    #[error("{0}")]
    Tree(guest_tree::GuestTreeError),
}

/// Sector size of nothing: the Status register of virtio-mmio (virtio 1.2, 4.2.2); writing 0 resets the device.
const VIRTIO_STATUS: u64 = 0x70;

/// Resets a virtio device, which also ends its accesses to memory.
pub fn reset_device(device: BoardDevice) {
    // SAFETY: the board's device tree names this slot as virtio-mmio, whose Status register is a word at 0x70.
    unsafe { ((device.base + VIRTIO_STATUS) as *mut u32).write_volatile(0) };
}

/// Loads `vm`. None of its vCPUs runs.
///
/// # Errors
/// [`LoadError`], where the image cannot be used or does not fit.
pub fn load(system: &Hypervisor, vm: &Vm) -> Result<Start, LoadError> {
    let kernel = vm.settings.kernel;
    let base = vm.memory.base().raw();
    let offset = u64::from_le_bytes(kernel[8..16].try_into().unwrap());
    let size = u64::from_le_bytes(kernel[16..24].try_into().unwrap());
    let entry = base + offset;
    put(vm, entry, kernel)?;
    let end = base + vm.memory.size();
    let tree_at = end - (2 << 20);
    let mut initrd = None;
    if let Some(data) = vm.settings.initrd {
        let at = (tree_at - data.len() as u64) & !0xfff;
        if at < entry + size { return Err(LoadError::Bad("no room")); }
        put(vm, at, data)?;
        initrd = GuestRegion::new(GuestPhysical::new(at), data.len() as u64);
    }
    let environment = csr::read::<{ number::HENVCFG }>();
    let hart = crate::harts::current();
    let extensions = isa::offered(hart.board.extensions.names(), environment);
    let virtio: Vec<_> = vm
        .settings
        .devices
        .iter()
        .filter_map(|device| {
            let registers = GuestRegion::new(GuestPhysical::new(device.base), device.size)?;
            Some(VirtioDevice { registers, source: device.source })
        })
        .collect();
    let tree = guest_tree::build(&GuestDescription {
        name: vm.settings.name.as_str(),
        memory: vm.memory,
        vcpus: vm.vcpus.len() as u32,
        timebase_frequency: system.board.timebase_hertz as u32,
        isa_base: "rv64i",
        isa_extensions: &extensions,
        cache_block_size: Some(64),
        zero_block_size: Some(64),
        mmu_type: "riscv,sv48",
        initrd,
        bootargs: vm.settings.bootargs,
        virtio: &virtio,
        aplic_sources: system.board.aplic.sources,
        rng_seed: None,
    })
    .map_err(LoadError::Tree)?;
    put(vm, tree_at, &tree)?;
    fence::instructions();
    Ok(Start { entry: GuestPhysical::new(entry), tree: GuestPhysical::new(tree_at) })
}

fn put(vm: &Vm, at: u64, data: &[u8]) -> Result<(), LoadError> {
    let bytes = vm.bytes(GuestPhysical::new(at), data.len() as u64).ok_or(LoadError::Bad("does not fit"))?;
    bytes.copy_from(data);
    Ok(())
}
