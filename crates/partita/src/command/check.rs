//! `partita check`.

use super::{Failure, SystemArguments};
use std::io::Write;

pub(super) fn execute(arguments: &SystemArguments) -> Result<(), Failure> {
    let system = arguments.read()?;
    let vms = system.vms.len();
    let vcpus: u32 = system.vms.iter().map(|vm| vm.vcpus.value).sum();
    let (harts, memory) = (system.harts.value, system.memory.value);
    let file = arguments.file.display();
    // A reader that has gone needs no answer.
    let _ = writeln!(
        std::io::stdout(),
        "{file}: no mistakes: {vms} VMs with {vcpus} vCPUs on {harts} harts, {memory}"
    );
    Ok(())
}
