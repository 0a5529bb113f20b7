//! Builds the system that the image describes on the board that there is.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::cpio::Archive;
use abi::system::{
    Allocation, FILE_NAME, Migration, Placement, Queue, SHADOW_BYTES, Scheduling,
    SystemDescription, VmDescription, VmTranslation,
};
use scheduler::groups::{Group, Layout};
use scheduler::{Config, HartId, HartSet, VcpuNumber, VmConfig, VmId};

use crate::board::{Board, Range};
use crate::boot::error::AssembleError;
use crate::boot::shared::Shared;
use crate::boot::{handover, parameters, speed};
use crate::console;
use crate::console::say;
use crate::devices::clock::{self, Clock};
use crate::devices::simulated::{self, Means};
use crate::devices::wires::SourceNumber;
use crate::hart;
use crate::heap::{self, HEAP};
use crate::lock::Mutex;
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::gstage::{GStage, MapError, Mode, Permissions};
use crate::memory::guest::{BadPieces, GuestMemory};
use crate::memory::physical::Physical;
use crate::memory::placement;
use crate::memory::shadow::ShadowTables;
use crate::memory::tables::PhysicalTables;
use crate::memory::touched::{SharedTable, TouchedPages};
use crate::operator;
use crate::system::due;
use crate::system::groups::Groups;
use crate::system::harts::{Hart, MAX_HARTS};
use crate::system::pages::PagesOf;
use crate::system::policy;
use crate::system::{self, Hypervisor, slots};
use crate::vm::accounts::Accounts;
use crate::vm::hardware::{self, Given, SharingDevice};
use crate::vm::vcpu::Vcpu;
use crate::vm::{Settings, Vm};

// What the description may ask for and what the scheduler is built for are the same.
const _: () = assert!(
    abi::system::MAX_VMS <= scheduler::MAX_VMS
        && abi::system::MAX_VCPUS <= scheduler::MAX_NUMBERS
        && abi::system::MAX_HARTS as usize <= scheduler::MAX_HARTS
        && MAX_HARTS <= scheduler::MAX_HARTS
);

/// What [`GStage::cut`] forgets at once.
const GIBIBYTE: u64 = 1 << 30;

/// Where a guest's RAM begins under placements `resident` and `paged`: where RAM begins on most boards, above all that a VM has besides.
const RESIDENT_RAM: GuestPhysical = GuestPhysical::new(0x8000_0000);

/// Stack of a hart other than the first.
const STACK_BYTES: u64 = 64 << 10;

/// Bytes of the heap that a device has by which VMs share something, at most: a slice's pieces of a chain are the most of it.
const SHARING_HEAP: usize = 12 << 10;

/// Builds and installs the system.
///
/// # Errors
/// [`AssembleError`], naming the VM, file or part of the board concerned.
pub fn system(board: Board, started: u64) -> Result<&'static Hypervisor, AssembleError> {
    let image = image(&board)?;
    let archive = Archive::new(image);
    let tree = archive
        .find(FILE_NAME)
        .map_err(AssembleError::Archive)?
        .ok_or(AssembleError::NoFile(FILE_NAME))?;
    let description = SystemDescription::parse(tree).map_err(AssembleError::Description)?;
    // It lives as long as the hypervisor, so that names and command lines can be borrowed from the image.
    let description: &'static SystemDescription<'static> = Box::leak(Box::new(description));
    console::open(
        board.uart.base,
        description.vms.iter().map(|vm| vm.name),
        description.console_focus,
    );

    let mut frames = Frames::new(regions(&board.memory), reserved(&board));
    grow_heap(&board, description, &mut frames)?;
    // The scheduler numbers VMs in the order in which they are added.
    let owners: Vec<(FrameOwner, &VmDescription<'_>)> = (0..)
        .map_while(VmId::new)
        .map(FrameOwner::Vm)
        .zip(&description.vms)
        .collect();
    let in_one_piece = |vm: &VmDescription<'_>| vm.placement != Placement::Paged;
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
            (vm, vm.scheduling.unwrap_or(description.scheduling)),
            place,
            &archive,
            &board,
            (&mut frames, &mut shared),
            &scheduler,
            vcpus.len(),
        )?;
        for number in 0..vm.vcpus as u16 {
            if let Some(id) = VcpuNumber::new(vcpus.len() as u16) {
                let shadow = shadow_tables(vm, built.id, &mut frames)?;
                vcpus.push(Vcpu::new(id, built.id, number, shadow));
            }
        }
        vms.push(built);
    }
    let on_touch = owners.iter().filter(|(_, vm)| !in_one_piece(vm));
    let on_touch: Vec<u64> = on_touch.map(|(_, vm)| vm.memory).collect();
    placement::keep_pages(&frames, &on_touch).map_err(AssembleError::Memory)?;
    let guests: u64 = wanted.iter().map(|(_, size)| size).sum();
    let owners = owners.iter().map(|(owner, _)| *owner);
    let tables_and_stacks = owners
        .chain([FrameOwner::Hypervisor])
        .map(|owner| frames.bytes_of(owner))
        .sum::<u64>()
        .saturating_sub(guests);
    say!(
        "{}, {} with {}; {} KiB of memory used, {} MiB free",
        Counted(harts.len(), "hart"),
        Counted(vms.len(), "VM"),
        Counted(vcpus.len(), "vCPU"),
        image_bytes()
            .saturating_add(tables_and_stacks)
            .div_ceil(1 << 10),
        frames.free_bytes() >> 20
    );
    let system = Hypervisor::new(
        (board, frames),
        harts,
        vms,
        (vcpus, shared.disks, shared.switches),
        scheduler,
        description.when_idle,
        started,
    );
    system.note_spin(description.spin);
    let costs = description.parameters.costs.into();
    let system = system.with_costs(costs);
    let system = system.with_translations(
        description.translations,
        description.purge,
        description.remote_fences,
    );
    Ok(system::install(system))
}

/// Gives the heap more memory for a large system.
fn grow_heap(
    board: &Board,
    description: &SystemDescription<'_>,
    frames: &mut Frames,
) -> Result<(), AssembleError> {
    let harts = board.harts.len().min(MAX_HARTS);
    let vms = description.vms.len();
    let vcpus: usize = description.vms.iter().map(|vm| vm.vcpus as usize).sum();
    let of_harts = harts * (size_of::<Hart>() + Accounts::bytes(vms) + size_of::<Group>());
    // What a VM or a vCPU has beside its entry is less than that again.
    let of_vms = 2 * (vms * size_of::<Vm>() + vcpus * size_of::<Vcpu>());
    let sharing =
        |vm: &VmDescription<'_>| vm.slices.len() + vm.ports.len() + usize::from(vm.balloon);
    let of_shared = SHARING_HEAP * description.vms.iter().map(sharing).sum::<usize>();
    let wanted = of_harts + of_vms + of_shared;
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

/// Everything that must not be given away: what the firmware keeps, its device tree, the system image, the hypervisor itself, and
/// all below it (where the firmware lies, whether or not the device tree says so), unless the firmware gave its own list.
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
        let stack = frames
            .give(FrameOwner::Hypervisor, STACK_BYTES, STACK_BYTES)
            .ok_or(AssembleError::Stacks)?;
        harts.push(Hart::new(id, hart, board, stack.end().raw(), vms));
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
        .time_slice_us
        .unwrap_or_else(|| speed::usual_slice_us(frequency));
    parameters::set(&mut config, slice, &description.parameters);
    config.spin = policy::spin_policy(description.spin);
    config.wait = operator::wait_policy(description.wait);
    config.migration = match description.migration {
        Migration::AsNeeded => scheduler::Migration::AsNeeded,
        Migration::Always => scheduler::Migration::Always,
    };
    config.placement = placement(description.scheduling);
    let online: HartSet = harts.iter().map(|hart| hart.index).collect();
    let vcpus = description.vms.iter().map(|vm| vm.vcpus as usize).sum();
    let layout = match description.queue {
        Queue::Single => Layout::single(online, vcpus),
        Queue::Sharded => Layout::sharded(online, vcpus),
    };
    layout
        .and_then(|layout| Groups::new(config, &layout))
        .map_err(AssembleError::Scheduler)
}

/// What the scheduler calls it.
const fn placement(scheduling: Scheduling) -> scheduler::Placement {
    match scheduling {
        Scheduling::Floating => scheduler::Placement::Floating,
        Scheduling::Fixed => scheduler::Placement::Fixed,
    }
}

/// The frames for the shadow tables of one of the VM's vCPUs, if it has such.
fn shadow_tables(
    vm: &VmDescription<'_>,
    id: VmId,
    frames: &mut Frames,
) -> Result<Option<ShadowTables>, AssembleError> {
    match vm.translation {
        VmTranslation::TwoStage => Ok(None),
        VmTranslation::Shadow => {
            let region = frames.give(FrameOwner::Vm(id), SHADOW_BYTES, PAGE_SIZE);
            let region = region.ok_or(AssembleError::Shadow { vm: vm.name })?;
            Ok(Some(ShadowTables::new(region)))
        }
    }
}

fn virtual_machine(
    (vm, scheduling): (&VmDescription<'static>, Scheduling),
    place: Option<HostRegion>,
    archive: &Archive<'static>,
    board: &Board,
    (frames, shared): (&mut Frames, &mut Shared),
    scheduler: &Groups,
    first_vcpu: usize,
) -> Result<Vm, AssembleError> {
    let name = vm.name;
    let part = |file: &'static str| {
        let found = archive.find(file).map_err(AssembleError::Archive)?;
        found.ok_or(AssembleError::NoPart { vm: name, file })
    };
    let mut chosen = Vec::new();
    for slot in &vm.devices {
        let slot = slot.0;
        let device = board.virtio.get(usize::from(slot)).copied();
        let device = device.ok_or(AssembleError::NoSlot { vm: name, slot })?;
        let simulated = vm.simulated.iter().any(|other| other.0 == slot);
        let reaches_memory = match vm.placement {
            Placement::Real => true,
            Placement::Resident => slots::takes_platform_addresses(device),
            // Its pages lie anywhere, and are there only once they were touched.
            Placement::Paged => false,
        };
        if !simulated && !reaches_memory {
            return Err(AssembleError::DirectDevice { vm: name, slot });
        }
        let fast = vm.fast.iter().any(|other| other.0 == slot);
        chosen.push((device, simulated.then_some(fast)));
    }
    let (allocation, dedicated) = allocation(vm, board)?;
    let config = VmConfig {
        vcpus: vm.vcpus as u16,
        allocation,
    };
    let id = scheduler
        .add_vm(config, placement(scheduling))
        .map_err(|error| AssembleError::Vm { vm: name, error })?;
    let mut devices = Vec::new();
    for (device, fast) in chosen {
        let simulation = match fast {
            Some(fast) => {
                let region = frames.give(FrameOwner::Vm(id), simulated::BYTES, simulated::AREA);
                let region = region.ok_or(AssembleError::Areas { vm: name })?;
                let page = fast && board.has_page_of_its_own(device);
                Some(simulated::Means {
                    registers: HostPhysical::new(device.base),
                    size: device.size,
                    source: SourceNumber(device.source),
                    areas: region.base(),
                    fast,
                    page: page
                        .then(|| region.base().checked_add(simulated::QUEUE_BYTES))
                        .flatten(),
                    patience: due::patience(device.source, board.timebase_hertz.into()),
                })
            }
            None => None,
        };
        devices.push(Given { device, simulation });
    }
    let at = ram(vm, place).map_err(|error| AssembleError::Pieces { vm: name, error })?;
    let vcpus = first_vcpu..first_vcpu + vm.vcpus as usize;
    let mode = board
        .translation
        .mode_for(at.guest.end().raw())
        .map_err(AssembleError::Confinement)?;
    let made = shared.devices_of((id, vm), frames)?;
    let table = table(
        board,
        mode,
        &at,
        (&devices, &made),
        vcpus.len() as u32,
        (frames, FrameOwner::Vm(id)),
    )
    .map_err(|error| AssembleError::Table { vm: name, error })?;
    let table: SharedTable = Arc::new(Mutex::new(table));
    let memory = match at.host {
        Some(host) => GuestMemory::in_one_piece(at.guest, host)
            .map_err(|error| AssembleError::Pieces { vm: name, error })?,
        None => {
            let pages = TouchedPages::new(at.guest, Arc::clone(&table), PagesOf(id));
            GuestMemory::of_pages(at.guest, Box::new(pages))
        }
    };
    let clock = board.clock.map(|base| {
        let now = clock::nanoseconds(hart::time(), board.timebase_hertz);
        Clock::new(clock::of_board(base), now)
    });
    let hardware = hardware::build(board.aplic.sources, vm.vcpus, &devices, clock, made)
        .map_err(|error| AssembleError::Bus { vm: name, error })?;
    let settings = Settings {
        name,
        kernel: part(vm.kernel)?,
        initrd: vm.initrd.map(part).transpose()?,
        bootargs: vm.bootargs,
        devices,
        made: hardware.made,
        bus: hardware.bus,
        autostart: vm.autostart,
        on_failure: vm.on_failure,
        dedicated,
        hidden: vm.hidden,
        translation: vm.translation,
        pause_loops: vm.pause_loops,
    };
    let chips = hardware.chips;
    Ok(Vm::new(id, settings, vcpus, memory, table, chips, board))
}

/// Where a guest sees its RAM, and where that lies, if it lies in one piece.
struct Ram {
    guest: GuestRegion,
    host: Option<HostPhysical>,
}

/// The VM's RAM, which has got this place in the host's, if it is to have one.
fn ram(vm: &VmDescription<'_>, place: Option<HostRegion>) -> Result<Ram, BadPieces> {
    let host = place.map(|place| place.base());
    let base = match (vm.placement, host) {
        // The guest's addresses are the host's.
        (Placement::Real, Some(host)) => GuestPhysical::new(host.raw()),
        _ => RESIDENT_RAM,
    };
    let guest = GuestRegion::new(base, vm.memory).ok_or(BadPieces::OutOfReach(base))?;
    if guest.is_empty() {
        return Err(BadPieces::Empty);
    }
    if host.is_none() && !guest.size().is_multiple_of(PAGE_SIZE) {
        return Err(BadPieces::NotPages(base));
    }
    Ok(Ram { guest, host })
}

fn allocation(
    vm: &VmDescription<'_>,
    board: &Board,
) -> Result<(scheduler::Allocation, Option<u32>), AssembleError> {
    match vm.allocation {
        Allocation::Shared { share } => Ok((scheduler::Allocation::Shared { share }, None)),
        Allocation::Dedicated { harts } => {
            let set = board
                .harts_of(harts)
                .map_err(|hart| AssembleError::NoHart {
                    vm: vm.name,
                    hart: hart.0,
                })?;
            Ok((
                scheduler::Allocation::Dedicated { harts: set },
                Some(set.count()),
            ))
        }
    }
}

/// The VM's memory and devices, in the largest leaves that fit; the pages of its interrupt files are mapped when they
/// have one.
fn table(
    board: &Board,
    mode: Mode,
    ram: &Ram,
    (devices, made): (&[Given], &[SharingDevice]),
    vcpus: u32,
    (frames, owner): (&mut Frames, FrameOwner),
) -> Result<GStage, MapError> {
    let mut tables = PhysicalTables::growing(frames, owner, Physical::default());
    let mut stage = GStage::new(mode, &mut tables)?;
    match ram.host {
        Some(host) => stage.map(&mut tables, ram.guest, host, Permissions::MEMORY)?,
        // What comes there later goes by gibibytes, so nothing else may be there.
        None => {
            let end = ram
                .guest
                .end()
                .align_up(GIBIBYTE)
                .ok_or(MapError::OutOfReach)?;
            let beside = devices
                .iter()
                .map(|given| GuestPhysical::new(given.device.base));
            let within = |at: &GuestPhysical| ram.guest.base() <= *at && *at < end;
            if let Some(at) = beside.into_iter().find(within) {
                return Err(MapError::Mapped(at));
            }
            stage.cut(&mut tables, ram.guest)?;
        }
    }
    for Given { device, simulation } in devices {
        let (size, place, permissions) = match simulation {
            None => (
                device.size,
                HostPhysical::new(device.base),
                Permissions::DEVICE,
            ),
            Some(Means {
                page: Some(page), ..
            }) => (PAGE_SIZE, *page, Permissions::READ_ONLY),
            Some(_) => continue,
        };
        let region =
            GuestRegion::new(GuestPhysical::new(device.base), size).ok_or(MapError::OutOfReach)?;
        stage.map(&mut tables, region, place, permissions)?;
    }
    for (number, device) in (0..).zip(made) {
        let region = hardware::made_at(number).and_then(|at| GuestRegion::new(at, PAGE_SIZE));
        let region = region.ok_or(MapError::OutOfReach)?;
        stage.map(&mut tables, region, device.page, Permissions::READ_ONLY)?;
    }
    // The tables down to the interrupt files' pages are made now, so that changing an entry later never needs memory.
    for vcpu in 0..vcpus {
        let page = crate::vm::guest_tree::imsic_file(vcpu);
        stage.set_page(
            &mut tables,
            page,
            Some(HostPhysical::new(board.imsic.base)),
            Permissions::DEVICE,
        )?;
        stage.set_page(&mut tables, page, None, Permissions::DEVICE)?;
    }
    Ok(stage)
}

/// A number of things, in words for people.
struct Counted(usize, &'static str);

impl core::fmt::Display for Counted {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let Self(number, thing) = self;
        let end = if *number == 1 { "" } else { "s" };
        write!(f, "{number} {thing}{end}")
    }
}
