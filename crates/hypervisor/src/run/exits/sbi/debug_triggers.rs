//! SBI DBTR: debug triggers of the calling vCPU.

use riscv::sbi::debug_triggers::{
    COUNT, DISABLE, ENABLE, INSTALL, READ, SET_SHARED_MEMORY, UNINSTALL, UPDATE,
};

use super::call::{Call, SbiError, SbiResult};
use crate::hart::debug_triggers::MAX_TRIGGERS;
use crate::memory::physical::Physical;
use crate::run::debug_triggers::replace;
use crate::run::exits::exit::Exit;
use crate::system::features;
use crate::vm::debug_triggers::{Change, DebugTriggers, Refused, TYPE, TriggerError};

impl From<TriggerError> for SbiError {
    fn from(error: TriggerError) -> Self {
        match error {
            TriggerError::NotSupported => Self::NotSupported,
            TriggerError::InvalidParameter => Self::InvalidParameter,
            TriggerError::Failed => Self::Failed,
            TriggerError::BadRange => Self::BadRange,
        }
    }
}

/// Refusal of a call, and the value beside it.
struct Refusal(SbiError, u64);

impl<E: Into<SbiError>> From<E> for Refusal {
    fn from(error: E) -> Self {
        Self(error.into(), 0)
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        Self(refused.error.into(), refused.place as u64)
    }
}

/// Answers a DBTR call. Returns the value beside an error, too.
#[cold]
#[inline(never)]
pub fn call(exit: &mut Exit<'_>, call: &Call) -> (SbiResult, u64) {
    match answer(exit, call) {
        Ok(value) => (Ok(value), 0),
        Err(Refusal(error, value)) => (Err(error), value),
    }
}

fn answer(exit: &mut Exit<'_>, call: &Call) -> Result<u64, Refusal> {
    let max = features::triggers(exit.system);
    if max == 0 {
        return Err(SbiError::NotSupported.into());
    }
    let [first, second, third, ..] = call.arguments;
    let change = |exit: &mut Exit<'_>, change| {
        let mut new = exit.state.triggers;
        new.change((first, second), max, change)?;
        Ok(set(exit, new)?)
    };
    match call.function {
        COUNT if first == 0 || first & !(!0 >> 4) == TYPE => Ok(max as u64),
        COUNT => Ok(0),
        SET_SHARED_MEMORY => {
            let area = &mut exit.state.trigger_area;
            area.set([first, second, third], max, &exit.vm.memory)?;
            Ok(0)
        }
        READ => read(exit, (first, second), max),
        INSTALL => install(exit, first, max),
        UPDATE => update(exit, first, max),
        UNINSTALL => change(exit, Change::Uninstall),
        ENABLE => change(exit, Change::Enable),
        DISABLE => change(exit, Change::Disable),
        _ => Err(SbiError::NotSupported.into()),
    }
}

/// Makes the vCPU's triggers others, here on its hart too. Nothing has changed if the hart cannot have them.
fn set(exit: &mut Exit<'_>, new: DebugTriggers) -> Result<u64, SbiError> {
    let old = core::mem::replace(&mut exit.state.triggers, new);
    if replace(exit.hart, exit.vcpu, exit.state) {
        return Ok(0);
    }
    exit.state.triggers = old;
    let _ = replace(exit.hart, exit.vcpu, exit.state);
    Err(SbiError::Failed)
}

fn read(exit: &Exit<'_>, (first, count): (u64, u64), max: usize) -> Result<u64, Refusal> {
    let host = Physical::default();
    let area = exit.state.trigger_area.get(&exit.vm.memory, &host);
    let area = area.ok_or(SbiError::NoSharedMemory)?;
    let triggers = exit.state.triggers.read(first, count, max)?;
    for (entry, words) in triggers.enumerate() {
        area.write(entry, &words).ok_or(SbiError::Failed)?;
    }
    Ok(0)
}

/// Entries of the area, as many as a call names. The specification's text refuses as many as there are triggers; a caller that fills the area
/// means them.
fn entries(exit: &Exit<'_>, count: u64, max: usize) -> Result<[[u64; 4]; MAX_TRIGGERS], Refusal> {
    let host = Physical::default();
    let area = exit.state.trigger_area.get(&exit.vm.memory, &host);
    let area = area.ok_or(SbiError::NoSharedMemory)?;
    if count > max as u64 {
        return Err(SbiError::BadRange.into());
    }
    let mut entries = [[0; 4]; MAX_TRIGGERS];
    for (place, entry) in entries.iter_mut().take(count as usize).enumerate() {
        *entry = area.read(place).ok_or(SbiError::Failed)?;
    }
    Ok(entries)
}

fn install(exit: &mut Exit<'_>, count: u64, max: usize) -> Result<u64, Refusal> {
    let entries = entries(exit, count, max)?;
    let configurations = entries.map(|[_, control, data, extra]| [control, data, extra]);
    let configurations = configurations.get(..count as usize).unwrap_or_default();
    let mut new = exit.state.triggers;
    let numbers = new.install(configurations, max)?;
    set(exit, new)?;
    let host = Physical::default();
    let area = exit.state.trigger_area.get(&exit.vm.memory, &host);
    let area = area.ok_or(SbiError::NoSharedMemory)?;
    for (entry, number) in numbers.into_iter().take(count as usize).enumerate() {
        let written = area.write(entry, &[u64::from(number)]);
        written.ok_or(SbiError::Failed)?;
    }
    Ok(0)
}

fn update(exit: &mut Exit<'_>, count: u64, max: usize) -> Result<u64, Refusal> {
    let entries = entries(exit, count, max)?;
    let configurations =
        entries.map(|[number, control, data, extra]| (number, [control, data, extra]));
    let configurations = configurations.get(..count as usize).unwrap_or_default();
    let mut new = exit.state.triggers;
    new.update(configurations, max)?;
    Ok(set(exit, new)?)
}
