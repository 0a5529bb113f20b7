//! Assembly of one VM by its description.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;

use abi::cpio::Archive;
use abi::keys;
use abi::system::{
    Allocation, Confined, Placement, SHADOW_BYTES, Scheduling, SystemDescription, VmDescription,
    VmName, VmTranslation,
};
use scheduler::{VmConfig, VmId};

use super::memory::{Ram, ram, table};
use crate::boot::error::AssembleError;
use crate::boot::shared::Shared;
use crate::boot::vectors;
use crate::devices::clock::{self, Clock};
use crate::devices::irq::SourceNumber;
use crate::devices::virtio::backend::mediated;
use crate::hart;
use crate::lock::Mutex;
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::gstage::offer::{HartRegister, Offer};
use crate::memory::guest::{BadPieces, GuestMemory, Piece};
use crate::memory::owned::OwnedRegion;
use crate::memory::shadow::ShadowTables;
use crate::memory::touched::{SharedTable, TouchedPages};
use crate::memory::zeroed::ZeroedOnTouch;
use crate::system::groups::Groups;
use crate::system::harts;
use crate::system::pages::PagesOf;
use crate::system::poll_schedule;
use crate::system::slots;
use crate::vm::hardware::{self, AssignedDevice};
use crate::vm::{Settings, Vm};
use board::Board;
use board::{BoardDevice, GivenDevices};

pub(super) fn virtual_machine(
    (description, vm): (&SystemDescription<'static>, &VmDescription<'static>),
    (place, given): (Option<OwnedRegion>, GivenDevices<'static>),
    archive: &Archive<'static>,
    (board, vlenb): (&Board, Option<usize>),
    (frames, shared): (&mut Frames, &mut Shared),
    scheduler: &Groups,
    first_vcpu: usize,
) -> Result<Vm, AssembleError> {
    let name = vm.name;
    let part = |file: &'static str| {
        let found = archive.find(file).map_err(AssembleError::Archive)?;
        found.ok_or(AssembleError::NoPart { vm: name, file })
    };
    let chosen = chosen_devices(vm, &given.slots, board)?;
    let (allocation, dedicated) = allocation(vm, board)?;
    let config = VmConfig {
        vcpus: vm.vcpus as u16,
        allocation,
    };
    let scheduling = description.get_for(vm, keys::SCHEDULING);
    let id = scheduler
        .add_vm(config, placement(scheduling))
        .map_err(|error| AssembleError::Vm { vm: name, error })?;
    let mut devices = Vec::with_capacity(chosen.len());
    for chosen in chosen {
        devices.push(assign(chosen, (id, name), board, frames)?);
    }
    // A device that reaches the memory by itself does not fault.
    let on_touch = given.pages.is_empty() && devices.iter().all(AssignedDevice::is_mediated);
    let at = ram(vm, place, on_touch).map_err(|error| AssembleError::Pieces { vm: name, error })?;
    let vcpus = first_vcpu..first_vcpu + vm.vcpus as usize;
    let mode = Offer::find(&mut HartRegister)
        .mode_for(at.guest.end().raw())
        .map_err(AssembleError::Confinement)?;
    let unplaced = shared.devices_of((id, vm), frames)?;
    let serving = shared.serving_device(id);
    let table = table(
        board,
        mode,
        &at,
        (&devices, &given),
        (&unplaced, serving.as_ref()),
        vcpus.len() as u32,
        (frames, FrameOwner::Vm(id)),
    )
    .map_err(|error| AssembleError::Table { vm: name, error })?;
    let table: SharedTable = Arc::new(Mutex::new(table));
    let memory = match at.host {
        Some(host) => in_one_piece(&at, host, &table, id)
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
    let controller = hardware::controller(&board.controller, vm.vcpus);
    let sources = board.controller.sources();
    let hardware = hardware::build(
        controller,
        sources,
        vm.vcpus,
        (&devices, &given),
        clock,
        (unplaced, serving),
    )
    .map_err(|error| AssembleError::Bus { vm: name, error })?;
    let mut hidden = vm.hidden;
    if hardware.serving.is_some() {
        // The window is memory, which others reach through their caches, and the guest would map it as registers by page-based memory types.
        hidden.insert("svpbmt");
    }
    let settings = Settings {
        name,
        kernel: part(vm.kernel)?,
        initrd: vm.initrd.map(part).transpose()?,
        bootargs: vm.bootargs,
        devices,
        given,
        emulated: hardware.emulated,
        serving: hardware.serving,
        bus: hardware.bus,
        autostart: vm.get(keys::AUTOSTART),
        on_failure: vm.get(keys::ON_FAILURE),
        fault_limit: vm.get(keys::FAULT_LIMIT),
        has_balloon: vm.get(keys::BALLOON),
        dedicated,
        hidden,
        vectors: vectors::of_vm(vm, vlenb)?,
        translation: vm.get(keys::TRANSLATION),
        pause_loops: description.pause_loops(vm),
    };
    let trapped = hardware.trapped;
    Ok(Vm::new(id, settings, vcpus, memory, table, trapped, board))
}

/// Memory at `host`, which is zeroed when it is touched or before the VM starts.
fn in_one_piece(
    ram: &Ram,
    host: OwnedRegion,
    table: &SharedTable,
    vm: VmId,
) -> Result<GuestMemory, BadPieces> {
    if !ram.on_touch {
        return GuestMemory::in_one_piece(ram.guest, host);
    }
    let guest = ram.guest;
    let piece = Piece { guest, host };
    let pages = ZeroedOnTouch::new(piece, Arc::clone(table), PagesOf(vm));
    let pages = pages.ok_or(BadPieces::NotPages(guest.base()))?;
    Ok(GuestMemory::of_pages(guest, Box::new(pages)))
}

/// Device of the board that a VM's description names.
struct Chosen {
    device: BoardDevice,
    mediated: bool,
    /// Set for the fast method (paper 001, §4.2.2), which only mediated devices have.
    fast: bool,
    /// Set if the VM's memory lies in pages.
    in_pages: bool,
}

/// Devices that the description names, checked against the board and the VM's placement.
fn chosen_devices(
    vm: &VmDescription<'static>,
    given: &[u8],
    board: &Board,
) -> Result<Vec<Chosen>, AssembleError> {
    let mut all = Vec::new();
    for slot in vm
        .devices
        .iter()
        .map(|slot| slot.0)
        .chain(given.iter().copied())
    {
        let device = board.virtio.get(usize::from(slot)).copied();
        let device = device.ok_or(AssembleError::NoSlot { vm: vm.name, slot })?;
        let mediated = vm.mediated.iter().any(|other| other.0 == slot);
        let reaches_memory = match vm.get(keys::PLACEMENT) {
            Placement::Real => true,
            Placement::Resident => slots::takes_platform_addresses(device),
            // Its pages lie anywhere, and exist only after their first touch.
            Placement::Paged => false,
        };
        if !mediated && vm.get(keys::CONFINED) == Confined::Required {
            return Err(AssembleError::Unconfined { vm: vm.name, slot });
        }
        if !mediated && !reaches_memory {
            return Err(AssembleError::DirectDevice { vm: vm.name, slot });
        }
        let fast = vm.fast.iter().any(|other| other.0 == slot);
        all.push(Chosen {
            device,
            mediated,
            fast,
            in_pages: vm.get(keys::PLACEMENT) == Placement::Paged,
        });
    }
    Ok(all)
}

/// Assigns a device to the VM; a mediated device gets memory for its queues.
fn assign(
    chosen: Chosen,
    (id, name): (VmId, VmName),
    board: &Board,
    frames: &mut Frames,
) -> Result<AssignedDevice, AssembleError> {
    let Chosen {
        device,
        mediated,
        fast,
        in_pages,
    } = chosen;
    if !mediated {
        return Ok(AssignedDevice {
            device,
            mediation: None,
        });
    }
    let areas = frames.give(FrameOwner::Vm(id), mediated::BYTES, mediated::AREA);
    let areas = areas.ok_or(AssembleError::Areas { vm: name })?;
    let has_page = fast && board.has_page_of_its_own(device);
    let page = has_page.then(|| areas.part(mediated::QUEUE_BYTES, PAGE_SIZE));
    let mediation = mediated::BackendConfig {
        registers: HostPhysical::new(device.base),
        source: SourceNumber(device.source),
        areas,
        fast,
        page: page.flatten(),
        in_pages,
        patience: poll_schedule::patience(device.source, board.timebase_hertz.into()),
    };
    Ok(AssignedDevice {
        device,
        mediation: Some(mediation),
    })
}

fn allocation(
    vm: &VmDescription<'_>,
    board: &Board,
) -> Result<(scheduler::Allocation, Option<u32>), AssembleError> {
    match vm.allocation {
        Allocation::Shared { share } => Ok((scheduler::Allocation::Shared { share }, None)),
        Allocation::Dedicated { harts } => {
            let set = harts::of_board(board, harts).map_err(|hart| AssembleError::NoHart {
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

/// Scheduler's word for the placement of a VM.
pub(super) const fn placement(scheduling: Scheduling) -> scheduler::Placement {
    match scheduling {
        Scheduling::Floating => scheduler::Placement::Floating,
        Scheduling::Pinned => scheduler::Placement::Fixed,
    }
}

/// Frames for the shadow tables of one of the VM's vCPUs, if it has them.
pub(super) fn shadow_tables(
    vm: &VmDescription<'_>,
    id: VmId,
    frames: &mut Frames,
) -> Result<Option<ShadowTables>, AssembleError> {
    match vm.get(keys::TRANSLATION) {
        VmTranslation::TwoStage => Ok(None),
        VmTranslation::Shadow => {
            let region = frames.give(FrameOwner::Vm(id), SHADOW_BYTES, PAGE_SIZE);
            let region = region.ok_or(AssembleError::Shadow { vm: vm.name })?;
            Ok(Some(ShadowTables::new(region.region())))
        }
    }
}
