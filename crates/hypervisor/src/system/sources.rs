//! Assignment of the board's interrupts to harts, and recovery of missed ones.

use crate::devices::aplic::board::Target;
use crate::interrupts;
use crate::system::Hypervisor;
use crate::system::board_interrupts::ServedDevice;
use crate::system::devices;
use crate::system::harts::identity;
use crate::system::interrupt_port::InterruptPort;
use crate::system::sharing;

/// Assigns the board's interrupts to harts by the VMs' present allocations.
pub fn reassign(system: &Hypervisor) {
    let online = system.harts.iter().map(|hart| hart.index).collect();
    for vm in &system.vms {
        let own = system.scheduler.own_harts(vm.id);
        system.interrupt_affinity.set(online, vm.id, own);
        let hart = system
            .interrupt_affinity
            .of_vm(vm.id)
            .map(|hart| system.hart(hart));
        let index = hart.map_or(0, |hart| hart.file.index);
        for device in vm
            .settings
            .devices
            .iter()
            .filter(|device| device.is_mediated())
        {
            let source = device.device.source;
            let target = Target::hypervisor(index, identity::DEVICE + source);
            system.aplic.take(source, target);
        }
    }
    let hart = system
        .interrupt_affinity
        .of_board()
        .map(|hart| system.hart(hart));
    let index = hart.map_or(0, |hart| hart.file.index);
    for (source, served) in (0..).zip(&system.served) {
        if let Some(ServedDevice::Disk(_) | ServedDevice::Uplink(_)) = served {
            let target = Target::hypervisor(index, identity::DEVICE + source);
            system.aplic.take(source, target);
        }
    }
    if let Some(source) = system.board.uart.as_ref().and_then(|uart| uart.source) {
        let target = Target::hypervisor(index, identity::UART);
        system.aplic.take(source, target);
    }
    for vcpu in &system.vcpus {
        interrupts::send_sources_again(&InterruptPort::current(system), vcpu.id);
    }
}

/// Polls for device interrupts whose edge was missed. Called on timer interrupts that are taken anyway. Returns true if the time had come.
pub fn poll_devices(system: &Hypervisor, time: u64) -> bool {
    let polls = system.claim_poll(time);
    if polls {
        for vm in &system.vms {
            devices::recover_missed_edges(system, vm);
        }
        sharing::poll_shared(system);
    }
    polls
}
