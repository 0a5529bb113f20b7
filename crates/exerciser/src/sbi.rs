//! Numbers of the SBI specification (2.0): extensions, error codes.

/// Result of a call (§3): an error code and a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Return {
    /// 0, or one of the negative error codes.
    pub error: i64,
    /// Value that the function returns.
    pub value: u64,
}

/// Base extension (chapter 4).
pub const BASE: u64 = 0x10;
/// KVM's number among the implementations (chapter 4, "SBI Implementation IDs").
pub const KVM: u64 = 3;
/// Timer extension (chapter 6).
pub const TIME: u64 = 0x5449_4d45;
/// Inter-processor interrupts (chapter 7).
pub const IPI: u64 = 0x0073_5049;
/// Remote fences (chapter 8).
pub const RFENCE: u64 = 0x5246_4e43;
/// Hart state management (chapter 9).
pub const HSM: u64 = 0x0048_534d;
/// System reset (chapter 10).
pub const SRST: u64 = 0x5352_5354;
/// Performance monitoring unit (chapter 11).
pub const PMU: u64 = 0x0050_4d55;
/// Debug console (chapter 12).
pub const DBCN: u64 = 0x4442_434e;
/// System suspend (chapter 13).
pub const SUSP: u64 = 0x5355_5350;
/// Collaborative processor performance control (chapter 14).
pub const CPPC: u64 = 0x4350_5043;
/// Nested acceleration (chapter 15).
pub const NACL: u64 = 0x4e41_434c;
/// Steal-time accounting (chapter 16).
pub const STA: u64 = 0x0053_5441;

/// The error codes of chapter 3: `SBI_SUCCESS` 0 down to `SBI_ERR_NO_SHMEM` -9; later versions end at -14.
pub const LOWEST_ERROR: i64 = -14;

/// `SBI_ERR_NOT_SUPPORTED`.
pub const NOT_SUPPORTED: i64 = -2;
/// `SBI_ERR_INVALID_PARAM`.
pub const INVALID_PARAM: i64 = -3;
/// `SBI_ERR_INVALID_ADDRESS`.
pub const INVALID_ADDRESS: i64 = -5;

/// `SBI_ERR_ALREADY_STARTED`.
pub const ALREADY_STARTED: i64 = -7;
/// `SBI_ERR_ALREADY_STOPPED`.
pub const ALREADY_STOPPED: i64 = -8;
/// `SBI_ERR_NO_SHMEM`.
pub const NO_SHMEM: i64 = -9;

/// Tests whether an error code is one that the specification defines.
#[must_use]
pub const fn is_defined_error(error: i64) -> bool {
    error <= 0 && error >= LOWEST_ERROR
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
        HSM => function == 0 && kind < 4096 || function == 1 || function == 3,
        // Types 0 to 2, and the vendor's from 0xf0000000 on (table "SRST system reset types").
        SRST => function == 0 && (kind <= 2 || kind >= 0xf000_0000),
        // Type 0, and the platform's from 0x80000000 on (table "SUSP system sleep types").
        SUSP => function == 0 && (kind == 0 || kind >= 0x8000_0000),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_numbers_are_the_names_in_ascii() {
        for (number, name) in [
            (TIME, "TIME"),
            (IPI, "sPI"),
            (RFENCE, "RFNC"),
            (HSM, "HSM"),
            (SRST, "SRST"),
            (PMU, "PMU"),
        ]
        .into_iter()
        .chain([
            (DBCN, "DBCN"),
            (SUSP, "SUSP"),
            (CPPC, "CPPC"),
            (NACL, "NACL"),
            (STA, "STA"),
        ]) {
            let spelled = name
                .bytes()
                .fold(0u64, |value, byte| value << 8 | u64::from(byte));
            assert_eq!(number, spelled, "{name}");
        }
    }

    #[test]
    fn errors_are_zero_or_small_and_negative() {
        assert!(is_defined_error(0) && is_defined_error(NOT_SUPPORTED));
        assert!(!is_defined_error(1) && !is_defined_error(-15) && !is_defined_error(i64::MIN));
    }
}
