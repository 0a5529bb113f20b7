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
    let features = &mut exit.state.features;
    match call.function {
        GET => Ok(features.get(feature, offer)?),
        SET => {
            features.set([feature, value, flags], offer)?;
            exit.hart.set_environment(features.environment());
            // Translations that were made under the former value are dropped (Svadu: an HFENCE.VVMA of everything).
            exit.vcpu.fences.push(Operands::default());
            let _ = exit.vcpu.post_request(request::FENCE_VIRTUAL);
            Ok(0)
        }
        _ => Err(SbiError::NotSupported),
    }
}
