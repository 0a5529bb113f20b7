//! SBI PMU: the counters of a vCPU (`crate::hart::counters`).
//!
//! A guest may give a vCPU shared memory for snapshots of its counters. Linux (6.12 and later) then starts counters again after an overflow by a call
//! that names them from 64 × 64 on, where it means those from 0 on; such a call is answered as it is meant.

use riscv::sbi::performance::{
    self, EVENT_ENTRY_DATA, EVENT_ENTRY_OUTPUT, EVENT_ENTRY_SIZE, EVENT_INDEX,
};

use super::call::{Call, SbiError, SbiResult};
use crate::hart::counters::hart_counters::HartCounters;
use crate::hart::counters::{
    CallError, Configuration, CounterSet, FIRMWARE_COUNTERS, HARDWARE_COUNTERS, Selection,
};
use crate::hart::csr::number;
use crate::memory::address::GuestPhysical;
use crate::memory::physical::Physical;
use crate::run::exits::exit::Exit;
use crate::run::software_events;
use crate::vm::vcpu::VcpuState;

/// counter_info of `cycle` and `instret`: 64 bits, read from their CSRs.
const fn fixed_counter(counter: u8) -> u64 {
    63 << performance::INFORMATION_WIDTH_SHIFT | (number::COUNTERS + counter as u16) as u64
}

/// Number from which Linux names counters where it means 0.
const LINUX_BASE: u64 = 64 * 64;

/// Both flags of a stop.
const SNAPSHOT_AND_RESET: u64 = performance::TAKE_SNAPSHOT | performance::RESET;

impl From<CallError> for SbiError {
    fn from(error: CallError) -> Self {
        match error {
            CallError::Invalid => Self::InvalidParameter,
            CallError::NoCounter => Self::NotSupported,
            CallError::Started => Self::AlreadyStarted,
        }
    }
}

/// Entries of a list of events that are answered before the hart looks at other work: each may take two calls of the firmware.
const EVENTS_A_STEP: u64 = 8;

/// Answers a PMU call. A call without an answer is repeated with the same arguments.
pub fn call(exit: &mut Exit<'_>, call: &Call) -> Option<SbiResult> {
    if call.function == performance::EVENT_INFORMATION && exit.system.counters.counters() != 0 {
        let [low, high, count, flags, ..] = call.arguments;
        return event_information(exit, (low, high), count, flags).transpose();
    }
    let result = answer(exit, call);
    if exit.state.counters.take_event() {
        software_events::note_overflow(exit.vm, exit.vcpu);
    }
    Some(result)
}

fn answer(exit: &mut Exit<'_>, call: &Call) -> SbiResult {
    if exit.system.counters.counters() == 0 {
        return Err(SbiError::NotSupported);
    }
    let [first, mask, flags, fourth, fifth, _] = call.arguments;
    match call.function {
        performance::COUNTERS => Ok(u64::from(HARDWARE_COUNTERS.end() + 1 + FIRMWARE_COUNTERS)),
        performance::INFORMATION => information(exit, first),
        performance::CONFIGURE => configure(exit, named(exit, first, mask)?, flags, fourth, fifth),
        performance::START => {
            let base = match (flags, first) {
                (performance::INITIAL_SNAPSHOT, LINUX_BASE) => 0,
                _ => first,
            };
            start(exit, (named(exit, base, mask)?, base), flags, fourth)
        }
        performance::STOP => stop(exit, (named(exit, first, mask)?, first), flags),
        performance::SET_SNAPSHOT_AREA => {
            let area = &mut exit.state.counter_snapshot;
            area.set([first, mask, flags], &exit.vm.memory)?;
            Ok(0)
        }
        performance::READ_FIRMWARE => read(exit, first),
        // The upper half of 64 bits, which the call before gave already.
        performance::READ_FIRMWARE_HIGH => read(exit, first).map(|_| 0),
        _ => Err(SbiError::NotSupported),
    }
}

fn present(exit: &Exit<'_>) -> CounterSet {
    CounterSet::of_hardware(exit.system.counters.counters())
        .or(CounterSet::FIXED)
        .or(CounterSet::FIRMWARE)
}

fn named(exit: &Exit<'_>, base: u64, mask: u64) -> Result<CounterSet, SbiError> {
    CounterSet::named(base, mask, present(exit)).ok_or(SbiError::InvalidParameter)
}

fn one(exit: &Exit<'_>, counter: u64) -> Result<u8, SbiError> {
    let number = u8::try_from(counter).ok();
    number
        .filter(|number| present(exit).has(*number))
        .ok_or(SbiError::InvalidParameter)
}

fn information(exit: &Exit<'_>, counter: u64) -> SbiResult {
    let counter = one(exit, counter)?;
    if CounterSet::FIXED.has(counter) {
        return Ok(fixed_counter(counter));
    }
    let hardware = exit.system.counters.information(counter);
    Ok(hardware.unwrap_or(performance::INFORMATION_FIRMWARE))
}

fn configure(exit: &mut Exit<'_>, set: CounterSet, flags: u64, event: u64, data: u64) -> SbiResult {
    let configuration = Configuration::from_flags(flags).ok_or(SbiError::InvalidParameter)?;
    let selection = Selection::named(event, data).ok_or(SbiError::InvalidParameter)?;
    let counters = &mut exit.state.counters;
    let found = counters.configure(set, selection, configuration, &mut HartCounters)?;
    Ok(u64::from(found))
}

fn start(exit: &mut Exit<'_>, (set, base): (CounterSet, u64), flags: u64, value: u64) -> SbiResult {
    let VcpuState {
        counters,
        counter_snapshot,
        ..
    } = &mut *exit.state;
    let value = match flags {
        0 => None,
        performance::SET_VALUE => Some(value),
        performance::INITIAL_SNAPSHOT => {
            let host = Physical::default();
            let snapshot = counter_snapshot.get(&exit.vm.memory, &host);
            let snapshot = snapshot.ok_or(SbiError::NoSharedMemory)?;
            // A counter whose value cannot be read goes on from its own.
            let values = |counter| snapshot.value(u64::from(counter).checked_sub(base)?);
            counters.start_from(set, &values, &mut HartCounters)?;
            return Ok(0);
        }
        _ => return Err(SbiError::InvalidParameter),
    };
    counters.start(set, value, &mut HartCounters)?;
    Ok(0)
}

fn stop(exit: &mut Exit<'_>, (set, base): (CounterSet, u64), flags: u64) -> SbiResult {
    if flags & !SNAPSHOT_AND_RESET != 0 {
        return Err(SbiError::InvalidParameter);
    }
    let VcpuState {
        counters,
        counter_snapshot,
        ..
    } = &mut *exit.state;
    let reset = flags & performance::RESET != 0;
    if flags & performance::TAKE_SNAPSHOT == 0 {
        return stopped(counters.stop(set, reset, &mut HartCounters));
    }
    let host = Physical::default();
    let snapshot = counter_snapshot.get(&exit.vm.memory, &host);
    let snapshot = snapshot.ok_or(SbiError::NoSharedMemory)?;
    let all_counted = counters.stop(set, false, &mut HartCounters);
    let mut written = snapshot.set_overflows(counters.overflowed().bits_from(base));
    for counter in set.iter() {
        let place = u64::from(counter).checked_sub(base);
        let value = counters.read(counter, &HartCounters);
        if let (Some(place), Some(value)) = (place, value) {
            written = written.and(snapshot.set_value(place, value));
        }
    }
    if reset {
        let _ = counters.stop(set, true, &mut HartCounters);
    }
    written.ok_or(SbiError::Failed)?;
    stopped(all_counted)
}

const fn stopped(all_counted: bool) -> SbiResult {
    match all_counted {
        true => Ok(0),
        false => Err(SbiError::AlreadyStopped),
    }
}

/// Value of a firmware counter.
fn read(exit: &mut Exit<'_>, counter: u64) -> SbiResult {
    let counter = one(exit, counter)?;
    if !CounterSet::FIRMWARE.has(counter) {
        return Err(SbiError::InvalidParameter);
    }
    let value = exit.state.counters.read(counter, &HartCounters);
    value.ok_or(SbiError::InvalidParameter)
}

/// Says for each of `count` events in a list in the guest's memory whether it can be counted. `None` if there are more.
fn event_information(
    exit: &mut Exit<'_>,
    (low, high): (u64, u64),
    count: u64,
    flags: u64,
) -> Result<Option<u64>, SbiError> {
    if flags != 0 || !low.is_multiple_of(EVENT_ENTRY_SIZE) {
        return Err(SbiError::InvalidParameter);
    }
    let length = count.checked_mul(EVENT_ENTRY_SIZE);
    let list = length.and_then(|length| exit.vm.memory.bytes(GuestPhysical::new(low), length));
    let list = list.filter(|_| high == 0).ok_or(SbiError::InvalidAddress)?;
    let (host, present) = (Physical::default(), present(exit));
    let first = exit.state.events.done(low);
    let end = first.saturating_add(EVENTS_A_STEP).min(count);
    exit.state.events.note(low, 0);
    for entry in (first..end).map(|entry| entry * EVENT_ENTRY_SIZE) {
        let read = |offset| {
            let at = GuestPhysical::new(low).checked_add(entry + offset)?;
            exit.vm.memory.doubleword(at, &host)
        };
        let event = read(0).ok_or(SbiError::Failed)? as u32;
        let data = read(EVENT_ENTRY_DATA).ok_or(SbiError::Failed)?;
        if event & !EVENT_INDEX != 0 {
            return Err(SbiError::InvalidParameter);
        }
        let counts = match Selection::named(u64::from(event), data) {
            Some(selection) => {
                let counters = &exit.state.counters;
                let counts = counters.can_count(&selection, present, &mut HartCounters);
                counts.ok_or(SbiError::Failed)?
            }
            None => false,
        };
        list.write_word(entry + EVENT_ENTRY_OUTPUT, u32::from(counts), &host);
    }
    if end < count {
        exit.state.events.note(low, end);
        let context = &mut exit.state.context;
        context.program_counter = context.program_counter.wrapping_sub(4);
        return Ok(None);
    }
    Ok(Some(0))
}
