//! Memory accesses that do not take the short way through the host TLB.

use crate::base::Cycles;
use crate::base::PAGE_BYTES;
use crate::base::{Access, Cause, Exception, Trapped};
use crate::code::CodeIndex;
use crate::count::Event;
use crate::hart::{Hart, Reservation};
use crate::memory::walk;
use crate::memory::{PhysicalMemory, Scalar, StoreOutcome};
use crate::system::System;
use crate::timing::LineAccess;
use crate::trace::Happening;
use crate::translation::{Use, View};

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The physical address.
    pub physical: u64,
    /// log2 of the bytes the first stage maps together.
    pub first_shift: u32,
    /// True if the answer holds for the whole page, for this kind of access.
    pub whole_page: bool,
    /// True if the access has brought the hart's contexts other tags.
    pub retagged: bool,
}

impl Hart {
    /// Translates and checks an access that does not cross a page.
    pub(crate) fn place(
        &mut self,
        system: &mut System,
        view: View,
        access: Access,
        address: u64,
        size: u64,
    ) -> Result<Place, Trapped> {
        let memory = &mut system.memory;
        let found = walk(&self.csrs, memory, &mut self.trace, view, access, address);
        match found {
            Ok(mapping) => {
                if system.timing.is_some() {
                    self.charge_updates(system);
                }
                let (pmp, privilege) = (&self.csrs.pmp, view.mode.privilege);
                let check = pmp.check(mapping.physical, size, access, privilege);
                // HLVX needs both permissions of memory protection: hypervisor extension, "Hypervisor Virtual-Machine Load and
                // Store Instructions".
                let is_executable = !view.execute_for_read
                    || pmp
                        .check(mapping.physical, size, Access::Fetch, privilege)
                        .allowed;
                // Shadow stacks need permission to read and to write.
                let is_shadow = !view.shadow_stack
                    || [Access::Load, Access::Store]
                        .into_iter()
                        .all(|access| pmp.check(mapping.physical, size, access, privilege).allowed);
                if !check.allowed || !is_executable || !is_shadow {
                    let guest = view.mode.virtualized;
                    let cause = match view.shadow_stack {
                        true => Cause::StoreAccess,
                        false => access.access_fault(),
                    };
                    return Err(self.raise(Exception::at(cause, address, guest)));
                }
                if let Some(shadow) = &mut self.shadow {
                    let at = Use {
                        hart: self.id.0,
                        pc: self.pc,
                        cycle: self.cycles,
                        access,
                        address,
                    };
                    shadow.note(&self.csrs, view, &mapping, at);
                }
                let retagged = !self.trace.global && self.note_local(view);
                Ok(Place {
                    retagged,
                    physical: mapping.physical,
                    first_shift: mapping.first_shift,
                    // The checker wants to see every access; of fetches see `fetch_offset`.
                    whole_page: check.whole_page
                        && (self.shadow.is_none() || access == Access::Fetch),
                })
            }
            Err(exception) => Err(self.raise(exception)),
        }
    }

    fn access_fault(&mut self, view: View, access: Access, address: u64) -> Trapped {
        let guest = view.mode.virtualized;
        self.raise(Exception::at(access.access_fault(), address, guest))
    }

    /// The time of an instruction in the middle of a block, `count` instructions into it.
    fn time_of(&self, count: u8) -> Cycles {
        Cycles(self.cycles + u64::from(count) - 1)
    }

    /// A load from RAM or a device, of any alignment.
    #[inline(never)]
    pub(crate) fn load_slow<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        count: u8,
    ) -> Result<T, Trapped> {
        self.load_in_view(
            system,
            self.data_view(),
            address,
            count,
            Some(self.data_tag),
        )
    }

    /// A load with the eyes of another mode, whose page is remembered under the tag `keep`.
    pub(crate) fn load_in_view<T: Scalar>(
        &mut self,
        system: &mut System,
        view: View,
        address: u64,
        count: u8,
        keep: Option<u64>,
    ) -> Result<T, Trapped> {
        let address = self.effective(view, address);
        self.check_triggers(Access::Load, address, T::SIZE)?;
        self.refuse_misaligned(system, Access::Load, address, T::SIZE)?;
        if address & (PAGE_BYTES - 1) > PAGE_BYTES - T::SIZE {
            return self.load_across_pages(system, view, address, count);
        }
        let place = self.place(system, view, Access::Load, address, T::SIZE)?;
        if let Some(offset) = system.memory.ram.offset(place.physical, T::SIZE) {
            let tag = keep.filter(|_| !place.retagged);
            if place.whole_page
                && let Some(tag) = tag
            {
                self.tlb
                    .insert_load(address, tag, offset, place.first_shift);
            }
            self.counts.host_translations += 1;
            self.give_way(system, Access::Load, (offset, T::SIZE), count)?;
            let eyes = (view, tag);
            self.charge_lines(system, eyes, LineAccess::Load, (address, T::SIZE), offset);
            let value = system.memory.ram.read(place.physical);
            return value.ok_or_else(|| self.access_fault(view, Access::Load, address));
        }
        // Misaligned accesses to devices are not to be emulated: an access fault says so.
        if !address.is_multiple_of(T::SIZE) {
            return Err(self.access_fault(view, Access::Load, address));
        }
        let now = self.time_of(count);
        let value = system.read_device(place.physical, T::SIZE as u8, now);
        self.after_device(system);
        match value {
            Ok(value) => Ok(T::from_u64(value)),
            Err(_) => Err(self.access_fault(view, Access::Load, address)),
        }
    }

    /// Devices may have driven interrupt levels: look at them at the end of the block.
    fn after_device(&mut self, system: &System) {
        let mode = self.mode();
        self.counts.of(mode).add(Event::DeviceAccesses, 1);
        if let Some(timing) = &system.timing {
            self.cycles += timing.costs.device;
        }
        if system.devices.irq_levels(self.id) != self.irq_levels || system.devices.any_irq_changed()
        {
            self.stop_soon();
        }
        if system.devices.is_time_set() {
            self.expire_timers();
        }
        let event = system.devices.next_event();
        self.deadlines.lower(event.0);
        if system.devices.power().is_some() {
            self.stop_soon();
        }
    }

    fn load_across_pages<T: Scalar>(
        &mut self,
        system: &mut System,
        view: View,
        address: u64,
        count: u8,
    ) -> Result<T, Trapped> {
        let mut value = 0;
        // Both pages are translated before anything is read; RAM only.
        let boundary = (address | (PAGE_BYTES - 1)).wrapping_add(1);
        let first_part = boundary.wrapping_sub(address);
        let second = self.effective(view, boundary);
        let low = self.place(system, view, Access::Load, address, first_part)?;
        let rest = T::SIZE - first_part;
        let high = self.place(system, view, Access::Load, second, rest)?;
        let ram = &system.memory.ram;
        if ram.offset(low.physical, T::SIZE - rest).is_none() {
            return Err(self.access_fault(view, Access::Load, address));
        }
        if ram.offset(high.physical, rest).is_none() {
            return Err(self.access_fault(view, Access::Load, second));
        }
        let both = [(address, low), (second, high)];
        self.charge_both(system, view, LineAccess::Load, both, count)?;
        for index in (0..T::SIZE).rev() {
            let at = address.wrapping_add(index);
            let physical = if index < T::SIZE - rest {
                low.physical + index
            } else {
                high.physical + (index - (T::SIZE - rest))
            };
            let byte = system.memory.ram.read::<u8>(physical);
            let byte = byte.ok_or_else(|| self.access_fault(view, Access::Load, at))?;
            value = value << 8 | u64::from(byte);
        }
        Ok(T::from_u64(value))
    }

    /// Charges both parts of an access that crosses a page, those in RAM.
    ///
    /// # Errors
    /// [`Trapped`] if the hart gives its turn away before.
    fn charge_both(
        &mut self,
        system: &mut System,
        view: View,
        access: LineAccess,
        parts: [(u64, Place); 2],
        count: u8,
    ) -> Result<(), Trapped> {
        let ram = &system.memory.ram;
        let offsets = parts.map(|(_, place)| ram.offset(place.physical, 1));
        for offset in offsets.into_iter().flatten() {
            self.give_way(system, access.access(), (offset, 1), count)?;
        }
        self.charge_line_crossing(system);
        for ((address, _), offset) in parts.into_iter().zip(offsets) {
            if let Some(offset) = offset {
                self.charge(system, (view, None), access, address, offset);
            }
        }
        Ok(())
    }

    /// A store to RAM or a device, of any alignment.
    #[inline(never)]
    pub(crate) fn store_slow<T: Scalar>(
        &mut self,
        system: &mut System,
        address: u64,
        value: T,
        count: u8,
        current: CodeIndex,
    ) -> Result<StoreOutcome, Trapped> {
        self.store_in_view(
            system,
            self.data_view(),
            address,
            value,
            (count, current),
            Some(self.data_tag),
        )
    }

    /// A store with the eyes of another mode, whose page is remembered under the tag `keep`.
    pub(crate) fn store_in_view<T: Scalar>(
        &mut self,
        system: &mut System,
        view: View,
        address: u64,
        value: T,
        (count, current): (u8, CodeIndex),
        keep: Option<u64>,
    ) -> Result<StoreOutcome, Trapped> {
        let address = self.effective(view, address);
        self.check_triggers(Access::Store, address, T::SIZE)?;
        self.refuse_misaligned(system, Access::Store, address, T::SIZE)?;
        if address & (PAGE_BYTES - 1) > PAGE_BYTES - T::SIZE {
            return self.store_across_pages(system, view, address, value, (count, current));
        }
        let place = self.place(system, view, Access::Store, address, T::SIZE)?;
        if let Some(offset) = system.memory.ram.offset(place.physical, T::SIZE) {
            let tag = keep.filter(|_| !place.retagged);
            if place.whole_page
                && let Some(tag) = tag
                && let Some(open) = system.memory.open(offset)
            {
                let shift = place.first_shift;
                self.tlb.insert_store(address, tag, offset, shift, open);
            }
            self.counts.host_translations += 1;
            self.give_way(system, Access::Store, (offset, T::SIZE), count)?;
            let eyes = (view, tag);
            self.charge_lines(system, eyes, LineAccess::Store, (address, T::SIZE), offset);
            let outcome = system.memory.store_scalar(place.physical, value, current);
            self.after_store(system);
            return outcome.ok_or_else(|| self.access_fault(view, Access::Store, address));
        }
        if !address.is_multiple_of(T::SIZE) {
            return Err(self.access_fault(view, Access::Store, address));
        }
        let now = self.time_of(count);
        let written = system.write_device(place.physical, T::SIZE as u8, value.to_u64(), now);
        self.after_device(system);
        match written {
            Ok(()) => Ok(StoreOutcome::default()),
            Err(_) => Err(self.access_fault(view, Access::Store, address)),
        }
    }

    fn store_across_pages<T: Scalar>(
        &mut self,
        system: &mut System,
        view: View,
        address: u64,
        value: T,
        (count, current): (u8, CodeIndex),
    ) -> Result<StoreOutcome, Trapped> {
        let boundary = (address | (PAGE_BYTES - 1)).wrapping_add(1);
        let first_part = boundary.wrapping_sub(address);
        let second = self.effective(view, boundary);
        let low = self.place(system, view, Access::Store, address, first_part)?;
        let high = self.place(system, view, Access::Store, second, T::SIZE - first_part)?;
        let ram = &system.memory.ram;
        if ram.offset(low.physical, first_part).is_none() {
            return Err(self.access_fault(view, Access::Store, address));
        }
        if ram.offset(high.physical, T::SIZE - first_part).is_none() {
            return Err(self.access_fault(view, Access::Store, second));
        }
        let both = [(address, low), (second, high)];
        self.charge_both(system, view, LineAccess::Store, both, count)?;
        let mut outcome = StoreOutcome::default();
        for (index, byte) in (0..T::SIZE).zip(value.to_u64().to_le_bytes()) {
            let physical = if index < first_part {
                low.physical + index
            } else {
                high.physical + (index - first_part)
            };
            if let Some(stored) = system.memory.store_scalar(physical, byte, current) {
                outcome.discarded_current |= stored.discarded_current;
            }
        }
        self.after_store(system);
        Ok(outcome)
    }

    /// Ends the turn soon if a store has hit a hart's wait or the host's word, and tells whoever listens of it.
    pub(crate) fn after_store(&mut self, system: &mut System) {
        if system.memory.host_written() || system.memory.hits() > 0 {
            self.stop_soon();
        }
        self.note_words(system);
    }

    /// Tells whoever listens of stores to words that are listened to.
    #[inline]
    pub(crate) fn note_words(&mut self, system: &mut System) {
        if system.memory.has_observed() {
            let by = self.mode().virtualized.then(|| self.vmid());
            for (physical, size) in system.memory.take_observed() {
                self.note_word(system, physical, size, true);
                system.note_lock(physical, by);
            }
        }
    }

    /// Tells whoever listens what a word holds.
    pub(crate) fn note_word(&mut self, system: &System, physical: u64, size: u64, stored: bool) {
        let ram = &system.memory.ram;
        let value = match size {
            8 => ram.read::<u64>(physical),
            _ => ram.read::<u32>(physical).map(u64::from),
        };
        self.note(|hart| Happening::Word {
            mode: hart.mode(),
            physical,
            value: value.unwrap_or(0),
            stored,
        });
    }

    /// The physical address of an atomic access, which must be aligned and in RAM.
    pub(crate) fn place_atomic(
        &mut self,
        system: &mut System,
        access: Access,
        address: u64,
        size: u64,
    ) -> Result<u64, Trapped> {
        let view = self.data_view();
        let address = self.effective(view, address);
        self.check_triggers(access, address, size)?;
        if !address.is_multiple_of(size) {
            let cause = match access {
                Access::Store => Cause::StoreMisaligned,
                _ => Cause::LoadMisaligned,
            };
            return Err(self.raise(Exception::at(cause, address, view.mode.virtualized)));
        }
        let place = self.place(system, view, access, address, size)?;
        let Some(offset) = system.memory.ram.offset(place.physical, size) else {
            return Err(self.access_fault(view, access, address));
        };
        if place.whole_page {
            if access != Access::Store {
                self.tlb
                    .insert_load(address, self.data_tag, offset, place.first_shift);
            } else if let Some(open) = system.memory.open(offset) {
                let (tag, shift) = (self.data_tag, place.first_shift);
                self.tlb.insert_store(address, tag, offset, shift, open);
            }
        }
        Ok(place.physical)
    }

    /// Forgets store translations to pages that have come under observation.
    pub(crate) fn forget_restricted_stores(&mut self, memory: &PhysicalMemory) {
        for &offset in memory.restricted_since(self.restrictions_seen) {
            self.tlb.forget_stores_to(offset);
        }
        self.restrictions_seen = memory.restrictions();
    }

    /// Does what other harts have asked of all since the hart's last turn.
    pub(crate) fn catch_up(&mut self, system: &System) {
        if self.restrictions_seen != system.memory.restrictions() {
            self.forget_restricted_stores(&system.memory);
        }
        if self.broadcasts_seen == system.broadcasts.len() {
            return;
        }
        let seen = std::mem::replace(&mut self.broadcasts_seen, system.broadcasts.len());
        for &(from, fence) in system.broadcasts.get(seen..).unwrap_or_default() {
            if from != self.id {
                self.fence(fence);
            }
        }
    }

    /// Reserves what LR loaded.
    pub(crate) const fn reserve(&mut self, memory: &PhysicalMemory, physical: u64, size: u64) {
        self.reservation = Some(Reservation {
            physical,
            size,
            device_stores: memory.device_stores(),
        });
    }
}
