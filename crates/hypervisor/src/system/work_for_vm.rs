//! Work of a hart for devices of one VM while it has a guest of another: timed, and charged to the VM that it is for.

use scheduler::VmId;

use crate::hart;
use crate::system::harts::Hart;
use crate::vm::accounts::{Accounts, Booking};
use crate::vm::device_work::DeviceWork;

/// Beginning of work for devices.
#[derive(Clone, Copy, Debug)]
pub struct Began {
    time: u64,
    booking: Booking,
}

/// Time that work for devices took.
#[derive(Clone, Copy, Debug)]
pub struct Took {
    ticks: u64,
    cycles: u64,
}

impl Began {
    /// Begins work on the hart of these accounts.
    #[must_use]
    pub fn now(accounts: &Accounts) -> Self {
        Self {
            time: hart::time(),
            booking: accounts.begin_booking(),
        }
    }

    /// Time since the beginning, on the hart of these accounts.
    #[must_use]
    pub fn took(self, accounts: &Accounts) -> Took {
        Took {
            ticks: hart::time().wrapping_sub(self.time),
            cycles: accounts.cycles_since(self.booking),
        }
    }
}

impl Took {
    /// One of so many equal parts.
    #[must_use]
    pub const fn part(self, parts: u64) -> Self {
        let parts = if parts == 0 { 1 } else { parts };
        Self {
            ticks: self.ticks / parts,
            cycles: self.cycles / parts,
        }
    }
}

/// Charges a VM, whose devices have this work, with time in place of the VM whose guest `hart` has.
#[inline(never)]
pub fn charge(hart: &Hart, (vm, devices): (VmId, &DeviceWork), took: Took) {
    devices.note_by_others(took.ticks);
    hart.note_for_others(took.ticks);
    hart.accounts.of(vm).book_devices(took.cycles);
}

/// Does work for a device of a VM, and charges the VM with it if `hart`, the calling hart, has a guest of another VM.
pub fn do_for(hart: &Hart, (vm, devices): (VmId, &DeviceWork), work: impl FnOnce()) {
    let began = Began::now(&hart.accounts);
    work();
    if hart.running.is_of_another(vm.get()) {
        charge(hart, (vm, devices), began.took(&hart.accounts));
    }
}

#[cfg(test)]
mod tests {
    use abi::monitor::ExitCause;
    use board::{BoardHart, Delivery, Extensions};
    use scheduler::{HartId, Ticks};

    use super::*;
    use crate::hart::csr::{self, number};

    fn hart() -> Hart {
        let board = BoardHart {
            id: 0,
            controller: 0,
            extensions: Extensions::default(),
            cache_block_size: None,
            zero_block_size: None,
            mmu_type: String::new(),
            numa_node: None,
        };
        let delivery = Delivery {
            address: 0,
            index: 0,
        };
        Hart::new(HartId::new(0).unwrap(), &board, delivery, 0, 2)
    }

    fn at(ticks: u64) {
        // SAFETY: the registers are the stand-in's.
        unsafe {
            csr::write::<{ number::TIME }>(ticks);
            csr::write::<{ number::CYCLE }>(100 * ticks);
        }
    }

    /// A device's interrupt of VM 1 is handled for 30 ticks. Returns the ticks that the VM on the hart is spared and VM 1 is charged with, and the cycles
    /// booked for VM 1's devices.
    fn interrupt(has_guest_of: Option<u16>) -> (Ticks, u64, u64) {
        let (hart, devices) = (hart(), DeviceWork::default());
        let vm = VmId::new(1).unwrap();
        if let Some(other) = has_guest_of {
            hart.running.set(other, 1);
        }
        at(1000);
        hart.accounts.open();
        do_for(&hart, (vm, &devices), || at(1030));
        let (_, work) = hart.accounts.read();
        let cycles = work[1].simulation(ExitCause::HostExternal).0;
        (hart.take_for_others(), devices.take_by_others(), cycles)
    }

    #[test]
    fn interrupts_are_their_vms_time() {
        assert_eq!(interrupt(Some(0)), (Ticks::new(30), 30, 3000));
        let at_exit = (Ticks::ZERO, 0, 0);
        assert_eq!(interrupt(Some(1)), at_exit, "the exit is the VM's own");
        assert_eq!(interrupt(None), at_exit, "no VM is kept from its hart");
    }
}
