//! Harts that may use a VM's G-stage table as it was.

use crate::system::Hypervisor;
use crate::system::harts;
use crate::vm::Vm;

/// Tests whether another hart than this one may use a translation of `vm` older than `generation`. Each that may is kicked, so that it enters its
/// guest anew.
pub fn uses_older(system: &Hypervisor, vm: &Vm, generation: u64) -> bool {
    let own = harts::current().index;
    let others = system.harts.iter().filter(|other| other.index != own);
    let mut any = false;
    for other in others.filter(|other| other.running.may_use_older(vm.id.get(), generation)) {
        other.kick();
        any = true;
    }
    any
}
