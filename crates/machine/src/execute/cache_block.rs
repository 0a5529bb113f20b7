//! Cache-block operations: "Cache-Management Operations", Zicbom and Zicboz.

use crate::code::CodeIndex;
use crate::csr::field::envcfg;
use crate::hart::{Access, Cause, Exception, Hart, Privilege, Trapped};
use crate::instruction::Instruction;
use crate::memory::StoreOutcome;
use crate::system::System;
use crate::timing::LineAccess;

/// Bytes of a cache block.
const CACHE_BLOCK: u64 = 64;

/// The function of an encoding: its immediate.
const fn function(raw: u32) -> u32 {
    raw >> 20
}

impl Hart {
    /// CBO.INVAL, CBO.CLEAN, CBO.FLUSH and CBO.ZERO.
    #[inline(never)]
    pub(super) fn cache_block(
        &mut self,
        system: &mut System,
        i: Instruction,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        let raw = i.immediate.cast_unsigned();
        self.permit_cache_block(raw)?;
        let address = self.effective(self.data_view(), self.x[i.rs1 as usize]);
        self.check_triggers(Access::Store, address & !(CACHE_BLOCK - 1), 0)?;
        let access = match function(raw) {
            0 if self.flushes_instead() => LineAccess::Flush,
            0 => LineAccess::Invalidate,
            1 => LineAccess::Clean,
            2 => LineAccess::Flush,
            _ => return self.zero_block(system, address, (i.count, current)),
        };
        self.manage_block(system, address, access, i.count)?;
        Ok(StoreOutcome::default())
    }

    /// Raises the exception of an operation that the mode may not execute.
    fn permit_cache_block(&mut self, raw: u32) -> Result<(), Trapped> {
        let enabled = |register: u64| match function(raw) {
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
        Ok(())
    }

    /// Tests whether CBO.INVAL flushes: CBIE is 01 in a register that holds for the mode.
    fn flushes_instead(&self) -> bool {
        let mode = self.mode();
        let flushes = |register: u64| register & envcfg::CBIE == envcfg::CBIE_FLUSH;
        mode.privilege != Privilege::Machine
            && (flushes(self.csrs.menvcfg)
                || mode.virtualized && flushes(self.csrs.henvcfg)
                || mode.privilege == Privilege::User && flushes(self.csrs.senvcfg))
    }

    /// CBO.ZERO of the block that an address is in.
    fn zero_block(
        &mut self,
        system: &mut System,
        address: u64,
        (count, current): (u8, CodeIndex),
    ) -> Result<StoreOutcome, Trapped> {
        let view = self.data_view();
        let block = address & !(CACHE_BLOCK - 1);
        if self.zero_known(system, block, count)? {
            return Ok(StoreOutcome::default());
        }
        let place = self.place(system, view, Access::Store, block, CACHE_BLOCK);
        let place = place.inspect_err(|_| self.name_inside_block(address))?;
        let Some(offset) = system.memory.ram.offset(place.physical, CACHE_BLOCK) else {
            return Err(self.block_fault(address));
        };
        if place.whole_page
            && let Some(open) = system.memory.open(offset)
        {
            let (tag, shift) = (self.data_tag, place.first_shift);
            self.tlb.insert_store(block, tag, offset, shift, open);
        }
        self.give_way(system, Access::Store, (offset, CACHE_BLOCK), count)?;
        let eyes = (view, Some(self.data_tag));
        self.charge(system, eyes, LineAccess::Overwrite, block, offset);
        let mut outcome = StoreOutcome::default();
        for at in (0..CACHE_BLOCK).step_by(8) {
            let memory = &mut system.memory;
            if let Some(stored) = memory.store_scalar(place.physical + at, 0_u64, current) {
                outcome.discarded_current |= stored.discarded_current;
            }
        }
        self.after_store(system);
        Ok(outcome)
    }

    /// Zeroes a cache block in a page that stores may go straight to, if the host TLB knows one; tells whether it did.
    fn zero_known(&mut self, system: &mut System, block: u64, count: u8) -> Result<bool, Trapped> {
        let entry = self.tlb.store_entry(block);
        if !entry.serves::<u64>(block, self.data_tag) {
            return Ok(false);
        }
        let offset = entry.addend.wrapping_add(block);
        self.give_way(system, Access::Store, (offset, CACHE_BLOCK), count)?;
        let Some(bytes) = system.memory.ram.bytes_mut(offset, CACHE_BLOCK) else {
            return Ok(false);
        };
        bytes.fill(0);
        let eyes = (self.data_view(), Some(self.data_tag));
        self.charge(system, eyes, LineAccess::Overwrite, block, offset);
        Ok(true)
    }

    /// CBO.CLEAN, CBO.FLUSH and CBO.INVAL of the block that an address is in. Memory is coherent, so they only take time and change
    /// the caches of the timing models. They need no more than that a load or a store be permitted; faults are a store's.
    fn manage_block(
        &mut self,
        system: &mut System,
        address: u64,
        access: LineAccess,
        count: u8,
    ) -> Result<(), Trapped> {
        let view = self.data_view();
        let block = address & !(CACHE_BLOCK - 1);
        let place = match self.place(system, view, Access::Load, block, CACHE_BLOCK) {
            Ok(place) => place,
            Err(_) => self
                .place(system, view, Access::Store, block, CACHE_BLOCK)
                .inspect_err(|_| self.name_inside_block(address))?,
        };
        let Some(offset) = system.memory.ram.offset(place.physical, CACHE_BLOCK) else {
            return Err(self.block_fault(address));
        };
        // What it changes in other harts' caches a store would, too.
        self.give_way(system, Access::Store, (offset, CACHE_BLOCK), count)?;
        self.charge(system, (view, Some(self.data_tag)), access, block, offset);
        Ok(())
    }

    fn block_fault(&mut self, address: u64) -> Trapped {
        let guest = self.data_view().mode.virtualized;
        self.raise(Exception::at(Cause::StoreAccess, address, guest))
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
