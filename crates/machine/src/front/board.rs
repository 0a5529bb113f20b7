//! The board that the command line describes.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::arguments::Arguments;
use super::error::FrontError;
use crate::board::{PciConfig, map};
use crate::device::virtio::{
    Access, Block, DiskError, Entropy, FileDisk, Net, Ports, VirtioDevice,
};
use crate::device::{Console, MacAddress, Peer, PortId, Switch};
use crate::machine::{Config, Machine, iommu};
use crate::timing::Profile;

/// An address that is locally administered.
const MAC: MacAddress = MacAddress([0x52, 0x54, 0, 0x12, 0x34, 0x56]);

pub(super) fn configuration(arguments: &Arguments, profile: Option<&Profile>) -> Config {
    let mut config = Config::default();
    config.board.harts = arguments.harts;
    config.board.memory = arguments.memory.0;
    if let Some(profile) = profile {
        config.use_profile(profile);
    }
    if let Some(guest_files) = arguments.guest_interrupt_files {
        config.board.guest_files = guest_files;
    }
    if arguments.iommu || arguments.pci_network || !arguments.pci_disks.is_empty() {
        let iommu = arguments.iommu.then(|| iommu(profile));
        config.board.pci = Some(PciConfig { iommu });
    }
    config.board.bootargs.clone_from(&arguments.append);
    config.board.seed = arguments.seed.unwrap_or(0);
    config
}

/// Opens a disk's file to be written to, or to be left as it is.
fn open(path: &Path, snapshot: bool) -> Result<Box<FileDisk>, DiskError> {
    let access = if snapshot {
        Access::Read
    } else {
        Access::Write
    };
    FileDisk::open(path, access).map(Box::new)
}

/// Gives a restored machine its disks back, in the order of the slots.
pub(super) fn attach_disks(
    machine: &mut Machine,
    arguments: &Arguments,
) -> Result<(), Box<dyn std::error::Error>> {
    let slots: Vec<usize> = machine.missing_disks().collect();
    let disks = arguments.disks.iter().chain(&arguments.pci_disks);
    let disks: Vec<&PathBuf> = disks.collect();
    if slots.len() != disks.len() {
        let (had, given) = (slots.len(), disks.len());
        let given = format!("{given} are given by --disk and --pci-disk");
        return Err(format!("the machine had {had} disks and {given}").into());
    }
    for (slot, path) in slots.into_iter().zip(disks) {
        let snapshot = match machine.system().devices.virtio(slot) {
            Some(VirtioDevice::Block(block)) => block.has_overlay(),
            _ => arguments.snapshot,
        };
        machine.attach_disk(slot, open(path, snapshot)?)?;
    }
    Ok(())
}

/// A console port that writes to a file.
fn port((path, number): (&PathBuf, u32)) -> Result<(String, Box<dyn Console>), FrontError> {
    let file = std::fs::File::create(path).map_err(|error| FrontError::Write {
        path: path.clone(),
        error,
    })?;
    let console = ToFile(std::io::LineWriter::new(file));
    Ok((format!("partita.{number}"), Box::new(console)))
}

/// A console that keeps what it hears in a file.
#[derive(Debug)]
struct ToFile(std::io::LineWriter<std::fs::File>);

impl Console for ToFile {
    fn put(&mut self, byte: u8) {
        // The machine goes on as it would: what it does must not depend on a full disk of the host.
        let _ = self.0.write_all(&[byte]);
    }
}

/// Puts the devices in their slots: disks in their order, network card, random numbers, console ports.
pub(super) fn connect(
    machine: &mut Machine,
    arguments: &Arguments,
    profile: Option<&Profile>,
) -> Result<(), FrontError> {
    let seed = arguments.seed.unwrap_or(0);
    let others = [
        arguments.network,
        arguments.rng,
        !arguments.ports.is_empty(),
    ];
    let wanted = arguments.disks.len() + others.into_iter().filter(|&wanted| wanted).count();
    if wanted > machine.config().board.virtio_slots {
        return Err(FrontError::Slots(wanted));
    }
    let disk = profile
        .map(|profile| profile.disk.clone())
        .unwrap_or_default();
    let network = profile
        .map(|profile| profile.network.clone())
        .unwrap_or_default();
    // Each device draws from its own sequence.
    let seed_of = |slot: usize| seed ^ (slot as u64 + 1) << 56;
    let mut devices = Vec::new();
    let block = |path: &Path, place: usize| {
        let file = open(path, arguments.snapshot)?;
        let identity = format!("partita-{place}");
        let (service, faults) = (disk.service, disk.faults.clone());
        let (overlay, seed) = (arguments.snapshot, seed_of(place));
        let block = Block::new(file, overlay, &identity, service, faults, seed);
        Ok::<_, FrontError>(VirtioDevice::Block(Box::new(block)))
    };
    let card = |port: u8, place: usize| {
        let (service, faults) = (network.service, network.faults.clone());
        let mut mac = MAC;
        mac.0[5] += port;
        let card = Net::new(PortId(port), mac, service, faults, seed_of(place));
        VirtioDevice::Net(Box::new(card))
    };
    for path in &arguments.disks {
        devices.push(block(path, devices.len())?);
    }
    if arguments.network {
        devices.push(card(0, devices.len()));
    }
    let mut functions = Vec::new();
    for path in &arguments.pci_disks {
        functions.push(block(path, map::VIRTIO_SLOTS + functions.len())?);
    }
    if arguments.pci_network {
        functions.push(card(1, map::VIRTIO_SLOTS + functions.len()));
    }
    if arguments.rng {
        let seed = seed_of(devices.len());
        let entropy = Entropy::new(Default::default(), Default::default(), seed);
        devices.push(VirtioDevice::Entropy(Box::new(entropy)));
    }
    if !arguments.ports.is_empty() {
        let ports = arguments.ports.iter().zip(0..).map(port);
        let ports = ports.collect::<Result<_, _>>()?;
        devices.push(VirtioDevice::Console(Box::new(Ports::new(ports))));
    }
    let clock = machine.config().board.clock;
    let latency = clock.cycles_in_nanoseconds(network.latency_nanoseconds);
    let character = profile.map_or(0, |profile| profile.uart.nanoseconds_per_character);
    let board = &mut machine.system_mut().devices;
    for (slot, device) in devices.into_iter().enumerate() {
        // There is a slot: they were counted.
        let _ = board.insert(slot, device, false);
    }
    for function in functions {
        board
            .insert_function(function)
            .map_err(|_| FrontError::Functions)?;
    }
    board.set_switch(Switch::new(latency, Some(Peer::default())));
    board.set_character_time(clock.cycles_in_nanoseconds(character));
    Ok(())
}
