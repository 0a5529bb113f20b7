//! Where the execution loop asks the timing models.

use crate::hart::{Access, Hart};
use crate::system::System;
use crate::timing::{Charge, LINE_SHIFT};
use crate::translation::walk;

impl Hart {
    /// Charges a load that reached RAM at `offset`.
    #[inline(always)]
    pub(super) fn measure_load(&mut self, system: &mut System, address: u64, offset: u64) {
        let tag = self.data_space.0;
        let line = address >> LINE_SHIFT;
        if !system
            .timing
            .as_ref()
            .is_some_and(|t| t.load_is_free(self.id, line, tag))
        {
            self.charge(system, Access::Load, address, offset);
        }
    }

    /// Charges a store that reached RAM at `offset`.
    #[inline(always)]
    pub(super) fn measure_store(&mut self, system: &mut System, address: u64, offset: u64) {
        let tag = self.data_space.0;
        let line = address >> LINE_SHIFT;
        if !system
            .timing
            .as_ref()
            .is_some_and(|t| t.store_is_free(self.id, line, tag))
        {
            self.charge(system, Access::Store, address, offset);
        }
    }

    /// Charges the fetch of a block.
    #[inline(always)]
    pub(super) fn measure_fetch(&mut self, system: &mut System, pc: u64) {
        let tag = self.fetch_space.0;
        let line = pc >> LINE_SHIFT;
        if system
            .timing
            .as_ref()
            .is_some_and(|t| t.fetch_is_free(self.id, line, tag))
        {
            return;
        }
        let known = self.tlb.fetch_offset(pc, self.fetch_tag);
        let offset = known.or_else(|| {
            let (view, memory) = (self.fetch_view(), &mut system.memory);
            let found = walk(&self.csrs, memory, &mut self.trace, view, Access::Fetch, pc).ok()?;
            Some(found.physical.wrapping_sub(system.memory.ram.base()))
        });
        if let Some(offset) = offset {
            self.charge(system, Access::Fetch, pc, offset);
        }
    }

    /// Asks the models what an access costs, if there are any.
    #[inline(never)]
    pub(crate) fn charge(
        &mut self,
        system: &mut System,
        access: Access,
        address: u64,
        offset: u64,
    ) {
        let Some(mut timing) = system.timing.take() else {
            return;
        };
        let physical = system.memory.ram.base().wrapping_add(offset);
        let (view, (tag, translated), charge) = match access {
            Access::Fetch => (
                self.fetch_view(),
                self.fetch_space,
                Charge::fetch as fn(u64, u64, u64) -> Charge,
            ),
            Access::Load => (self.data_view(), self.data_space, Charge::load as _),
            Access::Store => (self.data_view(), self.data_space, Charge::store as _),
        };
        let mut charge = charge(address, physical, tag);
        charge.translated = translated;
        let (csrs, trace, memory) = (&self.csrs, &mut self.trace, &mut system.memory);
        let cycles = timing.access(self.id, charge, || {
            // The access has been made: the walk succeeds, unless the page tables have changed
            // without a fence since the translation was remembered.
            let _ = walk(csrs, memory, trace, view, access, address);
            trace.references().to_vec()
        });
        self.cycles += cycles;
        system.timing = Some(timing);
    }

    /// Tells the models of a fence with an address, or of one without.
    pub(super) fn forget_timing(&self, system: &mut System, address: Option<u64>) {
        // Without an address the address spaces have got new numbers: nothing is found again.
        if let (Some(timing), Some(address)) = (&mut system.timing, address) {
            timing.forget_translations(self.id, Some(address >> crate::memory::PAGE_SHIFT));
        }
    }
}
