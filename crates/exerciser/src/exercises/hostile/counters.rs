//! Calls of the counters' extension (SBI, "Performance Monitoring Unit Extension") with counters, events and memory that
//! are not there, and as many counters at once as can be had.

use exerciser::instruction::{A1, csr_read};
use riscv::sbi::PMU;
use riscv::sbi::error::{
    ALREADY_STARTED, ALREADY_STOPPED, INVALID_ADDRESS, INVALID_PARAMETER, NO_SHARED_MEMORY,
    NOT_SUPPORTED,
};
use riscv::sbi::performance::{
    CONFIGURE, COUNTERS, CYCLES, INFORMATION, INSTRUCTIONS, RAW, READ_FIRMWARE, RESET,
    SET_SNAPSHOT_AREA, SET_VALUE, START, STOP, TAKE_SNAPSHOT as SNAPSHOT,
};

use super::monitor_calls::checked_call;
use super::{Siege, addresses, plain_setting, run_word};
use crate::arch::sandbox::Ending;
use crate::arch::{csr, sbi};
use crate::board::board;
use crate::console::say;

pub fn run(siege: &mut Siege) {
    if !siege.is_virtual() || !sbi::probe(PMU) {
        return;
    }
    let present = present();
    nothing_is_there(siege, present);
    shared_memory(siege);
    let taken = take_all(siege, present);
    // Whoever shares the hart has its counters to himself meanwhile, as often as he comes.
    let end = csr::time() + board().ticks(siege.storm_ms * 1000);
    while csr::time() < end {
        csr::pause();
    }
    say!("counters present={present:#x} taken={taken}");
}

/// Checks the error code of a call.
fn expect(siege: &mut Siege, function: u64, arguments: [u64; 6], wanted: i64) {
    let error = checked_call(siege, PMU, function, arguments);
    siege.check(
        error == Some(wanted),
        format_args!("pmu {function} {arguments:x?}: {error:?}, not {wanted}"),
    );
}

/// The counters, a bit each, hardware's and firmware's.
fn present() -> u64 {
    let count = sbi::call(PMU, COUNTERS, [0; 6]).value.min(64);
    (0..count)
        .filter(|counter| sbi::call(PMU, INFORMATION, [*counter, 0, 0, 0, 0, 0]).error == 0)
        .fold(0, |bits, counter| bits | 1 << counter)
}

/// Counters, flags and events that do not exist.
fn nothing_is_there(siege: &mut Siege, present: u64) {
    for (base, mask) in [
        (0, u64::MAX),
        (0, !present),
        (1, u64::MAX),
        (63, 1),
        (63, 3),
        (64, 1),
        (1 << 32, 1),
        (u64::MAX, 1),
        (u64::MAX, u64::MAX),
        (0u64.wrapping_sub(3), 1 << 6),
    ] {
        expect(
            siege,
            CONFIGURE,
            [base, mask, 0, CYCLES, 0, 0],
            INVALID_PARAMETER,
        );
        expect(
            siege,
            START,
            [base, mask, SET_VALUE, 0, 0, 0],
            INVALID_PARAMETER,
        );
        expect(siege, STOP, [base, mask, RESET, 0, 0, 0], INVALID_PARAMETER);
    }
    for counter in (64..72).chain([u64::MAX, 1 << 32, 1 << 63]) {
        let arguments = [counter, 0, 0, 0, 0, 0];
        expect(siege, INFORMATION, arguments, INVALID_PARAMETER);
        expect(siege, READ_FIRMWARE, arguments, INVALID_PARAMETER);
    }
    for counter in (0..32).filter(|counter| present >> counter & 1 != 0) {
        let arguments = [counter, 0, 0, 0, 0, 0];
        expect(siege, READ_FIRMWARE, arguments, INVALID_PARAMETER);
        // It has no event yet.
        let arguments = [counter, 1, SET_VALUE, 0, 0, 0];
        expect(siege, START, arguments, INVALID_PARAMETER);
    }
    for (flags, event, data) in [
        (0x100, CYCLES, 0),
        (u64::MAX, CYCLES, 0),
        (0, 0, 0),
        (0, CYCLES, 1),
        (0, 0x4_0000, 0),
        (0, 0x10_0001, 0),
        (0, u64::MAX, u64::MAX),
        (0, RAW | 1, 0),
        // The bits of mhpmevent that say in which modes it counts, and whether it has passed zero.
        (0, RAW, 1 << 48),
        (0, RAW, 1 << 62),
        (0, RAW, 1 << 63),
    ] {
        let arguments = [0, present, flags, event, data, 0];
        expect(siege, CONFIGURE, arguments, INVALID_PARAMETER);
    }
    // No counter at all, and an event of the firmware's that nobody counts.
    expect(siege, CONFIGURE, [0, 0, 0, CYCLES, 0, 0], NOT_SUPPORTED);
    expect(
        siege,
        CONFIGURE,
        [0, present, 0, 0xf_0003, 0, 0],
        NOT_SUPPORTED,
    );
}

/// Snapshots in shared memory: without it they are refused, and no page but one of the guest's is taken.
fn shared_memory(siege: &mut Siege) {
    let mut random = siege.random(12);
    expect(siege, STOP, [0, 0, SNAPSHOT, 0, 0, 0], NO_SHARED_MEMORY);
    expect(siege, START, [0, 0, SNAPSHOT, 0, 0, 0], NO_SHARED_MEMORY);
    let foreign = addresses::foreign(siege, &mut random).unwrap_or(0);
    for (page, above, flags, error) in [
        (foreign & !4095, 0, 0, INVALID_ADDRESS),
        (0, 0, 0, INVALID_ADDRESS),
        (siege.scrap, 1, 0, INVALID_ADDRESS),
        (siege.scrap + 8, 0, 0, INVALID_PARAMETER),
        (siege.scrap, 0, 1, INVALID_PARAMETER),
        (u64::MAX, 0, 0, INVALID_PARAMETER),
        (siege.scrap, 0, 0, 0),
        // Both halves are all ones: it is taken away.
        (u64::MAX, u64::MAX, 0, 0),
    ] {
        expect(
            siege,
            SET_SNAPSHOT_AREA,
            [page, above, flags, 0, 0, 0],
            error,
        );
    }
    expect(siege, STOP, [0, 0, SNAPSHOT, 0, 0, 0], NO_SHARED_MEMORY);
}

/// Every counter counts, and goes on to while the other tests run.
fn take_all(siege: &mut Siege, present: u64) -> u64 {
    let mut taken = 0;
    while let Some(error) = checked_call(siege, PMU, CONFIGURE, [0, present, 0, CYCLES, 0, 0]) {
        if error != 0 {
            siege.check(
                error == NOT_SUPPORTED,
                format_args!("pmu: no counter is left, but {error}"),
            );
            break;
        }
        taken += 1;
        if taken > 64 {
            siege.check(false, format_args!("pmu: more counters than there are"));
            break;
        }
    }
    // cycle counts cycles too, and instret has been left.
    expect(siege, CONFIGURE, [0, present, 0, INSTRUCTIONS, 0, 0], 0);
    let hardware = present & 0xffff_ffff;
    let start = [0, hardware, SET_VALUE, u64::MAX, 0, 0];
    expect(siege, START, start, 0);
    expect(siege, START, start, ALREADY_STARTED);
    expect(siege, STOP, [0, hardware, 0, 0, 0, 0], 0);
    expect(siege, STOP, [0, hardware, 0, 0, 0, 0], ALREADY_STOPPED);
    expect(siege, START, start, 0);
    for counter in (0..32u16).filter(|counter| hardware >> counter & 1 != 0) {
        let mut setting = plain_setting();
        let ending = run_word(csr_read(0xc00 + counter, A1), &mut setting);
        siege.check(
            ending == Ending::Completed,
            format_args!("pmu: counter {counter} cannot be read: {ending:x?}"),
        );
    }
    taken
}
