//! `partita check`.

use super::{Failure, SystemArguments};
use std::io::Write;

pub(super) fn execute(arguments: &SystemArguments) -> Result<(), Failure> {
    let system = arguments.read()?;
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
    // A reader that has gone needs no answer.
    let _ = writeln!(
        std::io::stdout(),
        "{file}: no mistakes: {vms} with {vcpus} on {harts}, {memory}"
    );
    Ok(())
}
