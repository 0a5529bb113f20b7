//! SBI Base: implementation, version, and probes of extensions.

use super::call::{Call, SbiError, SbiResult, extension};
use crate::hart::firmware;
use crate::run::exits::exit::Exit;

/// Version 2.0 of the specification: major number in bits 30:24.
const SPECIFICATION_VERSION: u64 = 2 << 24;
/// No number is registered for Partita; this one ("PART") is far from those that are.
const IMPLEMENTATION: u64 = 0x5041_5254;
const IMPLEMENTATION_VERSION: u64 = 1;

/// Answers a Base call.
pub fn call(exit: &Exit<'_>, call: &Call) -> SbiResult {
    Ok(match call.function {
        0 => SPECIFICATION_VERSION,
        1 => IMPLEMENTATION,
        2 => IMPLEMENTATION_VERSION,
        3 => u64::from(offers(exit, call.arguments[0])),
        4 => firmware::machine_identity().vendor,
        5 => firmware::machine_identity().architecture,
        6 => firmware::machine_identity().implementation,
        _ => return Err(SbiError::NotSupported),
    })
}

/// Returns true if the guest has the extension.
fn offers(exit: &Exit<'_>, which: u64) -> bool {
    let counts = exit.system.counters.counters() != 0;
    extension::ALL.contains(&which) || which == extension::PMU && counts
}
