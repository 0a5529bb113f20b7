//! Which device sits in which virtio-mmio slot of the board.

use crate::{BOARD_SLOTS, Disk, System, Vm};
use abi::keys;
use abi::system::{Io, Slot};

/// A device of a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// The VM's disk with this number.
    Disk(usize),
    /// The VM's network card with this number.
    Card(usize),
    /// The VM's source of random numbers.
    Rng,
    /// The VM's terminals.
    Terminals,
}

impl Device {
    /// How the VM's guest reaches it.
    #[must_use]
    pub fn io(self, vm: &Vm) -> Io {
        match self {
            Self::Disk(number) => vm.io_of_disk(number),
            Self::Card(number) => vm.io_of_card(number),
            Self::Rng | Self::Terminals => vm.get(keys::IO),
        }
    }
}

/// The slots of a system: for each VM its devices, in the order of their slots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    vms: Vec<Vec<(Slot, Device)>>,
    /// Of the disks that VMs share.
    shared: Vec<Slot>,
    places: Vec<usize>,
    /// Of the cards that are uplinks of switches.
    uplinks: Vec<Slot>,
}

impl Assignment {
    /// Gives each device a slot: those that the system file names first, then the lowest free one. A VM's
    /// devices get rising slots in the order disks, cards, random numbers, terminals, so that the guest's first
    /// disk is the system file's first.
    pub fn of(system: &System) -> Self {
        let named = |disk: &Disk| disk.slot.as_ref().map(|slot| slot.value);
        let taken: Vec<u8> = system
            .all_disks()
            .filter_map(|(_, disk)| named(disk))
            .collect();
        let mut free = (0..BOARD_SLOTS as u8).filter(|slot| !taken.contains(slot));
        let mut vms = Vec::new();
        for vm in &system.vms {
            let disks = vm.disks.iter().enumerate();
            let disks = disks.map(|(index, disk)| (named(disk), Device::Disk(index)));
            let cards = (0..vm.network.len()).map(|index| (None, Device::Card(index)));
            let rng = vm.get(keys::RNG).then_some((None, Device::Rng));
            let terminals = vm.terminals.map(|_| (None, Device::Terminals));
            let mut devices = Vec::new();
            for (slot, device) in disks.chain(cards).chain(rng).chain(terminals) {
                // The system was refused if it had more devices than the board has slots.
                devices.extend(
                    slot.or_else(|| free.next())
                        .map(|slot| (Slot(slot), device)),
                );
            }
            devices.sort_unstable_by_key(|(slot, _)| *slot);
            vms.push(devices);
        }
        // Those of shared disks rise, as the hypervisor has them in this order.
        let mut slots: Vec<Slot> = (system.disks.iter())
            .filter_map(|shared| named(&shared.disk).or_else(|| free.next()))
            .map(Slot)
            .collect();
        let order = slots.clone();
        slots.sort_unstable();
        let place = |slot: &Slot| slots.iter().position(|other| other == slot);
        let places = order.iter().filter_map(place).collect();
        let uplinks = system.uplinks().filter_map(|_| free.next()).map(Slot);
        let uplinks = uplinks.collect();
        Self {
            vms,
            shared: order,
            places,
            uplinks,
        }
    }

    /// The slots of the cards of the switches that have [uplinks](System::uplinks), in their order.
    pub fn uplinks(&self) -> &[Slot] {
        &self.uplinks
    }

    /// The slot of each disk that VMs share.
    pub fn shared(&self) -> &[Slot] {
        &self.shared
    }

    /// The place of each of these disks among their slots in rising order.
    pub fn places(&self) -> &[usize] {
        &self.places
    }

    /// The devices of the VM with this number, by rising slot.
    pub fn vm(&self, index: usize) -> &[(Slot, Device)] {
        self.vms.get(index).map_or(&[], Vec::as_slice)
    }
}
