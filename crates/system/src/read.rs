//! From a document to a system: every key read by its rules, every mistake kept.

mod disks;
mod loops;
mod switches;
mod vm;

use super::document::{Document, Node, Origin, Value};
use super::section::Section;
use super::{
    BOARD_HARTS, Bytes, Date, Duration, Forward, HostNetwork, Located, Mistakes, Problem, Settings,
    Switch, System, Vm, verify,
};
use abi::keys::{self, Scope};
use abi::system::{MAX_VMS, RESERVED_NAME};
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
    let table = document.root();
    let mut root = Section::new(
        document,
        table,
        String::new(),
        origin.clone(),
        Scope::System,
    );
    let harts = required(&mut root);
    let memory = root.size(keys::MEMORY);
    let mut settings = root.settings();
    if let Some(mut experiment) = root.table_of(keys::EXPERIMENT) {
        settings.extend(loops::read_experiment(&mut experiment));
        root.problems.extend(experiment.finish());
    }
    check_reservation_limit(&mut root, &settings);
    let console = root.text_of(keys::CONSOLE);
    let date = read_date(&mut root);
    let host = read_host(&mut root);
    let (disks, served) = disks::read_shared(&mut root);
    let switches = switches::read_switches(&mut root);
    let (vms, vm_problems) = read_vms(&mut root, &switches);

    let complete = vm_problems.is_empty();
    if complete {
        check_console(&mut root, console, &vms);
        check_host_network(&mut root, host.as_ref(), &vms, &switches);
    }
    let mut problems = root.finish();
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
    // A guest on the host's network needs the present time.
    let without_date = if host.is_some() {
        Date::Host
    } else {
        Date::FIXED
    };
    let system = System {
        harts,
        memory,
        settings,
        console: console.map(|(_, name)| String::from(name)),
        date: date.unwrap_or(without_date),
        host,
        disks,
        served,
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

/// Reads the tables `[vm.NAME]`: the VMs, and their mistakes.
fn read_vms(root: &mut Section<'_>, switches: &[Switch]) -> (Vec<Vm>, Vec<Problem>) {
    let document = root.document;
    let (mut vms, mut problems) = (Vec::new(), Vec::new());
    let tables = root.named_tables(keys::VMS, |_| Scope::Vm);
    if let Some(Node {
        value: Value::Table(table),
        ..
    }) = root.table.get(keys::VMS.name())
        && !(1..=MAX_VMS).contains(&table.iter().count())
    {
        let message = format!("there are {} VMs", table.iter().count());
        let remedy = format!("describe 1 to {MAX_VMS}, each in a table [vm.NAME]");
        let problem = Problem::new(document, &root.origin, "vm", message, remedy);
        root.problems.push(problem);
    }
    for (name, section) in tables {
        let (mut vm, of_vm) = read_vm(section, name);
        if let Some(vm) = &mut vm {
            problems.extend(switches::divide(vm, switches, document));
        }
        vms.extend(vm);
        problems.extend(of_vm);
    }
    (vms, problems)
}

/// Checks that `console` names a VM or the operator's prompt.
fn check_console(root: &mut Section<'_>, console: Option<(&Node, &str)>, vms: &[Vm]) {
    let Some((node, name)) = console else {
        return;
    };
    if name != RESERVED_NAME && !vms.iter().any(|vm| vm.name.as_str() == name) {
        let remedy = format!("name one of the VMs, or {RESERVED_NAME} for the operator's prompt");
        root.report(node, "console", String::from("no VM has this name"), remedy);
    }
}

/// Checks that a VM's card or a switch's uplink is on the network that reaches the host's.
fn check_host_network(
    root: &mut Section<'_>,
    host: Option<&HostNetwork>,
    vms: &[Vm],
    switches: &[Switch],
) {
    let key = keys::HOST_NETWORK.name();
    let (Some(node), Some(host)) = (root.table.get(key), host) else {
        return;
    };
    let mut cards = vms.iter().flat_map(|vm| &vm.network);
    let on_card = cards.any(|card| card.network.value == host.network);
    let switch = switches.iter().find(|switch| switch.name == host.network);
    if on_card || switch.is_some_and(|switch| switch.uplink) {
        return;
    }
    let remedy = match switch {
        Some(switch) => format!(
            "give the switch a card: [switch.{}] with uplink = true",
            switch.name
        ),
        None => String::from("name a network that a VM has a card on"),
    };
    root.report(node, key, String::from("no VM is on this network"), remedy);
}

/// The number of harts.
fn required(root: &mut Section<'_>) -> Option<Located<u32>> {
    let node = root.node(keys::HARTS)?;
    let key = keys::HARTS;
    let value = root.number(node, key)?;
    let origin = node.origin.clone();
    Some(Located { value, origin })
}

fn read_date(root: &mut Section<'_>) -> Option<Date> {
    let (node, text) = root.text_of(keys::DATE)?;
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
    let network = root.text_of(keys::HOST_NETWORK);
    let mut forwards = Vec::new();
    if let Some((node, text)) = root.text_of(keys::FORWARD) {
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
        if root.table.get(keys::HOST_NETWORK.name()).is_none() {
            let remedy = String::from("say which with host-network = \"NAME\"");
            root.report(
                node,
                "forward",
                String::from("no network reaches the host"),
                remedy,
            );
        }
    }
    let (_, network) = network?;
    Some(HostNetwork {
        network: String::from(network),
        forwards,
    })
}

/// A wait for a word is not given up before a slice would have been over.
fn check_reservation_limit(root: &mut Section<'_>, settings: &Settings) {
    let key = keys::RESERVATION_LIMIT;
    let (Some(limit), Some(slice)) = (settings.given(key), settings.get(keys::TIME_SLICE)) else {
        return;
    };
    if limit < slice
        && let Some(node) = root.table.get(key.name())
    {
        let (slice, high) = (Duration(slice.into()), Duration(*key.limits().end()));
        let message = format!("it is below the time slice, {slice}");
        let remedy = format!("use {slice} to {high}, or a shorter time-slice");
        root.report(node, key.name(), message, remedy);
    }
}
