//! SBI FWFT: features that the calling vCPU switches.

use riscv::sbi::firmware_features::{GET, SET};

use super::call::{Call, SbiError, SbiResult};
use crate::memory::translations::remote::Operands;
use crate::run::exits::exit::Exit;
use crate::system::features;
use crate::vm::firmware_features::FeatureError;
use crate::vm::vcpu::request;

impl From<FeatureError> for SbiError {
    fn from(error: FeatureError) -> Self {
        match error {
            FeatureError::NotSupported => Self::NotSupported,
            FeatureError::InvalidParameter => Self::InvalidParameter,
            FeatureError::Denied => Self::Denied,
            FeatureError::Locked => Self::DeniedLocked,
        }
    }
}

/// Answers an FWFT call.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    let [feature, value, flags, ..] = call.arguments;
    let offer = features::offer(exit.system, exit.vm);
    let state = &mut *exit.state;
    match call.function {
        GET => Ok(state.features.get(feature, offer)?),
        SET => {
            let had_shadow_stack = state.features.has_shadow_stack();
            state.features.set([feature, value, flags], offer)?;
            if had_shadow_stack {
                state.supervisor.save_shadow_stack();
            }
            exit.hart.set_environment(state.features.environment());
            if state.features.has_shadow_stack() {
                // Until now the register held what another vCPU had left.
                state.supervisor.load_shadow_stack();
            }
            // Translations that were made under the former value are dropped (Svadu: an HFENCE.VVMA of everything).
            exit.vcpu.fences.push(Operands::default());
            let _ = exit.vcpu.post_request(request::FENCE_VIRTUAL);
            Ok(0)
        }
        _ => Err(SbiError::NotSupported),
    }
}
