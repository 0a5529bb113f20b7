//! Vector instructions, by way of [`crate::vector`].

use super::Mode;
use super::position::{Position, Step};
use super::transfer::{load_at, store_at};
use crate::float::{Flags, Rounding};
use crate::hart::{Hart, Trapped};
use crate::instruction::DISCARD;
use crate::memory::{Scalar, StoreOutcome};
use crate::system::System;
use crate::vector::{Encoding, Issue, Output, Transfer, Width};

impl Hart {
    /// Notes that vector state has changed. Every vector instruction that completes or traps in the middle does: it writes
    /// vstart.
    pub(super) fn note_vector(&mut self) {
        let virtualized = self.mode().virtualized;
        self.csrs.set_vector_dirty(virtualized);
    }

    /// The encoding of an instruction that executes out of line.
    const fn encoding_of(position: Position) -> Encoding {
        Encoding(position.field().cast_unsigned())
    }
}

/// An instruction of the opcodes OP-V and OP-VE.
#[inline(never)]
pub(super) fn compute(hart: &mut Hart, position: Position) -> Step {
    if hart.vector_off {
        return position.illegal(hart);
    }
    let encoding = Hart::encoding_of(position);
    let mut issue = Issue {
        encoding,
        integer: hart.x[usize::from(encoding.vs1())],
        second: hart.x[usize::from(encoding.vs2())],
        float: hart.f[usize::from(encoding.vs1())],
        rounding: Rounding::from_encoding(hart.csrs.frm as u8),
        float_on: !hart.float_off,
        flags: Flags(hart.csrs.fflags as u8),
        unit: &mut hart.vector,
    };
    let output = issue.execute();
    let flags = u64::from(issue.flags.0);
    let Ok(output) = output else {
        return position.illegal(hart);
    };
    let virtualized = hart.mode().virtualized;
    let raised = flags != hart.csrs.fflags;
    hart.csrs.fflags = flags;
    if raised || matches!(output, Output::Float(_)) {
        hart.csrs.set_float_dirty(virtualized);
    }
    match output {
        Output::Vector => {}
        Output::Integer(value) => {
            let rd = match encoding.vd() {
                0 => DISCARD,
                register => register,
            };
            hart.x[usize::from(rd)] = value;
        }
        Output::Float(value) => hart.f[usize::from(encoding.vd())] = value,
    }
    hart.note_vector();
    Step::Next
}

/// A vector load or store.
#[inline(never)]
pub(super) fn transfer<M: Mode>(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    if hart.vector_off {
        return position.illegal(hart);
    }
    let encoding = Hart::encoding_of(position);
    let base = hart.x[usize::from(encoding.vs1())];
    let stride = hart.x[usize::from(encoding.vs2())];
    let Ok(transfer) = Transfer::new(&hart.vector, encoding, base, stride) else {
        return position.illegal(hart);
    };
    let outcome = match transfer.width {
        Width::BYTE => elements::<M, u8>(hart, system, position, &transfer),
        Width::HALF => elements::<M, u16>(hart, system, position, &transfer),
        Width::WORD => elements::<M, u32>(hart, system, position, &transfer),
        _ => elements::<M, u64>(hart, system, position, &transfer),
    };
    hart.note_vector();
    position.stored(hart, outcome)
}

/// Moves elements from vstart on. The instruction can be executed again from the element that trapped, whose index is left in
/// vstart: "Exception Handling".
fn elements<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    transfer: &Transfer,
) -> Result<StoreOutcome, Trapped> {
    let mut outcome = StoreOutcome::default();
    for segment in usize::from(hart.vector.vstart)..transfer.end {
        if !transfer.is_active(&hart.vector, segment) {
            continue;
        }
        match move_segment::<M, T>(hart, system, position, transfer, segment) {
            Ok(stored) => outcome.discarded_current |= stored.discarded_current,
            // A hart that gives its turn away has met no fault.
            Err(Trapped) if transfer.fault_only_first && segment > 0 && !hart.yielded => {
                hart.vector.truncate(segment);
                break;
            }
            Err(Trapped) => {
                // Below VLEN: the greatest index is that of a byte in a group of eight registers.
                hart.vector.set_vstart(segment as u64);
                return Err(Trapped);
            }
        }
    }
    hart.vector.vstart = 0;
    Ok(outcome)
}

fn move_segment<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    transfer: &Transfer,
    segment: usize,
) -> Result<StoreOutcome, Trapped> {
    let mut outcome = StoreOutcome::default();
    for field in 0..transfer.fields {
        let address = transfer.address(&hart.vector, segment, field);
        if transfer.is_store {
            let value = T::from_u64(transfer.value(&hart.vector, segment, field));
            let stored = store_at::<M, T>(hart, system, position, address, value)?;
            outcome.discarded_current |= stored.discarded_current;
        } else {
            let value = load_at::<M, T>(hart, system, position, address)?.to_u64();
            transfer.put(&mut hart.vector, segment, field, value);
        }
    }
    Ok(outcome)
}
