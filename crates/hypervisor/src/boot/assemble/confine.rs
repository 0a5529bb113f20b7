//! IOMMUs between given devices and memory.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::boot::error::AssembleError;
use crate::console::say;
use crate::devices::iommu::board::{BoardPort, Confinement};
use crate::devices::iommu::{Iommu, IommuError};
use crate::hart::interrupt_file::guest_files;
use crate::memory::address::PAGE_SIZE;
use crate::memory::frames::{FrameOwner, Frames};
use crate::memory::guest::HostMemory;
use crate::memory::physical::Physical;
use crate::vm::Vm;
use board::Board;

/// Pages of an IOMMU: queues and the root of its directory.
const OWN_PAGES: usize = 3;
/// Pages of the directory for a range of ids: two tables at either end, and three that hold nothing but the VM's context.
const PAGES_OF_RANGE: usize = 7;
/// Time after which an IOMMU has not answered: a second.
const PATIENCE: u64 = 1;

type BoardIommu = Iommu<BoardPort>;

/// Takes the IOMMUs over that the VMs' devices are behind. Each translates by the VM's own table, under a number that is the VM's alone. Nothing passes
/// before a VM's memory is loaded.
///
/// # Errors
/// [`AssembleError::Iommu`]
pub(super) fn devices(
    vms: &mut [Vm],
    board: &Board,
    frames: &mut Frames,
) -> Result<Vec<Arc<BoardIommu>>, AssembleError> {
    let mut bases: Vec<u64> = Vec::new();
    for behind in vms.iter().flat_map(|vm| &vm.settings.given.behind) {
        if !bases.contains(&behind.iommu.start) {
            bases.push(behind.iommu.start);
        }
    }
    let mut all = Vec::with_capacity(bases.len());
    for base in bases {
        let iommu = take_over(base, vms, board, frames)
            .map_err(|error| AssembleError::Iommu { base, error })?;
        all.push((base, Arc::new(iommu)));
    }
    let has_files = has_files_for_all(vms, board);
    for vm in vms {
        let behind = &vm.settings.given.behind;
        let own = all
            .iter()
            .filter(|(base, _)| behind.iter().any(|behind| behind.iommu.start == *base));
        let own: Vec<Arc<BoardIommu>> = own.map(|(_, iommu)| Arc::clone(iommu)).collect();
        if !own.is_empty() {
            vm.confinement = Some(Confinement::new(own, number(vm)));
            vm.settings.given.sends_messages = has_files;
            say!(
                "{}: an IOMMU confines its devices to its memory",
                vm.settings.name
            );
        }
    }
    Ok(all.into_iter().map(|(_, iommu)| iommu).collect())
}

/// Tests whether every vCPU has a guest interrupt file on each hart. A device's message is a store to the page of the vCPU's file; where the vCPU has
/// none, the page leads nowhere, and the message would be lost.
fn has_files_for_all(vms: &[Vm], board: &Board) -> bool {
    let vcpus: usize = vms.iter().map(|vm| vm.vcpus.len()).sum();
    board.controller.imsic().is_some() && vcpus <= usize::from(guest_files())
}

/// Number of the VM at IOMMUs. VMs are never made anew, so that none has another one's.
const fn number(vm: &Vm) -> u16 {
    vm.id.get() + 1
}

fn take_over(
    base: u64,
    vms: &[Vm],
    board: &Board,
    frames: &mut Frames,
) -> Result<BoardIommu, IommuError> {
    let behind = || {
        let all = vms.iter().flat_map(|vm| {
            let behind = vm.settings.given.behind.iter();
            behind.map(move |behind| (vm, behind))
        });
        all.filter(|(_, behind)| behind.iommu.start == base)
    };
    let mut spare = Vec::new();
    for _ in 0..OWN_PAGES + PAGES_OF_RANGE * behind().count() {
        let page = frames.give(FrameOwner::Hypervisor, PAGE_SIZE, PAGE_SIZE);
        let page = page.ok_or(IommuError::Memory)?;
        Physical::default().zero(page);
        spare.push(page);
    }
    let highest = behind().map(|(_, behind)| *behind.ids.end()).max();
    let patience = PATIENCE * u64::from(board.timebase_hertz);
    // SAFETY: the device tree names an IOMMU there, and the pages were just given for it.
    let port = unsafe { BoardPort::new(base, spare, patience) };
    let iommu = Iommu::begin(port, highest.unwrap_or(0))?;
    for (vm, behind) in behind() {
        iommu.confine(number(vm), vm.untagged_table(), behind.ids.clone())?;
    }
    for vm in vms {
        // A device that the firmware has left at work reaches nothing.
        if !iommu.admit(number(vm), false) {
            return Err(IommuError::NoAnswer("its command queue (cqh)"));
        }
    }
    iommu.open()?;
    Ok(iommu)
}
