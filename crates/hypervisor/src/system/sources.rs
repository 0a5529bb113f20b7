//! Assignment of the board's interrupts to harts, and recovery of missed ones.

use crate::devices::aplic::board::Target;
use crate::devices::irq::SourceNumber;
use crate::interrupts;
use crate::system::Hypervisor;
use crate::system::board_interrupts::ServedDevice;
use crate::system::confinement;
use crate::system::devices::{self, VmContext};
use crate::system::harts::{Hart, identity};
use crate::system::interrupt_port::{self, InterruptPort};
use crate::system::sharing;
use crate::system::work_for_vm;
use crate::vm::Vm;

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
        let index = hart.map_or(0, |hart| hart.delivery.index);
        for device in vm
            .settings
            .devices
            .iter()
            .filter(|device| device.is_mediated())
        {
            let source = device.device.source;
            let target = Target::hypervisor(index, identity::DEVICE + source);
            system.controller.take(source, target);
        }
    }
    let hart = system
        .interrupt_affinity
        .of_board()
        .map(|hart| system.hart(hart));
    let index = hart.map_or(0, |hart| hart.delivery.index);
    for (source, served) in (0..).zip(&system.served) {
        if let Some(ServedDevice::Disk(_) | ServedDevice::Uplink(_)) = served {
            let target = Target::hypervisor(index, identity::DEVICE + source);
            system.controller.take(source, target);
        }
    }
    if let Some(source) = system.board.uart.as_ref().and_then(|uart| uart.source) {
        let target = Target::hypervisor(index, identity::UART);
        system.controller.take(source, target);
    }
    for vcpu in &system.vcpus {
        interrupts::send_sources_again(&InterruptPort::current(system), vcpu.id);
    }
}

/// Delivers an interrupt of the board's `source`, which `hart`, the calling hart, has taken, to the guest that has the device. It is delivered in the time
/// of the guest's VM.
pub fn deliver(system: &Hypervisor, hart: &Hart, source: u32) {
    let wires = system.controller.wired();
    let place = system.receivers.of(source);
    let Some(vcpu) = place.and_then(|place| system.vcpus.get(place)) else {
        if let Some(wires) = wires {
            // Nobody would complete it.
            wires.silence(source);
        }
        return;
    };
    let vm = system.vm(vcpu.vm);
    work_for_vm::do_for(hart, (vm.id, &vm.device_work), || match wires {
        None => interrupt_port::deliver_source(system, vcpu, source),
        Some(_) => raise(system, vm, source),
    });
}

/// Raises `source`, which the hypervisor has claimed, at the PLIC of `vm`.
fn raise(system: &Hypervisor, vm: &Vm, source: u32) {
    let context = VmContext::new(system, vm);
    let mut trapped = vm.trapped_devices.lock();
    trapped.raise(SourceNumber(source), &context);
}

/// Polls for device interrupts whose edge was missed. Called on timer interrupts that are taken anyway. Returns true if the time had come.
pub fn poll_devices(system: &Hypervisor, time: u64) -> bool {
    let polls = system.claim_poll(time);
    if polls {
        for vm in &system.vms {
            devices::recover_missed_edges(system, vm);
        }
        sharing::poll_shared(system);
        confinement::report(system);
    }
    polls
}
