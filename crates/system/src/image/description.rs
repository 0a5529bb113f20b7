//! Compiles a system into the device tree that the hypervisor reads; `abi::system` has its form.

use super::contents::Contents;
use super::slots::Assignment;
use crate::verify::slices::describe;
use crate::{Located, Settings, System, Vm};
use abi::keys::Takes;
use abi::system::{
    Allocation, Io, SECTOR, ServedDisk, SliceDescription, Slot, SwitchDescription, VmId, VmName,
    names,
};
use vm_fdt::{Error, FdtWriter};

/// The description as a flattened device tree.
pub fn compile(
    system: &System,
    slots: &Assignment,
    contents: &Contents,
    focus: Option<&VmName>,
) -> Result<Vec<u8>, Error> {
    let mut tree = FdtWriter::new()?;
    let root = tree.begin_node("")?;
    tree.property_string(names::COMPATIBLE, names::COMPATIBLE_VALUE)?;
    compile_settings(&mut tree, &system.settings)?;
    if let Some(focus) = focus {
        tree.property_string(names::CONSOLE_FOCUS, focus.as_str())?;
    }
    if !slots.shared().is_empty() {
        let mut shared: Vec<u32> = slots.shared().iter().map(|slot| slot.0.into()).collect();
        shared.sort_unstable();
        tree.property_array_u32(names::SHARED_DISKS, &shared)?;
    }
    compile_served(&mut tree, system)?;
    compile_switches(&mut tree, system, slots)?;
    let vms = tree.begin_node(names::VMS_NODE)?;
    for (index, vm) in system.vms.iter().enumerate() {
        let node = tree.begin_node(&format!("{}@{index:x}", names::VM_NODE))?;
        let devices = slots.vm(index).iter();
        let devices: Vec<(Slot, Io)> = devices
            .map(|(slot, device)| (*slot, device.io(vm)))
            .collect();
        compile_vm(&mut tree, vm, &devices, contents)?;
        compile_slices(&mut tree, system, vm, slots)?;
        compile_ports(&mut tree, system, vm)?;
        tree.end_node(node)?;
    }
    tree.end_node(vms)?;
    tree.end_node(root)?;
    tree.finish()
}

fn compile_served(tree: &mut FdtWriter, system: &System) -> Result<(), Error> {
    let described = system.served.iter().filter_map(|disk| {
        let server = system
            .vms
            .iter()
            .position(|vm| vm.name.as_str() == disk.by.value)?;
        Some(ServedDisk {
            name: VmName::new(&disk.name)?,
            server: VmId(u8::try_from(server).ok()?),
            sectors: disk.size.value.0 / SECTOR,
        })
    });
    let described: Vec<ServedDisk> = described.collect();
    if described.is_empty() {
        return Ok(());
    }
    let cells: Vec<u32> = described.iter().flat_map(ServedDisk::cells).collect();
    let texts: Vec<&str> = described.iter().map(|disk| disk.name.as_str()).collect();
    tree.property_array_u32(names::SERVED_DISKS, &cells)?;
    tree.property_string(names::SERVED_NAMES, &texts.join(" "))
}

fn compile_switches(
    tree: &mut FdtWriter,
    system: &System,
    slots: &Assignment,
) -> Result<(), Error> {
    let mut uplinks = slots.uplinks().iter();
    let cells = system.switches.iter().map(|switch| {
        let uplink = switch.uplink.then(|| uplinks.next().copied()).flatten();
        SwitchDescription { uplink }.cell()
    });
    let cells: Vec<u32> = cells.collect();
    match cells.is_empty() {
        true => Ok(()),
        false => tree.property_array_u32(names::SWITCHES, &cells),
    }
}

fn compile_ports(tree: &mut FdtWriter, system: &System, vm: &Vm) -> Result<(), Error> {
    let place = |port: &Located<String>| {
        let mut switches = system.switches.iter();
        let place = switches.position(|switch| switch.name == port.value)?;
        u32::try_from(place).ok()
    };
    let ports: Vec<u32> = vm.ports.iter().filter_map(place).collect();
    match ports.is_empty() {
        true => Ok(()),
        false => tree.property_array_u32(names::PORTS, &ports),
    }
}

fn compile_slices(
    tree: &mut FdtWriter,
    system: &System,
    vm: &Vm,
    slots: &Assignment,
) -> Result<(), Error> {
    let described = vm.slices.iter().filter_map(|slice| {
        let slice = describe(system, slice)?;
        // Those of the board are numbered by their slots.
        let place = slots.places().get(slice.disk as usize).copied();
        let disk = u32::try_from(place.unwrap_or(slice.disk as usize)).ok()?;
        Some(SliceDescription { disk, ..slice }.cells())
    });
    let cells: Vec<u32> = described.flatten().collect();
    match cells.is_empty() {
        true => Ok(()),
        false => tree.property_array_u32(names::SLICES, &cells),
    }
}

/// The values that are given, as `abi::system` reads them; the hypervisor knows the others.
fn compile_settings(tree: &mut FdtWriter, settings: &Settings) -> Result<(), Error> {
    for (row, value) in settings.properties() {
        match row.takes {
            Takes::Word(words) => {
                let word = usize::try_from(value)
                    .ok()
                    .and_then(|place| words.get(place));
                tree.property_string(row.name, word.unwrap_or(&""))?;
            }
            // A property has no more than 32 bits, by a test of the table.
            _ => tree.property_u32(row.name, u32::try_from(value).unwrap_or(u32::MAX))?,
        }
    }
    Ok(())
}

fn compile_vm(
    tree: &mut FdtWriter,
    vm: &Vm,
    devices: &[(Slot, Io)],
    contents: &Contents,
) -> Result<(), Error> {
    tree.property_string(names::NAME, vm.name.as_str())?;
    tree.property_u32(names::VCPUS, vm.vcpus.value)?;
    tree.property_u64(names::MEMORY, vm.memory.value.0)?;
    compile_settings(tree, &vm.settings)?;
    match vm.allocation.value {
        Allocation::Shared { share } => tree.property_u32(names::SHARE, share)?,
        Allocation::Dedicated { harts } => {
            let harts: Vec<u32> = harts.iter().map(|hart| hart.0).collect();
            tree.property_array_u32(names::DEDICATED_HARTS, &harts)?;
        }
    }
    tree.property_string(names::KERNEL, contents.path(&vm.kernel.value))?;
    if let Some(initrd) = &vm.initrd {
        tree.property_string(names::INITRD, contents.path(&initrd.value))?;
    }
    tree.property_string(names::BOOTARGS, &vm.command_line)?;
    let slots = |io: &[Io]| -> Vec<u32> {
        let chosen = devices.iter().filter(|(_, own)| io.contains(own));
        chosen.map(|(slot, _)| slot.0.into()).collect()
    };
    tree.property_array_u32(names::DEVICES, &slots(Io::ALL))?;
    for (name, io) in [
        (names::MEDIATED, &[Io::General, Io::Fast][..]),
        (names::FAST, &[Io::Fast]),
    ] {
        let slots = slots(io);
        if !slots.is_empty() {
            tree.property_array_u32(name, &slots)?;
        }
    }
    if !vm.devices.is_empty() {
        let paths: Vec<&str> = vm.devices.iter().map(|path| path.value.as_str()).collect();
        tree.property_string(names::GIVEN, &paths.join(" "))?;
    }
    if !vm.hidden.is_empty() {
        let hidden: Vec<&str> = vm.hidden.names().collect();
        tree.property_string(names::HIDE, &hidden.join(" "))?;
    }
    Ok(())
}
