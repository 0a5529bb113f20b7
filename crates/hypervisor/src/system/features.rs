//! Firmware features that the harts and a VM's description offer to its vCPUs.

use abi::system::VmTranslation;
use riscv::csr::environment::{ADUE, PMM, SSE};

use crate::system::Hypervisor;
use crate::vm::Vm;
use crate::vm::firmware_features::Offer;
use board::isa::{SSNPM, SVADE, SVADU};

/// Number of debug triggers of each vCPU: all harts have so many.
#[must_use]
pub fn triggers(system: &Hypervisor) -> usize {
    let harts = system.harts.iter();
    let available = harts.map(|hart| hart.firmware_triggers.available());
    available.min().unwrap_or(0)
}

/// Features that all harts have, less those that are hidden from the VM.
#[must_use]
pub fn offer(system: &Hypervisor, vm: &Vm) -> Offer {
    let harts = system.harts.iter();
    let kept = harts.fold(u64::MAX, |kept, hart| kept & hart.offered_environment());
    let hides = |name: &str| vm.settings.hidden.contains(name);
    let of = |name, field| if hides(name) { field } else { 0 };
    // Shadow tables know no pages of shadow stacks.
    let shadowed = match vm.settings.translation {
        VmTranslation::Shadow => SSE,
        VmTranslation::TwoStage => 0,
    };
    Offer {
        environment: kept & !of(SVADU, ADUE) & !of(SSNPM, PMM) & !shadowed,
        always_updates: hides(SVADE),
    }
}
