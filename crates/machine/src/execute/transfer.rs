//! Loads and stores of integer and floating-point registers.

use super::Mode;
use super::position::{Position, Step};
use crate::hart::{Hart, Trapped};
use crate::instruction::Operation;
use crate::memory::{Scalar, StoreOutcome};
use crate::system::System;

/// Loads an integer register with what `extend` makes of the value.
#[inline(always)]
pub(super) fn load<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    extend: impl FnOnce(T) -> u64,
) -> Step {
    match load_value::<M, T>(hart, system, position) {
        Ok(value) => {
            hart.x[position.rd()] = extend(value);
            Step::Next
        }
        Err(_) => position.trap(hart),
    }
}

/// Stores the low part of an integer register.
#[inline(always)]
pub(super) fn store<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
) -> Step {
    let value = T::from_u64(hart.x[position.rs2()]);
    store_value::<M, T>(hart, system, position, value)
}

/// Loads of floating-point registers. What is narrower than the register is boxed (unprivileged specification, "NaN Boxing of
/// Narrower Values").
#[inline(always)]
pub(super) fn load_float<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
) -> Step {
    if hart.float_off {
        return float_is_off(hart, system, position);
    }
    let value = match position.operation() {
        Operation::Flh => load_value::<M, u16>(hart, system, position)
            .map(|value| u64::from(value) | 0xffff_ffff_ffff_0000),
        Operation::Flw => load_value::<M, u32>(hart, system, position)
            .map(|value| u64::from(value) | 0xffff_ffff_0000_0000),
        _ => load_value::<M, u64>(hart, system, position),
    };
    match value {
        Ok(value) => {
            hart.f[position.rd()] = value;
            hart.csrs.set_float_dirty(hart.mode().virtualized);
            Step::Next
        }
        Err(_) => position.trap(hart),
    }
}

/// Stores of floating-point registers.
#[inline(always)]
pub(super) fn store_float<M: Mode>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
) -> Step {
    if hart.float_off {
        return float_is_off(hart, system, position);
    }
    let value = hart.f[position.rs2()];
    match position.operation() {
        Operation::Fsh => store_value::<M, u16>(hart, system, position, value as u16),
        Operation::Fsw => store_value::<M, u32>(hart, system, position, value as u32),
        _ => store_value::<M, u64>(hart, system, position, value),
    }
}

/// Raises the exception of a floating-point instruction that is off or has no rounding mode.
#[inline(always)]
pub(super) fn float_is_off(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    hart.illegal_at(system, position.pc());
    position.trap(hart)
}

#[inline(always)]
fn load_value<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
) -> Result<T, Trapped> {
    let address = hart.x[position.rs1()].wrapping_add(position.immediate());
    load_at::<M, T>(hart, system, position, address)
}

/// Loads from an address.
#[inline(always)]
pub(super) fn load_at<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    address: u64,
) -> Result<T, Trapped> {
    let entry = hart.tlb.load_entry(address);
    if !entry.serves::<T>(address, hart.data_tag) {
        return hart.load_slow::<T>(system, address, position.count());
    }
    let offset = entry.addend.wrapping_add(address);
    if M::TIMED {
        hart.measure_load::<T>(system, address, offset, position.count())?;
    }
    // SAFETY: entries lead to whole pages of RAM, and serve what is inside.
    Ok(unsafe { system.memory.ram.read_unchecked::<T>(offset) })
}

#[inline(always)]
fn store_value<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    value: T,
) -> Step {
    let address = hart.x[position.rs1()].wrapping_add(position.immediate());
    let outcome = store_at::<M, T>(hart, system, position, address, value);
    position.stored(hart, outcome)
}

/// Stores to an address.
#[inline(always)]
pub(super) fn store_at<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    address: u64,
    value: T,
) -> Result<StoreOutcome, Trapped> {
    let entry = hart.tlb.store_entry(address);
    if !entry.serves::<T>(address, hart.data_tag) {
        let (count, current) = (position.count(), position.index());
        return hart.store_slow::<T>(system, address, value, count, current);
    }
    let offset = entry.addend.wrapping_add(address);
    if M::TIMED {
        hart.measure_store::<T>(system, address, offset, position.count())?;
    }
    // SAFETY: entries lead to whole pages of RAM, and serve what is inside.
    unsafe { system.memory.ram.write_unchecked::<T>(offset, value) };
    Ok(StoreOutcome::default())
}
