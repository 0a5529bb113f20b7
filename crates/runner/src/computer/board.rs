//! The machine with a system on it: harts, memory, the VMs' devices in their slots.

use super::error::{ComputerError, read};
use super::interface::Setup;
use super::uplink;
use crate::terminals::Users;
use abi::keys;
use abi::system::Slot;
use machine::board::{Images, PciConfig, map};
use machine::device::virtio::{
    Access, Block, DiskError, Entropy, Faults, FileDisk, Net, Ports, Service, VirtioDevice,
};
use machine::device::{MacAddress, PortId, Switch};
use machine::front::firmware;
use machine::timing::Profile;
use machine::{Config, Machine};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use system::cache::Cache;
use system::image::slots::Device;
use system::{Disk, System};

/// Shifts at the beginning of a run that mean nothing for the measures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shift {
    /// How much later than at reset the harts begin, in nanoseconds of machine time.
    pub boot: u64,
    /// For how long each hart is held up once all VMs work, in nanoseconds of machine time: so slices end at other times. The
    /// steady window begins afterwards.
    pub harts: Vec<u64>,
    /// Numbers the VMs, and lays them in memory, from the last to the first.
    pub reversed: bool,
}

/// Nanoseconds in a second.
const NANOSECONDS: u64 = 1_000_000_000;

/// Choices about the machine.
#[derive(Debug, Clone, Default)]
pub struct Chosen {
    /// Costs of instructions and devices. Without it, every instruction takes a cycle and devices take no time.
    pub profile: Option<Profile>,
    /// Seed of everything random.
    pub seed: u64,
    /// The command line of what is booted. The hypervisor needs none.
    pub command_line: String,
    /// Checks for fences that software leaves out, which is slow.
    pub check_translations: bool,
    /// Machine time before that, which is a boot that is not to be checked. If there is any, instructions cost nothing but themselves, before and
    /// afterwards.
    pub check_after: Duration,
    /// Charges one cycle an instruction for the present, as before a checkpoint that is to be measured from.
    /// What software sees of the machine is the profile's, and so are its devices.
    pub fast: bool,
    /// Shifts at the beginning.
    pub shift: Shift,
    /// Counts the round trips through the hypervisor in a steady window.
    pub exit_latency: bool,
    /// Host bridge of PCI, if there is one.
    pub pci: Option<Bridge>,
}

/// A host bridge of PCI, and what is behind it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bridge {
    /// Files of disks, which stay as they are.
    pub disks: Vec<PathBuf>,
    /// True if its devices are behind an IOMMU.
    pub iommu: bool,
}

impl Chosen {
    /// The profile of this name or in this file, if one is given, and the seed.
    ///
    /// # Errors
    /// There is no such profile, or it has mistakes.
    pub fn named(profile: Option<&str>, seed: u64) -> Result<Self, ComputerError> {
        let profile = profile.map(Profile::find).transpose()?;
        Ok(Self {
            profile,
            seed,
            ..Self::default()
        })
    }

    const fn checks_later(&self) -> bool {
        self.check_translations && !self.check_after.is_zero()
    }

    /// Machine time from which on the machine looks for missing fences, if it does not from the beginning.
    pub fn later_check(&self) -> Option<Duration> {
        self.checks_later().then_some(self.check_after)
    }
}

/// Builds the machine, with everything in memory that it is to boot, and seats the users of its terminals.
///
/// # Errors
/// A file, the profile or the host's memory does not allow it.
pub fn build(setup: &Setup<'_>, chosen: &Chosen) -> Result<(Machine, Users), ComputerError> {
    let mut machine = Machine::new(configuration(setup, chosen))?;
    let fast = chosen.fast || chosen.checks_later();
    machine.set_profile(chosen.profile.as_ref().filter(|_| !fast));
    let users = connect(&mut machine, setup, chosen)?;
    machine.load(&Images {
        firmware: &read_firmware()?,
        kernel: Some(&read(setup.hypervisor)?),
        initrd: (!setup.image.is_empty()).then_some(setup.image),
    })?;
    let offset = machine.clock().cycles_in_nanoseconds(chosen.shift.boot).0;
    if offset > 0 {
        for hart in 0..setup.system.harts.value as usize {
            machine.hold_up(hart, offset);
        }
    }
    if chosen.check_translations && !chosen.checks_later() {
        machine.check_translations();
    }
    Ok((machine, users))
}

fn configuration(setup: &Setup<'_>, chosen: &Chosen) -> Config {
    let mut config = Config::default();
    if let Some(profile) = &chosen.profile {
        config.use_profile(profile);
    }
    let board = &mut config.board;
    board.harts = setup.system.harts.value;
    board.memory = setup.system.memory.value.0;
    if let Some(files) = setup.system.get(keys::GUEST_INTERRUPT_FILES) {
        // A number that hgeie has no bits for is refused when the machine is made.
        board.guest_files = u8::try_from(files).unwrap_or(u8::MAX);
    }
    board.pci = chosen.pci.as_ref().map(|bridge| PciConfig {
        iommu: bridge
            .iommu
            .then(|| machine::iommu(chosen.profile.as_ref())),
    });
    board.seed = chosen.seed;
    board.bootargs.clone_from(&chosen.command_line);
    config
}

/// Puts every VM's devices in their slots, and divides the network as the system says.
fn connect(
    machine: &mut Machine,
    setup: &Setup<'_>,
    chosen: &Chosen,
) -> Result<Users, ComputerError> {
    let profile = chosen.profile.as_ref();
    let line = profile.map(|profile| profile.network.clone());
    let line = line.unwrap_or_default();
    let clock = machine.config().board.clock;
    let latency = clock.cycles_in_nanoseconds(line.latency_nanoseconds);
    let mut networks = BTreeMap::new();
    let mut users = Users::new(clock);
    let mut switch = Switch::new(latency, None);
    for (index, vm) in setup.system.vms.iter().enumerate() {
        for (slot, device) in setup.slots.vm(index) {
            let is_told = vm.tells_addresses(device.io(vm));
            // Each device draws from its own sequence.
            let seed = chosen.seed ^ u64::from(slot.0 + 1) << 56;
            let device = match device {
                Device::Disk(number) => {
                    let Some(disk) = vm.disks.get(*number) else {
                        continue;
                    };
                    let disk = block(setup, disk, profile, *slot, seed);
                    let key = format!("vm.{}.disks[{number}]", vm.name);
                    disk.map_err(|error| ComputerError::Disk { key, error })?
                }
                Device::Card(number) => {
                    let Some(card) = vm.network.get(*number) else {
                        continue;
                    };
                    let next = networks.len() as u8;
                    let network = *networks.entry(&card.network.value).or_insert(next);
                    switch.assign(PortId(slot.0), network);
                    let mac = MacAddress([0x52, 0x54, 0, 0, index as u8, *number as u8]);
                    let (service, faults) = (line.service, line.faults.clone());
                    let net = Net::new(PortId(slot.0), mac, service, faults, seed);
                    VirtioDevice::Net(Box::new(net))
                }
                Device::Rng => {
                    let (service, faults) = (Service::default(), Faults::default());
                    VirtioDevice::Entropy(Box::new(Entropy::new(service, faults, seed)))
                }
                Device::Terminals => {
                    let Some(habits) = vm.terminals else {
                        continue;
                    };
                    let consoles = users.sit_down(vm.name.as_str(), habits, seed);
                    VirtioDevice::Console(Box::new(Ports::terminals(consoles)))
                }
            };
            // A system with more devices than slots was refused.
            let _ = machine
                .system_mut()
                .devices
                .insert(usize::from(slot.0), device, is_told);
        }
    }
    for ((number, uplinked), slot) in setup.system.uplinks().zip(setup.slots.uplinks()) {
        let seed = chosen.seed ^ u64::from(slot.0 + 1) << 56;
        let next = networks.len() as u8;
        let network = *networks.entry(&uplinked.name).or_insert(next);
        switch.assign(PortId(slot.0), network);
        let mac = MacAddress([0x52, 0x54, 0, 1, 0, number as u8]);
        let (service, faults) = (line.service, line.faults.clone());
        let net = Net::new(PortId(slot.0), mac, service, faults, seed);
        // As for the VMs' devices. The hypervisor drives it, by the computer's own addresses.
        let _ = machine.system_mut().devices.insert(
            usize::from(slot.0),
            VirtioDevice::Net(Box::new(net)),
            false,
        );
    }
    for (shared, slot) in setup.system.disks.iter().zip(setup.slots.shared()) {
        let seed = chosen.seed ^ u64::from(slot.0 + 1) << 56;
        let key = format!("disk.{}", shared.name);
        let device = block(setup, &shared.disk, profile, *slot, seed)
            .map_err(|error| ComputerError::Disk { key, error })?;
        // As for the VMs' devices. The hypervisor drives it, by the computer's own addresses.
        let _ = machine
            .system_mut()
            .devices
            .insert(usize::from(slot.0), device, false);
    }
    connect_bridge(machine, chosen)?;
    let character = profile.map_or(0, |profile| profile.uart.nanoseconds_per_character);
    let devices = &mut machine.system_mut().devices;
    devices.set_switch(switch);
    devices.set_epoch(setup.system.date.seconds().saturating_mul(NANOSECONDS));
    if let Some(host) = &setup.system.host {
        let next = networks.len() as u8;
        let network = networks.get(&host.network).copied().unwrap_or(next);
        devices.connect_outside(uplink::open(host)?, network);
    }
    devices.set_character_time(clock.cycles_in_nanoseconds(character));
    Ok(users)
}

/// Puts disks behind the host bridge of PCI.
fn connect_bridge(machine: &mut Machine, chosen: &Chosen) -> Result<(), ComputerError> {
    let disks = chosen.pci.iter().flat_map(|bridge| &bridge.disks);
    for (number, path) in disks.enumerate() {
        let file = FileDisk::open(path, Access::Read).map_err(|error| ComputerError::Disk {
            key: String::from("--pci-disk"),
            error,
        })?;
        // Behind those of the slots.
        let place = map::VIRTIO_SLOTS + number;
        let seed = chosen.seed ^ (place as u64 + 1) << 56;
        let costs = chosen.profile.as_ref();
        let costs = costs
            .map(|profile| profile.disk.clone())
            .unwrap_or_default();
        let identity = format!("partita-{place}");
        let block = Block::new(
            Box::new(file),
            true,
            &identity,
            costs.service,
            costs.faults,
            seed,
        );
        let device = VirtioDevice::Block(Box::new(block));
        let devices = &mut machine.system_mut().devices;
        devices
            .insert_function(device)
            .map_err(|_| ComputerError::Functions)?;
    }
    Ok(())
}

/// Gives the disks of a restored machine their files.
///
/// # Errors
/// A file is not to be had, or has not the size of the disk that the machine had.
pub fn reattach(machine: &mut Machine, setup: &Setup<'_>) -> Result<(), ComputerError> {
    for (index, vm) in setup.system.vms.iter().enumerate() {
        for (slot, device) in setup.slots.vm(index) {
            let Device::Disk(number) = device else {
                continue;
            };
            let Some(disk) = vm.disks.get(*number) else {
                continue;
            };
            let key = format!("vm.{}.disks[{number}]", vm.name);
            let file = open(setup.cache, disk);
            let file = file.map_err(|error| ComputerError::Disk { key, error })?;
            machine.attach_disk(usize::from(slot.0), Box::new(file))?;
        }
    }
    for (shared, slot) in setup.system.disks.iter().zip(setup.slots.shared()) {
        let key = format!("disk.{}", shared.name);
        let file = open(setup.cache, &shared.disk);
        let file = file.map_err(|error| ComputerError::Disk { key, error })?;
        machine.attach_disk(usize::from(slot.0), Box::new(file))?;
    }
    Ok(())
}

/// The firmware, if it may be one.
pub(super) fn read_firmware() -> Result<Vec<u8>, ComputerError> {
    let path = firmware::find()?;
    let bytes = read(&path)?;
    firmware::check(&bytes).map_err(|error| ComputerError::NotFirmware { path, error })?;
    Ok(bytes)
}

/// Opens and locks every disk of a system, for a computer that would not ask whether a run on another kind has it.
pub(super) fn lock_disks(system: &System, cache: &Cache) -> Result<Vec<FileDisk>, ComputerError> {
    let locked = system
        .all_disks()
        .map(|(key, disk)| open(cache, disk).map_err(|error| ComputerError::Disk { key, error }));
    locked.collect()
}

fn open(cache: &Cache, disk: &Disk) -> Result<FileDisk, DiskError> {
    let access = if disk.get(keys::PERSISTENT) {
        Access::Write
    } else {
        Access::Read
    };
    FileDisk::open(&disk.path(cache), access)
}

fn block(
    setup: &Setup<'_>,
    disk: &Disk,
    profile: Option<&Profile>,
    slot: Slot,
    seed: u64,
) -> Result<VirtioDevice, DiskError> {
    let file = open(setup.cache, disk)?;
    let identity = format!("partita-{slot}");
    let costs = profile
        .map(|profile| profile.disk.clone())
        .unwrap_or_default();
    let block = Block::new(
        Box::new(file),
        !disk.get(keys::PERSISTENT),
        &identity,
        costs.service,
        costs.faults,
        seed,
    );
    Ok(VirtioDevice::Block(Box::new(block)))
}
