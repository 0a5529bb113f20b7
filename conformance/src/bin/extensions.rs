//! The custom extensions of docs/reference/extensions.md, all of them on. Not for other machines.

#![no_std]
#![no_main]

use core::sync::atomic::{AtomicU64, Ordering};

use conformance::csr::{self, HSTATUS, ILLEGAL, VIRTUAL, VSIREG, VSISELECT, write_indirect};
use conformance::device::{self, supervisor_file};
use conformance::extension::{HPLEGAP, HPLEWINDOW, HPURGE, PAUSE, pause, pending_of};
use conformance::mode::{Mode, attempt, cause, run};
use conformance::suite::{Failure, gives, same};
use conformance::{harts, suite, trap};

suite!(
    "extensions",
    pending_own: "the pending test of the own hart gives hgeip",
    pending_other: "the pending test of another hart gives that hart's hgeip",
    pending_absent: "the pending test of a hart that does not exist gives zero",
    pending_modes: "the pending test is for M- and HS-mode",
    purge_bits: "hpurge has a bit for each hart",
    purge_guest_fence: "a fence in VS-mode clears the own bit of hpurge and sets the others",
    purge_host_fence: "fences in HS-mode and M-mode leave hpurge alone",
    purge_trapped_fence: "a fence that traps leaves hpurge alone",
    pause_fields: "hplegap and hplewindow hold 32 bits, and hplewindow bit 63",
    pause_window: "the first PAUSE beyond the window exits, and none before",
    pause_user: "PAUSE counts in VU-mode too",
    pause_supervisor: "with bit 63 of hplewindow PAUSE counts in VS-mode alone",
    pause_gap: "PAUSEs farther apart than the gap are no loop",
    pause_off: "a window of zero lets every PAUSE pass",
    pause_host: "PAUSE never exits with V = 0",
    pause_entry: "an entry begins a new loop",
    csr_modes: "the CSRs are for M- and HS-mode",
);

type Outcome = Result<(), Failure>;

const VGEIN_SHIFT: u32 = 12;
const VTVM: u64 = 1 << 20;
const LOOP: u64 = 3;
/// Bit 63 of hplewindow.
const SUPERVISOR_ONLY: u64 = 1 << 63;

fn open_guest_file(number: u64) {
    let _ = csr::clear::<HSTATUS>(0x3f << VGEIN_SHIFT);
    let _ = csr::set::<HSTATUS>(number << VGEIN_SHIFT);
    for (select, value) in [(0x80, 0), (0xc0, u64::MAX), (0x72, 0), (0x70, 1)] {
        let _ = write_indirect::<VSISELECT, VSIREG>(select, value);
    }
}

fn close_guest_file() -> u64 {
    let _ = write_indirect::<VSISELECT, VSIREG>(0x80, 0);
    0
}

fn pending_own() -> Outcome {
    open_guest_file(3);
    gives("before", pending_of(0), 0)?;
    device::write(supervisor_file(0, 3), 5);
    let after = pending_of(0);
    close_guest_file();
    gives("after a message", after, 1 << 3)?;
    gives("after the file is empty", pending_of(0), 0)
}

fn open_second_hart() -> u64 {
    open_guest_file(2);
    0
}

fn pending_other() -> Outcome {
    if !harts::is_present(1) {
        return Ok(());
    }
    harts::run_on(1, open_second_hart);
    gives("before", pending_of(1), 0)?;
    device::write(supervisor_file(1, 2), 9);
    let (other, own) = (pending_of(1), pending_of(0));
    harts::run_on(1, close_guest_file);
    gives("the other hart's", other, 1 << 2)?;
    gives("the own", own, 0)?;
    gives("after the file is empty", pending_of(1), 0)
}

fn pending_absent() -> Outcome {
    gives("hart 8", pending_of(8), 0)?;
    gives("a number beyond all harts", pending_of(1 << 32), 0)
}

extern "C" fn test_pending() -> u64 {
    cause(pending_of(0))
}

fn pending_modes() -> Outcome {
    same_cause("HS", attempt(Mode::Supervisor, test_pending), None)?;
    same_cause("U", attempt(Mode::User, test_pending), Some(ILLEGAL))?;
    same_cause(
        "VS",
        attempt(Mode::VirtualSupervisor, test_pending),
        Some(VIRTUAL),
    )?;
    same_cause(
        "VU",
        attempt(Mode::VirtualUser, test_pending),
        Some(VIRTUAL),
    )
}

fn same_cause(what: &'static str, found: Option<u64>, expected: Option<u64>) -> Outcome {
    same(
        what,
        found.unwrap_or(u64::MAX),
        expected.unwrap_or(u64::MAX),
    )
}

fn all_harts() -> u64 {
    (0..8)
        .filter(|&hart| harts::is_present_now(hart))
        .fold(0, |mask, hart| mask | 1 << hart)
}

fn purge_bits() -> Outcome {
    let _ = csr::write::<HPURGE>(u64::MAX);
    let others = all_harts() & !1;
    gives("all ones", csr::read::<HPURGE>(), others | 1)?;
    let _ = csr::write::<HPURGE>(0);
    gives("zero", csr::read::<HPURGE>(), 0)
}

extern "C" fn fence() -> u64 {
    trap::clear();
    // SAFETY: translation is off.
    unsafe { core::arch::asm!("sfence.vma x0, {0}", in(reg) 5) };
    trap::taken().map_or(u64::MAX, |trap| trap.cause)
}

fn purge_guest_fence() -> Outcome {
    let others = all_harts() & !1;
    let _ = csr::write::<HPURGE>(1);
    same_cause("the fence", attempt(Mode::VirtualSupervisor, fence), None)?;
    gives("hpurge", csr::read::<HPURGE>(), others)
}

fn purge_host_fence() -> Outcome {
    let _ = csr::write::<HPURGE>(1);
    same_cause("the fence", attempt(Mode::Supervisor, fence), None)?;
    fence();
    gives("hpurge", csr::read::<HPURGE>(), 1)
}

fn purge_trapped_fence() -> Outcome {
    let _ = csr::write::<HPURGE>(1);
    let _ = csr::set::<HSTATUS>(VTVM);
    let found = attempt(Mode::VirtualSupervisor, fence);
    let _ = csr::clear::<HSTATUS>(VTVM);
    same_cause("the fence", found, Some(VIRTUAL))?;
    gives("hpurge", csr::read::<HPURGE>(), 1)
}

fn pause_fields() -> Outcome {
    let _ = csr::write::<HPLEGAP>(u64::MAX);
    let _ = csr::write::<HPLEWINDOW>(u64::MAX);
    let (gap, window) = (csr::read::<HPLEGAP>(), csr::read::<HPLEWINDOW>());
    set_pause(0, 0);
    gives("hplegap", gap, 0xffff_ffff)?;
    gives("hplewindow", window, SUPERVISOR_ONLY | 0xffff_ffff)
}

fn set_pause(gap: u64, window: u64) {
    let _ = csr::write::<HPLEGAP>(gap);
    let _ = csr::write::<HPLEWINDOW>(window);
}

/// How many PAUSEs [`pause_some`] executes.
static COUNT: AtomicU64 = AtomicU64::new(0);

extern "C" fn pause_some() -> u64 {
    u64::from(pause(COUNT.load(Ordering::Relaxed)))
}

/// Tests whether `count` PAUSEs in a mode exit.
fn exits(mode: Mode, count: u64) -> u64 {
    COUNT.store(count, Ordering::Relaxed);
    run(mode, pause_some)
}

const WINDOW: u64 = 1000;
/// The PAUSEs that a loop makes within the window, in a machine where instructions take a cycle.
const WITHIN: u64 = WINDOW / LOOP + 1;

fn pause_window() -> Outcome {
    set_pause(LOOP, WINDOW);
    let within = exits(Mode::VirtualSupervisor, WITHIN);
    let beyond = exits(Mode::VirtualSupervisor, WITHIN + 1);
    let trap = trap::taken();
    set_pause(0, 0);
    same("within the window", within, 0)?;
    same("beyond the window", beyond, 1)?;
    same("the cause", trap.map_or(0, |trap| trap.cause), VIRTUAL)?;
    same("the trap value", trap.map_or(0, |trap| trap.value), PAUSE)
}

fn pause_user() -> Outcome {
    set_pause(LOOP, WINDOW);
    let beyond = exits(Mode::VirtualUser, WITHIN + 1);
    set_pause(0, 0);
    same("beyond the window", beyond, 1)
}

fn pause_supervisor() -> Outcome {
    set_pause(LOOP, SUPERVISOR_ONLY | WINDOW);
    let user = exits(Mode::VirtualUser, WITHIN + 1);
    let supervisor = exits(Mode::VirtualSupervisor, WITHIN + 1);
    set_pause(0, 0);
    same("beyond the window in VU-mode", user, 0)?;
    same("beyond the window in VS-mode", supervisor, 1)
}

fn pause_gap() -> Outcome {
    set_pause(LOOP - 1, WINDOW);
    let beyond = exits(Mode::VirtualSupervisor, 10 * WITHIN);
    set_pause(0, 0);
    same("a gap shorter than the loop", beyond, 0)
}

fn pause_off() -> Outcome {
    set_pause(LOOP, 0);
    same("exits", exits(Mode::VirtualSupervisor, 10 * WITHIN), 0)
}

fn pause_host() -> Outcome {
    set_pause(LOOP, WINDOW);
    let found = exits(Mode::Supervisor, 10 * WITHIN) + exits(Mode::User, 10 * WITHIN);
    set_pause(0, 0);
    same("exits", found, 0)
}

fn pause_entry() -> Outcome {
    set_pause(u64::MAX, WINDOW);
    let each = (0..20)
        .map(|_| exits(Mode::VirtualSupervisor, WITHIN / 2))
        .sum();
    set_pause(0, 0);
    same("exits", each, 0)
}

extern "C" fn read_gap() -> u64 {
    cause(csr::read::<HPLEGAP>())
}

extern "C" fn read_window() -> u64 {
    cause(csr::read::<HPLEWINDOW>())
}

extern "C" fn read_purge() -> u64 {
    cause(csr::read::<HPURGE>())
}

fn csr_modes() -> Outcome {
    for (name, function) in [
        ("hplegap", read_gap as extern "C" fn() -> u64),
        ("hplewindow", read_window),
        ("hpurge", read_purge),
    ] {
        same_cause(name, attempt(Mode::Supervisor, function), None)?;
        same_cause(name, attempt(Mode::User, function), Some(ILLEGAL))?;
        same_cause(
            name,
            attempt(Mode::VirtualSupervisor, function),
            Some(VIRTUAL),
        )?;
        same_cause(name, attempt(Mode::VirtualUser, function), Some(VIRTUAL))?;
    }
    Ok(())
}
