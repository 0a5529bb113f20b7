//! Counters of supervisors behind siselect: "Smcdeleg and Ssccfg Counter Delegation Extensions".

use crate::base::{Cause, InterruptFile};
use crate::csr::field::{envcfg, event, interrupt};
use crate::hart::Hart;
use crate::system::System;

/// Values of siselect that select a counter: this plus its number.
const COUNTERS: std::ops::RangeInclusive<u64> = 0x40..=0x5f;
/// time, which is no counter to delegate.
const TIME: u16 = 1;

const ILLEGAL: Cause = Cause::IllegalInstruction;

impl Hart {
    /// menvcfg.CDE.
    pub(super) const fn delegates_counters(&self) -> bool {
        self.csrs.menvcfg & envcfg::CDE != 0
    }

    /// Interrupts that mvien can give to supervisors: counter overflow, where counters can be delegated ("Virtualizing
    /// Local-Counter-Overflow Interrupts").
    pub(super) const fn deliverable(&self) -> u64 {
        if self.extension.options.counter_delegation {
            interrupt::LCOFI
        } else {
            0
        }
    }

    /// Reads sireg, or one of sireg2 to sireg6.
    pub(super) fn read_supervisor_indirect(
        &self,
        register: u16,
        system: &mut System,
    ) -> Result<u64, Cause> {
        let select = self.csrs.siselect;
        match (COUNTERS.contains(&select), register) {
            (true, _) => self.read_delegated(register, self.delegated(select)?),
            (false, 1) => self.read_indirect(InterruptFile::Supervisor, select, system),
            (false, _) => Err(ILLEGAL),
        }
    }

    /// Writes sireg, or one of sireg2 to sireg6.
    pub(super) fn write_supervisor_indirect(
        &mut self,
        register: u16,
        value: u64,
        system: &mut System,
    ) -> Result<(), Cause> {
        let select = self.csrs.siselect;
        match (COUNTERS.contains(&select), register) {
            (true, _) => self.write_delegated(register, self.delegated(select)?, value),
            (false, 1) => self.write_indirect(InterruptFile::Supervisor, select, value, system),
            (false, _) => Err(ILLEGAL),
        }
    }

    /// Reads vsireg, or one of vsireg2 to vsireg6.
    pub(super) fn read_guest_indirect(
        &self,
        register: u16,
        system: &mut System,
    ) -> Result<u64, Cause> {
        let select = self.csrs.vsiselect;
        match (COUNTERS.contains(&select), register) {
            (true, _) => Err(self.no_guest_counter()),
            (false, 1) => {
                let file = InterruptFile::Guest(self.csrs.vgein());
                self.read_indirect(file, select, system)
            }
            (false, _) => Err(ILLEGAL),
        }
    }

    /// Writes vsireg, or one of vsireg2 to vsireg6.
    pub(super) fn write_guest_indirect(
        &self,
        register: u16,
        value: u64,
        system: &mut System,
    ) -> Result<(), Cause> {
        let select = self.csrs.vsiselect;
        match (COUNTERS.contains(&select), register) {
            (true, _) => Err(self.no_guest_counter()),
            (false, 1) => {
                let file = InterruptFile::Guest(self.csrs.vgein());
                self.write_indirect(file, select, value, system)
            }
            (false, _) => Err(ILLEGAL),
        }
    }

    /// The exception for a counter behind vsiselect: a hypervisor may emulate it for the guest.
    const fn no_guest_counter(&self) -> Cause {
        if self.mode().virtualized && self.delegates_counters() {
            Cause::VirtualInstruction
        } else {
            ILLEGAL
        }
    }

    /// The counter that a value of siselect selects, if supervisors have it.
    fn delegated(&self, select: u64) -> Result<u16, Cause> {
        let counter = (select - COUNTERS.start()) as u16;
        let is_delegated = self.csrs.mcounteren >> counter & 1 != 0;
        if self.delegates_counters() && is_delegated && counter != TIME {
            Ok(counter)
        } else {
            Err(ILLEGAL)
        }
    }

    /// Tests whether the modes that a counter leaves out can be set.
    const fn has_filter(&self, counter: u16) -> bool {
        counter > TIME + 1 || self.extension.options.counter_filters
    }

    /// The counter itself, or its selection, of which MINH is M-mode's.
    fn read_delegated(&self, register: u16, counter: u16) -> Result<u64, Cause> {
        match register {
            1 => Ok(self.counter(counter)),
            2 if self.has_filter(counter) => Ok(self.selection_of(counter) & !event::MINH),
            _ => Err(ILLEGAL),
        }
    }

    fn write_delegated(&mut self, register: u16, counter: u16, value: u64) -> Result<(), Cause> {
        match register {
            1 => self.write_counter(counter, value),
            2 if self.has_filter(counter) => {
                let kept = self.selection_of(counter) & event::MINH;
                let value = value & !event::MINH | kept;
                match counter.checked_sub(TIME + 2) {
                    Some(index) => self.write_event(usize::from(index), value),
                    None => self.write_filter(counter, value),
                }
            }
            _ => return Err(ILLEGAL),
        }
        Ok(())
    }
}
