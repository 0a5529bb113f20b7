//! Devices that the hypervisor serves when the board interrupts, and devices that share something with those of other VMs.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};

use scheduler::VmId;

use crate::devices::bus::Owner;
use crate::devices::trapped_devices::DeviceNumber;
use crate::devices::virtio::backend::disk::{Disk, DiskNumber};
use crate::devices::virtio::backend::switch::{Switch, SwitchNumber};
use crate::memory::address::GuestPhysical;
use crate::sort::sort_by_key;
use crate::vm::Vm;

/// Device or VM behind an interrupt of the board that goes to the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedDevice {
    /// A device that is mediated for a VM.
    Mediated(VmId, DeviceNumber),
    /// A disk that VMs share.
    Disk(DiskNumber),
    /// The uplink of a switch between VMs.
    Uplink(SwitchNumber),
}

/// Index of the vCPU that each source of the board's APLIC was routed to last. The vCPU's own routes decide whether it still is.
#[derive(Debug)]
pub struct Receivers(Vec<AtomicUsize>);

impl Receivers {
    const NOBODY: usize = usize::MAX;

    /// Table for sources up to `last`, none of which has a receiver.
    #[must_use]
    pub fn new(last: u32) -> Self {
        Self((0..=last).map(|_| AtomicUsize::new(Self::NOBODY)).collect())
    }

    /// Routes a source to the vCPU at this index, or to none.
    pub fn set(&self, source: u32, vcpu: Option<usize>) {
        if let Some(receiver) = self.0.get(source as usize) {
            receiver.store(vcpu.unwrap_or(Self::NOBODY), Ordering::Release);
        }
    }

    /// Place of the vCPU that a source is routed to.
    #[must_use]
    pub fn of(&self, source: u32) -> Option<usize> {
        let receiver = self.0.get(source as usize)?.load(Ordering::Acquire);
        (receiver != Self::NOBODY).then_some(receiver)
    }
}

/// The devices that the hypervisor serves, by their sources.
#[must_use]
pub fn by_source(
    vms: &[Vm],
    disks: &[Disk],
    switches: &[Arc<Switch>],
) -> Vec<Option<ServedDevice>> {
    let mut table = Vec::new();
    let add = |table: &mut Vec<_>, source: usize, served| {
        table.resize(table.len().max(source + 1), None);
        if let Some(place) = table.get_mut(source) {
            *place = Some(served);
        }
    };
    for (number, disk) in disks.iter().enumerate() {
        let served = ServedDevice::Disk(DiskNumber(number));
        if let Some(source) = disk.source() {
            add(&mut table, source.0 as usize, served);
        }
    }
    for (number, switch) in switches.iter().enumerate() {
        if let Some(uplink) = switch.uplink() {
            let served = ServedDevice::Uplink(SwitchNumber(number));
            add(&mut table, uplink.source().0 as usize, served);
        }
    }
    for vm in vms {
        for assigned in vm
            .settings
            .devices
            .iter()
            .filter(|assigned| assigned.is_mediated())
        {
            let base = GuestPhysical::new(assigned.device.base);
            if let Some((Owner::Trapped(device), _)) = vm.settings.bus.at(base) {
                let source = assigned.device.source as usize;
                add(&mut table, source, ServedDevice::Mediated(vm.id, device));
            }
        }
    }
    table
}

/// The devices of these VMs that share something, by their numbers.
#[must_use]
pub fn by_client(vms: &[Vm]) -> Vec<(VmId, DeviceNumber)> {
    let sharing = vms.iter().flat_map(|vm| {
        let emulated = vm.settings.emulated.iter();
        let emulated = emulated.map(|device| (device.client, device.device));
        let serving = vm.settings.serving.iter();
        let serving = serving.map(|device| (device.client, device.device));
        let of_vm = emulated.chain(serving);
        of_vm.map(|(client, device)| (client, (vm.id, device)))
    });
    let mut all: Vec<_> = sharing.enumerate().collect();
    sort_by_key(&mut all, |(place, (client, _))| (*client, *place));
    all.into_iter().map(|(_, (_, device))| device).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_find_their_receiver() {
        let receivers = Receivers::new(3);
        assert_eq!(
            [0, 3, 4, u32::MAX].map(|source| receivers.of(source)),
            [None; 4]
        );
        receivers.set(3, Some(511));
        receivers.set(4, Some(1));
        receivers.set(1, Some(0));
        assert_eq!(
            [1, 2, 3, 4].map(|source| receivers.of(source)),
            [Some(0), None, Some(511), None]
        );
        receivers.set(3, Some(2));
        receivers.set(1, None);
        assert_eq!([1, 3].map(|source| receivers.of(source)), [None, Some(2)]);
    }
}
