//! The tables `[switch.NAME]` of a system file, and which of a VM's networks are switches.

use crate::document::Document;
use crate::section::Section;
use crate::{Problem, Switch, Vm};
use abi::keys::{self, Scope};
use abi::system::VmName;

/// Reads the tables `[switch.NAME]`.
pub(super) fn read_switches(root: &mut Section<'_>) -> Vec<Switch> {
    let mut all = Vec::new();
    for (name, mut section) in root.named_tables(keys::SWITCHES, |_| Scope::Switch) {
        let origin = section.origin.clone();
        if VmName::new(name).is_none() {
            section.problems.push(Problem::new(
                section.document,
                &origin,
                format!("switch.{name}"),
                "this is no name for a network",
                "use a letter, then letters, digits, - and _, at most 31 in all",
            ));
        }
        let uplink = section.settings().get(keys::UPLINK);
        root.problems.extend(section.finish());
        all.push(Switch {
            name: String::from(name),
            origin,
            uplink,
        });
    }
    all
}

/// The cards of a VM on networks that are switches are ports of these.
pub(super) fn divide(vm: &mut Vm, switches: &[Switch], document: &Document) -> Vec<Problem> {
    let is_port = |name: &str| switches.iter().any(|switch| switch.name == name);
    let all = std::mem::take(&mut vm.network).into_iter();
    let (ports, cards): (Vec<_>, _) = all.partition(|card| is_port(&card.network.value));
    let chosen = ports.iter().filter_map(|card| card.io.as_ref()).map(|io| {
        let key = format!("vm.{}.network", vm.name);
        let message = "this network is a switch, of which the hypervisor makes the VM a port";
        let remedy = "take io away, or name a network that is no switch";
        Problem::new(document, &io.origin, key, message, remedy).with_value(io.value.name())
    });
    let problems = chosen.collect();
    vm.ports = ports.into_iter().map(|card| card.network).collect();
    vm.network = cards;
    problems
}
