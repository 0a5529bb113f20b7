//! RISC-V Supervisor Binary Interface, version 3.0.

pub mod base;
pub mod debug_console;
pub mod debug_triggers;
pub mod error;
pub mod firmware_features;
pub mod hart_state;
pub mod performance;
pub mod remote_fence;
pub mod reset;
pub mod software_events;
pub mod steal_time;
pub mod suspend;

/// Base extension (chapter 4).
pub const BASE: u64 = 0x10;
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
/// Supervisor software events (chapter 17).
pub const SSE: u64 = 0x0053_5345;
/// Firmware features (chapter 18).
pub const FWFT: u64 = 0x4657_4654;
/// Debug triggers (chapter 19).
pub const DBTR: u64 = 0x4442_5452;
/// Message proxy (chapter 20).
pub const MPXY: u64 = 0x4d50_5859;

/// Half of a physical address that, in both halves, takes an area of shared memory away.
pub const NO_SHARED_MEMORY: u64 = u64::MAX;

/// `sbi_set_timer` of the timer extension.
pub const SET_TIMER: u64 = 0;
/// `sbi_send_ipi` of the IPI extension.
pub const SEND_IPI: u64 = 0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extension_numbers_spell_their_names() {
        for (number, name) in [
            (TIME, "TIME"),
            (IPI, "sPI"),
            (RFENCE, "RFNC"),
            (HSM, "HSM"),
            (SRST, "SRST"),
            (PMU, "PMU"),
            (DBCN, "DBCN"),
            (SUSP, "SUSP"),
            (CPPC, "CPPC"),
            (NACL, "NACL"),
            (STA, "STA"),
            (SSE, "SSE"),
            (FWFT, "FWFT"),
            (DBTR, "DBTR"),
            (MPXY, "MPXY"),
        ] {
            let spelled = name
                .bytes()
                .fold(0, |value, byte| value << 8 | u64::from(byte));
            assert_eq!(number, spelled, "{name}");
        }
    }
}
