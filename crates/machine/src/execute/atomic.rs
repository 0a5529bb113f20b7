//! The A extension with Zabha, Zawrs' reservations, and cache-block operations.

use crate::code::CodeIndex;
use crate::csr::field::envcfg;
use crate::hart::{Access, Cause, Exception, Hart, Privilege, Trapped};
use crate::instruction::{Instruction, Operation};
use crate::memory::{PAGE_BYTES, Scalar, StoreOutcome};
use crate::system::System;
use crate::trace::locks::TICKET;

/// Bytes of a cache block of Zicbom and Zicboz.
pub const CACHE_BLOCK: u64 = 64;

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
                Access::Store => self.measure_store::<T>(system, address, offset, count)?,
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
        match i.operation {
            Operation::ScW => self.store_conditional::<u32>(system, i, current),
            Operation::ScD => self.store_conditional::<u64>(system, i, current),
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
        if system.memory.host_written() || system.memory.hits() > 0 {
            self.stop_soon();
        }
        self.note_words(system);
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

    /// CBO.INVAL, CBO.CLEAN, CBO.FLUSH and CBO.ZERO: "Cache-Management Operations".
    #[inline(never)]
    pub(super) fn cache_block(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        let raw = i.immediate.cast_unsigned();
        let zero = raw >> 20 == 4;
        let enabled = |register: u64| match raw >> 20 {
            0 => register & envcfg::CBIE != 0,
            1 | 2 => register & envcfg::CBCFE != 0,
            _ => register & envcfg::CBZE != 0,
        };
        let mode = self.mode();
        let below_machine = mode.privilege != Privilege::Machine;
        let user = mode.privilege == Privilege::User;
        if below_machine && !enabled(self.csrs.menvcfg)
            || user && !mode.virtualized && !enabled(self.csrs.senvcfg)
        {
            return Err(self.raise(Exception::new(Cause::IllegalInstruction, raw.into())));
        }
        if mode.virtualized && (!enabled(self.csrs.henvcfg) || user && !enabled(self.csrs.senvcfg))
        {
            return Err(self.raise(Exception::new(Cause::VirtualInstruction, raw.into())));
        }
        let view = self.data_view();
        let address = self.effective(view, self.x[i.rs1 as usize]);
        let block = address & !(CACHE_BLOCK - 1);
        if zero {
            if self.zero_known(system, block) {
                return Ok(StoreOutcome::default());
            }
            let place = self.place(system, view, Access::Store, block, CACHE_BLOCK);
            let place = place.inspect_err(|_| self.name_inside_block(address))?;
            if place.whole_page
                && let Some(offset) = system.memory.ram.offset(place.physical, CACHE_BLOCK)
                && let Some(open) = system.memory.open(offset)
            {
                let (tag, shift) = (self.data_tag, place.first_shift);
                self.tlb.insert_store(block, tag, offset, shift, open);
            }
            if let Some(offset) = system.memory.ram.offset(place.physical, CACHE_BLOCK) {
                let eyes = (view, Some(self.data_tag));
                self.charge(system, eyes, Access::Store, block, offset);
            }
            let mut outcome = StoreOutcome::default();
            for at in (0..CACHE_BLOCK).step_by(8) {
                match system
                    .memory
                    .store_scalar(place.physical + at, 0_u64, current)
                {
                    Some(stored) => outcome.discarded_current |= stored.discarded_current,
                    None => {
                        let guest = view.mode.virtualized;
                        let fault = Exception::at(Cause::StoreAccess, address, guest);
                        return Err(self.raise(fault));
                    }
                }
            }
            self.note_words(system);
            return Ok(outcome);
        }
        // Management needs no more than that a load or a store be permitted; faults are a store's.
        let place = match self.place(system, view, Access::Load, block, CACHE_BLOCK) {
            Ok(place) => place,
            Err(_) => self
                .place(system, view, Access::Store, block, CACHE_BLOCK)
                .inspect_err(|_| self.name_inside_block(address))?,
        };
        if system
            .memory
            .ram
            .offset(place.physical, CACHE_BLOCK)
            .is_none()
        {
            let fault = Exception::at(Cause::StoreAccess, address, view.mode.virtualized);
            return Err(self.raise(fault));
        }
        Ok(StoreOutcome::default())
    }

    /// Zeroes a cache block in a page that stores may go straight to, if the host TLB knows one.
    fn zero_known(&mut self, system: &mut System, block: u64) -> bool {
        let entry = self.tlb.store_entry(block);
        if !entry.serves::<u64>(block, self.data_tag) {
            return false;
        }
        let offset = entry.addend.wrapping_add(block);
        let Some(bytes) = system.memory.ram.bytes_mut(offset, CACHE_BLOCK) else {
            return false;
        };
        bytes.fill(0);
        let eyes = (self.data_view(), Some(self.data_tag));
        self.charge(system, eyes, Access::Store, block, offset);
        true
    }

    /// Makes an exception that was found for a cache block's start name the address in the block that
    /// the instruction gave.
    const fn name_inside_block(&mut self, address: u64) {
        self.exception.value = address;
        // A pseudoinstruction tells of a page table that could not be reached: its address stays.
        if self.exception.guest_physical != 0 && self.exception.instruction == 0 {
            self.exception.guest_physical |= address & (CACHE_BLOCK - 1);
        }
    }
}
