//! IOMMUs between given devices and memory.

use alloc::boxed::Box;
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
) -> Result<Vec<&'static BoardIommu>, AssembleError> {
    let (mut vcpus, mut ranges, mut highest) = (0, 0, 0);
    for vm in &*vms {
        vcpus += vm.vcpus.len();
        for behind in &vm.settings.given.behind {
            ranges += 1;
            highest = highest.max(*behind.ids.end());
        }
    }
    // A device's message is a store to the page of the vCPU's interrupt file. Where the vCPU has none, the page leads nowhere, and the message would
    // be lost.
    let has_files = board.controller.imsic().is_some() && vcpus <= usize::from(guest_files());
    let mut all: Vec<(u64, &'static BoardIommu)> = Vec::new();
    for vm in vms {
        // VMs are never made anew, so that none has another one's number.
        let number = vm.id.get() + 1;
        for behind in &vm.settings.given.behind {
            let base = behind.iommu.start;
            let failed = |error| AssembleError::Iommu { base, error };
            let known = all.iter().find(|(other, _)| *other == base);
            let iommu = match known {
                Some((_, iommu)) => *iommu,
                None => {
                    let pages = OWN_PAGES + PAGES_OF_RANGE * ranges;
                    let port = port(base, pages, board, frames).map_err(failed)?;
                    let iommu = Iommu::begin(port, highest).map_err(failed)?;
                    // It lives as long as the hypervisor.
                    let iommu: &'static BoardIommu = Box::leak(Box::new(iommu));
                    all.push((base, iommu));
                    iommu
                }
            };
            let table = vm.untagged_table();
            let confined = iommu.confine(number, table, behind.ids.clone());
            confined.map_err(failed)?;
            // A device that the firmware has left at work reaches nothing.
            iommu.admit(number, false);
            let own = vm.confinement.get_or_insert(Confinement::new(number));
            own.add(iommu);
        }
        if vm.confinement.is_some() {
            let name = vm.settings.name;
            say!("{name}: an IOMMU confines its devices to its memory");
            vm.settings.given.sends_messages = has_files;
        }
    }
    let mut iommus = Vec::with_capacity(all.len());
    for (base, iommu) in all {
        iommu
            .open()
            .map_err(|error| AssembleError::Iommu { base, error })?;
        iommus.push(iommu);
    }
    Ok(iommus)
}

fn port(
    base: u64,
    pages: usize,
    board: &Board,
    frames: &mut Frames,
) -> Result<BoardPort, IommuError> {
    let mut spare = Vec::with_capacity(pages);
    for _ in 0..pages {
        let page = frames.give(FrameOwner::Hypervisor, PAGE_SIZE, PAGE_SIZE);
        let page = page.ok_or(IommuError::MEMORY)?;
        Physical::default().zero(page);
        spare.push(page);
    }
    let patience = PATIENCE * u64::from(board.timebase_hertz);
    // SAFETY: the device tree names an IOMMU there, and the pages were just given for it.
    Ok(unsafe { BoardPort::new(base, spare, patience) })
}
