//! Numbers of major interrupts, as the cause registers hold them beside [`CAUSE`] (privileged architecture, sections "Machine
//! Cause Register" and "Trap Cause Codes" of the hypervisor extension; AIA, section 1.4).

/// The bit of a cause register that tells an interrupt from an exception (RV64).
pub const CAUSE: u64 = 1 << 63;

/// Supervisor software interrupt.
pub const SUPERVISOR_SOFTWARE: u32 = 1;
/// VS software interrupt.
pub const VIRTUAL_SUPERVISOR_SOFTWARE: u32 = 2;
/// Machine software interrupt.
pub const MACHINE_SOFTWARE: u32 = 3;
/// Supervisor timer interrupt.
pub const SUPERVISOR_TIMER: u32 = 5;
/// VS timer interrupt.
pub const VIRTUAL_SUPERVISOR_TIMER: u32 = 6;
/// Machine timer interrupt.
pub const MACHINE_TIMER: u32 = 7;
/// Supervisor external interrupt.
pub const SUPERVISOR_EXTERNAL: u32 = 9;
/// VS external interrupt.
pub const VIRTUAL_SUPERVISOR_EXTERNAL: u32 = 10;
/// Machine external interrupt.
pub const MACHINE_EXTERNAL: u32 = 11;
/// Supervisor guest external interrupt.
pub const SUPERVISOR_GUEST_EXTERNAL: u32 = 12;
/// Local counter-overflow interrupt (Sscofpmf).
pub const COUNTER_OVERFLOW: u32 = 13;

/// Value of a cause register for a major interrupt.
#[must_use]
pub const fn cause(number: u32) -> u64 {
    CAUSE | number as u64
}
