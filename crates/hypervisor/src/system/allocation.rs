//! Changes of a VM's allocation while it runs, and how its guest learns of them (paper 000 §3.1).
//!
//! The guest learns of a change in three ways: by the flag *f* in its communication area, by the code that a call returns,
//! and by an interrupt. A guest that knows none of them, such as stock Linux, gains by hstatus.VTW: if each of its vCPUs has
//! a hart to itself, its waits and spins do not trap.

use abi::monitor::Event;
use scheduler::{Allocation, ConfigError};

use crate::system::harts;
use crate::system::sources;
use crate::system::{self, Hypervisor};
use crate::vm::Vm;
use crate::vm::vcpu::request;

/// Changes the allocation of `vm`, and reports it to the guest.
///
/// # Errors
/// The harts are not available; nothing has changed then.
pub fn change(system: &Hypervisor, vm: &Vm, to: Allocation) -> Result<(), ConfigError> {
    {
        // Held throughout, so that two changes are reported in their order.
        let mut reported = vm.reported_allocation.lock();
        system.set_allocation(vm.id, to)?;
        let dedicated = match to {
            Allocation::Shared { .. } => 0,
            Allocation::Dedicated { harts } => harts.count(),
        };
        reported.change(dedicated, (&vm.memory, &harts::current().memory()));
    }
    sources::reassign(system);
    for vcpu in system.vcpus_of(vm.id) {
        harts::current()
            .accounts
            .of(vm.id)
            .count(Event::AllocationNotified);
        if let Some(hart) = vcpu.post_request(request::NOTIFICATION) {
            system.hart(hart).kick();
        }
        system::wake(system, vcpu.id);
    }
    Ok(())
}
