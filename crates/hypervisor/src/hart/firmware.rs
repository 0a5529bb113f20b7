//! Calls of the computer's own firmware (RISC-V SBI specification 2.0), of which the hypervisor needs few.

use core::sync::atomic::{AtomicU8, Ordering};

use riscv::sbi::{
    BASE, DBCN, DBTR, FWFT, HSM, IPI, PMU, SEND_IPI, SET_TIMER, SRST, TIME, base, debug_console,
    debug_triggers, firmware_features, hart_state, performance, reset as system_reset,
};

use super::isa;

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
        vendor: get(base::MACHINE_VENDOR),
        architecture: get(base::MACHINE_ARCHITECTURE),
        implementation: get(base::MACHINE_IMPLEMENTATION),
    }
}

/// Starts the hart `hart_id` at `address`, with `opaque` in its a1.
///
/// # Errors
/// The firmware's error, when there is no such hart or it is running.
pub fn start_hart(hart_id: u64, address: u64, opaque: u64) -> Result<(), FirmwareError> {
    call(HSM, hart_state::START, [hart_id, address, opaque, 0, 0]).map(drop)
}

/// State of a hart by the firmware (SBI, "Hart State Management Extension", table of states).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HartStatus(u64);

impl HartStatus {
    /// The hart is not running the hypervisor and can be started.
    pub const STOPPED: Self = Self(hart_state::STOPPED);
}

/// State of the hart `hart_id`.
///
/// # Errors
/// The firmware's error, when there is no such hart.
pub fn hart_status(hart_id: u64) -> Result<HartStatus, FirmwareError> {
    call(HSM, hart_state::STATUS, [hart_id, 0, 0, 0, 0]).map(HartStatus)
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
        Reset::PowerOff => system_reset::NO_REASON,
        Reset::PowerOffAfterFailure => system_reset::SYSTEM_FAILURE,
    };
    let arguments = [system_reset::SHUTDOWN, reason, 0, 0, 0];
    let _ = call(SRST, system_reset::SYSTEM_RESET, arguments);
    loop {
        super::wait_for_interrupt();
    }
}

/// Sets the timer of the calling hart, and clears its timer interrupt until then (SBI, "Timer Extension"). For harts without Sstc.
pub fn set_timer(at: u64) {
    let _ = call(TIME, SET_TIMER, [at, 0, 0, 0, 0]);
}

/// Makes the software interrupt of the hart `hart_id` pending (SBI, "IPI Extension"). For harts without interrupt files.
pub fn send_ipi(hart_id: u64) {
    let _ = call(IPI, SEND_IPI, [1, hart_id, 0, 0, 0]);
}

/// Writes one byte to the firmware's debug console; used where no UART of the board is known.
pub fn debug_byte(byte: u8) {
    let _ = call(DBCN, debug_console::WRITE_BYTE, [byte.into(), 0, 0, 0, 0]);
}

/// The next byte that came in by the firmware's debug console (SBI, "Console Read").
#[must_use]
pub fn debug_receive() -> Option<u8> {
    let byte = AtomicU8::new(0);
    let address = byte.as_ptr() as u64;
    let received = call(DBCN, debug_console::READ, [1, address, 0, 0, 0]) == Ok(1);
    received.then(|| byte.load(Ordering::Relaxed))
}

/// Probes the firmware for an extension.
#[must_use]
pub fn has_extension(extension: u64) -> bool {
    let found = call(BASE, base::PROBE_EXTENSION, [extension, 0, 0, 0, 0]);
    found.is_ok_and(|found| found != 0)
}

/// Probes the firmware for the PMU extension.
#[must_use]
pub fn has_counters() -> bool {
    has_extension(PMU)
}

/// Number of this hart's debug triggers that can have tdata1 `control`; of all where that is 0.
///
/// # Errors
/// The firmware's error.
pub fn trigger_count(control: u64) -> Result<u64, FirmwareError> {
    call(DBTR, debug_triggers::COUNT, [control, 0, 0, 0, 0])
}

/// Shares the memory at `address` with the firmware, for the debug triggers of this hart.
///
/// # Errors
/// The firmware's error.
pub fn share_for_triggers(address: u64) -> Result<(), FirmwareError> {
    let arguments = [address, 0, 0, 0, 0];
    call(DBTR, debug_triggers::SET_SHARED_MEMORY, arguments).map(drop)
}

/// Installs the first `count` debug triggers of the shared memory on this hart.
///
/// # Errors
/// The firmware's error; none is installed then.
pub fn install_triggers(count: u64) -> Result<(), FirmwareError> {
    call(DBTR, debug_triggers::INSTALL, [count, 0, 0, 0, 0]).map(drop)
}

/// Uninstalls debug triggers of this hart, a bit each.
///
/// # Errors
/// The firmware's error, if one is not installed.
pub fn uninstall_triggers(numbers: u64) -> Result<(), FirmwareError> {
    call(DBTR, debug_triggers::UNINSTALL, [0, numbers, 0, 0, 0]).map(drop)
}

/// Tests whether the firmware has a feature of this hart (SBI, "Firmware Features Extension").
#[must_use]
pub fn has_feature(feature: u64) -> bool {
    call(FWFT, firmware_features::GET, [feature, 0, 0, 0, 0]).is_ok()
}

/// Sets a feature of this hart, if the firmware has it.
pub fn set_feature(feature: u64, value: u64) {
    let _ = call(FWFT, firmware_features::SET, [feature, value, 0, 0, 0]);
}

/// Width and kind of `counter` (SBI, "Get details of a counter").
///
/// # Errors
/// The firmware's error, where there is none.
pub fn counter_information(counter: u8) -> Result<u64, FirmwareError> {
    call(PMU, performance::INFORMATION, [counter.into(), 0, 0, 0, 0])
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
    let arguments = [0, among.into(), flags, event.into(), data];
    call(PMU, performance::CONFIGURE, arguments)
}

/// Starts a counter at `value`.
///
/// # Errors
/// The firmware's error, where it has no event or counts already.
pub fn start_counter(counter: u8, value: u64) -> Result<(), FirmwareError> {
    let arguments = [counter.into(), 1, performance::SET_VALUE, value, 0];
    call(PMU, performance::START, arguments).map(drop)
}

/// Stops counters; with `reset` they lose their events. Stopped ones stay as they are.
pub fn stop_counters(counters: u32, reset: bool) {
    let flags = if reset { performance::RESET } else { 0 };
    let _ = call(PMU, performance::STOP, [0, counters.into(), flags, 0, 0]);
}
