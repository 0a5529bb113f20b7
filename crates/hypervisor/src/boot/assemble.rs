//! Assembly of the system that the image describes, on the present board.

mod confine;
mod given;
mod machine;
mod memory;

use alloc::boxed::Box;
use alloc::vec::Vec;

use abi::cpio::Archive;
use abi::keys;
use abi::system::{FILE_NAME, Migration, Placement, RunQueue, SystemDescription, VmDescription};
use scheduler::groups::{Group, Layout};
use scheduler::{Config, HartId, HartSet, VcpuNumber, VmId};

use self::machine::{placement, shadow_tables, virtual_machine};
use crate::boot::error::AssembleError;
use crate::boot::shared::Shared;
use crate::boot::{handover, parameters, speed, vectors};
use crate::console;
use crate::console::say;
use crate::hart;
use crate::hart::context::VectorContext;
use crate::heap::{self, HEAP};
use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::frames::pool::PagePool;
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::physical::Physical;
use crate::memory::placement;
use crate::memory::zeroed;
use crate::operator;
use crate::system::costs::Costs;
use crate::system::groups::Groups;
use crate::system::harts::{Hart, MAX_HARTS};
use crate::system::policy;
use crate::system::{self, Hypervisor};
use crate::vm::Vm;
use crate::vm::accounts::Accounts;
use crate::vm::lazy_registers::Vector;
use crate::vm::vcpu::Vcpu;
use board::{Board, Range, Tree};

// The limits of the description are those of the scheduler.
const _: () = assert!(
    abi::system::MAX_VMS <= scheduler::MAX_VMS
        && abi::system::MAX_VCPUS <= scheduler::MAX_NUMBERS
        && abi::system::MAX_HARTS as usize <= scheduler::MAX_HARTS
        && MAX_HARTS <= scheduler::MAX_HARTS
);

/// Stack of a hart other than the first.
const STACK_BYTES: u64 = 64 << 10;

/// Most bytes of the heap for a device that is emulated or mediated: mainly a slice's pieces of a chain, or the chains that are in flight on
/// mediated queues.
const DEVICE_HEAP: usize = 16 << 10;

/// Builds and installs the system.
///
/// # Errors
/// [`AssembleError`], naming the VM, file or part of the board concerned.
pub fn system(
    board: Board,
    board_tree: &'static Tree<'static>,
    started: u64,
) -> Result<&'static Hypervisor, AssembleError> {
    let image = image(&board)?;
    let archive = Archive::new(image);
    let tree = archive
        .find(FILE_NAME)
        .map_err(AssembleError::Archive)?
        .ok_or(AssembleError::NoFile(FILE_NAME))?;
    let description = SystemDescription::parse(tree).map_err(AssembleError::Description)?;
    // The image lives as long as the hypervisor, so that names and command lines can be borrowed from it.
    let description: &'static SystemDescription<'static> = Box::leak(Box::new(description));
    check_methods(description)?;
    console::open(
        board.uart.as_ref(),
        description.vms.iter().map(|vm| vm.name),
        description.console_focus,
    );

    let mut given = given::devices(board_tree, description)?.into_iter();
    // SAFETY: the board's memory is RAM, and the hypervisor's image and all else that is in use is reserved.
    let mut frames = unsafe { Frames::new(regions(&board.memory), reserved(&board)) };
    let vlenb = vectors::length(&board);
    grow_heap(&board, description, vlenb, &mut frames)?;
    let owners = owners(description);
    let in_one_piece = |vm: &VmDescription<'_>| vm.get(keys::PLACEMENT) != Placement::Paged;
    let wanted: Vec<(FrameOwner, u64)> = owners
        .iter()
        .filter(|(_, vm)| in_one_piece(vm))
        .map(|(owner, vm)| (*owner, vm.memory))
        .collect();
    let places = placement::place(&mut frames, &wanted).map_err(AssembleError::Memory)?;
    let mut places = places.into_iter();

    let harts = harts(&board, &mut frames, owners.len())?;
    let scheduler = scheduler(&board, description, &harts)?;
    let mut shared = Shared::start(description, &board, &mut frames)?;
    let mut vms = Vec::new();
    let mut vcpus = Vec::new();
    for vm in &description.vms {
        let place = in_one_piece(vm).then(|| places.next()).flatten();
        let built = virtual_machine(
            (description, vm),
            (place, given.next().unwrap_or_default()),
            &archive,
            (&board, vlenb),
            (&mut frames, &mut shared),
            &scheduler,
            vcpus.len(),
        )?;
        for number in 0..vm.vcpus as u16 {
            if let Some(id) = VcpuNumber::new(vcpus.len() as u16) {
                let shadow = shadow_tables(vm, built.id, &mut frames)?;
                vcpus.push(Vcpu::new(
                    (id, built.id, number),
                    (shadow, built.settings.vectors.map(Vector::of_length)),
                    built.settings.devices.len() + built.settings.given.sources.len(),
                ));
            }
        }
        vms.push(built);
    }
    let iommus = confine::devices(&mut vms, &board, &mut frames)?;
    let tables_and_stacks = tables_and_stacks(&owners, &wanted, &frames);
    let pages = pool(description, frames)?;
    say!(
        "{}, {} with {}; {} KiB of memory used, {} MiB free",
        Counted(harts.len(), "hart"),
        Counted(vms.len(), "VM"),
        Counted(vcpus.len(), "vCPU"),
        image_bytes()
            .saturating_add(tables_and_stacks)
            .div_ceil(1 << 10),
        pages.free_bytes() >> 20
    );
    let mut system = Hypervisor::new(
        (board, pages),
        harts,
        vms,
        (vcpus, shared.disks, shared.switches),
        scheduler,
        description.get(keys::WHEN_IDLE),
        started,
    );
    system.iommus = iommus;
    system.note_spin(description.get(keys::SPIN));
    let system = system.with_costs(Costs::of(&description.settings));
    let system = system.with_translations(
        description.get(keys::TLB_PURGE),
        description.get(keys::PURGE),
        description.get(keys::REMOTE_FENCES),
    );
    Ok(system::install(system))
}

/// Bytes of memory that have been given, besides the guests' RAM.
fn tables_and_stacks(
    owners: &[(FrameOwner, &VmDescription<'static>)],
    wanted: &[(FrameOwner, u64)],
    frames: &Frames,
) -> u64 {
    let guests: u64 = wanted.iter().map(|(_, size)| size).sum();
    let owners = owners.iter().map(|(owner, _)| *owner);
    let owners = owners.chain([FrameOwner::Hypervisor]);
    let given: u64 = owners.map(|owner| frames.bytes_of(owner)).sum();
    given.saturating_sub(guests)
}

/// The VMs as owners of frames. The scheduler numbers them in the order in which they are added.
fn owners<'a>(
    description: &'a SystemDescription<'static>,
) -> Vec<(FrameOwner, &'a VmDescription<'static>)> {
    let owners = (0..).map_while(VmId::new).map(FrameOwner::Vm);
    owners.zip(&description.vms).collect()
}

/// Reserves pages for the demand-paged guests.
fn pool(description: &SystemDescription<'_>, frames: Frames) -> Result<PagePool, AssembleError> {
    let vms = (0..).map_while(VmId::new).zip(&description.vms);
    let on_touch = vms.filter(|(_, vm)| vm.get(keys::PLACEMENT) == Placement::Paged);
    let reserved = on_touch.map(|(id, vm)| (id, placement::reservation(vm.memory)));
    let reserved: Vec<(VmId, u64)> = reserved.collect();
    PagePool::of_frames(frames, &reserved, &Physical::default())
        .map_err(|error| AssembleError::Memory(error.into()))
}

/// Gives the heap more memory for a large system.
fn grow_heap(
    board: &Board,
    description: &SystemDescription<'_>,
    vlenb: Option<usize>,
    frames: &mut Frames,
) -> Result<(), AssembleError> {
    let harts = board.harts.len().min(MAX_HARTS);
    let vms = description.vms.len();
    let vcpus: usize = description.vms.iter().map(|vm| vm.vcpus as usize).sum();
    // A hart's accounts are there twice: as they stand, and as they were published.
    let of_harts = harts * (size_of::<Hart>() + 2 * Accounts::bytes(vms) + size_of::<Group>());
    // The memory of a VM or a vCPU besides its entry is less than the entry.
    let of_vms = 2 * (vms * size_of::<Vm>() + vcpus * size_of::<Vcpu>());
    let devices = |vm: &VmDescription<'_>| {
        let shared = vm.slices.len() + vm.ports.len() + usize::from(vm.get(keys::BALLOON));
        shared + vm.mediated.len()
    };
    let all_devices = description.vms.iter().map(devices).sum::<usize>();
    // A served disk has its state, and its VM's device.
    let of_devices = DEVICE_HEAP * (all_devices + description.served.len());
    let of_vectors = vcpus * vlenb.map_or(0, VectorContext::bytes);
    let memory = description.vms.iter().map(|vm| zeroed::bytes(vm.memory));
    let wanted = of_harts + of_vms + of_devices + of_vectors + memory.sum::<usize>();
    if wanted <= heap::BYTES / 2 {
        return Ok(());
    }
    let piece = frames.give(FrameOwner::Hypervisor, wanted as u64, PAGE_SIZE);
    let piece = piece.ok_or(AssembleError::Heap)?;
    // SAFETY: the piece is the hypervisor's own from now on, is never given back, and this is called once.
    unsafe { HEAP.grow(piece.base().raw() as *mut u8, piece.size() as usize) };
    Ok(())
}

/// Bytes of memory that the hypervisor's image takes: code, data, heap and the boot hart's stack.
fn image_bytes() -> u64 {
    let (start, end) = hart::entry::image();
    end - start
}

/// Refuses methods that this build does not have.
fn check_methods(description: &SystemDescription<'_>) -> Result<(), AssembleError> {
    if cfg!(feature = "papers") {
        return Ok(());
    }
    say!("{}", abi::operator::WITHOUT_PAPERS);
    if let Some(method) = description.settings.papers_method() {
        return Err(AssembleError::Papers(method));
    }
    for vm in &description.vms {
        if let Some(method) = vm.settings.papers_method() {
            return Err(AssembleError::VmPapers {
                vm: vm.name,
                method,
            });
        }
    }
    Ok(())
}

fn image(board: &Board) -> Result<&'static [u8], AssembleError> {
    let initrd = board.initrd.ok_or(AssembleError::NoImage)?;
    let inside = board
        .memory
        .iter()
        .any(|range| range.start <= initrd.start && initrd.end() <= range.end());
    if !inside {
        return Err(AssembleError::ImageOutside);
    }
    // SAFETY: the range is RAM, and is kept from the frame allocator for good, so nothing ever writes to it.
    Ok(unsafe { core::slice::from_raw_parts(initrd.start as *const u8, initrd.size as usize) })
}

fn regions(ranges: &[Range]) -> impl Iterator<Item = HostRegion> {
    ranges
        .iter()
        .filter_map(|range| HostRegion::new(HostPhysical::new(range.start), range.size))
}

/// Memory that must not be given away: the firmware's, its device tree, the system image, the hypervisor itself, and
/// all memory below it (where the firmware lies, whether or not the device tree says so), unless the firmware gave its own list.
fn reserved(board: &Board) -> Vec<HostRegion> {
    let (own_start, own_end) = hart::entry::image();
    let base = board
        .memory
        .iter()
        .filter(|range| range.start <= own_start && own_end <= range.end());
    let listed = handover::is_complete();
    let below = base.filter_map(|range| {
        let start = if listed { own_start } else { range.start };
        HostRegion::between(HostPhysical::new(start), HostPhysical::new(own_end))
    });
    regions(&board.reserved).chain(below).collect()
}

fn harts(board: &Board, frames: &mut Frames, vms: usize) -> Result<Vec<Hart>, AssembleError> {
    let mut harts = Vec::new();
    for (index, hart) in board.harts.iter().take(MAX_HARTS).enumerate() {
        let Some(id) = HartId::new(index as u16) else {
            break;
        };
        let Some(delivery) = board.controller.delivery(hart) else {
            continue;
        };
        let stack = frames
            .give(FrameOwner::Hypervisor, STACK_BYTES, STACK_BYTES)
            .ok_or(AssembleError::Stacks)?;
        harts.push(Hart::new(
            id,
            hart,
            delivery,
            stack.region().end().raw(),
            vms,
        ));
    }
    Ok(harts)
}

fn scheduler(
    board: &Board,
    description: &SystemDescription<'_>,
    harts: &[Hart],
) -> Result<Groups, AssembleError> {
    let frequency = u64::from(board.timebase_hertz);
    let mut config = Config::new(frequency);
    let slice = description
        .get(keys::TIME_SLICE)
        .unwrap_or_else(|| speed::usual_slice_us(frequency));
    parameters::set(&mut config, slice, &description.settings);
    config.spin = policy::spin_policy(description.get(keys::SPIN));
    config.wait = operator::wait_policy(description.get(keys::WAIT));
    config.migration = match description.get(keys::MIGRATION) {
        Migration::AsNeeded => scheduler::Migration::AsNeeded,
        Migration::Always => scheduler::Migration::Always,
    };
    config.placement = placement(description.get(keys::SCHEDULING));
    let online: HartSet = harts.iter().map(|hart| hart.index).collect();
    let vcpus = description.vms.iter().map(|vm| vm.vcpus as usize).sum();
    let layout = match description.get(keys::RUN_QUEUE) {
        RunQueue::Global => Layout::single(online, vcpus),
        RunQueue::PerHart => Layout::sharded(online, vcpus),
    };
    layout
        .and_then(|layout| Groups::new(config, &layout))
        .map_err(AssembleError::Scheduler)
}

/// Number of things, in words for an operator.
struct Counted(usize, &'static str);

impl core::fmt::Display for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self(number, thing) = self;
        let end = if *number == 1 { "" } else { "s" };
        write!(f, "{number} {thing}{end}")
    }
}
