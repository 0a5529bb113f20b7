//! One VM of a system file.

use super::disks::read_disks;
use super::loops::{read_experiment, read_hidden};
use crate::cache::U_BOOT;
use crate::document::{Node, Value};
use crate::section::Section;
use crate::{BOARD_HARTS, BootForm, Bytes, Card, FileName, Habits, Located, Problem, Settings, Vm};
use abi::keys::{self, Scope};
use abi::system::{
    Allocation, HartId, HartSet, Io, MAX_BOOTARGS_LENGTH, MEMORY_GRANULE, Placement, VmName,
};
use std::path::PathBuf;

/// Reads one VM: `None` if what is missing makes it none, and its mistakes.
pub(super) fn read_vm(mut section: Section<'_>, name: &str) -> (Option<Vm>, Vec<Problem>) {
    let origin = section.origin.clone();
    let checked = VmName::new(name);
    if checked.is_none() {
        let remedy =
            "use a letter, then letters, digits, - and _, at most 31 in all, and not partita";
        section.problems.push(Problem::new(
            section.document,
            &origin,
            format!("vm.{name}"),
            "this is no name for a VM",
            remedy,
        ));
    }
    let vcpus = section.node(keys::VCPUS).and_then(|node| {
        let value = section.number(node, keys::VCPUS)?;
        Some(Located {
            value,
            origin: node.origin.clone(),
        })
    });
    let memory = section.size(keys::VM_MEMORY);
    let mut settings = section.settings();
    if let Some(mut experiment) = section.table_of(keys::VM_EXPERIMENT) {
        settings.extend(read_experiment(&mut experiment));
        section.problems.extend(experiment.finish());
    }
    let allocation = read_allocation(&mut section);
    let boot = read_boot(&mut section, &mut settings);
    let initrd = section.node(keys::INITRD);
    let initrd = initrd.and_then(|node| section.file(node, "initrd"));
    let command_line = read_command_line(&mut section);
    let (disks, slices) = read_disks(&mut section);
    let network = read_network(&mut section);
    let terminals = read_terminals(&mut section);
    let devices = read_devices(&mut section);
    let hidden = read_hidden(&mut section);

    let nothing = || Located {
        value: FileName::Path(PathBuf::new()),
        origin: origin.clone(),
    };
    let (boot, kernel) = boot.unwrap_or_else(|| (BootForm::Kernel, nothing()));
    let vm = checked.zip(allocation).map(|(name, allocation)| {
        // As for the system: what is missing has been reported.
        let harts = match allocation.value {
            Allocation::Dedicated { harts } => harts.len() as u32,
            Allocation::Shared { .. } => 1,
        };
        Vm {
            name,
            vcpus: vcpus.unwrap_or(Located {
                value: harts,
                origin: origin.clone(),
            }),
            memory: memory.unwrap_or(Located {
                value: Bytes(MEMORY_GRANULE),
                origin: origin.clone(),
            }),
            allocation,
            kernel,
            boot,
            initrd,
            command_line,
            disks,
            slices,
            network,
            ports: Vec::new(),
            terminals,
            devices,
            hidden,
            settings,
            origin,
        }
    });
    (vm, section.finish())
}

/// Reads what the VM boots. A firmware's disks and memory are reached as it can reach them, unless the VM says otherwise.
fn read_boot(
    section: &mut Section<'_>,
    settings: &mut Settings,
) -> Option<(BootForm, Located<FileName>)> {
    let kernel = section.node(keys::KERNEL);
    let firmware = section.node(keys::FIRMWARE);
    match (kernel, firmware) {
        (Some(node), None) => {
            let file = section.file(node, keys::KERNEL.name())?;
            Some((BootForm::Kernel, file))
        }
        (None, Some(node)) => {
            settings.set_missing(keys::PLACEMENT, Placement::Resident, &node.origin);
            settings.set_missing(keys::IO, Io::General, &node.origin);
            refuse_initrd(section);
            Some((BootForm::Firmware, firmware_file(section, node)?))
        }
        (Some(_), Some(node)) => {
            section.report(
                node,
                keys::FIRMWARE.name(),
                String::from("the VM also has a kernel"),
                String::from("keep kernel or firmware, not both: a firmware finds its kernel on the VM's disks"),
            );
            None
        }
        (None, None) => {
            section.problems.push(Problem::new(
                section.document,
                &section.origin,
                format!("{}kernel", section.path),
                "the VM has neither a kernel nor a firmware",
                "add kernel = \"image:debian/kernel\", or firmware = \"image:u-boot\" and disks from which it boots",
            ));
            None
        }
    }
}

/// The file of a firmware, by its short name or by its path.
fn firmware_file<'a>(section: &mut Section<'a>, node: &'a Node) -> Option<Located<FileName>> {
    let (key, example) = (keys::FIRMWARE.name(), keys::FIRMWARE.note().example);
    match section
        .text(node, key, example)?
        .strip_prefix(FileName::BUILT)
    {
        Some("u-boot") => Some(Located {
            value: FileName::Built(String::from(U_BOOT)),
            origin: node.origin.clone(),
        }),
        Some("edk2") => {
            let message = "EDK II for QEMU's board runs from the board's flash and keeps its variables there, and a VM has no flash";
            let remedy = "use image:u-boot, which starts EFI programs too";
            section.report(node, key, String::from(message), String::from(remedy));
            None
        }
        _ => section.file(node, key),
    }
}

/// Refuses an initial RAM disk: a firmware reads its own.
fn refuse_initrd(section: &mut Section<'_>) {
    if let Some(node) = section.table.get(keys::INITRD.name()) {
        let message = "a firmware takes no initial RAM disk";
        let remedy = "take initrd away: the kernel that the firmware starts finds its initial RAM disk on the VM's disk";
        let (message, remedy) = (String::from(message), String::from(remedy));
        section.report(node, keys::INITRD.name(), message, remedy);
    }
}

fn read_allocation(section: &mut Section<'_>) -> Option<Located<Allocation>> {
    let share = section.node(keys::SHARE);
    let dedicated = section.node(keys::DEDICATED_HARTS);
    match (share, dedicated) {
        (Some(node), None) => {
            let share = section.number(node, keys::SHARE)?;
            Some(Located {
                value: Allocation::Shared { share },
                origin: node.origin.clone(),
            })
        }
        (None, Some(node)) => {
            let Value::Array(items) = &node.value else {
                section.list(keys::DEDICATED_HARTS);
                return None;
            };
            let mut harts = HartSet::EMPTY;
            let mut good = true;
            for item in items {
                match section.integer(item, "dedicated-harts", 0..=BOARD_HARTS - 1, "[2, 3]") {
                    Some(hart) if harts.insert(HartId(hart)) => {}
                    Some(hart) => {
                        good = false;
                        let message = format!("hart {hart} is listed twice");
                        let remedy = String::from("list each hart once");
                        section.report(item, "dedicated-harts", message, remedy);
                    }
                    None => good = false,
                }
            }
            let value = Allocation::Dedicated { harts };
            good.then(|| Located {
                value,
                origin: node.origin.clone(),
            })
        }
        (Some(_), Some(node)) => {
            section.report(
                node,
                "dedicated-harts",
                String::from("the VM also has a share of the shared harts"),
                String::from("keep share or dedicated-harts, not both"),
            );
            None
        }
        (None, None) => {
            section.problems.push(Problem::new(
                section.document,
                &section.origin,
                format!("{}share", section.path),
                "the VM has neither a share of the shared harts nor harts of its own",
                "add share = 100, or dedicated-harts = [...] with as many harts as vCPUs",
            ));
            None
        }
    }
}

fn read_command_line(section: &mut Section<'_>) -> String {
    let Some((node, text)) = section.text_of(keys::COMMAND_LINE) else {
        return String::new();
    };
    if text.len() > MAX_BOOTARGS_LENGTH || text.contains('\0') {
        let message = format!("{} bytes are too many, or one is zero", text.len());
        let remedy = format!("use at most {MAX_BOOTARGS_LENGTH} bytes of text");
        section.report(node, "command-line", message, remedy);
    }
    String::from(text)
}

fn read_network(section: &mut Section<'_>) -> Vec<Card> {
    let mut cards = Vec::new();
    for (index, node) in section.list(keys::NETWORK).iter().enumerate() {
        let (name, io) = match &node.value {
            Value::Table(table) => {
                let path = format!("{}network[{index}].", section.path);
                let origin = node.origin.clone();
                let mut card = Section::new(section.document, table, path, origin, Scope::Card);
                let name = card.text_of(keys::CARD_NETWORK).map(|(_, name)| name);
                let settings = card.settings();
                let io = settings
                    .get(keys::DEVICE_IO)
                    .zip(settings.origin(keys::DEVICE_IO));
                let io = io.map(|(value, origin)| Located {
                    value,
                    origin: origin.clone(),
                });
                section.problems.extend(card.finish());
                (name, io)
            }
            _ => (section.text(node, "network", "[\"lan\"]"), None),
        };
        let Some(name) = name else {
            continue;
        };
        if VmName::new(name).is_none() {
            let remedy = "use a letter, then letters, digits, - and _, at most 31 in all";
            section.report(
                node,
                "network",
                String::from("this is no name for a network"),
                String::from(remedy),
            );
            continue;
        }
        let network = Located {
            value: String::from(name),
            origin: node.origin.clone(),
        };
        cards.push(Card { network, io });
    }
    cards
}

/// Reads the paths of the devices that the VM is given.
fn read_devices(section: &mut Section<'_>) -> Vec<Located<String>> {
    let mut devices: Vec<Located<String>> = Vec::new();
    for node in section.list(keys::DEVICES) {
        let example = keys::DEVICES.note().example;
        let Some(path) = section.text(node, keys::DEVICES.name(), example) else {
            continue;
        };
        let mut refuse = |message: &str, remedy: &str| {
            let (message, remedy) = (String::from(message), String::from(remedy));
            section.report(node, keys::DEVICES.name(), message, remedy);
        };
        let is_path = path.starts_with('/') && path.chars().all(|letter| letter.is_ascii_graphic());
        if !is_path {
            let remedy = "`partita board --describe TREE` prints the paths of a board's devices";
            refuse("this is no path in a device tree", remedy);
        } else if devices.iter().any(|other| other.value == path) {
            refuse("the device is listed twice", "list each device once");
        } else {
            devices.push(Located {
                value: String::from(path),
                origin: node.origin.clone(),
            });
        }
    }
    devices
}

fn read_terminals(section: &mut Section<'_>) -> Option<Habits> {
    let mut terminals = section.table_of(keys::TERMINALS)?;
    let settings = terminals.settings();
    // A key that must be given and is not is a mistake.
    terminals.node(keys::TERMINAL_COUNT);
    terminals.node(keys::TRANSACTIONS);
    terminals.node(keys::THINK_TIME);
    section.problems.extend(terminals.finish());
    Some(Habits {
        count: settings.given(keys::TERMINAL_COUNT)?,
        transactions: settings.given(keys::TRANSACTIONS)?,
        think: std::time::Duration::from_micros(settings.get(keys::THINK_TIME)?),
    })
}
