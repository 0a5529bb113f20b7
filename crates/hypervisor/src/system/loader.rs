//! Puts a guest's kernel, initial RAM disk and device tree into its memory, piece by piece: the VM's first vCPU does it in
//! its VM's own time, and other work of the hart comes between any two pieces.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use abi::system::VmTranslation;

use crate::hart::capabilities::Capability;
use crate::hart::common;
use crate::hart::counters::hart_counters::{self, MODES_AND_OVERFLOW};
use crate::hart::fence;
use crate::interrupts;
use crate::memory::address::{GuestRegion, HostPhysical};
use crate::memory::physical::Physical;
use crate::system::Hypervisor;
use crate::system::devices;
use crate::system::features;
use crate::system::harts;
use crate::system::interrupt_port::InterruptPort;
use crate::system::pages;
use crate::system::slots;
use crate::vm::Vm;
use crate::vm::hardware::{self, AssignedDevice};
use crate::vm::image::{KernelImage, Layout};
use crate::vm::lifecycle::life::Run;
use crate::vm::loading::plan::{Lengths, Piece, Plan, Source};
use crate::vm::loading::{LoadError, Progress, Stage, Start, Tree};
use crate::vm::seed;
use board::guest_tree::{self, EmulatedBridge, GuestDescription, GuestTree, VirtioDevice};
use board::{Range, isa};

/// Bytes that are filled between two checks for other work of the hart: some ten thousand instructions.
const PIECE: u64 = 32 << 10;
/// Size of a piece where CBO.ZERO takes a whole block at a time.
const PIECE_OF_BLOCKS: u64 = 256 << 10;
/// Registers of the interrupt files.
const SSAIA: &str = "ssaia";

fn piece_of(source: Source) -> u64 {
    let by_blocks = source == Source::Zeros && harts::current().has(Capability::ZeroBlocks);
    if by_blocks { PIECE_OF_BLOCKS } else { PIECE }
}

/// Makes the guest's device tree, which needs the heap: when the system is assembled, by a hart that guests run on. A guest whose tree cannot be made
/// fails when it is started.
pub fn prepare(system: &Hypervisor, vm: &Vm) {
    let mut loading = vm.loading.lock();
    let has_seed = loading.seeds.is_some();
    loading.tree = Some(tree_and_layout(system, vm, has_seed));
}

fn tree_and_layout(system: &Hypervisor, vm: &Vm, has_seed: bool) -> Result<Tree, LoadError> {
    // The tree tells where the initrd lies, and the layout depends on the tree's size, which the place does not change.
    let estimate = place(vm, guest_tree_estimate())?;
    let draft = tree(system, vm, estimate.initrd, has_seed)?;
    let layout = place(vm, draft.bytes.len() as u64)?;
    drop(draft);
    let GuestTree { bytes, seed_at } = tree(system, vm, layout.initrd, has_seed)?;
    Ok(Tree {
        bytes: bytes.into_boxed_slice(),
        seed_at,
        layout,
    })
}

/// Continues loading `vm` for its run `run`, for a bounded time. None of its vCPUs runs a guest.
///
/// # Errors
/// [`LoadError`], if a part cannot be used or does not fit.
pub fn step(system: &Hypervisor, vm: &Vm, run: Run) -> Result<Progress, LoadError> {
    let mut guard = vm.loading.lock();
    let loading = &mut *guard;
    if loading.run != run {
        loading.run = run;
        loading.stage = Stage::Reset;
    }
    match &mut loading.stage {
        Stage::Reset => {
            if reset(system, vm) {
                loading.keeps_memory = vm.keeps_memory.swap(false, Ordering::Relaxed);
                loading.stage = match loading.keeps_memory {
                    true => Stage::Seed,
                    false => Stage::Forget(0),
                };
            }
        }
        Stage::Forget(from) => match vm.memory.pages().forget(*from) {
            Some(next) => *from = next,
            None => loading.stage = Stage::Seed,
        },
        Stage::Seed => {
            let tree = match &mut loading.tree {
                Some(Ok(tree)) => tree,
                Some(Err(error)) => return Err(error.clone()),
                None => return Err(LoadError::Outside),
            };
            if let Some(seeds) = &mut loading.seeds {
                tree.set_seed(&seeds.draw());
            }
            let lengths = Lengths {
                kernel: vm.settings.kernel.len() as u64,
                initrd: vm.settings.initrd.map_or(0, |data| data.len() as u64),
                device_tree: tree.bytes.len() as u64,
            };
            // What is mapped on touch is zeroed then.
            let zeros = !loading.keeps_memory && !vm.memory.is_mapped_on_touch();
            loading.stage = Stage::Fill {
                plan: Plan::new(vm.memory.region(), &tree.layout, lengths, zeros),
                start: Start {
                    entry: tree.layout.kernel.base(),
                    tree: tree.layout.device_tree.base(),
                },
            };
        }
        Stage::Fill { plan, start } => match plan.next(piece_of) {
            Some(piece) => fill(
                vm,
                piece,
                loading.tree.as_ref().and_then(|tree| tree.as_ref().ok()),
            )?,
            None => {
                let start = *start;
                fence::instructions();
                vm.restart_time();
                vm.admit_devices(true);
                loading.stage = Stage::Reset;
                return Ok(Progress::Done(start));
            }
        },
    }
    Ok(Progress::More)
}

/// Resets the VM to the state after power-on, except its memory. Returns false while a shared device is still at work for the VM:
/// its memory must not be touched then.
fn reset(system: &Hypervisor, vm: &Vm) -> bool {
    let direct = vm.settings.devices.iter();
    let direct = direct.filter(|assigned| !assigned.is_mediated());
    let mut is_quiescent = devices::reset(system, vm);
    for device in direct {
        is_quiescent &= slots::reset_device(device.device);
    }
    if !is_quiescent {
        return false;
    }
    for vcpu in system.vcpus_of(vm.id) {
        interrupts::reset(&InterruptPort::current(system), vcpu.id);
        let _ = vcpu.take_requests();
        let _ = vcpu.take_software_interrupt();
    }
    // The request to serve them has gone with the others.
    vm.device_work.clear();
    pages::release_former_run(vm);
    true
}

/// Layout of the parts, with a device tree of `tree` bytes.
fn place(vm: &Vm, tree: u64) -> Result<Layout, LoadError> {
    let image = KernelImage::parse(vm.settings.kernel).map_err(LoadError::Kernel)?;
    let initrd = vm.settings.initrd.map(|data| data.len() as u64);
    Layout::plan(vm.memory.region(), image, initrd, tree).map_err(LoadError::Layout)
}

/// Size that no guest's tree reaches, for a first layout.
const fn guest_tree_estimate() -> u64 {
    64 << 10
}

fn fill(vm: &Vm, piece: Piece, tree: Option<&Tree>) -> Result<(), LoadError> {
    // The next pieces lie there, too.
    vm.memory.pages().zero_part(piece.to);
    let memory = vm.memory.bytes(piece.to, piece.length);
    let bytes = memory.ok_or(LoadError::Outside)?;
    let file = match piece.source {
        Source::Zeros => {
            bytes.zero(&harts::current().memory());
            return Ok(());
        }
        Source::Kernel => vm.settings.kernel,
        Source::Initrd => vm.settings.initrd.unwrap_or(&[]),
        Source::DeviceTree => match tree {
            Some(tree) => tree.bytes.as_ref(),
            None => &[],
        },
    };
    let from = usize::try_from(piece.offset).map_err(|_| LoadError::Outside)?;
    let data = file.get(from..).ok_or(LoadError::Outside)?;
    bytes.copy_from(data, &Physical::default());
    Ok(())
}

fn range(region: GuestRegion) -> Range {
    Range {
        start: region.base().raw(),
        size: region.size(),
    }
}

fn tree(
    system: &Hypervisor,
    vm: &Vm,
    initrd: Option<GuestRegion>,
    has_seed: bool,
) -> Result<GuestTree, LoadError> {
    let board = &harts::current().board;
    // A vCPU on shadow tables takes no interrupts of counters (`run::shadow`).
    let tells_overflows = system.counters.counters() != 0
        && hart_counters::interrupt_guests()
        && vm.settings.translation == VmTranslation::TwoStage;
    let names = board.extensions.names();
    let names = names.filter(|name| *name != MODES_AND_OVERFLOW || tells_overflows);
    let names = names.filter(|name| !vm.settings.hidden.contains(name));
    let names = names.filter(|name| vm.settings.vectors.is_some() || !isa::needs_vectors(name));
    let names = names.filter(|name| common::has_interrupt_files() || *name != SSAIA);
    let names = names.filter(|name| *name != isa::COUNTERS || system.counters.counters() != 0);
    let offer = features::offer(system, vm);
    let mut extensions = isa::offered(names, offer.environment);
    // Without hardware updates at reset, a guest that knows no way to switch them on must do with page faults.
    let switches = board.extensions.has(isa::SVADU) && !offer.always_updates;
    if switches && !extensions.contains(&isa::SVADE) {
        extensions.push(isa::SVADE);
    }
    let virtio: Vec<_> = vm
        .settings
        .devices
        .iter()
        .map(|AssignedDevice { device, .. }| VirtioDevice {
            registers: Range {
                start: device.base,
                size: device.size,
            },
            source: device.source,
        })
        .chain(vm.settings.emulated.iter().map(|emulated| VirtioDevice {
            registers: range(emulated.registers),
            source: emulated.source,
        }))
        .collect();
    guest_tree::build(&GuestDescription {
        name: vm.settings.name.as_str(),
        memory: range(vm.memory.region()),
        vcpus: vm.vcpus.len() as u32,
        timebase_frequency: system.board.timebase_hertz,
        isa_base: "rv64i",
        isa_extensions: &extensions,
        cache_block_size: board.cache_block_size,
        zero_block_size: board.zero_block_size,
        mmu_type: &board.mmu_type,
        memory_for_devices: vm.memory.place_for_devices().map(HostPhysical::raw),
        initrd: initrd.map(range),
        bootargs: vm.settings.bootargs,
        virtio: &virtio,
        bridge: vm.settings.serving.map(|serving| EmulatedBridge {
            window: range(serving.places.behind_bridge()),
            configuration: range(serving.places.configuration),
            source: serving.source,
        }),
        given: Some(&vm.settings.given),
        has_files: common::has_interrupt_files(),
        sources: system.board.controller.sources(),
        clock: hardware::has_clock(&vm.settings.bus),
        // The seed itself is written when the guest is started.
        rng_seed: has_seed.then_some(&[0; seed::LENGTH]),
    })
    .map_err(LoadError::Tree)
}
