//! Puts a guest's kernel, initial RAM disk and device tree into its memory.

use alloc::vec::Vec;

use crate::board::BoardDevice;
use crate::hart::counters::hart_counters::{self, MODES_AND_OVERFLOW};
use crate::hart::csr::{self, number};
use crate::hart::{self, fence};
use crate::memory::address::{GuestPhysical, GuestRegion};
use crate::run::harts;
use crate::run::system::Hypervisor;
use crate::vm::Vm;
use crate::vm::guest_tree::{self, GuestDescription, GuestTreeError, VirtioDevice, isa};
use crate::vm::image::{ImageError, KernelImage, Layout, LayoutError};

/// Where a loaded guest begins.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    pub entry: GuestPhysical,
    pub tree: GuestPhysical,
}

/// Why a guest cannot be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("its kernel cannot be used: {0}")]
    Kernel(ImageError),
    #[error("its memory is too small: {0}")]
    Layout(LayoutError),
    #[error("its device tree cannot be made: {0}")]
    Tree(GuestTreeError),
    #[error("a part of it does not lie in its memory")]
    Outside,
}

/// The Status register of virtio-mmio (virtio 1.2, 4.2.2); writing 0 resets the device.
const VIRTIO_STATUS: u64 = 0x70;

/// Resets a virtio device, which also ends its accesses to memory.
pub fn reset_device(device: BoardDevice) {
    // SAFETY: the board's device tree names this slot as virtio-mmio, whose Status register is a word at 0x70.
    unsafe { ((device.base + VIRTIO_STATUS) as *mut u32).write_volatile(0) };
}

/// Loads `vm`. None of its vCPUs runs.
///
/// # Errors
/// [`LoadError`], where a part cannot be used or does not fit.
pub fn load(system: &Hypervisor, vm: &Vm) -> Result<Start, LoadError> {
    let kernel = vm.settings.kernel;
    let image = KernelImage::parse(kernel).map_err(LoadError::Kernel)?;
    let initrd = vm.settings.initrd.map(|data| data.len() as u64);
    // The tree tells where the initrd lies, and the layout depends on the tree's size, which the place does not change.
    let place = |tree: u64| Layout::plan(vm.memory, image, initrd, tree).map_err(LoadError::Layout);
    let draft = tree(system, vm, place(guest_tree_estimate())?.initrd)?;
    let layout = place(draft.len() as u64)?;
    let tree = tree(system, vm, layout.initrd)?;
    put(vm, layout.kernel, kernel)?;
    if let (Some(region), Some(data)) = (layout.initrd, vm.settings.initrd) {
        put(vm, region, data)?;
    }
    put(vm, layout.device_tree, &tree)?;
    fence::instructions();
    Ok(Start {
        entry: layout.kernel.base(),
        tree: layout.device_tree.base(),
    })
}

/// A size that no guest's tree reaches, for a first layout.
const fn guest_tree_estimate() -> u64 {
    64 << 10
}

fn put(vm: &Vm, region: GuestRegion, data: &[u8]) -> Result<(), LoadError> {
    let bytes = vm
        .bytes(region.base(), data.len() as u64)
        .ok_or(LoadError::Outside)?;
    bytes.copy_from(data);
    Ok(())
}

fn tree(system: &Hypervisor, vm: &Vm, initrd: Option<GuestRegion>) -> Result<Vec<u8>, LoadError> {
    let board = &harts::current().board;
    let tells_overflows = system.counters.counters() != 0 && hart_counters::interrupt_guests();
    let names = board.extensions.names();
    let names = names.filter(|name| *name != MODES_AND_OVERFLOW || tells_overflows);
    let extensions = isa::offered(names, csr::read::<{ number::HENVCFG }>());
    let registers =
        |device: &BoardDevice| GuestRegion::new(GuestPhysical::new(device.base), device.size);
    let virtio: Vec<_> = vm
        .settings
        .devices
        .iter()
        .filter_map(|device| {
            Some(VirtioDevice {
                registers: registers(device)?,
                source: device.source,
            })
        })
        .collect();
    guest_tree::build(&GuestDescription {
        name: vm.settings.name.as_str(),
        memory: vm.memory,
        vcpus: vm.vcpus.len() as u32,
        timebase_frequency: system.board.timebase_hertz,
        isa_base: "rv64i",
        isa_extensions: &extensions,
        cache_block_size: board.cache_block_size,
        zero_block_size: board.zero_block_size,
        mmu_type: &board.mmu_type,
        initrd,
        bootargs: vm.settings.bootargs,
        virtio: &virtio,
        aplic_sources: system.board.aplic.sources,
        rng_seed: Some(&seed(vm)),
    })
    .map_err(LoadError::Tree)
}

/// A start for the guest's random-number generator: the clocks at this moment, stirred. It adds to what the guest
/// gathers itself, and is no secret from the hypervisor.
fn seed(vm: &Vm) -> [u8; 32] {
    let mut state = hart::time() ^ hart::cycles().rotate_left(32) ^ u64::from(vm.id.get()) << 56;
    let mut bytes = [0; 32];
    for chunk in bytes.as_chunks_mut::<8>().0 {
        // splitmix64
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ state >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        *chunk = (mixed ^ mixed >> 31).to_le_bytes();
    }
    bytes
}
