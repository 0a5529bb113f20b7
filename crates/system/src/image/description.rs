//! Compiles a system into the device tree that the hypervisor reads; `abi::system` has its form.

use super::contents::Contents;
use super::slots::Assignment;
use crate::verify::slices::describe;
use crate::{Located, System, Vm};
use abi::system::{
    Allocation, Io, Migration, Parameters, PauseLoops, Purging, Queue, RemoteFences, Scheduling,
    SliceDescription, Slot, SwitchDescription, Translations, VmName, names,
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
    if let Some(slice) = system.time_slice {
        // The system was refused if it were out of bounds.
        let slice = u32::try_from(slice.0).unwrap_or(u32::MAX);
        tree.property_u32(names::TIME_SLICE_US, slice)?;
    }
    tree.property_string(names::SPIN, system.spin.name())?;
    tree.property_string(names::WAIT, system.wait.name())?;
    if system.migration.value != Migration::AsNeeded {
        tree.property_string(names::MIGRATION, system.migration.value.name())?;
    }
    if system.queue != Queue::Single {
        tree.property_string(names::QUEUE, system.queue.name())?;
    }
    if system.scheduling != Scheduling::Floating {
        tree.property_string(names::SCHEDULING, system.scheduling.name())?;
    }
    if system.translations.value != Translations::LastHost {
        tree.property_string(names::TRANSLATIONS, system.translations.value.name())?;
    }
    if system.purge != Purging::Fence {
        tree.property_string(names::PURGE, system.purge.name())?;
    }
    if system.remote_fences != RemoteFences::Precise {
        tree.property_string(names::REMOTE_FENCES, system.remote_fences.name())?;
    }
    compile_parameters(&mut tree, &system.parameters)?;
    tree.property_string(names::WHEN_IDLE, system.when_idle.name())?;
    if let Some(focus) = focus {
        tree.property_string(names::CONSOLE_FOCUS, focus.as_str())?;
    }
    if !slots.shared().is_empty() {
        let mut shared: Vec<u32> = slots.shared().iter().map(|slot| slot.0.into()).collect();
        shared.sort_unstable();
        tree.property_array_u32(names::SHARED_DISKS, &shared)?;
    }
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
        let place = slots.places().get(slice.disk as usize)?;
        let disk = u32::try_from(*place).ok()?;
        Some(SliceDescription { disk, ..slice }.cells())
    });
    let cells: Vec<u32> = described.flatten().collect();
    match cells.is_empty() {
        true => Ok(()),
        false => tree.property_array_u32(names::SLICES, &cells),
    }
}

/// Those that the system gives; the scheduler knows the usual values of the others.
fn compile_parameters(tree: &mut FdtWriter, parameters: &Parameters) -> Result<(), Error> {
    let Parameters {
        affinity,
        self_wait_budget,
        reservation_limit_us,
        round,
        relaxed_terms,
        pause_loops,
        costs,
    } = *parameters;
    let all = [
        (names::AFFINITY, affinity),
        (names::SELF_WAIT_BUDGET, self_wait_budget),
        (names::RESERVATION_LIMIT_US, reservation_limit_us),
        (names::ROUND, round),
        (names::RELAXED_TERMS, relaxed_terms),
        (names::HOST_INTERRUPT_COST, costs.host_interrupt),
        (names::FUTILE_PASS_COST, costs.futile_pass),
        (names::DISPATCH_COST, costs.dispatch),
        (names::MODE_CHANGE_COST, costs.mode_change),
    ];
    compile_numbers(tree, all)?;
    compile_pause_loops(tree, pause_loops)
}

fn compile_pause_loops(tree: &mut FdtWriter, loops: PauseLoops) -> Result<(), Error> {
    let all = [
        (names::PLE_GAP, loops.gap),
        (names::PLE_WINDOW, loops.window),
        (names::PLE_WINDOW_MOST, loops.window_most),
    ];
    compile_numbers(tree, all)
}

/// Those that are given.
fn compile_numbers(
    tree: &mut FdtWriter,
    all: impl IntoIterator<Item = (&'static str, Option<u32>)>,
) -> Result<(), Error> {
    for (name, value) in all {
        if let Some(value) = value {
            tree.property_u32(name, value)?;
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
    tree.property_string(names::PLACEMENT, vm.placement.value.name())?;
    tree.property_string(names::TRANSLATION, vm.translation.value.name())?;
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
        (names::SIMULATED, &[Io::General, Io::Fast][..]),
        (names::FAST, &[Io::Fast]),
    ] {
        let slots = slots(io);
        if !slots.is_empty() {
            tree.property_array_u32(name, &slots)?;
        }
    }
    if vm.balloon.is_some() {
        tree.property_null(names::BALLOON)?;
    }
    if !vm.hidden.is_empty() {
        let hidden: Vec<&str> = vm.hidden.names().collect();
        tree.property_string(names::HIDE, &hidden.join(" "))?;
    }
    compile_pause_loops(tree, vm.pause_loops)?;
    if let Some(scheduling) = &vm.scheduling {
        tree.property_string(names::VM_SCHEDULING, scheduling.value.name())?;
    }
    if vm.autostart {
        tree.property_null(names::AUTOSTART)?;
    }
    tree.property_string(names::ON_FAILURE, vm.on_failure.name())
}
