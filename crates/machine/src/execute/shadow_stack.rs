//! Shadow stacks: "Shadow Stack (Zicfiss)".

use super::position::{Position, Step};
use crate::code::CodeIndex;
use crate::hart::{Access, Cause, Exception, Hart, Trapped};
use crate::instruction::{DISCARD, Instruction};
use crate::memory::{Scalar, StoreOutcome};
use crate::system::System;
use crate::timing::LineAccess;
use crate::translation::View;

/// xtval of a software check: shadow stack fault.
const SHADOW_STACK_FAULT: u64 = 3;
/// Bytes of an entry.
const ENTRY: u64 = 8;

/// SSPUSH, SSPOPCHK and SSRDP, or the may-be operations that they are where no shadow stack is active.
#[inline(never)]
pub(super) fn step(hart: &mut Hart, system: &mut System, position: Position) -> Step {
    if hart.shadow_stacks == 0 {
        hart.x[position.rd()] = 0;
        return Step::Next;
    }
    let outcome = hart.shadow_stack(system, position.instruction(), position.index());
    position.stored(hart, outcome)
}

impl Hart {
    fn shadow_stack(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        let ssp = self.csrs.ssp;
        if i.rd != DISCARD {
            self.x[usize::from(i.rd)] = ssp;
            return Ok(StoreOutcome::default());
        }
        // Only SSPUSH has no rs1.
        if i.rs1 == 0 {
            let top = ssp.wrapping_sub(ENTRY);
            let value = self.x[usize::from(i.rs2)];
            let access = (Access::Store, LineAccess::Store);
            let physical = self.shadow_place::<u64>(system, access, top, i.count)?;
            let outcome = self.finish_store(system, physical, value, current)?;
            self.csrs.ssp = top;
            return Ok(outcome);
        }
        let access = (Access::Load, LineAccess::Load);
        let physical = self.shadow_place::<u64>(system, access, ssp, i.count)?;
        let kept = system.memory.ram.read::<u64>(physical);
        if kept != Some(self.x[usize::from(i.rs1)]) {
            return Err(self.raise(Exception::new(Cause::SoftwareCheck, SHADOW_STACK_FAULT)));
        }
        self.csrs.ssp = ssp.wrapping_add(ENTRY);
        Ok(StoreOutcome::default())
    }

    /// SSAMOSWAP.W and SSAMOSWAP.D, whose immediate is the encoding.
    pub(super) fn shadow_swap<T: Scalar>(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
        extend: impl Fn(T) -> u64,
    ) -> Result<StoreOutcome, Trapped> {
        let encoding = u64::from(i.immediate.cast_unsigned());
        let allowed = match self.extension.options.shadow_stacks {
            true => self.check_shadow_stack(),
            false => Err(Cause::IllegalInstruction),
        };
        allowed.map_err(|cause| self.raise(Exception::new(cause, encoding)))?;
        let address = self.x[usize::from(i.rs1)];
        if !address.is_multiple_of(T::SIZE) {
            let guest = self.data_mode().virtualized;
            return Err(self.raise(Exception::at(Cause::StoreMisaligned, address, guest)));
        }
        let access = (Access::Store, LineAccess::Modify);
        let physical = self.shadow_place::<T>(system, access, address, i.count)?;
        let old = system.memory.ram.read::<T>(physical);
        let value = T::from_u64(self.x[usize::from(i.rs2)]);
        self.x[usize::from(i.rd)] = old.map_or(0, extend);
        self.finish_store(system, physical, value, current)
    }

    /// The physical address, in RAM, of an access to a shadow stack.
    fn shadow_place<T: Scalar>(
        &mut self,
        system: &mut System,
        (access, line): (Access, LineAccess),
        address: u64,
        count: u8,
    ) -> Result<u64, Trapped> {
        let view = View {
            shadow_stack: true,
            ..self.data_view()
        };
        let address = self.effective(view, address);
        self.check_triggers(access, address, T::SIZE)?;
        let fault = Exception::at(Cause::StoreAccess, address, view.mode.virtualized);
        if !address.is_multiple_of(T::SIZE) {
            return Err(self.raise(fault));
        }
        let place = self.place(system, view, access, address, T::SIZE)?;
        let Some(offset) = system.memory.ram.offset(place.physical, T::SIZE) else {
            return Err(self.raise(fault));
        };
        self.give_way(system, access, (offset, T::SIZE), count)?;
        self.charge(system, (view, None), line, address, offset);
        Ok(place.physical)
    }
}
