//! The A extension with Zabha, and Zawrs' reservations.

use crate::code::CodeIndex;
use crate::hart::{Access, Hart, Trapped};
use crate::instruction::{Instruction, Operation};
use crate::memory::{PAGE_BYTES, Scalar, StoreOutcome};
use crate::system::System;
use crate::trace::locks::TICKET;

/// The width field of an atomic instruction: log2 of the operand's bytes.
const fn width_of(i: Instruction) -> u32 {
    i.immediate.cast_unsigned() >> 12 & 7
}

fn extend_byte(value: u8) -> u64 {
    i64::from(value.cast_signed()).cast_unsigned()
}

fn extend_half(value: u16) -> u64 {
    i64::from(value.cast_signed()).cast_unsigned()
}

fn extend_word(value: u32) -> u64 {
    i64::from(value.cast_signed()).cast_unsigned()
}

impl Hart {
    /// LR: loads and reserves.
    pub(super) fn load_reserved<T: Scalar>(
        &mut self,
        system: &mut System,
        i: Instruction,
    ) -> Result<u64, Trapped> {
        let address = self.x[i.rs1 as usize];
        let physical = self.atomic_address::<T>(system, Access::Load, address, i.count)?;
        self.reserve(&system.memory, physical, T::SIZE);
        Ok(system.memory.ram.read::<T>(physical).map_or(0, T::to_u64))
    }

    /// The physical address of an atomic access, by the host TLB if it knows.
    #[inline(always)]
    pub(super) fn atomic_address<T: Scalar>(
        &mut self,
        system: &mut System,
        access: Access,
        address: u64,
        count: u8,
    ) -> Result<u64, Trapped> {
        let entry = match access {
            Access::Store => self.tlb.store_entry(address),
            _ => self.tlb.load_entry(address),
        };
        let page = address & (!(PAGE_BYTES - 1) | (T::SIZE - 1));
        let physical = if entry.tag == page | self.data_tag {
            system.memory.ram.base() + entry.addend.wrapping_add(address)
        } else {
            self.place_atomic(system, access, address, T::SIZE)?
        };
        if let Some(timing) = &system.timing {
            let cost = timing.costs.atomic;
            let address = self.effective(self.data_view(), address);
            let offset = physical.wrapping_sub(system.memory.ram.base());
            match access {
                Access::Store => self.measure_modify::<T>(system, address, offset, count)?,
                _ => self.measure_load::<T>(system, address, offset, count)?,
            }
            self.cycles += cost;
        }
        Ok(physical)
    }

    /// SC and the AMOs.
    #[inline(never)]
    pub(super) fn atomic(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        if self.triggered && !matches!(i.operation, Operation::ScW | Operation::ScD) {
            // An AMO is a load, too.
            let address = self.effective(self.data_view(), self.x[i.rs1 as usize]);
            self.check_triggers(Access::Load, address, 1 << width_of(i))?;
        }
        match i.operation {
            Operation::ScW => self.store_conditional::<u32>(system, i, current),
            Operation::ScD => self.store_conditional::<u64>(system, i, current),
            Operation::ShadowSwap => match width_of(i) {
                2 => self.shadow_swap::<u32>(system, i, current, extend_word),
                _ => self.shadow_swap::<u64>(system, i, current, |value| value),
            },
            Operation::CompareAndSwap => match width_of(i) {
                0 => self.compare_and_swap::<u8>(system, i, current, extend_byte),
                1 => self.compare_and_swap::<u16>(system, i, current, extend_half),
                2 => self.compare_and_swap::<u32>(system, i, current, extend_word),
                3 => self.compare_and_swap::<u64>(system, i, current, |value| value),
                _ => self.compare_and_swap_pair(system, i, current),
            },
            _ => match width_of(i) {
                0 => self.modify::<u8>(system, i, current, extend_byte),
                1 => self.modify::<u16>(system, i, current, extend_half),
                2 => self.modify::<u32>(system, i, current, extend_word),
                _ => self.modify::<u64>(system, i, current, |value| value),
            },
        }
    }

    fn store_conditional<T: Scalar>(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        let address = self.x[i.rs1 as usize];
        // With a reservation the turn goes on: its end would end the reservation.
        let horizon = self.horizon;
        if self.reservation.is_some() {
            self.horizon = u64::MAX;
        }
        let physical = self.atomic_address::<T>(system, Access::Store, address, i.count);
        self.horizon = horizon;
        let physical = physical?;
        let reserved = self.reservation.take();
        let matches = reserved.is_some_and(|reserved| {
            reserved.physical == physical
                && reserved.size == T::SIZE
                && reserved.device_stores == system.memory.device_stores()
        });
        // rd may be rs2.
        let value = T::from_u64(self.x[i.rs2 as usize]);
        self.x[i.rd as usize] = u64::from(!matches);
        if !matches {
            return Ok(StoreOutcome::default());
        }
        self.finish_store(system, physical, value, current)
    }

    pub(crate) fn finish_store<T: Scalar>(
        &mut self,
        system: &mut System,
        physical: u64,
        value: T,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        let outcome = system.memory.store_scalar(physical, value, current);
        self.after_store(system);
        Ok(outcome.unwrap_or_default())
    }

    fn modify<T: Scalar>(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
        extend: impl Fn(T) -> u64,
    ) -> Result<StoreOutcome, Trapped> {
        let address = self.x[i.rs1 as usize];
        let physical = self.atomic_address::<T>(system, Access::Store, address, i.count)?;
        let old = extend(
            system
                .memory
                .ram
                .read::<T>(physical)
                .unwrap_or(T::from_u64(0)),
        );
        let operand = extend(T::from_u64(self.x[i.rs2 as usize]));
        // funct5 of the encoding. Sign extension keeps the unsigned order of narrow values.
        let function = i.immediate.cast_unsigned() >> 27;
        if system.tells_bare_locks && (function, T::SIZE, operand) == (0, 4, TICKET) {
            self.note_ticket(system, physical);
        }
        let new = match function {
            0x00 => old.wrapping_add(operand),
            0x01 => operand,
            0x04 => old ^ operand,
            0x08 => old | operand,
            0x0c => old & operand,
            0x10 => old.cast_signed().min(operand.cast_signed()).cast_unsigned(),
            0x14 => old.cast_signed().max(operand.cast_signed()).cast_unsigned(),
            0x18 => old.min(operand),
            _ => old.max(operand),
        };
        self.x[i.rd as usize] = old;
        self.finish_store(system, physical, T::from_u64(new), current)
    }
}
