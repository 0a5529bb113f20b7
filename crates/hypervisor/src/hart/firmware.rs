//! Calls of the computer's own firmware (RISC-V SBI specification 2.0), of which the hypervisor needs few.

use super::isa;

const BASE: u64 = 0x10;
const HART_STATE_MANAGEMENT: u64 = 0x48534D;
const SYSTEM_RESET: u64 = 0x53525354;
const DEBUG_CONSOLE: u64 = 0x4442434E;
const COUNTERS: u64 = 0x504D55;

/// An SBI error code (a negative number of the specification's table "Standard SBI Errors").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirmwareError(pub i64);

fn call(extension: u64, function: u64, arguments: [u64; 5]) -> Result<u64, FirmwareError> {
    let (error, value) = isa::call_firmware(extension, function, arguments);
    if error == 0 {
        Ok(value)
    } else {
        Err(FirmwareError(error))
    }
}

/// Identity of the computer, which guests can read too.
#[derive(Clone, Copy, Debug, Default)]
pub struct MachineIdentity {
    pub vendor: u64,
    pub architecture: u64,
    pub implementation: u64,
}

/// mvendorid, marchid and mimpid, 0 if the firmware gives none.
#[must_use]
pub fn machine_identity() -> MachineIdentity {
    let get = |function| call(BASE, function, [0; 5]).unwrap_or(0);
    MachineIdentity {
        vendor: get(4),
        architecture: get(5),
        implementation: get(6),
    }
}

/// Starts the hart `hart_id` at `address`, with `opaque` in its a1.
///
/// # Errors
/// The firmware's error, when there is no such hart or it is running.
pub fn start_hart(hart_id: u64, address: u64, opaque: u64) -> Result<(), FirmwareError> {
    call(HART_STATE_MANAGEMENT, 0, [hart_id, address, opaque, 0, 0]).map(drop)
}

/// State of a hart by the firmware (SBI, "Hart State Management Extension", table of states).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HartStatus(u64);

impl HartStatus {
    /// The hart is not running the hypervisor and can be started.
    pub const STOPPED: Self = Self(1);
}

/// State of the hart `hart_id`.
///
/// # Errors
/// The firmware's error, when there is no such hart.
pub fn hart_status(hart_id: u64) -> Result<HartStatus, FirmwareError> {
    call(HART_STATE_MANAGEMENT, 2, [hart_id, 0, 0, 0, 0]).map(HartStatus)
}

/// Kind of the board's last reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reset {
    PowerOff,
    PowerOffAfterFailure,
}

/// Powers the board off; stops the hart if the firmware cannot.
pub fn reset(kind: Reset) -> ! {
    let reason = match kind {
        Reset::PowerOff => 0,
        Reset::PowerOffAfterFailure => 1,
    };
    let _ = call(SYSTEM_RESET, 0, [0, reason, 0, 0, 0]);
    loop {
        super::wait_for_interrupt();
    }
}

/// Writes one byte to the firmware's debug console; used before the board's UART is known.
pub fn debug_byte(byte: u8) {
    let _ = call(DEBUG_CONSOLE, 2, [u64::from(byte), 0, 0, 0, 0]);
}

/// Probes the firmware for the PMU extension.
#[must_use]
pub fn has_counters() -> bool {
    call(BASE, 3, [COUNTERS, 0, 0, 0, 0]).is_ok_and(|found| found != 0)
}

/// Width and kind of `counter` (SBI, "Get details of a counter").
///
/// # Errors
/// The firmware's error, where there is none.
pub fn counter_information(counter: u8) -> Result<u64, FirmwareError> {
    call(COUNTERS, 1, [u64::from(counter), 0, 0, 0, 0])
}

/// Prepares one of the hart's counters `among` for an event, and returns its number.
///
/// # Errors
/// The firmware's error, where none can.
pub fn configure_counter(
    among: u32,
    flags: u64,
    event: u32,
    data: u64,
) -> Result<u64, FirmwareError> {
    let event = u64::from(event);
    call(COUNTERS, 2, [0, u64::from(among), flags, event, data])
}

/// Starts a counter at `value`.
///
/// # Errors
/// The firmware's error, where it has no event or counts already.
pub fn start_counter(counter: u8, value: u64) -> Result<(), FirmwareError> {
    const SET_VALUE: u64 = 1;
    call(COUNTERS, 3, [u64::from(counter), 1, SET_VALUE, value, 0]).map(drop)
}

/// Stops counters; with `reset` they lose their events. Stopped ones stay as they are.
pub fn stop_counters(counters: u32, reset: bool) {
    let flags = u64::from(reset);
    let _ = call(COUNTERS, 4, [0, u64::from(counters), flags, 0, 0]);
}
