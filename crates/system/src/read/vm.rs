//! One VM of a system file.

use super::disks::read_disks;
use super::loops::{read_hidden, read_pause_loops};
use crate::Habits;
use crate::document::{Origin, Value};
use crate::section::Section;
use crate::{BOARD_HARTS, Bytes, Card, FileName, Located, Problem, Vm};
use abi::system::{
    Allocation, HartId, HartSet, Io, MAX_BOOTARGS_LENGTH, MAX_VCPUS_PER_VM, MEMORY_GRANULE,
    OnFailure, Placement, SHARE, Scheduling, VmName, VmTranslation,
};
use std::path::PathBuf;

/// Reads one VM: `None` if what is missing makes it none, and its mistakes.
pub(super) fn read_vm(
    mut section: Section<'_>,
    name: &str,
    origin: Origin,
) -> (Option<Vm>, Vec<Problem>) {
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
    let vcpus = section.required("vcpus", "4").and_then(|node| {
        let value = section.integer(node, "vcpus", 1..=MAX_VCPUS_PER_VM as u32)?;
        Some(Located {
            value,
            origin: node.origin.clone(),
        })
    });
    let memory = section.size("memory", "512 MiB");
    let written = section.table.get("placement");
    let placement = Located {
        value: section.word(
            "placement",
            Placement::ALL,
            Placement::name,
            Placement::Real,
        ),
        origin: written.map_or(origin.clone(), |node| node.origin.clone()),
    };
    let written = section.table.get("translation");
    let translation = Located {
        value: section.word(
            "translation",
            VmTranslation::ALL,
            VmTranslation::name,
            VmTranslation::TwoStage,
        ),
        origin: written.map_or(origin.clone(), |node| node.origin.clone()),
    };
    let written = section.table.get("io");
    let io = Located {
        value: section.word("io", Io::ALL, Io::name, Io::Direct),
        origin: written.map_or(origin.clone(), |node| node.origin.clone()),
    };
    let allocation = read_allocation(&mut section);
    let kernel = section.required("kernel", "\"image:debian/kernel\"");
    let kernel = kernel.and_then(|node| section.file(node, "kernel"));
    let initrd = section.optional("initrd");
    let initrd = initrd.and_then(|node| section.file(node, "initrd"));
    let command_line = read_command_line(&mut section);
    let (disks, slices) = read_disks(&mut section);
    let network = read_network(&mut section);
    let rng = section.boolean("rng", false);
    let written = section.table.get("balloon");
    let balloon = section.boolean("balloon", false).then_some(());
    let balloon = balloon.and(written.map(|node| node.origin.clone()));
    let terminals = read_terminals(&mut section);
    let autostart = section.boolean("autostart", true);
    let on_failure = section.word(
        "on-failure",
        OnFailure::ALL,
        OnFailure::name,
        OnFailure::Stop,
    );

    let hidden = read_hidden(&mut section);
    let pause_loops = read_pause_loops(&mut section);
    let written = section.table.get("scheduling").cloned();
    // Asked for also where it is not written, so that it is among the keys that are known.
    let value = section.word(
        "scheduling",
        Scheduling::ALL,
        Scheduling::name,
        Scheduling::Floating,
    );
    let scheduling = written.map(|node| Located {
        value,
        origin: node.origin,
    });

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
            placement,
            translation,
            io,
            allocation,
            kernel: kernel.unwrap_or(Located {
                value: FileName::Path(PathBuf::new()),
                origin: origin.clone(),
            }),
            initrd,
            command_line,
            disks,
            slices,
            network,
            ports: Vec::new(),
            rng,
            balloon,
            terminals,
            hidden,
            pause_loops,
            scheduling,
            autostart,
            on_failure,
            origin,
        }
    });
    (vm, section.finish())
}

fn read_allocation(section: &mut Section<'_>) -> Option<Located<Allocation>> {
    let share = section.optional("share");
    let dedicated = section.optional("dedicated-harts");
    match (share, dedicated) {
        (Some(node), None) => {
            let share = section.integer(node, "share", SHARE)?;
            Some(Located {
                value: Allocation::Shared { share },
                origin: node.origin.clone(),
            })
        }
        (None, Some(node)) => {
            let Value::Array(items) = &node.value else {
                section.wrong_kind(node, "dedicated-harts", "a list", "[2, 3]");
                return None;
            };
            let mut harts = HartSet::EMPTY;
            let mut good = true;
            for item in items {
                match section.integer(item, "dedicated-harts", 0..=BOARD_HARTS - 1) {
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
    let Some(node) = section.optional("command-line") else {
        return String::new();
    };
    let Some(text) = section.text(node, "command-line", "console=ttyS0") else {
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
    for (index, node) in section.list("network", "[\"lan\"]").iter().enumerate() {
        let (name, io) = match &node.value {
            Value::Table(table) => {
                let path = format!("{}network[{index}].", section.path);
                let mut card = Section::new(section.document, table, path, node.origin.clone());
                let network = card.required("network", "\"lan\"");
                let name = network.and_then(|node| card.text(node, "network", "lan"));
                let written = card.table.get("io");
                let value = card.word("io", Io::ALL, Io::name, Io::Direct);
                let io = written.map(|node| Located {
                    value,
                    origin: node.origin.clone(),
                });
                section.problems.extend(card.finish());
                (name, io)
            }
            _ => (section.text(node, "network", "lan"), None),
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

/// Most terminals of a VM: Linux has eight lines for them (`HVC_ALLOC_TTY_ADAPTERS`), of which the SBI's console may take
/// one.
pub const MOST_TERMINALS: u32 = 7;

fn read_terminals(section: &mut Section<'_>) -> Option<Habits> {
    const EXAMPLE: &str = "{ count = 4, transactions = 20, think = \"200 ms\" }";
    let node = section.optional("terminals")?;
    let Value::Table(table) = &node.value else {
        section.wrong_kind(node, "terminals", "a table", EXAMPLE);
        return None;
    };
    let path = format!("{}terminals.", section.path);
    let mut terminals = Section::new(section.document, table, path, node.origin.clone());
    let count = terminals.required("count", "4");
    let count = count.and_then(|node| terminals.integer(node, "count", 1..=MOST_TERMINALS));
    let transactions = terminals.required("transactions", "20");
    let transactions =
        transactions.and_then(|node| terminals.integer(node, "transactions", 1..=1_000_000));
    terminals.required("think", "\"200 ms\"");
    let think = terminals.duration("think", 1_000..=3_600_000_000);
    section.problems.extend(terminals.finish());
    Some(Habits {
        count: count?,
        transactions: transactions?,
        think: think?.into(),
    })
}
