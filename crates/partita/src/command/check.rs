//! `partita check`.

use super::failure::{Failure, at};
use super::input::SystemArguments;
use super::output;
use std::path::Path;

pub(super) fn execute(
    arguments: &SystemArguments,
    hypervisor: Option<&Path>,
) -> Result<(), Failure> {
    let system = match hypervisor {
        Some(hypervisor) => {
            std::fs::metadata(hypervisor).map_err(at(hypervisor))?;
            arguments.read_for(hypervisor)?
        }
        None => arguments.read()?,
    };
    let vms = system.vms.len();
    let vcpus: u32 = system.vms.iter().map(|vm| vm.vcpus.value).sum();
    let (harts, memory) = (system.harts.value, system.memory.value);
    let file = arguments.file.display();
    let count = |number: usize, what: &str| {
        let plural = if number == 1 { "" } else { "s" };
        format!("{number} {what}{plural}")
    };
    let (vms, vcpus) = (count(vms, "VM"), count(vcpus as usize, "vCPU"));
    let harts = count(harts as usize, "hart");
    let trusted: Vec<&str> = (system.vms.iter().filter(|vm| vm.drives_devices()))
        .map(|vm| vm.name.as_str())
        .collect();
    let mut text = format!("{file}: no mistakes: {vms} with {vcpus} on {harts}, {memory}\n");
    if !trusted.is_empty() {
        text += &format!(
            "  note: the guest of {} drives a device directly. Without an IOMMU the device reaches all memory, also that of other VMs. \
             Set io = \"general\" for a guest that you do not trust.\n",
            trusted.join(", ")
        );
    }
    output::say(format_args!("{text}"));
    Ok(())
}
