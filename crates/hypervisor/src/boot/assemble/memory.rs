//! A VM's RAM, and the table by which its guest reaches memory and devices.

use abi::keys;
use abi::serve::{WINDOW_BYTES, ring};
use abi::system::{Placement, VmDescription};

use crate::devices::serve::place::Places;
use crate::devices::virtio::backend::mediated::BackendConfig;
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, PAGE_SIZE};
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::gstage::{GStage, MapError, Mode, Permissions, TableMemory};
use crate::memory::guest::BadPieces;
use crate::memory::owned::OwnedRegion;
use crate::memory::physical::Physical;
use crate::memory::tables::PhysicalTables;
use crate::vm::hardware::{self, AssignedDevice, ServedMemory, UnplacedDevice, UnplacedServing};
use board::{Board, GivenDevices, guest_tree};

/// Span of one [`GStage::cut`].
const GIBIBYTE: u64 = 1 << 30;

/// Base of a guest's RAM under placements `resident` and `paged`: base of RAM on most boards, above all that a VM has besides.
pub(super) const RESIDENT_RAM: GuestPhysical = GuestPhysical::new(guest_tree::RESIDENT_BASE);

/// Base of a guest's RAM for the guest, and on the host if the RAM lies there in one piece.
pub(super) struct Ram {
    pub(super) guest: GuestRegion,
    pub(super) host: Option<OwnedRegion>,
    /// Set if memory in one piece is zeroed and mapped where it is touched.
    pub(super) on_touch: bool,
}

/// RAM of the VM, with its place in the host's memory if the VM has a fixed one.
pub(super) fn ram(
    vm: &VmDescription<'_>,
    host: Option<OwnedRegion>,
    on_touch: bool,
) -> Result<Ram, BadPieces> {
    let base = match (vm.get(keys::PLACEMENT), host) {
        // The guest's addresses are the host's.
        (Placement::Real, Some(host)) => GuestPhysical::new(host.base().raw()),
        _ => RESIDENT_RAM,
    };
    let guest = GuestRegion::new(base, vm.memory).ok_or(BadPieces::OutOfReach(base))?;
    if guest.is_empty() {
        return Err(BadPieces::Empty);
    }
    if host.is_none() && !guest.size().is_multiple_of(PAGE_SIZE) {
        return Err(BadPieces::NotPages(base));
    }
    Ok(Ram {
        guest,
        host,
        on_touch,
    })
}

/// The VM's memory and devices, in the largest leaves that fit; the pages of its interrupt files are mapped when they
/// have one.
pub(super) fn table(
    board: &Board,
    mode: Mode,
    ram: &Ram,
    (devices, given): (&[AssignedDevice], &GivenDevices<'_>),
    (unplaced, serving): (&[UnplacedDevice], Option<&UnplacedServing>),
    vcpus: u32,
    mut frames: (&mut Frames, FrameOwner),
) -> Result<GStage, MapError> {
    // SAFETY: the tables are made here.
    let mut tables = unsafe { PhysicalTables::growing(&mut frames, Physical::default()) };
    let mut stage = GStage::new(mode, &mut tables)?;
    match ram.host {
        Some(_) if ram.on_touch => stage.reserve(&mut tables, ram.guest)?,
        Some(host) => stage.map(&mut tables, ram.guest, host.base(), Permissions::MEMORY)?,
        // Demand-paged memory is released by gibibytes, so nothing else may be there.
        None => {
            let end = ram
                .guest
                .end()
                .align_up(GIBIBYTE)
                .ok_or(MapError::OutOfReach)?;
            let beside = devices
                .iter()
                .map(|assigned| assigned.device.base)
                .chain(given.pages.iter().map(|pages| pages.start))
                .map(GuestPhysical::new);
            let within = |at: &GuestPhysical| ram.guest.base() <= *at && *at < end;
            if let Some(at) = beside.into_iter().find(within) {
                return Err(MapError::Mapped(at));
            }
            stage.cut(&mut tables, ram.guest)?;
        }
    }
    for AssignedDevice { device, mediation } in devices {
        let (size, place, permissions) = match mediation {
            None => (
                device.size,
                HostPhysical::new(device.base),
                Permissions::DEVICE,
            ),
            Some(BackendConfig {
                page: Some(page), ..
            }) => (PAGE_SIZE, page.base(), Permissions::READ_ONLY),
            Some(_) => continue,
        };
        let region =
            GuestRegion::new(GuestPhysical::new(device.base), size).ok_or(MapError::OutOfReach)?;
        stage.map(&mut tables, region, place, permissions)?;
    }
    for pages in &given.pages {
        let at = GuestPhysical::new(pages.start);
        let region = GuestRegion::new(at, pages.size).ok_or(MapError::OutOfReach)?;
        let place = HostPhysical::new(pages.start);
        stage.map(&mut tables, region, place, Permissions::DEVICE)?;
    }
    for (number, device) in (0..).zip(unplaced) {
        let region =
            hardware::emulated_device_base(number).and_then(|at| GuestRegion::new(at, PAGE_SIZE));
        let region = region.ok_or(MapError::OutOfReach)?;
        stage.map(
            &mut tables,
            region,
            device.page.base(),
            Permissions::READ_ONLY,
        )?;
    }
    if let Some(serving) = serving {
        map_window(&mut stage, &mut tables, &serving.disks)?;
    }
    // The tables down to the interrupt files' pages are made now, so that changing an entry later never needs memory.
    if let Some(imsic) = board.controller.imsic() {
        for vcpu in 0..vcpus {
            let page = hardware::imsic_file(vcpu);
            stage.set_page(
                &mut tables,
                page,
                Some(HostPhysical::new(imsic.start())),
                Permissions::DEVICE,
            )?;
            stage.set_page(&mut tables, page, None, Permissions::DEVICE)?;
        }
    }
    Ok(stage)
}

/// The rings of the disks that a VM serves, of which its guest writes the page of answers alone, and the tables of the window.
fn map_window(
    stage: &mut GStage,
    tables: &mut dyn TableMemory,
    disks: &[ServedMemory],
) -> Result<(), MapError> {
    let places = Places::of(disks.len());
    let at =
        |base: GuestPhysical, offset: u64| base.checked_add(offset).ok_or(MapError::OutOfReach);
    for (number, disk) in (0..).zip(disks) {
        let rings = at(places.rings.base(), number * ring::RING_BYTES)?;
        let answers = at(rings, ring::READ_ONLY_BYTES)?;
        let parts = [
            (rings, ring::READ_ONLY_BYTES, 0, Permissions::READ_ONLY),
            (
                answers,
                PAGE_SIZE,
                ring::READ_ONLY_BYTES,
                Permissions::DEVICE,
            ),
        ];
        for (guest, size, offset, permissions) in parts {
            let region = GuestRegion::new(guest, size).ok_or(MapError::OutOfReach)?;
            stage.map(tables, region, disk.ring.skip(offset).base(), permissions)?;
        }
        let window = at(places.window.base(), number * WINDOW_BYTES)?;
        // A table is a page, and maps 512 of them.
        for table in 0..disk.tables.size() / PAGE_SIZE {
            let guest = at(window, table * (PAGE_SIZE << 9))?;
            stage.attach(tables, guest, disk.tables.skip(table * PAGE_SIZE).base())?;
        }
    }
    Ok(())
}
