//! Interrupts of the devices that the hypervisor serves, and notifications between devices of different VMs.

use crate::devices::virtio::backend::disk::DiskNumber;
use crate::devices::virtio::backend::switch::SwitchNumber;
use crate::devices::virtio::client::Clients;
use crate::system::Hypervisor;
use crate::system::board_interrupts::ServedDevice;
use crate::system::devices::VmContext;
use crate::system::harts::Hart;
use crate::system::pages;
use crate::system::slots::TheBoard;

/// Serves the device behind an interrupt of the board. Returns false if the hypervisor serves no device at this source.
pub fn serve(system: &Hypervisor, source: u32) -> bool {
    let (vm, device) = match system.served.get(source as usize).copied().flatten() {
        Some(ServedDevice::Mediated(vm, device)) => (vm, device),
        Some(ServedDevice::Disk(disk)) => {
            serve_disk(system, disk);
            return true;
        }
        Some(ServedDevice::Uplink(switch)) => {
            serve_uplink(system, switch);
            return true;
        }
        None => return false,
    };
    let vm = system.vm(vm);
    vm.trapped_devices
        .lock()
        .poll_device(device, &VmContext::new(system, vm));
    true
}

/// Polls the devices whose time has come on `hart`, the calling hart. Returns false if there are none.
pub fn serve_due(system: &Hypervisor, hart: &Hart, time: u64) -> bool {
    let Some(devices) = hart.poll_schedule.take(time) else {
        return false;
    };
    for source in devices {
        if let Some(Some(ServedDevice::Mediated(vm, device))) = system.served.get(source as usize) {
            let vm = system.vm(*vm);
            let context = VmContext::new(system, vm);
            vm.trapped_devices.lock().timer_expired(*device, &context);
        }
    }
    true
}

#[inline(never)]
fn serve_disk(system: &Hypervisor, disk: DiskNumber) {
    if let Some(disk) = system.disks.get(disk.0) {
        let clients = disk.lock().serve(&TheBoard(Some(&system.aplic)));
        poll_clients(system, clients);
    }
}

#[inline(never)]
fn serve_uplink(system: &Hypervisor, switch: SwitchNumber) {
    if let Some(switch) = system.switches.get(switch.0) {
        let clients = switch.serve_uplink(&TheBoard(Some(&system.aplic)));
        poll_clients(system, clients);
    }
}

/// Polls these devices of other VMs.
#[inline(never)]
pub fn poll_clients(system: &Hypervisor, clients: Clients) {
    for client in clients.iter() {
        if let Some((vm, device)) = system.shared.get(client.index()).copied() {
            let vm = system.vm(vm);
            let context = VmContext::new(system, vm);
            vm.trapped_devices.lock().poll_device(device, &context);
            pages::end_if_pending(system, vm);
        }
    }
}

/// Polls the board's devices that VMs share, as one of their interrupts can have been missed.
pub fn poll_shared(system: &Hypervisor) {
    for number in 0..system.disks.len() {
        serve_disk(system, DiskNumber(number));
    }
    for number in 0..system.switches.len() {
        serve_uplink(system, SwitchNumber(number));
    }
    // A device does not interrupt when a slow reset is complete.
    for vm in &system.vms {
        pages::end_if_pending(system, vm);
    }
}
