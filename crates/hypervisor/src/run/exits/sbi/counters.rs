//! SBI PMU: the counters of a vCPU (`crate::hart::counters`).
//!
//! There are no snapshots in shared memory. The guest finds what they would tell it in its registers, and Linux (6.12)
//! does not start counters again after an overflow where there are: it then names counters from 4096 on.

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

/// counter_info of `cycle` and `instret`: 64 bits, read from their CSRs.
const fn fixed_counter(counter: u8) -> u64 {
    63 << performance::INFORMATION_WIDTH_SHIFT | (number::COUNTERS + counter as u16) as u64
}

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
    Some(answer(exit, call))
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
        performance::START => start(exit, named(exit, first, mask)?, flags, fourth),
        performance::STOP => stop(exit, named(exit, first, mask)?, flags),
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

fn start(exit: &mut Exit<'_>, set: CounterSet, flags: u64, value: u64) -> SbiResult {
    let value = match flags {
        0 => None,
        performance::SET_VALUE => Some(value),
        performance::INITIAL_SNAPSHOT => return Err(SbiError::NoSharedMemory),
        _ => return Err(SbiError::InvalidParameter),
    };
    let counters = &mut exit.state.counters;
    counters.start(set, value, &mut HartCounters)?;
    Ok(0)
}

fn stop(exit: &mut Exit<'_>, set: CounterSet, flags: u64) -> SbiResult {
    let reset = match flags {
        0 | performance::RESET => flags == performance::RESET,
        performance::TAKE_SNAPSHOT | SNAPSHOT_AND_RESET => return Err(SbiError::NoSharedMemory),
        _ => return Err(SbiError::InvalidParameter),
    };
    let counters = &mut exit.state.counters;
    if counters.stop(set, reset, &mut HartCounters) {
        Ok(0)
    } else {
        Err(SbiError::AlreadyStopped)
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
