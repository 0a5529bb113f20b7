//! Where the execution loop asks the timing models.

use super::position::Position;
use crate::base::{Fence, VirtualFence};
use crate::count::Event;
use crate::hart::{Access, Cause, Exception, Hart, Mode, Trapped};
use crate::memory::walk;
use crate::memory::{PAGE_BYTES, PAGE_SHIFT, Scalar};
use crate::profile::Costs;
use crate::system::System;
use crate::timing::{Charge, LINE_SHIFT, LineAccess, PageName, Transfer, Walked};
use crate::translation::{View, WalkTrace};

/// A cost in cycles, 0 without models. Looked for where it is needed: few of the instructions that come here cost more than a
/// cycle.
#[inline(always)]
pub(super) fn cost(system: &System, of: impl FnOnce(&Costs) -> u64) -> u64 {
    system.timing.as_ref().map_or(0, |timing| of(&timing.costs))
}

/// Tells the hart's predictor, if there is one, of a branch or jump, and charges what it did not know.
#[inline(always)]
pub(super) fn predict(
    hart: &mut Hart,
    system: &mut System,
    position: Position,
    transfer: Transfer,
) {
    if let Some(timing) = &mut system.timing
        && timing.predicts()
    {
        let (id, mode) = (hart.id, hart.mode());
        let counts = hart.counts.of(mode);
        hart.cycles += timing.transfer(id, (position.pc(), transfer), counts);
    }
}

impl Hart {
    /// Charges a load that reached RAM at `offset`, in one page, `count` instructions into its block: all
    /// of the lines that it is in.
    ///
    /// # Errors
    /// [`Trapped`] if the hart gives its turn away first ([`Hart::give_way`]), or traps misaligned accesses.
    #[inline(always)]
    pub(super) fn measure_load<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        offset: u64,
        count: u8,
    ) -> Result<(), Trapped> {
        let physical = system.memory.ram.base().wrapping_add(offset) >> LINE_SHIFT;
        let page = self.name_of(address, self.data_tag);
        let free = system
            .timing
            .as_ref()
            .is_some_and(|t| t.load_is_free(self.id, page, physical));
        if free && address & (T::SIZE - 1) == 0 {
            return Ok(());
        }
        self.measure_slow(system, LineAccess::Load, (address, T::SIZE), offset, count)
    }

    /// Charges a store that reached RAM at `offset`, in one page, `count` instructions into its block: all
    /// of the lines that it is in.
    ///
    /// # Errors
    /// As [`Self::measure_load`].
    #[inline(always)]
    pub(super) fn measure_store<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        offset: u64,
        count: u8,
    ) -> Result<(), Trapped> {
        let access = LineAccess::Store;
        self.measure_change::<T>(system, access, address, (offset, count))
    }

    /// Tests whether the filters vouch for an access to the line at an address, which is at `offset` in RAM: it costs nothing.
    pub(super) fn is_line_free(
        &self,
        system: &System,
        store: bool,
        address: u64,
        offset: u64,
    ) -> bool {
        let line = system.memory.ram.base().wrapping_add(offset) >> LINE_SHIFT;
        let page = self.name_of(address, self.data_tag);
        system.timing.as_ref().is_some_and(|timing| {
            if store {
                timing.store_is_free(self.id, page, line)
            } else {
                timing.load_is_free(self.id, page, line)
            }
        })
    }

    /// Charges an atomic access, which needs the line's right to store.
    ///
    /// # Errors
    /// As [`Self::measure_load`].
    #[inline(always)]
    pub(super) fn measure_modify<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        offset: u64,
        count: u8,
    ) -> Result<(), Trapped> {
        let access = LineAccess::Modify;
        self.measure_change::<T>(system, access, address, (offset, count))
    }

    #[inline(always)]
    fn measure_change<T: Scalar>(
        &mut self,
        system: &mut System,
        access: LineAccess,
        address: u64,
        (offset, count): (u64, u8),
    ) -> Result<(), Trapped> {
        let physical = system.memory.ram.base().wrapping_add(offset) >> LINE_SHIFT;
        let page = self.name_of(address, self.data_tag);
        let free = system
            .timing
            .as_ref()
            .is_some_and(|t| t.store_is_free(self.id, page, physical));
        if free && address & (T::SIZE - 1) == 0 {
            return Ok(());
        }
        self.measure_slow(system, access, (address, T::SIZE), offset, count)
    }

    /// Charges accesses that the filter does not vouch for, and misaligned ones.
    #[inline(never)]
    fn measure_slow(
        &mut self,
        system: &mut System,
        access: LineAccess,
        (address, size): (u64, u64),
        offset: u64,
        count: u8,
    ) -> Result<(), Trapped> {
        self.refuse_misaligned(system, access.access(), address, size)?;
        self.give_way(system, access.access(), (offset, size), count)?;
        let eyes = (self.data_view(), Some(self.data_tag));
        self.charge_lines(system, eyes, access, (address, size), offset);
        Ok(())
    }

    /// Raises the exception of a misaligned load or store where the profile's core does.
    ///
    /// # Errors
    /// [`Trapped`] with it.
    pub(crate) fn refuse_misaligned(
        &mut self,
        system: &System,
        access: Access,
        address: u64,
        size: u64,
    ) -> Result<(), Trapped> {
        let traps = system
            .timing
            .as_ref()
            .is_some_and(|timing| timing.misaligned_traps);
        if !traps || address.is_multiple_of(size) {
            return Ok(());
        }
        let cause = match access {
            Access::Store => Cause::StoreMisaligned,
            _ => Cause::LoadMisaligned,
        };
        let guest = self.data_view().mode.virtualized;
        Err(self.raise(Exception::at(cause, address, guest)))
    }

    /// Gives the turn away before an access of so many bytes that other harts take part in, unless all of them have come as
    /// far as this one: they must not see it, nor miss it, before its time.
    ///
    /// # Errors
    /// [`Trapped`] without an exception: the instruction is executed again in the next turn.
    pub(crate) fn give_way(
        &mut self,
        system: &System,
        access: Access,
        (offset, size): (u64, u64),
        count: u8,
    ) -> Result<(), Trapped> {
        if self.cycles + u64::from(count) <= self.horizon.saturating_add(1) {
            return Ok(());
        }
        let first = system.memory.ram.base().wrapping_add(offset);
        let last = first.wrapping_add(size.saturating_sub(1));
        let crosses = system.timing.as_ref().is_some_and(|timing| {
            let store = access == Access::Store;
            timing.is_shared_access(self.id, first, store)
                || (first ^ last) >> LINE_SHIFT != 0
                    && timing.is_shared_access(self.id, last, store)
        });
        if crosses {
            self.yielded = true;
            return Err(Trapped);
        }
        Ok(())
    }

    /// How the filters know a page, in the context with this tag.
    #[inline(always)]
    const fn name_of(&self, address: u64, tag: u64) -> PageName {
        PageName {
            tag: address & !(PAGE_BYTES - 1) | tag,
            epoch: self.tlb.epoch(),
        }
    }

    /// Charges the fetch of the block at `pc` from the line at an offset in RAM, which it is all in; says whether the
    /// next one will be free.
    #[inline(always)]
    pub(super) fn measure_fetch(&mut self, system: &mut System, offset: u64, pc: u64) -> bool {
        self.fetch_is_free(system, offset, pc) || self.measure_fetch_slow(system, offset, pc)
    }

    #[inline(always)]
    fn fetch_is_free(&self, system: &System, offset: u64, pc: u64) -> bool {
        let line = system.memory.ram.base().wrapping_add(offset) >> LINE_SHIFT;
        let page = self.name_of(pc, self.fetch_tag);
        system
            .timing
            .as_ref()
            .is_some_and(|t| t.fetch_is_free(self.id, page, line))
    }

    #[inline(never)]
    fn measure_fetch_slow(&mut self, system: &mut System, offset: u64, pc: u64) -> bool {
        let eyes = (self.fetch_view(), Some(self.fetch_tag));
        self.charge(system, eyes, LineAccess::Fetch, pc, offset);
        self.fetch_is_free(system, offset, pc)
    }

    /// Asks the models what an access costs, if there are any. With the tag of the view's context the filters
    /// answer for the next one.
    #[inline(never)]
    pub(crate) fn charge(
        &mut self,
        system: &mut System,
        (view, tag): (View, Option<u64>),
        line_access: LineAccess,
        address: u64,
        offset: u64,
    ) {
        let access = line_access.access();
        let Some(mut timing) = system.timing.take() else {
            return;
        };
        let (space, translated) = match access {
            Access::Fetch => self.fetch_space,
            _ if tag == Some(self.data_tag) => self.data_space,
            _ => self.space_of(view),
        };
        let charge = Charge {
            access: line_access,
            address,
            physical: system.memory.ram.base().wrapping_add(offset),
            space,
            translated,
            name: tag.map(|tag| self.name_of(address, tag)),
            shared: tag.is_some() && space.paged && self.tlb.shares(view),
        };
        let mode = self.mode();
        let (csrs, trace, memory) = (&self.csrs, &mut self.trace, &mut system.memory);
        let now = self.cycles;
        let cycles = timing.access((self.id, now), charge, self.counts.of(mode), move || {
            // The access has been made: the walk succeeds, unless the page tables have changed
            // without a fence since the translation was remembered.
            let found = walk(csrs, memory, trace, view, access, address);
            let trace: &WalkTrace = trace;
            Walked {
                shift: found.map_or(PAGE_SHIFT, |mapping| mapping.shift),
                global: trace.global,
                guest_physical: found.map_or(0, |mapping| mapping.guest_physical),
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
        eyes: (View, Option<u64>),
        access: LineAccess,
        (address, size): (u64, u64),
        offset: u64,
    ) {
        if system.timing.is_none() {
            return;
        }
        self.charge(system, eyes, access, address, offset);
        let last = size.saturating_sub(1);
        if (address ^ address.wrapping_add(last)) >> LINE_SHIFT != 0 {
            self.charge_line_crossing(system);
            let (address, offset) = (address.wrapping_add(last), offset.wrapping_add(last));
            self.charge(system, eyes, access, address, offset);
        }
    }

    /// Charges what an access that lies in two lines costs besides both.
    pub(crate) fn charge_line_crossing(&mut self, system: &System) {
        if let Some(timing) = &system.timing {
            self.cycles += timing.costs.line_crossing;
        }
    }

    /// Charges the A and D bits that the last walk has set.
    pub(crate) fn charge_updates(&mut self, system: &mut System) {
        let mode = self.mode();
        for &physical in self.trace.updates() {
            if let Some(timing) = &mut system.timing {
                let at = (self.id, self.cycles);
                self.cycles += timing.update_entry(at, physical, self.counts.of(mode));
            }
        }
    }

    /// After a return: the purge by hardware at an entry to a guest, if this hart's bit of hpurge is set.
    pub(super) fn check_purge(&mut self, system: &mut System, from: Mode) {
        if from.virtualized
            || !self.mode().virtualized
            || !self.extension.take_purge(self.id.index())
        {
            return;
        }
        let fence = Fence::Virtual {
            by: VirtualFence::Hfence,
            address: None,
            asid: None,
            vmid: self.csrs.vmid(),
        };
        self.fence_both(system, fence);
        if let Some(timing) = &system.timing {
            self.cycles += timing.costs.purge;
        }
        self.counts.of(from).add(Event::EntryPurges, 1);
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

    /// Carries out a fence in the models, if there are any, and in the hart.
    pub(super) fn fence_both(&mut self, system: &mut System, fence: Fence) {
        if let Some(timing) = &mut system.timing {
            timing.fence(self.id, fence);
        }
        self.fence(fence);
    }
}
