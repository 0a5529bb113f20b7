//! Reclaim of a guest's pages: access of `memory::reclaim` to harts, vCPUs and devices.

use crate::devices::trapped_devices::TrappedDevices;
use crate::memory::address::{GuestPhysical, HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::reclaim::{Port, Step};
use crate::system::devices::VmContext;
use crate::system::generations;
use crate::system::{self, Hypervisor};
use crate::vm::Vm;

/// Context of a VM's pages, with its devices locked.
struct ReclaimPort<'a> {
    system: &'a Hypervisor,
    vm: &'a Vm,
    trapped: &'a TrappedDevices,
}

/// Continues the reclaim of the guest's pages, for a bounded time, in the time of one of its vCPUs.
pub fn step(system: &Hypervisor, vm: &Vm, trapped: &TrappedDevices) -> Step {
    let port = ReclaimPort {
        system,
        vm,
        trapped,
    };
    vm.begin_unmapping();
    vm.reclaim.lock().step(&port)
}

impl Port for ReclaimPort<'_> {
    fn frame(&self, page: GuestPhysical) -> Option<HostPhysical> {
        self.vm.memory.pages().frame(page)
    }

    fn in_use(&self, tell: &mut dyn FnMut(HostRegion)) {
        let context = VmContext::new(self.system, self.vm);
        self.trapped.for_each_in_flight(&context, tell);
        for vcpu in self.system.vcpus_of(self.vm.id) {
            let word = *vcpu.word.lock();
            for place in word.into_iter().flat_map(|word| vcpu.words(word)) {
                HostRegion::new(place, 1).into_iter().for_each(&mut *tell);
            }
        }
    }

    fn unmap(&self, page: GuestPhysical) -> bool {
        self.vm.memory.pages().unmap(page)
    }

    fn advance(&self) -> u64 {
        self.vm.end_unmapping()
    }

    fn is_used(&self, generation: u64) -> bool {
        generations::uses_older(self.system, self.vm, generation)
    }

    fn forget(&self, frames: &[HostPhysical]) {
        // The operator's hart may be writing to a page that it had translated before.
        drop(self.vm.reported_allocation.lock());
        // A vCPU may have begun to wait for a word after the check above: no hart changes the word there any more.
        for vcpu in self.system.vcpus_of(self.vm.id) {
            let mut word = vcpu.word.lock();
            let goes = |place: HostPhysical| frames.contains(&place.align_down(PAGE_SIZE));
            if word.is_some_and(|word| vcpu.words(word).any(goes)) {
                *word = None;
                drop(word);
                system::wake(self.system, vcpu.id);
            }
        }
    }

    fn free(&self, frame: HostPhysical) {
        self.vm.memory.pages().free(frame);
    }
}
