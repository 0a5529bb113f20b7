//! SBI STA: steal-time accounting of the calling vCPU.

use riscv::sbi::steal_time::SET_AREA;

use super::call::{Call, SbiError, SbiResult};
use crate::memory::physical::Physical;
use crate::run::exits::exit::Exit;
use crate::system::now;
use crate::vm::steal_time::AreaError;

impl From<AreaError> for SbiError {
    fn from(error: AreaError) -> Self {
        match error {
            AreaError::InvalidParameter => Self::InvalidParameter,
            AreaError::InvalidAddress => Self::InvalidAddress,
            AreaError::NoFrame => Self::Failed,
        }
    }
}

/// Answers an STA call.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    if call.function != SET_AREA {
        return Err(SbiError::NotSupported);
    }
    let [low, high, flags, ..] = call.arguments;
    let memory = (&exit.vm.memory, &Physical::default());
    let steal_time = &mut exit.state.steal_time;
    let outcome = steal_time.set_area([low, high, flags], now().get(), memory);
    exit.state.reports_steal_time = steal_time.is_on();
    Ok(outcome.map(|()| 0)?)
}
