//! Where the execution loop asks the timing models.

use crate::hart::{Access, Hart, Mode};
use crate::memory::{PAGE_SHIFT, Scalar};
use crate::system::System;
use crate::timing::{Charge, LINE_SHIFT, TranslationFence, Walked};
use crate::translation::{ContextKey, View, WalkTrace, walk};

impl Hart {
    /// Charges a load that reached RAM at `offset`, in one page: all of the lines that it is in.
    #[inline(always)]
    pub(super) fn measure_load<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        offset: u64,
    ) {
        self.measure_load_line(system, address, offset);
        let last = address.wrapping_add(T::SIZE - 1);
        if (address ^ last) >> LINE_SHIFT != 0 {
            self.measure_load_line(system, last, offset.wrapping_add(T::SIZE - 1));
        }
    }

    #[inline(always)]
    fn measure_load_line(&mut self, system: &mut System, address: u64, offset: u64) {
        let physical = system.memory.ram.base().wrapping_add(offset) >> LINE_SHIFT;
        let line = address >> LINE_SHIFT;
        if !system
            .timing
            .as_ref()
            .is_some_and(|t| t.load_is_free(self.id, line, self.data_space, physical))
        {
            self.charge(system, self.data_view(), Access::Load, address, offset);
        }
    }

    /// Charges a store that reached RAM at `offset`, in one page: all of the lines that it is in.
    #[inline(always)]
    pub(super) fn measure_store<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        offset: u64,
    ) {
        self.measure_store_line(system, address, offset);
        let last = address.wrapping_add(T::SIZE - 1);
        if (address ^ last) >> LINE_SHIFT != 0 {
            self.measure_store_line(system, last, offset.wrapping_add(T::SIZE - 1));
        }
    }

    #[inline(always)]
    fn measure_store_line(&mut self, system: &mut System, address: u64, offset: u64) {
        let physical = system.memory.ram.base().wrapping_add(offset) >> LINE_SHIFT;
        let line = address >> LINE_SHIFT;
        if !system
            .timing
            .as_ref()
            .is_some_and(|t| t.store_is_free(self.id, line, self.data_space, physical))
        {
            self.charge(system, self.data_view(), Access::Store, address, offset);
        }
    }

    /// Charges the fetch of a block.
    #[inline(always)]
    pub(super) fn measure_fetch(&mut self, system: &mut System, pc: u64) {
        let line = pc >> LINE_SHIFT;
        if !system
            .timing
            .as_ref()
            .is_some_and(|t| t.fetch_is_free(self.id, line, self.fetch_space))
        {
            self.measure_fetch_slow(system, pc);
        }
    }

    #[inline(never)]
    fn measure_fetch_slow(&mut self, system: &mut System, pc: u64) {
        let view = self.fetch_view();
        let known = self.tlb.fetch_offset(pc, self.fetch_tag);
        let offset = known.or_else(|| {
            let memory = &mut system.memory;
            let found = walk(&self.csrs, memory, &mut self.trace, view, Access::Fetch, pc).ok()?;
            Some(found.physical.wrapping_sub(system.memory.ram.base()))
        });
        if let Some(offset) = offset {
            self.charge(system, view, Access::Fetch, pc, offset);
        }
    }

    /// Asks the models what an access costs, if there are any.
    #[inline(never)]
    pub(crate) fn charge(
        &mut self,
        system: &mut System,
        view: View,
        access: Access,
        address: u64,
        offset: u64,
    ) {
        let Some(mut timing) = system.timing.take() else {
            return;
        };
        let key = ContextKey::new(view, &self.csrs);
        let charge = Charge {
            access,
            address,
            physical: system.memory.ram.base().wrapping_add(offset),
            space: key.space(),
            translated: key.is_translated(),
        };
        let mode = self.mode();
        let (csrs, trace, memory) = (&self.csrs, &mut self.trace, &mut system.memory);
        let cycles = timing.access(self.id, charge, self.counts.of(mode), move || {
            // The access has been made: the walk succeeds, unless the page tables have changed
            // without a fence since the translation was remembered.
            let found = walk(csrs, memory, trace, view, access, address);
            let trace: &WalkTrace = trace;
            Walked {
                shift: found.map_or(PAGE_SHIFT, |mapping| mapping.shift),
                global: trace.global,
                references: trace.references(),
            }
        });
        self.cycles += cycles;
        system.timing = Some(timing);
    }

    /// Charges an access of `size` bytes that does not cross a page: all of the lines that it is in.
    pub(crate) fn charge_lines(
        &mut self,
        system: &mut System,
        view: View,
        access: Access,
        (address, size): (u64, u64),
        offset: u64,
    ) {
        if system.timing.is_none() {
            return;
        }
        self.charge(system, view, access, address, offset);
        let last = size.saturating_sub(1);
        if (address ^ address.wrapping_add(last)) >> LINE_SHIFT != 0 {
            let (address, offset) = (address.wrapping_add(last), offset.wrapping_add(last));
            self.charge(system, view, access, address, offset);
        }
    }

    /// Charges a trap or a return that has brought the hart from one mode to the present one.
    pub(crate) fn charge_mode_change(&mut self, system: &System, from: Mode) {
        if from.virtualized != self.mode().virtualized
            && let Some(timing) = &system.timing
        {
            self.cycles += timing.costs.mode_change;
        }
    }

    /// Charges the entry into a trap handler, from `from`.
    pub(crate) fn charge_trap(&mut self, system: &System, from: Mode) {
        // Never free: a handler that cannot be fetched must not stop the machine's time.
        self.cycles += 1;
        if let Some(timing) = &system.timing {
            self.cycles += timing.costs.trap;
        }
        self.charge_mode_change(system, from);
    }

    /// Tells the models of a fence, if there are any.
    pub(super) fn fence_timing(&self, system: &mut System, fence: TranslationFence) {
        if let Some(timing) = &mut system.timing {
            timing.fence(self.id, fence);
        }
    }
}
