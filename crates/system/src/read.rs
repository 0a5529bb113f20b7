//! From a document to a system: every key read by its rules, every mistake kept.

mod disks;
mod loops;
mod switches;
mod vm;

use super::document::{Document, Node, Origin, Value};
use super::section::Section;
use super::{
    BOARD_GUEST_FILES, BOARD_HARTS, Bytes, Date, Duration, Forward, HostNetwork, Located, Mistakes,
    Problem, System, Vm, verify,
};
use abi::system::{
    AFFINITY, COST, Costs, Migration, Parameters, Purging, Queue, RELAXED_TERMS,
    RESERVATION_LIMIT_US, RESERVED_NAME, ROUND, RemoteFences, SELF_WAIT_BUDGET, Scheduling,
    SpinMethod, TIME_SLICE_US, Translations, WaitMethod, WhenIdle,
};
pub use loops::PausePreset;
pub use vm::MOST_TERMINALS;
use vm::read_vm;

impl System {
    /// Reads a document.
    ///
    /// # Errors
    /// Every mistake, missing files among them.
    pub fn read(document: &Document) -> Result<Self, Mistakes> {
        read(document)
    }
}

/// Reads a whole system.
fn read(document: &Document) -> Result<System, Mistakes> {
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
    let time_slice = root.duration("time-slice", slice);
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
    let queue = root.word("queue", Queue::ALL, Queue::name, Queue::Single);
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
    let purge = root.word("purge", Purging::ALL, Purging::name, Purging::Fence);
    let remote_fences = root.word(
        "remote-fences",
        RemoteFences::ALL,
        RemoteFences::name,
        RemoteFences::Precise,
    );
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

    let disks = disks::read_shared(&mut root);
    let switches = switches::read_switches(&mut root);
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
                let (mut vm, problems) = read_vm(section, name, origin);
                if let Some(vm) = &mut vm {
                    vm_problems.extend(switches::divide(vm, &switches, document));
                }
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
        && !switches
            .iter()
            .any(|switch| switch.uplink && switch.name == host.network)
    {
        let is_switch = switches.iter().any(|switch| switch.name == host.network);
        let remedy = match is_switch {
            true => format!(
                "give the switch a card: [switch.{}] with uplink = true",
                host.network
            ),
            false => String::from("name a network that a VM has a card on"),
        };
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
        queue,
        scheduling,
        translations,
        purge,
        remote_fences,
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
        disks,
        switches,
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
fn read_parameters(root: &mut Section<'_>, time_slice: Option<Duration>) -> Parameters {
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
        pause_loops: loops::read_pause_loops(root),
    }
}

/// A wait for a word is not given up before a slice would have been over.
fn read_reservation_limit(root: &mut Section<'_>, time_slice: Option<Duration>) -> Option<u32> {
    let key = "reservation-limit";
    let (low, high) = (*RESERVATION_LIMIT_US.start(), *RESERVATION_LIMIT_US.end());
    let limit = root.duration(key, u64::from(low)..=u64::from(high))?;
    if let Some(time_slice) = time_slice
        && limit.0 < time_slice.0
    {
        let node = root.table.get(key)?;
        let message = format!("it is below the time slice, {time_slice}");
        let high = Duration(high.into());
        let remedy = format!("use {time_slice} to {high}, or a shorter time-slice");
        root.report(node, key, message, remedy);
    }
    u32::try_from(limit.0).ok()
}
