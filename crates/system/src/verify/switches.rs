//! Switches between VMs: as many as the hypervisor keeps, each with ports, and one port of each for a VM.

use crate::{Document, Problem, System};
use abi::keys;
use abi::system::{MAX_SHARING, MAX_SWITCHES};

/// Checks all switches of a system.
pub(super) fn check(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    if let Some(switch) = system.switches.get(MAX_SWITCHES) {
        let key = format!("switch.{}", switch.name);
        let message = format!("there are {} switches", system.switches.len());
        let remedy = format!("use {MAX_SWITCHES} at most");
        problems.push(Problem::new(document, &switch.origin, key, message, remedy));
    }
    for switch in &system.switches {
        let mut ports = system.vms.iter().flat_map(|vm| &vm.ports);
        if !ports.any(|port| port.value == switch.name) {
            let key = format!("switch.{}", switch.name);
            let message = "no VM has a port of this switch";
            let remedy = format!("give one to a VM: network = [{:?}]", switch.name);
            problems.push(Problem::new(document, &switch.origin, key, message, remedy));
        }
    }
    let mut sharing = 0;
    for vm in &system.vms {
        sharing += usize::from(vm.get(keys::BALLOON));
        for (number, port) in vm.ports.iter().enumerate() {
            let mut report = |message: String, remedy: String| {
                let key = format!("vm.{}.network", vm.name);
                let problem = Problem::new(document, &port.origin, key, message, remedy);
                problems.push(problem.with_value(document.source(&port.origin)));
            };
            let before = vm.ports.iter().take(number);
            if before.clone().any(|other| other.value == port.value) {
                report(
                    format!("the VM has a port of the switch {} already", port.value),
                    String::from("name each switch once"),
                );
            }
            sharing += 1;
            if sharing + vm.slices.len() > MAX_SHARING {
                report(
                    format!("the VMs have more than {MAX_SHARING} ports, slices and balloons"),
                    format!("use {MAX_SHARING} at most"),
                );
                return;
            }
        }
        sharing += vm.slices.len();
    }
}
