//! Vector instructions, by way of [`crate::vector`].

use super::Mode;
use super::position::{Position, Step};
use super::transfer::{load_at, store_at};
use crate::base::{LINE_SHIFT, PAGE_BYTES};
use crate::float::{Flags, Rounding};
use crate::hart::{Hart, Trapped};
use crate::instruction::DISCARD;
use crate::memory::{Scalar, StoreOutcome};
use crate::system::System;
use crate::timing::VectorCosts;
use crate::vector::{Encoding, Issue, Output, Transfer, Width, Work};

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

/// A cost of the vector unit in cycles, 0 if the profile tells none.
fn vector_cost(system: &System, of: impl FnOnce(&VectorCosts) -> u64) -> u64 {
    let costs = system
        .timing
        .as_ref()
        .and_then(|timing| timing.vector.as_ref());
    costs.map_or(0, of)
}

/// An instruction of the opcodes OP-V and OP-VE.
#[inline(never)]
pub(super) fn compute<M: Mode>(hart: &mut Hart, system: &System, position: Position) -> Step {
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
        is_checked: hart.known.is_checked(&hart.vector, encoding),
        unit: &mut hart.vector,
    };
    let is_checked = issue.is_checked;
    let cycles = if M::TIMED {
        vector_cost(system, |costs| {
            costs.of_work(Work::of(issue.unit, encoding))
        })
    } else {
        0
    };
    let output = issue.execute();
    let flags = u64::from(issue.flags.0);
    let Ok(output) = output else {
        return position.illegal(hart);
    };
    // VSETVL and its likes, which change vtype, have no groups.
    if !is_checked && !encoding.is_configuration() {
        hart.known.note_checked(&hart.vector, encoding);
    }
    hart.cycles += cycles;
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
    if !M::TIMED && move_known(hart, system, encoding, base) {
        hart.note_vector();
        return Step::Next;
    }
    let stride = hart.x[usize::from(encoding.vs2())];
    let Ok(transfer) = Transfer::new(&hart.vector, encoding, base, stride) else {
        return position.illegal(hart);
    };
    let first = usize::from(hart.vector.vstart);
    if !M::TIMED {
        hart.known.note_run(&hart.vector, encoding, &transfer);
    }
    let outcome = match transfer.width {
        Width::BYTE => elements::<M, u8>(hart, system, position, &transfer),
        Width::HALF => elements::<M, u16>(hart, system, position, &transfer),
        Width::WORD => elements::<M, u32>(hart, system, position, &transfer),
        _ => elements::<M, u64>(hart, system, position, &transfer),
    };
    if M::TIMED && outcome.is_ok() {
        // A fault may have made vl smaller.
        let end = if transfer.fault_only_first {
            hart.vector.vl()
        } else {
            transfer.end
        };
        hart.cycles += vector_cost(system, |costs| {
            costs.of_movement(transfer.movement(first, end))
        });
    }
    hart.note_vector();
    position.stored(hart, outcome)
}

/// Makes a transfer that is known to be a run, from its beginning, if the host TLB has all of it in one page. Returns true then.
#[inline]
fn move_known(hart: &mut Hart, system: &mut System, encoding: Encoding, address: u64) -> bool {
    let Some(run) = hart.known.run(&hart.vector, encoding) else {
        return false;
    };
    let bytes = u64::from(run.bytes);
    let entry = if run.is_store {
        hart.tlb.store_entry(address)
    } else {
        hart.tlb.load_entry(address)
    };
    let is_here = entry.serves::<u8>(address, hart.data_tag)
        && bytes <= PAGE_BYTES - (address & (PAGE_BYTES - 1));
    if hart.vector.vstart != 0 || !is_here {
        return false;
    }
    let offset = entry.addend.wrapping_add(address);
    move_bytes(
        hart,
        system,
        (run.is_store, offset),
        (run.register, 0),
        bytes,
    );
    true
}

/// Copies bytes between memory from `offset` on and registers.
#[inline]
fn move_bytes(
    hart: &mut Hart,
    system: &mut System,
    (is_store, offset): (bool, u64),
    (register, from): (u8, usize),
    bytes: u64,
) {
    if is_store {
        let values = hart.vector.bytes(register, from, bytes as usize);
        if let Some(memory) = system.memory.ram.bytes_mut(offset, values.len() as u64) {
            memory.copy_from_slice(values);
        }
    } else {
        let values = hart.vector.bytes_mut(register, from, bytes as usize);
        let memory = system.memory.ram.bytes().get(offset as usize..);
        if let Some(memory) = memory.and_then(|memory| memory.get(..values.len())) {
            values.copy_from_slice(memory);
        }
    }
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
    let contiguous = transfer.is_contiguous();
    let mut segment = usize::from(hart.vector.vstart);
    while segment < transfer.end {
        let moved = if contiguous {
            move_run::<M, T>(hart, system, position, transfer, segment)
        } else {
            Ok(0)
        };
        let moved = match moved {
            Ok(0) if !transfer.is_active(&hart.vector, segment) => Ok(1),
            Ok(0) => {
                let stored = move_segment::<M, T>(hart, system, position, transfer, segment);
                stored.map(|stored| {
                    outcome.discarded_current |= stored.discarded_current;
                    1
                })
            }
            moved => moved,
        };
        match moved {
            Ok(count) => segment += count,
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

/// Moves as many elements of a contiguous transfer at once as the host TLB has in one page, from one on; gives how many. None, and
/// nothing has happened, where each of them has to be looked at.
///
/// In the timing mode a line is charged for once: the first element that is in it makes the access, and the others hit the line that
/// has come, which costs nothing and changes nothing in the models. A line that is charged for ends what is moved before.
fn move_run<M: Mode, T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    transfer: &Transfer,
    first: usize,
) -> Result<usize, Trapped> {
    let address = transfer.address(&hart.vector, first, 0);
    let entry = if transfer.is_store {
        hart.tlb.store_entry(address)
    } else {
        hart.tlb.load_entry(address)
    };
    if !entry.serves::<u8>(address, hart.data_tag) || M::TIMED && !address.is_multiple_of(T::SIZE) {
        return Ok(0);
    }
    let offset = entry.addend.wrapping_add(address);
    let in_page = PAGE_BYTES - (address & (PAGE_BYTES - 1));
    let wanted = (transfer.end - first) as u64 * T::SIZE;
    let mut bytes = wanted.min(in_page) & !(T::SIZE - 1);
    if M::TIMED {
        bytes = measured::<T>(
            hart,
            system,
            position,
            transfer.is_store,
            (address, offset),
            bytes,
        )?;
    }
    let from = first * size_of::<T>();
    move_bytes(
        hart,
        system,
        (transfer.is_store, offset),
        (transfer.register(), from),
        bytes,
    );
    Ok((bytes / T::SIZE) as usize)
}

/// How many of `bytes` bytes of a page are charged for now, at least those of the first line: its access is charged if the filters do
/// not vouch for it.
fn measured<T: Scalar>(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    store: bool,
    (address, offset): (u64, u64),
    bytes: u64,
) -> Result<u64, Trapped> {
    const LINE: u64 = 1 << LINE_SHIFT;
    let mut done = 0;
    while done < bytes {
        let (at, place) = (address + done, offset + done);
        if !hart.is_line_free(system, store, at, place) {
            if done != 0 {
                break;
            }
            let count = position.count();
            if store {
                hart.measure_store::<T>(system, at, place, count)?;
            } else {
                hart.measure_load::<T>(system, at, place, count)?;
            }
        }
        done += LINE - (at & (LINE - 1));
    }
    Ok(done.min(bytes))
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
