//! Pages of demand-paged guests.

use core::sync::atomic::Ordering;

use abi::monitor::VmState;
use scheduler::VmId;

use crate::memory::address::{HostRegion, PAGE_SIZE};
use crate::memory::gstage::TableMemory;
use crate::memory::guest::HostMemory;
use crate::memory::owned::OwnedRegion;
use crate::memory::reclaim::Reclaim;
use crate::memory::tables::{FrameSource, PhysicalTables};
use crate::memory::touched::PageStore;
use crate::memory::zeroed::ZeroStore;
use crate::system::devices::VmContext;
use crate::system::harts;
use crate::system::{Hypervisor, system};
use crate::vm::Vm;

/// Frames of one VM's guest.
#[derive(Clone, Copy, Debug)]
pub struct PagesOf(pub VmId);

impl FrameSource for PagesOf {
    fn give(&mut self, size: u64) -> Option<OwnedRegion> {
        let pages = (size == PAGE_SIZE).then(system).flatten();
        pages?.pages.lock().give(self.0)
    }
}

impl ZeroStore for PagesOf {
    fn with_tables<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T {
        // SAFETY: as for `PageStore`.
        with(&mut unsafe { PhysicalTables::standing() })
    }

    fn zero(&self, part: OwnedRegion) {
        harts::current().memory().zero(part);
    }
}

impl PageStore for PagesOf {
    fn with_tables<T>(&self, with: impl FnOnce(&dyn TableMemory) -> T) -> T {
        // SAFETY: a VM's table, which was made when the system was assembled and has grown in `change`.
        with(&unsafe { PhysicalTables::standing() })
    }

    fn with_tables_mut<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T {
        // No guest's memory is touched before the system is installed.
        if system().is_none() {
            // SAFETY: as for `with_tables`.
            return with(&mut unsafe { PhysicalTables::standing() });
        }
        let memory = harts::current().memory();
        let mut frames = *self;
        // SAFETY: as for `with_tables`.
        with(&mut unsafe { PhysicalTables::growing(&mut frames, memory) })
    }

    fn give_back(&self) {
        if let Some(system) = system() {
            system.pages.lock().take_back_all(self.0);
        }
    }

    fn free(&self, frame: HostRegion) {
        if let Some(system) = system() {
            // The frame is the owner's: its page was in the table.
            let _ = system.pages.lock().take_back(self.0, frame);
        }
    }

    #[inline]
    fn bytes(&self) -> u64 {
        system().map_or(0, |system| system.pages.lock().bytes_of(self.0))
    }
}

/// Releases the pages of the former run of a VM that is about to be loaded, by a vCPU of its own, after its devices were reset.
pub fn release_former_run(vm: &Vm) {
    if vm.memory.is_demand_paged() {
        // A hart that serves its devices accesses its memory under this lock.
        let _devices = vm.trapped_devices.lock();
        give_all_back(vm, &mut vm.reclaim.lock());
    }
}

/// Gives all pages of the guest back, including those in `reclaim`.
fn give_all_back(vm: &Vm, reclaim: &mut Reclaim) {
    reclaim.clear();
    vm.memory.give_back();
}

/// Releases the pages of a VM that has stopped for good, unless it was started again meanwhile.
pub fn end(system: &Hypervisor, vm: &Vm) {
    if vm.memory.is_demand_paged() {
        let mut trapped = vm.trapped_devices.lock();
        let mut reclaim = vm.reclaim.lock();
        // The VM cannot be started while this lock is held.
        let life = vm.life_cycle.lock();
        if life.state() != VmState::Stopped {
            vm.reclaim_pending.store(false, Ordering::Relaxed);
            return;
        }
        let quiet = trapped.are_quiescent(&VmContext::new(system, vm));
        if quiet {
            give_all_back(vm, &mut reclaim);
        }
        vm.reclaim_pending.store(!quiet, Ordering::Relaxed);
    }
}

/// Gives the pages back if that was pending: a shared device was still at work for the VM when it stopped, and may not be any more.
#[inline]
pub fn end_if_pending(system: &Hypervisor, vm: &Vm) {
    if vm.reclaim_pending.load(Ordering::Relaxed) {
        end(system, vm);
    }
}
