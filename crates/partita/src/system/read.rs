//! From a document to a system: every key read by its rules, every mistake kept.

use super::document::{Document, Node, Origin, Value};
use super::section::Section;
use super::{
    BOARD_GUEST_FILES, BOARD_HARTS, BOARD_SLOTS, Bytes, Card, Date, Disk, Duration, FileName,
    Forward, HostNetwork, Located, Mistakes, Problem, System, Vm, verify,
};
use crate::terminals::Habits;
use abi::system::{
    AFFINITY, Allocation, COST, Costs, HartId, HartSet, MAX_BOOTARGS_LENGTH, MAX_VCPUS_PER_VM,
    MEMORY_GRANULE, Migration, OnFailure, Parameters, Placement, RELAXED_TERMS,
    RESERVATION_LIMIT_US, RESERVED_NAME, ROUND, SELF_WAIT_BUDGET, SHARE, Scheduling, SpinMethod,
    TIME_SLICE_US, Translations, VmName, WaitMethod, WhenIdle,
};
use std::path::PathBuf;

/// What the hypervisor can do with a VM's memory. The others have their words in the description already.
const PLACEMENTS: &[Placement] = &[Placement::Real, Placement::Resident];

/// What a vCPU gets if the file does not say.
const TIME_SLICE: Duration = Duration(5_000);

/// Reads a whole system.
pub(super) fn read(document: &Document) -> Result<System, Mistakes> {
    let origin = Origin::File(0..0);
    let mut root = Section::new(document, document.root(), String::new(), origin.clone());

    let harts = root.required("harts", "4").and_then(|node| {
        let value = root.integer(node, "harts", 1..=BOARD_HARTS)?;
        Some(Located {
            value,
            origin: node.origin.clone(),
        })
    });
    let memory = root.size("memory", "2 GiB");
    let guest_files = root.optional("guest-files");
    let guest_files =
        guest_files.and_then(|node| root.integer(node, "guest-files", 0..=BOARD_GUEST_FILES));
    let slice = u64::from(*TIME_SLICE_US.start())..=u64::from(*TIME_SLICE_US.end());
    let time_slice = root.duration("time-slice", slice).unwrap_or(TIME_SLICE);
    let spin = root.word(
        "spin",
        SpinMethod::ALL,
        SpinMethod::name,
        SpinMethod::Reservation,
    );
    let wait = root.word(
        "wait",
        WaitMethod::ALL,
        WaitMethod::name,
        WaitMethod::SelfWait,
    );
    let written = root.table.get("migration");
    let migration = Located {
        value: root.word(
            "migration",
            Migration::ALL,
            Migration::name,
            Migration::AsNeeded,
        ),
        origin: written.map_or(origin.clone(), |node| node.origin.clone()),
    };
    let scheduling = root.word(
        "scheduling",
        Scheduling::ALL,
        Scheduling::name,
        Scheduling::Floating,
    );
    let written = root.table.get("translations");
    let translations = Located {
        value: root.word(
            "translations",
            Translations::ALL,
            Translations::name,
            Translations::LastHost,
        ),
        origin: written.map_or(origin.clone(), |node| node.origin.clone()),
    };
    let parameters = read_parameters(&mut root, time_slice);
    let when_idle = root.word(
        "when-idle",
        WhenIdle::ALL,
        WhenIdle::name,
        WhenIdle::PowerOffAfterAll,
    );
    let time_limit = root.duration("time-limit", 1_000_000..=86_400_000_000);
    let console = root.optional("console");
    let console = console.and_then(|node| Some((node, root.text(node, "console", "partita")?)));

    let date = read_date(&mut root);
    let host = read_host(&mut root);

    let mut vms = Vec::new();
    let mut vm_problems = Vec::new();
    match root.required("vm", "..., one table [vm.NAME] for each virtual machine") {
        Some(Node {
            value: Value::Table(table),
            ..
        }) => {
            for (name, origin, node) in table.iter() {
                let Value::Table(vm_table) = &node.value else {
                    root.wrong_kind(node, &format!("vm.{name}"), "a table", "{ vcpus = 1 }");
                    continue;
                };
                let origin = match &node.origin {
                    Origin::File(range) if range.start < origin.position() => origin.clone(),
                    _ => node.origin.clone(),
                };
                let section =
                    Section::new(document, vm_table, format!("vm.{name}."), origin.clone());
                let (vm, problems) = read_vm(section, name, origin);
                vms.extend(vm);
                vm_problems.extend(problems);
            }
            let many = table.iter().count();
            if many == 0 || many > abi::system::MAX_VMS {
                let most = abi::system::MAX_VMS;
                let message = format!("there are {many} VMs");
                root.problems.push(Problem::new(
                    document,
                    &origin,
                    "vm",
                    message,
                    format!("describe 1 to {most}, each in a table [vm.NAME]"),
                ));
            }
        }
        Some(node) => root.wrong_kind(node, "vm", "a table", "{ NAME = { vcpus = 1 } }"),
        None => {}
    }

    if let Some((node, name)) = console
        && name != RESERVED_NAME
        && vm_problems.is_empty()
        && !vms.iter().any(|vm: &Vm| vm.name.as_str() == name)
    {
        let remedy = format!("name one of the VMs, or {RESERVED_NAME} for the operator's prompt");
        root.report(node, "console", String::from("no VM has this name"), remedy);
    }
    if let Some(node) = root.table.get("host-network")
        && let Some(host) = &host
        && vm_problems.is_empty()
        && !vms.iter().any(|vm: &Vm| {
            let mut cards = vm.network.iter();
            cards.any(|card| card.network.value == host.network)
        })
    {
        let remedy = String::from("name a network that a VM has a card on");
        root.report(
            node,
            "host-network",
            String::from("no VM is on this network"),
            remedy,
        );
    }
    let mut problems = root.finish();
    let complete = vm_problems.is_empty();
    problems.extend(vm_problems);
    // What is missing has been reported; the rest is checked all the same.
    let harts = harts.unwrap_or(Located {
        value: BOARD_HARTS,
        origin: origin.clone(),
    });
    let memory_known = memory.is_some();
    let memory = memory.unwrap_or(Located {
        value: Bytes(u64::MAX),
        origin,
    });
    let system = System {
        harts,
        memory,
        guest_files,
        time_slice,
        spin,
        wait,
        migration,
        scheduling,
        translations,
        parameters,
        when_idle,
        time_limit,
        console: console.map(|(_, name)| String::from(name)),
        // What is on the host's network wants to know what time it is there.
        date: date.unwrap_or(if host.is_some() {
            Date::Host
        } else {
            Date::FIXED
        }),
        host,
        vms,
    };
    problems.extend(verify::resources(
        document,
        &system,
        complete && memory_known,
    ));
    Mistakes::check(problems)?;
    Ok(system)
}

fn read_date(root: &mut Section<'_>) -> Option<Date> {
    let node = root.optional("date")?;
    let text = root.text(node, "date", "host")?;
    let date = Date::parse(text);
    if date.is_none() {
        let remedy =
            "use host, or a date and time such as 2026-01-31T12:00:00Z, in UTC from 1970 to 2199";
        root.report(
            node,
            "date",
            String::from("this is no date"),
            String::from(remedy),
        );
    }
    date
}

fn read_host(root: &mut Section<'_>) -> Option<HostNetwork> {
    let network = root.optional("host-network");
    let forward = root.optional("forward");
    let mut forwards = Vec::new();
    if let Some(node) = forward
        && let Some(text) = root.text(node, "forward", "2222:22")
    {
        for word in text.split_whitespace() {
            match Forward::parse(word) {
                Some(forward) => forwards.push(forward),
                None => {
                    let message = format!("{word} leads nowhere");
                    let remedy = "write HOST:GUEST or HOST:ADDRESS:GUEST, ports from 1 to 65535, with spaces between several";
                    root.report(node, "forward", message, String::from(remedy));
                }
            }
        }
        if network.is_none() {
            let remedy = String::from("say which with host-network = \"NAME\"");
            root.report(
                node,
                "forward",
                String::from("no network reaches the host"),
                remedy,
            );
        }
    }
    let network = root.text(network?, "host-network", "lan")?;
    Some(HostNetwork {
        network: String::from(network),
        forwards,
    })
}

/// Reads the policies' parameters. None needs the policy that it belongs to: policies are chosen while a system runs, too.
fn read_parameters(root: &mut Section<'_>, time_slice: Duration) -> Parameters {
    let mut integer = |key, range| {
        let node = root.optional(key)?;
        root.integer(node, key, range)
    };
    Parameters {
        affinity: integer("affinity", AFFINITY),
        self_wait_budget: integer("self-wait-budget", SELF_WAIT_BUDGET),
        round: integer("round", ROUND),
        relaxed_terms: integer("relaxed-terms", RELAXED_TERMS),
        costs: Costs {
            host_interrupt: integer("host-interrupt-cost", COST),
            futile_pass: integer("futile-pass-cost", COST),
            dispatch: integer("dispatch-cost", COST),
            mode_change: integer("mode-change-cost", COST),
        },
        reservation_limit_us: read_reservation_limit(root, time_slice),
    }
}

/// A wait for a word is not given up before a slice would have been over.
fn read_reservation_limit(root: &mut Section<'_>, time_slice: Duration) -> Option<u32> {
    let key = "reservation-limit";
    let (low, high) = (*RESERVATION_LIMIT_US.start(), *RESERVATION_LIMIT_US.end());
    let limit = root.duration(key, u64::from(low)..=u64::from(high))?;
    if limit.0 < time_slice.0 {
        let node = root.table.get(key)?;
        let message = format!("it is below the time slice, {time_slice}");
        let high = Duration(high.into());
        let remedy = format!("use {time_slice} to {high}, or a shorter time-slice");
        root.report(node, key, message, remedy);
    }
    u32::try_from(limit.0).ok()
}

/// Reads one VM: `None` if what is missing makes it none, and its mistakes.
fn read_vm(mut section: Section<'_>, name: &str, origin: Origin) -> (Option<Vm>, Vec<Problem>) {
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
        value: section.word("placement", PLACEMENTS, Placement::name, Placement::Real),
        origin: written.map_or(origin.clone(), |node| node.origin.clone()),
    };
    let allocation = read_allocation(&mut section);
    let kernel = section.required("kernel", "\"image:debian/kernel\"");
    let kernel = kernel.and_then(|node| section.file(node, "kernel"));
    let initrd = section.optional("initrd");
    let initrd = initrd.and_then(|node| section.file(node, "initrd"));
    let command_line = read_command_line(&mut section);
    let disks = section.list("disks", "[{ file = \"image:debian/disk\" }]");
    let disks = disks
        .iter()
        .enumerate()
        .filter_map(|(index, node)| read_disk(&mut section, index, node));
    let disks = disks.collect();
    let network = read_network(&mut section);
    let rng = section.boolean("rng", false);
    let terminals = read_terminals(&mut section);
    let autostart = section.boolean("autostart", true);
    let on_failure = section.word(
        "on-failure",
        OnFailure::ALL,
        OnFailure::name,
        OnFailure::Stop,
    );

    let vm = checked.zip(allocation).map(|(name, allocation)| {
        // As in `read`: what is missing has been reported.
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
            allocation,
            kernel: kernel.unwrap_or(Located {
                value: FileName::Path(PathBuf::new()),
                origin: origin.clone(),
            }),
            initrd,
            command_line,
            disks,
            network,
            rng,
            terminals,
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

fn read_disk<'a>(section: &mut Section<'a>, index: usize, node: &'a Node) -> Option<Disk> {
    let Value::Table(table) = &node.value else {
        section.wrong_kind(
            node,
            "disks",
            "a table",
            "[{ file = \"image:debian/disk\" }]",
        );
        return None;
    };
    let path = format!("{}disks[{index}].", section.path);
    let mut disk = Section::new(section.document, table, path, node.origin.clone());
    let file = disk.required("file", "\"image:debian/disk\"");
    let file = file.and_then(|node| disk.file(node, "file"));
    let keep = disk.boolean("keep", false);
    let slot = disk.optional("slot").and_then(|node| {
        let value = disk.integer(node, "slot", 0..=BOARD_SLOTS as u32 - 1)?;
        Some(Located {
            value: u8::try_from(value).ok()?,
            origin: node.origin.clone(),
        })
    });
    section.problems.extend(disk.finish());
    Some(Disk {
        file: file?,
        keep,
        slot,
    })
}

fn read_network(section: &mut Section<'_>) -> Vec<Card> {
    let mut cards = Vec::new();
    for node in section.list("network", "[\"lan\"]") {
        let Some(name) = section.text(node, "network", "lan") else {
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
        cards.push(Card { network });
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
