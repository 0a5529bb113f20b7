//! SBI Base: implementation, version, and probes of extensions.

use riscv::sbi::base;

use super::call::{Call, SbiError, SbiResult, extension};
use crate::hart::firmware;
use crate::run::exits::exit::Exit;
use crate::system::features;

/// No number is registered for Partita; this one ("PART") is far from those that are.
const IMPLEMENTATION: u64 = 0x5041_5254;
const IMPLEMENTATION_VERSION: u64 = 1;

/// Answers a Base call.
pub fn call(exit: &Exit<'_>, call: &Call) -> SbiResult {
    Ok(match call.function {
        base::SPECIFICATION_VERSION => base::VERSION_3_0,
        base::IMPLEMENTATION_ID => IMPLEMENTATION,
        base::IMPLEMENTATION_VERSION => IMPLEMENTATION_VERSION,
        base::PROBE_EXTENSION => u64::from(offers(exit, call.arguments[0])),
        base::MACHINE_VENDOR => firmware::machine_identity().vendor,
        base::MACHINE_ARCHITECTURE => firmware::machine_identity().architecture,
        base::MACHINE_IMPLEMENTATION => firmware::machine_identity().implementation,
        _ => return Err(SbiError::NotSupported),
    })
}

/// Returns true if the guest has the extension.
fn offers(exit: &Exit<'_>, which: u64) -> bool {
    let counts = exit.system.counters.counters() != 0;
    let switches = || features::offer(exit.system, exit.vm).is_any();
    extension::ALL.contains(&which)
        || which == extension::PMU && counts
        || which == extension::FWFT && switches()
        || which == extension::DBTR && features::triggers(exit.system) != 0
}
