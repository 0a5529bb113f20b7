//! Disks that VMs serve to others: a VM of the system serves each, and has no slice of it.

use crate::{Document, Problem, System};
use abi::keys;
use abi::system::{MAX_SERVED, VmTranslation};

/// Checks all served disks of a system.
pub(super) fn check(document: &Document, system: &System, problems: &mut Vec<Problem>) {
    for (number, disk) in system.served.iter().enumerate() {
        let key = format!("disk.{}.served-by", disk.name);
        let origin = &disk.by.origin;
        let mut report = |message: String, remedy: String| {
            let problem = Problem::new(document, origin, key.as_str(), message, remedy);
            problems.push(problem.with_value(document.source(origin)));
        };
        let Some(server) = system.vm(&disk.by.value) else {
            let names: Vec<&str> = system.vms.iter().map(|vm| vm.name.as_str()).collect();
            let remedy = format!("name one of {}", names.join(", "));
            report(format!("no VM is called {:?}", disk.by.value), remedy);
            continue;
        };
        if server
            .slices
            .iter()
            .any(|slice| slice.of.value == disk.name)
        {
            report(
                String::from("the VM that serves the disk has a slice of it"),
                String::from(
                    "let its guest use what it keeps the disk in, and give slices to other VMs",
                ),
            );
        }
        if server.get(keys::TRANSLATION) == VmTranslation::Shadow {
            report(
                String::from(
                    "a VM that serves disks cannot have shadow tables, which keep what a page was",
                ),
                format!("take translation = \"shadow\" away from vm.{}", server.name),
            );
        }
        let before = system.served.iter().take(number);
        if before
            .filter(|other| other.by.value == disk.by.value)
            .count()
            == MAX_SERVED
        {
            report(
                format!("the VM serves {MAX_SERVED} disks already"),
                String::from("let another VM serve it, or give slices of one disk"),
            );
        }
    }
}
