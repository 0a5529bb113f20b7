//! Calls by the SBI specification (3.0): what they return, and which of them end a run.

use riscv::sbi::{FWFT, HSM, SRST, SUSP, error, firmware_features, hart_state, reset};

/// Result of a call (§3): an error code and a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Return {
    /// 0, or one of the negative error codes.
    pub error: i64,
    /// Value that the function returns.
    pub value: u64,
}

/// Tests whether an error code is one that the specification defines.
#[must_use]
pub const fn is_defined_error(code: i64) -> bool {
    code <= error::SUCCESS && code >= error::LOWEST
}

/// Tests whether a call with these first arguments would do as asked and end, stop or suspend the caller, or start
/// a hart at the caller's wish: what a random caller must leave out to go on.
#[must_use]
pub const fn ends_run(extension: u64, function: u64, first: u64) -> bool {
    let kind = first & 0xffff_ffff;
    match extension {
        // Legacy shutdown (chapter 5).
        8 => true,
        // Start of a hart that may exist, stop, suspend.
        HSM => {
            function == hart_state::START && kind < 4096
                || function == hart_state::STOP
                || function == hart_state::SUSPEND
        }
        // Types 0 to 2, and the vendor's from 0xf0000000 on (table "SRST system reset types").
        SRST => {
            function == reset::SYSTEM_RESET
                && (kind <= reset::WARM_REBOOT || kind >= reset::FIRST_VENDOR_TYPE)
        }
        // Landing pads and double traps: the exerciser has no pads, and its trap handlers are not ready for another trap at once.
        FWFT => {
            function == firmware_features::SET
                && matches!(
                    kind,
                    firmware_features::LANDING_PAD | firmware_features::DOUBLE_TRAP
                )
        }
        // Type 0, and the platform's from 0x80000000 on (table "SUSP system sleep types").
        SUSP => function == 0 && (kind == 0 || kind >= 0x8000_0000),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_zero_or_small_and_negative() {
        assert!(is_defined_error(0) && is_defined_error(error::NOT_SUPPORTED));
        assert!(!is_defined_error(1) && !is_defined_error(-15) && !is_defined_error(i64::MIN));
    }
}
