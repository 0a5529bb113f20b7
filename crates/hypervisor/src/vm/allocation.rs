//! How a VM gets its harts, changed while it runs, and how its guest is told (paper 000 §3.1).
//!
//! The guest is told in three ways: by the flag *f* in its communication area, by the code that a call returns, and by
//! an interrupt. A guest that knows none of them, such as stock Linux, gets the same by hstatus.VTW: where each of its
//! vCPUs has a hart to itself, its waits and spins do not trap.

use abi::monitor::Event;
use abi::sbi::{AllocationForm, COMMUNICATION_AREA_SIZE, communication_area};
use scheduler::{Allocation, ConfigError};

use crate::memory::address::GuestPhysical;
use crate::run::harts;
use crate::run::system::{self, Hypervisor};
use crate::vm::Vm;
use crate::vm::vcpu::request;

/// What a VM's guest is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Told {
    /// How many harts are its own, 0 where it shares.
    dedicated: u32,
    /// How often that has changed since it was started.
    changes: u32,
    /// Where its communication area is.
    area: Option<GuestPhysical>,
}

impl Told {
    /// What is told of a VM with so many harts of its own.
    #[must_use]
    pub fn new(dedicated: Option<u32>) -> Self {
        Self {
            dedicated: dedicated.unwrap_or(0),
            changes: 0,
            area: None,
        }
    }

    fn form(self) -> AllocationForm {
        match self.dedicated {
            0 => AllocationForm::Shared,
            _ => AllocationForm::Dedicated,
        }
    }

    /// As the call returns it.
    #[must_use]
    pub fn code(self) -> u64 {
        u64::from(self.dedicated) << 8 | self.form() as u64
    }

    /// The VM is started anew: it has no area, and knows of no change.
    pub fn restart(&mut self) {
        self.changes = 0;
        self.area = None;
    }
}

/// The guest's area is wanted where it cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoArea;

/// Gives the VM its area at `address`, or takes it away.
///
/// # Errors
/// It is no page of the VM's memory.
pub fn set_area(vm: &Vm, address: u64) -> Result<(), NoArea> {
    let mut told = vm.told.lock();
    told.area = match address {
        u64::MAX => None,
        address => {
            let fits = address.is_multiple_of(COMMUNICATION_AREA_SIZE);
            let area = GuestPhysical::new(address);
            if !fits || vm.bytes(area, COMMUNICATION_AREA_SIZE).is_none() {
                return Err(NoArea);
            }
            Some(area)
        }
    };
    write(vm, *told);
    Ok(())
}

fn write(vm: &Vm, told: Told) {
    let Some(bytes) = told
        .area
        .and_then(|area| vm.bytes(area, COMMUNICATION_AREA_SIZE))
    else {
        return;
    };
    for (offset, word) in [
        (communication_area::FLAG, told.form() as u32),
        (communication_area::DEDICATED_HARTS, told.dedicated),
        (communication_area::CHANGES, told.changes),
    ] {
        bytes.write_word(offset, word);
    }
}

/// Changes how `vm` gets its harts, and tells its guest.
///
/// # Errors
/// The harts cannot be had; nothing has changed then.
pub fn change(system: &Hypervisor, vm: &Vm, to: Allocation) -> Result<(), ConfigError> {
    {
        // Held throughout, so that two changes are told in the order in which they are made.
        let mut told = vm.told.lock();
        let kicks = system.scheduler.lock().set_allocation(vm.id, to)?;
        system.kick(kicks);
        told.dedicated = match to {
            Allocation::Shared { .. } => 0,
            Allocation::Dedicated { harts } => harts.count(),
        };
        told.changes = told.changes.wrapping_add(1);
        write(vm, *told);
    }
    system.reassign_sources();
    for vcpu in system.vcpus_of(vm.id) {
        harts::current().accounts.of(vm.id).count(Event::Notified);
        if let Some(hart) = vcpu.ask(request::NOTIFICATION) {
            system.hart(hart).kick();
        }
        system::wake(system, vcpu.id);
    }
    Ok(())
}
