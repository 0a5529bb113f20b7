//! `partita board --describe`: the hypervisor's use of a board.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;

use ::board::guest_tree::RESIDENT_BASE;
use ::board::{
    BoardHart, Hardware, HardwareKind, Interrupts, MemoryOf, Range, Survey, Tree, Uart, UartKind,
    Wish,
};
use abi::keys;
use abi::system::{Confined, Placement, Slot};
use serde::Serialize;
use system::image::slots::{Assignment, Device as SlotDevice};
use system::{System, Vm};

use super::super::failure::{Failure, at};
use super::super::output;

/// A board, as users are told of it.
#[derive(Debug, Serialize)]
struct Description {
    /// `model` of the device tree.
    model: Option<String>,
    /// True if the hypervisor can run on the board.
    usable: bool,
    /// Needs of the hypervisor that the board does not meet.
    missing: Vec<String>,
    /// Ids of the harts that run VMs.
    harts: Vec<u64>,
    /// Ids of the harts that are not used, for want of H.
    harts_without_h: Vec<u64>,
    /// Extensions that all used harts have and guests can be offered.
    extensions: Vec<String>,
    /// Extensions that only some of the used harts have, which are not offered to guests that may move.
    extensions_of_some: Vec<String>,
    /// How interrupts reach harts.
    interrupts: String,
    /// Guest interrupt files of a hart.
    guest_interrupt_files: u64,
    /// Memory in bytes.
    memory: u64,
    /// Banks of memory.
    banks: usize,
    /// NUMA nodes.
    numa_nodes: usize,
    /// Reserved bytes of memory.
    reserved: u64,
    /// The console.
    console: String,
    /// virtio-mmio slots.
    virtio_slots: usize,
    /// Devices, IOMMUs and host bridges.
    devices: Vec<Device>,
    /// Devices that VMs are given, and wishes of the system that the board does not meet.
    system: Vec<String>,
}

/// A device of the board.
#[derive(Debug, Serialize)]
struct Device {
    path: String,
    kind: &'static str,
    compatible: Vec<String>,
    interrupts: usize,
    dma_coherent: bool,
    /// The IOMMU that confines the device; without one a VM that has the device must be trusted.
    iommu: Option<String>,
    depends_on: Vec<String>,
}

/// Reads the tree and prints the description, as JSON if wanted.
pub(super) fn execute(
    file: &Path,
    system: Option<&System>,
    json: Option<&Path>,
) -> Result<(), Failure> {
    let bytes = std::fs::read(file).map_err(at(file))?;
    let tree = Tree::new(&bytes).map_err(|error| Failure::File {
        path: file.to_owned(),
        error: std::io::Error::other(format!(
            "{error}; give the flattened tree (.dtb), as dtc writes it or /sys/firmware/fdt holds it"
        )),
    })?;
    let description = describe(&tree, system);
    match json {
        Some(path) => output::write_json(path, &description),
        None => {
            // A reader that has gone needs no description.
            let _ = std::io::stdout().write_all(text(&description).as_bytes());
            Ok(())
        }
    }
}

fn describe(tree: &Tree<'_>, system: Option<&System>) -> Description {
    let survey = Survey::read(tree);
    let missing: Vec<String> = survey.lacks().iter().map(ToString::to_string).collect();
    let used: Vec<&BoardHart> = survey.harts_with_h().collect();
    let without = survey.harts.iter().filter(|hart| !hart.extensions.has("h"));
    let (extensions, extensions_of_some) = extensions(&used);
    let mut nodes: Vec<u32> = survey
        .memory
        .iter()
        .filter_map(|bank| bank.numa_node)
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    let mut description = Description {
        model: survey.model.clone(),
        usable: missing.is_empty(),
        missing,
        harts: used.iter().map(|hart| hart.id).collect(),
        harts_without_h: without.map(|hart| hart.id).collect(),
        extensions,
        extensions_of_some,
        interrupts: interrupts(&survey.interrupts),
        guest_interrupt_files: match &survey.interrupts {
            Interrupts::Messages { imsic, .. } => imsic.guest_files(),
            _ => 0,
        },
        memory: total(survey.memory.iter().map(|bank| bank.range)),
        banks: survey.memory.len(),
        numa_nodes: nodes.len().max(1),
        reserved: total(survey.reserved.iter().copied()),
        console: console(survey.uart.as_ref()),
        virtio_slots: survey.virtio.len(),
        devices: ::board::hardware(tree).into_iter().map(device).collect(),
        system: Vec::new(),
    };
    if let Some(system) = system {
        let given = given(tree, system);
        description.system = wants(system, &description);
        description.system.extend(given);
    }
    description
}

fn total(ranges: impl Iterator<Item = Range>) -> u64 {
    ranges.fold(0, |sum, range| sum.saturating_add(range.size))
}

/// Extensions that guests can be offered: of all these harts, and of some of them.
fn extensions(harts: &[&BoardHart]) -> (Vec<String>, Vec<String>) {
    let mut names: Vec<&str> = Vec::new();
    for hart in harts {
        for name in ::board::isa::offered(hart.extensions.names(), u64::MAX) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    let (all, some): (Vec<&str>, Vec<&str>) = names
        .into_iter()
        .partition(|name| harts.iter().all(|hart| hart.extensions.has(name)));
    let owned = |names: Vec<&str>| names.into_iter().map(String::from).collect();
    (owned(all), owned(some))
}

fn interrupts(found: &Interrupts) -> String {
    match found {
        Interrupts::Messages { imsic, aplic } => {
            let sources = aplic.map_or_else(
                || String::from("no APLIC"),
                |aplic| format!("APLIC with {} sources", aplic.sources),
            );
            format!(
                "messages (IMSIC): {} identities and {} guest interrupt files a hart; {sources}",
                imsic.identities,
                imsic.guest_files()
            )
        }
        Interrupts::Direct(aplic) => by_wires("APLIC", aplic.sources),
        Interrupts::Plic(plic) if plic.has_claim_erratum => {
            by_wires("PLIC (UR-CP100, with its claim erratum)", plic.sources)
        }
        Interrupts::Plic(plic) => by_wires("PLIC", plic.sources),
        Interrupts::Unknown => String::from("none that Partita knows"),
    }
}

fn by_wires(controller: &str, sources: u32) -> String {
    format!(
        "wires: {controller} with {sources} sources; each guest has a PLIC, whose interrupts the hypervisor delivers"
    )
}

fn console(uart: Option<&Uart>) -> String {
    let Some(uart) = uart else {
        return String::from("the firmware's (SBI DBCN), polled 20 times a second");
    };
    let kind = match uart.kind {
        UartKind::Ns16550 => "16550",
        UartKind::DesignWare => "16550 (DesignWare)",
        UartKind::XScale => "16550 (XScale)",
        UartKind::SiFive => "SiFive's UART",
    };
    let interrupt = match uart.source {
        Some(source) => format!("interrupt {source}"),
        None => String::from("no interrupt: polled"),
    };
    format!(
        "{}: {kind}, registers {} bytes apart, accesses of {} bytes, {interrupt}",
        uart.path,
        1 << uart.register_shift,
        uart.access_bytes
    )
}

fn device(found: Hardware) -> Device {
    Device {
        path: found.path,
        kind: match found.kind {
            HardwareKind::PcieEcam => "PCIe (ECAM)",
            HardwareKind::PcieVendor => "PCIe (vendor's)",
            HardwareKind::RiscvIommu => "RISC-V IOMMU",
            HardwareKind::OtherIommu => "other IOMMU",
            HardwareKind::Other => "device",
        },
        compatible: found.compatible,
        interrupts: found.interrupts,
        dma_coherent: found.dma_coherent,
        iommu: found.iommu,
        depends_on: found.depends_on,
    }
}

/// Wishes of the system that the board does not meet.
fn wants(system: &System, board: &Description) -> Vec<String> {
    let mut wants = Vec::new();
    let harts = u64::from(system.harts.value);
    if harts > board.harts.len() as u64 {
        wants.push(format!(
            "the system names {harts} harts and the board has {} that run VMs: fewer are used",
            board.harts.len()
        ));
    }
    let memory: u64 = system.vms.iter().map(|vm| vm.memory.value.0).sum();
    let free = board.memory.saturating_sub(board.reserved);
    if memory > free {
        wants.push(format!(
            "the VMs have {} MiB of memory together and the board has {} MiB free",
            memory >> 20,
            free >> 20
        ));
    }
    let slots = Assignment::of(system);
    let highest = (0..system.vms.len())
        .flat_map(|vm| slots.vm(vm).iter().map(|(slot, _)| *slot))
        .chain(slots.shared().iter().copied())
        .chain(slots.uplinks().iter().copied())
        .max();
    if let Some(highest) = highest
        && usize::from(highest.0) >= board.virtio_slots
    {
        wants.push(format!(
            "the VMs' devices take virtio-mmio slots up to {highest} and the board has {}: disks and cards of another kind \
             are given by their paths, those of PCIe with their host bridge (devices)",
            match board.virtio_slots {
                0 => String::from("none"),
                slots => format!("slots 0 to {}", slots - 1),
            }
        ));
    }
    wants
}

/// Devices that VMs are given, and why others are not: by the code that the hypervisor decides by.
fn given(tree: &Tree<'_>, system: &System) -> Vec<String> {
    let slots = Assignment::of(system);
    let paths: Vec<String> = system.vms.iter().map(paths).collect();
    let wishes: Vec<Wish<'_>> = (system.vms.iter().zip(&paths).enumerate())
        .map(|(index, (vm, paths))| wish(vm, paths, slots.vm(index)))
        .collect();
    let shared = bits(slots.shared().iter().chain(slots.uplinks()).copied());
    let mut lines = Vec::new();
    match ::board::give(tree, &wishes, shared) {
        Err(refusals) => lines.extend(refusals.iter().map(ToString::to_string)),
        Ok(given) => {
            for (vm, given) in system.vms.iter().zip(given) {
                let paths = vm.devices.iter().map(|path| &path.value);
                for path in paths {
                    let trust = if given.trusted.contains(path) {
                        "; nothing confines its DMA, so its guest is trusted with all memory"
                    } else if given.is_confined(tree, path) {
                        "; an IOMMU confines its DMA to the VM's memory"
                    } else {
                        ""
                    };
                    lines.push(format!("{} is given {path}{trust}", vm.name));
                }
            }
        }
    }
    lines
}

fn paths(vm: &Vm) -> String {
    let paths: Vec<&str> = vm.devices.iter().map(|path| path.value.as_str()).collect();
    paths.join(" ")
}

/// Slots, a bit each.
fn bits(slots: impl Iterator<Item = Slot>) -> u32 {
    slots.fold(0, |bits, slot| bits | 1 << slot.0)
}

fn wish<'w>(vm: &'w Vm, paths: &'w str, slots: &[(Slot, SlotDevice)]) -> Wish<'w> {
    let emulated = vm.slices.len() + vm.ports.len() + usize::from(vm.get(keys::BALLOON));
    Wish {
        vm: vm.name.as_str(),
        paths,
        slots: bits(slots.iter().map(|(slot, _)| *slot)),
        vcpus: vm.vcpus.value,
        memory: match vm.get(keys::PLACEMENT) {
            Placement::Real => MemoryOf::TheBoard,
            Placement::Resident => MemoryOf::At(Range {
                start: RESIDENT_BASE,
                size: vm.memory.value.0,
            }),
            Placement::Paged => MemoryOf::Pages,
        },
        confined: vm.get(keys::CONFINED) == Confined::Required,
        emulated: emulated as u64,
    }
}

/// Runs of numbers in short: `0 to 3, 16`.
fn runs(numbers: &[u64]) -> String {
    let mut text = String::new();
    let mut rest = numbers;
    while let [first, ..] = rest {
        let length = (*first..)
            .zip(rest)
            .take_while(|(expected, number)| expected == *number)
            .count();
        let separator = if text.is_empty() { "" } else { ", " };
        let last = first + length.saturating_sub(1) as u64;
        let run = match length {
            0 | 1 => format!("{separator}{first}"),
            _ => format!("{separator}{first} to {last}"),
        };
        text += &run;
        rest = rest.get(length.max(1)..).unwrap_or_default();
    }
    text
}

fn text(board: &Description) -> String {
    let mut text = String::new();
    let mut row = |name: &str, value: &str| {
        // A string takes everything.
        let _ = writeln!(text, "{name:<12}{value}");
    };
    row("board", board.model.as_deref().unwrap_or("without a name"));
    let mut harts = format!("{} run VMs", board.harts.len());
    if !board.harts.is_empty() {
        harts += &format!(": {}", runs(&board.harts));
    }
    if !board.harts_without_h.is_empty() {
        harts += &format!("; not used, without H: {}", runs(&board.harts_without_h));
    }
    row("harts", &harts);
    row("extensions", &board.extensions.join(" "));
    if !board.extensions_of_some.is_empty() {
        row("of some", &board.extensions_of_some.join(" "));
    }
    row("interrupts", &board.interrupts);
    row(
        "memory",
        &format!(
            "{} MiB in {} and {}; {} KiB reserved",
            board.memory >> 20,
            counted(board.banks, "bank"),
            counted(board.numa_nodes, "NUMA node"),
            board.reserved.div_ceil(1 << 10)
        ),
    );
    row("console", &board.console);
    row(
        "virtio-mmio",
        &match board.virtio_slots {
            0 => String::from("no slots: VMs have no disks and cards of the board's"),
            slots => counted(slots, "slot"),
        },
    );
    for device in &board.devices {
        let confined = match &device.iommu {
            Some(iommu) => format!("DMA behind {iommu}"),
            None => String::from("DMA not confined"),
        };
        let coherent = if device.dma_coherent {
            "coherent"
        } else {
            "not coherent"
        };
        let mut line = format!(
            "{} ({}), {}, {confined}, {coherent}",
            device.path,
            device.compatible.first().map_or("", String::as_str),
            counted(device.interrupts, "interrupt")
        );
        if !device.depends_on.is_empty() {
            line += &format!("; depends on {}", device.depends_on.join(", "));
        }
        row(device.kind, &line);
    }
    for want in &board.system {
        row("system", want);
    }
    match board.missing.as_slice() {
        [] => row("missing", "nothing: Partita runs on this board"),
        missing => missing.iter().for_each(|lack| row("missing", lack)),
    }
    text
}

fn counted(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_numbers_are_short() {
        assert_eq!(runs(&[]), "");
        assert_eq!(runs(&[0, 1, 2, 3, 16, 17, 20]), "0 to 3, 16 to 17, 20");
    }
}
