//! Interrupts of the devices that the hypervisor serves, and what the devices of one VM tell those of others.
//!
//! Work for a VM is done in the VM's own time. An interrupt that finds a vCPU of another VM on its hart marks the device ([`DeviceWork`]) and has a vCPU
//! of the device's VM woken by the scheduler's rules; the device is served before this vCPU enters its guest. An idle hart serves it at once. What
//! is done at once beside another VM's guest, as a disk that several VMs share has to be, is timed and charged to the VMs that it was done for.
//!
//! [`DeviceWork`]: crate::vm::device_work::DeviceWork

use scheduler::HartId;

use crate::devices::aplic::board::Target;
use crate::devices::trapped_devices::DeviceNumber;
use crate::devices::virtio::backend::disk::DiskNumber;
use crate::devices::virtio::backend::switch::SwitchNumber;
use crate::devices::virtio::client::Clients;
use crate::system::Hypervisor;
use crate::system::board_interrupts::ServedDevice;
use crate::system::devices::VmContext;
use crate::system::harts::{self, Hart, identity};
use crate::system::pages;
use crate::system::slots::TheBoard;
use crate::system::wake_for_devices;
use crate::system::work_for_vm::{Began, charge};
use crate::vm::Vm;
use crate::vm::vcpu::{Vcpu, request};

/// A device that the hypervisor serves has interrupted it. False where there is none at this source.
pub fn serve(system: &Hypervisor, source: u32) -> bool {
    match system.served.get(source as usize).copied().flatten() {
        Some(ServedDevice::Mediated(vm, device)) => {
            let worker = serve_or_mark(system, system.vm(vm), device);
            send_to(system, source, worker);
        }
        Some(ServedDevice::Disk(disk)) => {
            let worker = serve_disk(system, disk);
            system.controller.complete(source);
            send_to(system, source, worker);
        }
        Some(ServedDevice::Uplink(switch)) => {
            serve_uplink(system, switch);
            system.controller.complete(source);
        }
        None => return false,
    }
    true
}

/// Looks at the devices whose time has come on `hart`, which runs this. False where it has not.
pub fn serve_due(system: &Hypervisor, hart: &Hart, time: u64) -> bool {
    let Some(devices) = hart.poll_schedule.take(time) else {
        return false;
    };
    for source in devices {
        if let Some(Some(ServedDevice::Mediated(vm, device))) = system.served.get(source as usize) {
            let vm = system.vm(*vm);
            if hart.running.is_of_another(vm.id.get()) {
                let _ = mark(system, vm, *device);
            } else {
                let context = VmContext::new(system, vm);
                vm.trapped_devices.lock().timer_expired(*device, &context);
            }
        }
    }
    true
}

/// The vCPU that does the work of its VM's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worker {
    /// It was not asked, since the work is done or waits already.
    NotAsked,
    /// All vCPUs are stopped.
    Stopped,
    /// It has no hart, or has left its guest.
    Waits,
    /// It runs here.
    On(HartId),
}

/// Sends the interrupts of `source` to where a VM does its device's work now, so that they take no other VM's time.
fn send_to(system: &Hypervisor, source: u32, worker: Worker) {
    if let Worker::On(hart) = worker
        && system.interrupt_affinity.is_shared(hart)
    {
        let index = system.hart(hart).delivery.index;
        let target = Target::hypervisor(index, identity::DEVICE + source);
        system.controller.send_to(source, target);
    }
}

/// Serves a device of `vm`, unless this hart has a guest of another VM.
fn serve_or_mark(system: &Hypervisor, vm: &Vm, device: DeviceNumber) -> Worker {
    if harts::current().running.is_of_another(vm.id.get()) {
        return mark(system, vm, device);
    }
    serve_device(system, vm, device);
    Worker::NotAsked
}

#[inline]
fn serve_device(system: &Hypervisor, vm: &Vm, device: DeviceNumber) {
    let context = VmContext::new(system, vm);
    vm.trapped_devices.lock().poll_device(device, &context);
    if let Some(notified) = context.notified() {
        poll_servers(system, vm, notified);
    }
    complete_served(system, vm);
    pages::end_if_pending(system, vm);
}

/// Shows requests to the VMs that are to serve them. To see a request asks for nothing else, so that no other device is to be polled then.
#[cold]
#[inline(never)]
fn poll_servers(system: &Hypervisor, from: &Vm, told: Clients) {
    for client in told.iter() {
        if let Some((vm, device)) = system.shared.get(client.index()).copied()
            && vm != from.id
        {
            let vm = system.vm(vm);
            let context = VmContext::new(system, vm);
            vm.trapped_devices.lock().poll_device(device, &context);
        }
    }
}

/// Completes the sources of the VM's devices that the hypervisor serves. One that still has work interrupts again.
#[inline(never)]
fn complete_served(system: &Hypervisor, vm: &Vm) {
    let Some(wires) = system.controller.wired() else {
        return;
    };
    let devices = vm.settings.devices.iter();
    for assigned in devices.filter(|assigned| assigned.is_mediated()) {
        wires.complete(assigned.device.source);
    }
}

/// Leaves the device of `vm` to the VM's own time, and charges the VM with what this takes. While it is marked, nothing more is done.
#[cold]
#[inline(never)]
fn mark(system: &Hypervisor, vm: &Vm, device: DeviceNumber) -> Worker {
    let hart = harts::current();
    let began = Began::now(&hart.accounts);
    let mut worker = Worker::NotAsked;
    if vm.device_work.mark(device) {
        worker = tell_vcpu(system, vm);
    }
    let took = began.took(&hart.accounts);
    charge(hart, (vm.id, &vm.device_work), took);
    worker
}

/// Has a vCPU of `vm` do the work of its devices: the one that did last, or another one if that is stopped. If all are stopped, the VM has ended or
/// starts anew and has no time of its own, so the work is done here.
fn tell_vcpu(system: &Hypervisor, vm: &Vm) -> Worker {
    let vcpus = system.vcpus_of(vm.id);
    let last = vcpus.get(usize::from(vm.device_work.vcpu()));
    let asked = last.into_iter().chain(vcpus);
    let mut answers = asked.map(|vcpu| tell(system, vm, vcpu));
    let worker = answers.find(|worker| *worker != Worker::Stopped);
    worker.unwrap_or_else(|| {
        serve_all_marked(system, vm);
        Worker::NotAsked
    })
}

fn tell(system: &Hypervisor, vm: &Vm, vcpu: &Vcpu) -> Worker {
    vm.device_work.set_vcpu(vcpu.index);
    if let Some(hart) = vcpu.post_request(request::DEVICES) {
        system.hart(hart).kick();
        return Worker::On(hart);
    }
    if !wake_for_devices(system, vcpu.id) {
        return Worker::Stopped;
    }
    // A guest that exits all the time is seldom found in guest mode.
    let mut harts = system.harts.iter();
    let hart = harts.find(|hart| hart.running.is_of(vm.id.get()));
    hart.map_or(Worker::Waits, |hart| Worker::On(hart.index))
}

/// Serves the devices that wait for the time of `vm`, a vCPU of which has `hart`.
#[cold]
#[inline(never)]
pub fn serve_marked(system: &Hypervisor, hart: &Hart, vm: &Vm) {
    serve_all_marked(system, vm);
    hart.accounts.of(vm.id).charge_devices();
}

fn serve_all_marked(system: &Hypervisor, vm: &Vm) {
    let count = vm.trapped_devices.lock().count();
    let serve = |device| serve_device(system, vm, device);
    vm.device_work.take(count, serve);
}

#[inline(never)]
fn serve_disk(system: &Hypervisor, disk: DiskNumber) -> Worker {
    let Some(disk) = system.disks.get(disk.0) else {
        return Worker::NotAsked;
    };
    let began = Began::now(&harts::current().accounts);
    let told = disk.lock().serve(&TheBoard(Some(&system.controller)));
    tell_clients(system, told, began)
}

#[inline(never)]
fn serve_uplink(system: &Hypervisor, switch: SwitchNumber) {
    if let Some(switch) = system.switches.get(switch.0) {
        let began = Began::now(&harts::current().accounts);
        let told = switch.serve_uplink(&TheBoard(Some(&system.controller)));
        let _ = tell_clients(system, told, began);
    }
}

/// Has devices that share something look at what there is for them, in their VMs' time. The VMs are charged in equal parts with the time since `began`.
/// Returns the last one's worker.
fn tell_clients(system: &Hypervisor, told: Clients, began: Began) -> Worker {
    let mut worker = Worker::NotAsked;
    let hart = harts::current();
    let took = began.took(&hart.accounts);
    let part = took.part(told.iter().count() as u64);
    for client in told.iter() {
        if let Some((vm, device)) = system.shared.get(client.index()).copied() {
            let vm = system.vm(vm);
            if hart.running.is_of_another(vm.id.get()) {
                charge(hart, (vm.id, &vm.device_work), part);
            }
            worker = serve_or_mark(system, vm, device);
        }
    }
    worker
}

/// Devices that share something with others look at what there is for them, in the time of the VM that caused it.
#[inline(never)]
pub fn poll_clients(system: &Hypervisor, told: Clients) {
    for client in told.iter() {
        if let Some((vm, device)) = system.shared.get(client.index()).copied() {
            serve_device(system, system.vm(vm), device);
        }
    }
}

/// The board's devices that VMs share are asked whether they have done anything, as an interrupt of theirs can have been missed. Work that a vCPU
/// has left undone, as it was stopped meanwhile, goes to another one.
pub fn poll_shared(system: &Hypervisor) {
    for number in 0..system.disks.len() {
        let _ = serve_disk(system, DiskNumber(number));
    }
    for number in 0..system.switches.len() {
        serve_uplink(system, SwitchNumber(number));
    }
    // A device that is reset late does not interrupt when it has done so.
    for vm in &system.vms {
        pages::end_if_pending(system, vm);
        if vm.device_work.is_pending() {
            let _ = tell_vcpu(system, vm);
        }
    }
}
