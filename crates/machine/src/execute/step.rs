//! One instruction: its room, by its operation.

use super::control::{branch, branch_zero};
use super::measure::cost;
use super::position::{Position, Step};
use super::transfer::{load, store};
use super::{Mode, control, integer, shadow_stack, transfer, vector};
use crate::hart::{Hart, Trapped};
use crate::instruction::{FloatOperation, Operation};
use crate::profile::Costs;
use crate::system::System;

/// Executes an instruction. Operations that are executed often have arms of their own, since a match within a match is a second
/// dispatch.
#[inline(always)]
pub(super) fn step<M: Mode>(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    use Operation as Op;
    match position.operation() {
        Op::Stale | Op::FallThrough | Op::Jump | Op::Jal | Op::Jalr => {
            control::jump::<M>(hart, system, position)
        }
        Op::Beq => branch::<M>(hart, system, position, |a, b| a == b),
        Op::Bne => branch::<M>(hart, system, position, |a, b| a != b),
        Op::Blt => branch::<M>(hart, system, position, |a, b| {
            a.cast_signed() < b.cast_signed()
        }),
        Op::Bge => branch::<M>(hart, system, position, |a, b| {
            a.cast_signed() >= b.cast_signed()
        }),
        Op::Bltu => branch::<M>(hart, system, position, |a, b| a < b),
        Op::Bgeu => branch::<M>(hart, system, position, |a, b| a >= b),
        Op::Beqz => branch_zero::<M>(hart, system, position, |a| a == 0),
        Op::Bnez => branch_zero::<M>(hart, system, position, |a| a != 0),
        Op::Lb => load::<M, u8>(hart, system, position, |v| v as i8 as i64 as u64),
        Op::Lh => load::<M, u16>(hart, system, position, |v| v as i16 as i64 as u64),
        Op::Lw => load::<M, u32>(hart, system, position, |v| v as i32 as i64 as u64),
        Op::Ld => load::<M, u64>(hart, system, position, |v| v),
        Op::Lbu => load::<M, u8>(hart, system, position, u64::from),
        Op::Lhu => load::<M, u16>(hart, system, position, u64::from),
        Op::Lwu => load::<M, u32>(hart, system, position, u64::from),
        Op::Sb => store::<M, u8>(hart, system, position),
        Op::Sh => store::<M, u16>(hart, system, position),
        Op::Sw => store::<M, u32>(hart, system, position),
        Op::Sd => store::<M, u64>(hart, system, position),
        Op::Flh | Op::Flw | Op::Fld => transfer::load_float::<M>(hart, system, position),
        Op::Fsh | Op::Fsw | Op::Fsd => transfer::store_float::<M>(hart, system, position),

        Op::Nop => Step::Next,
        Op::LoadImmediate => write(hart, position, position.immediate()),
        Op::Move => write(hart, position, hart.x[position.rs1()]),
        Op::Auipc => {
            let value = position.pc().wrapping_add(position.immediate());
            write(hart, position, value)
        }
        Op::Mul | Op::Mulh | Op::Mulhsu | Op::Mulhu | Op::Mulw => {
            compute::<M>(hart, system, position, |costs| costs.multiply)
        }
        Op::Div | Op::Divu | Op::Rem | Op::Remu | Op::Divw | Op::Divuw | Op::Remw | Op::Remuw => {
            compute::<M>(hart, system, position, |costs| costs.divide)
        }
        Op::Float => float::<M>(hart, system, position),
        Op::Vector => vector::compute::<M>(hart, system, position),
        Op::VectorTransfer => vector::transfer::<M>(hart, system, position),

        Op::LrW => {
            let value = hart.load_reserved::<u32>(system, position.instruction());
            reserved(hart, position, value.map(integer::word))
        }
        Op::LrD => {
            let value = hart.load_reserved::<u64>(system, position.instruction());
            reserved(hart, position, value)
        }
        Op::ScW
        | Op::ScD
        | Op::AmoW
        | Op::AmoD
        | Op::AmoNarrow
        | Op::ShadowSwap
        | Op::CompareAndSwap => {
            let outcome = hart.atomic(system, position.instruction(), position.index());
            position.stored(hart, outcome)
        }
        Op::ShadowStack => shadow_stack::step(hart, system, position),
        Op::CacheBlock => {
            let outcome = hart.cache_block(system, position.instruction(), position.index());
            position.stored(hart, outcome)
        }

        Op::Fence => {
            if M::TIMED {
                let (id, now) = (hart.id, hart.cycles);
                let timing = system.timing.as_ref();
                hart.cycles += timing.map_or(0, |timing| timing.fence_stores(id, now));
            }
            Step::Next
        }
        Op::Pause => pause::<M>(hart, system, position),
        Op::FenceI => control::fence_instructions::<M>(hart, system, position),
        Op::Csr | Op::System => control::privileged::<M>(hart, system, position),
        Op::Illegal => position.illegal(hart),
        // All that is left only computes.
        _ => compute::<M>(hart, system, position, |_| 0),
    }
}

#[inline(always)]
fn write(hart: &mut Hart, position: Position, value: u64) -> Step {
    hart.x[position.rd()] = value;
    Step::Next
}

/// Computes from registers and the immediate alone.
#[inline(always)]
fn compute<M: Mode>(
    hart: &mut Hart,
    system: &System,
    position: Position,
    of: impl FnOnce(&Costs) -> u64,
) -> Step {
    if M::TIMED {
        hart.cycles += cost(system, of);
    }
    match integer::computed(position.operation(), &hart.x, position.borrowed()) {
        Some(value) => write(hart, position, value),
        None => position.illegal(hart),
    }
}

#[inline(always)]
fn float<M: Mode>(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    if M::TIMED {
        let divides = FloatOperation::unpack(position.field()).divides();
        hart.cycles += cost(system, |costs| {
            if divides {
                costs.float_divide
            } else {
                costs.float
            }
        });
    }
    if hart.float_off || hart.float(position.instruction()).is_err() {
        return transfer::float_is_off(hart, system, position);
    }
    Step::Next
}

/// Writes the value of LR.
#[inline(always)]
fn reserved(hart: &mut Hart, position: Position, value: Result<u64, Trapped>) -> Step {
    match value {
        Ok(value) => write(hart, position, value),
        Err(_) => position.trap(hart),
    }
}

#[inline(always)]
fn pause<M: Mode>(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    if M::TIMED {
        hart.cycles += cost(system, |costs| costs.pause);
    }
    if hart.events.is_some() {
        hart.note_pause(system, position.pc(), position.count());
    }
    if hart.extension.pause.is_armed() && hart.pause(position.count()).is_err() {
        return position.trap(hart);
    }
    Step::Next
}
