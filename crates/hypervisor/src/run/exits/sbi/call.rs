//! Parts that all extensions share: a call, its result, and the harts that it names.

use riscv::sbi::error;

use crate::run::exits::exit::Exit;
use crate::vm::vcpu::Vcpu;

/// Extension ids of the specification.
pub mod extension {
    pub use riscv::sbi::{
        BASE, DBCN, DBTR, FWFT, HSM, IPI, PMU, RFENCE, SRST, SSE, STA, SUSP, TIME,
    };

    pub const PARTITA: u64 = abi::sbi::EXTENSION as u64;
    /// Extensions that a probe finds on every board.
    pub const ALL: [u64; 11] = [
        BASE, TIME, IPI, RFENCE, HSM, SRST, DBCN, SUSP, STA, SSE, PARTITA,
    ];
}

/// The error codes of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(i64)]
pub enum SbiError {
    Failed = error::FAILED,
    NotSupported = error::NOT_SUPPORTED,
    InvalidParameter = error::INVALID_PARAMETER,
    Denied = error::DENIED,
    InvalidAddress = error::INVALID_ADDRESS,
    DeniedLocked = error::DENIED_LOCKED,
    AlreadyAvailable = error::ALREADY_AVAILABLE,
    AlreadyStarted = error::ALREADY_STARTED,
    AlreadyStopped = error::ALREADY_STOPPED,
    NoSharedMemory = error::NO_SHARED_MEMORY,
    InvalidState = error::INVALID_STATE,
    BadRange = error::BAD_RANGE,
}

/// Result of a call: a value, or an error.
pub type SbiResult = Result<u64, SbiError>;

/// A guest's call: function number and arguments as they stood in a6 and a0 to a5.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub function: u64,
    pub arguments: [u64; 6],
}

/// The vCPUs that a hart mask and its base name, or an error where one of them does not exist (SBI, "Hart list
/// parameter").
pub fn named<'a>(
    exit: &Exit<'a>,
    mask: u64,
    base: u64,
) -> Result<impl Iterator<Item = &'a Vcpu>, SbiError> {
    let all = exit.system.vcpus_of(exit.vm.id);
    let bits = match base {
        u64::MAX => u64::MAX,
        // More than 64 vCPUs never exist in one VM, so a bit above the last names no vCPU.
        _ => {
            let shifted = if base < 64 { mask << base } else { 0 };
            let lost = base >= 64 && mask != 0 || base < 64 && shifted >> base != mask;
            let beyond = (all.len() < 64 && shifted >> all.len() != 0) || lost;
            if beyond {
                return Err(SbiError::InvalidParameter);
            }
            shifted
        }
    };
    Ok(all.iter().filter(move |vcpu| bits >> vcpu.index & 1 != 0))
}
