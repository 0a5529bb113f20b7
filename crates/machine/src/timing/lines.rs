//! Caches: a hart's own first levels and the second level that all share.

use serde::{Deserialize, Serialize};

use super::{Geometry, LINE_SHIFT, LineAccess, Timing};
use crate::base::HartId;
use crate::base::PAGE_SHIFT;
use crate::count::{Event, EventCounts};

/// The number of a line in its page.
const PAGE_LINES_MASK: u64 = (1 << (PAGE_SHIFT - LINE_SHIFT)) - 1;

/// How many first-level data caches may have a line, for all lines that agree in their low bits:
/// as long as it is zero, nobody has to be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Presence {
    counts: Vec<u32>,
}

impl Presence {
    /// Slots for each set of a cache, at least.
    const SPREAD: usize = 64;

    const fn slots(geometry: Geometry) -> usize {
        geometry.sets * Self::SPREAD
    }

    pub fn new(geometry: Geometry) -> Self {
        Self {
            counts: vec![0; Self::slots(geometry)],
        }
    }

    pub fn is_of(&self, geometry: Geometry) -> bool {
        self.counts.len() == Self::slots(geometry)
    }

    const fn index(&self, line: u64) -> usize {
        line as usize & (self.counts.len().wrapping_sub(1))
    }

    fn slot(&mut self, line: u64) -> Option<&mut u32> {
        let index = self.index(line);
        self.counts.get_mut(index)
    }

    fn add(&mut self, line: u64) {
        if let Some(count) = self.slot(line) {
            *count = count.saturating_add(1);
        }
    }

    fn remove(&mut self, line: u64) {
        if let Some(count) = self.slot(line) {
            *count = count.saturating_sub(1);
        }
    }

    fn of(&self, line: u64) -> u32 {
        self.counts.get(self.index(line)).copied().unwrap_or(0)
    }
}

impl Timing {
    /// Tests whether an access to a line takes part in what other harts' data caches have: a store to a line that
    /// another may have, or a load of a line that another may have changed.
    pub(super) fn crosses(&self, id: HartId, line: u64, store: bool) -> bool {
        let own = self
            .harts
            .get(id.index())
            .and_then(|hart| hart.data.find(line));
        match own {
            Some(found) if found.exclusive || !store => return false,
            // A line of the own cache counts itself.
            Some(_) if self.presence.of(line) <= 1 => return false,
            None if self.presence.of(line) == 0 => return false,
            _ => {}
        }
        self.harts.iter().enumerate().any(|(index, other)| {
            index != id.index()
                && other
                    .data
                    .find(line)
                    .is_some_and(|found| store || found.exclusive)
        })
    }

    /// An access to a hart's first-level data cache; gives the cycles that it takes.
    pub(super) fn data_line(
        &mut self,
        id: HartId,
        line: u64,
        access: LineAccess,
        counts: &mut EventCounts,
    ) -> u64 {
        let store = access.is_store();
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        let mut cycles = 0;
        let mut missed = false;
        let position = match hart.data.find(line) {
            Some(found) if found.exclusive || !store => return 0,
            Some(found) => {
                counts.add(Event::Upgrades, 1);
                cycles += self.costs.transfer;
                found.position
            }
            None => {
                let event = if store {
                    Event::StoreMisses
                } else {
                    Event::LoadMisses
                };
                counts.add(event, 1);
                let (position, evicted) = hart.data.insert(line);
                if let Some(evicted) = evicted {
                    hart.forget_line(evicted);
                    self.presence.remove(evicted);
                }
                self.presence.add(line);
                cycles += match access {
                    LineAccess::Overwrite => self.take_line(line),
                    _ => self.shared_line(line, counts),
                };
                missed = true;
                position
            }
        };
        // Coherence: a store wants the only copy; a load takes the others' right to store.
        let mut others = false;
        if self.presence.of(line) > 1 {
            let mut changed = false;
            for (index, other) in self.harts.iter_mut().enumerate() {
                if index != id.index()
                    && let Some(found) = other.data.find(line)
                {
                    others = true;
                    changed |= found.exclusive;
                    other.give_up(line, found.position, store);
                    if store {
                        self.presence.remove(line);
                    }
                }
            }
            if changed {
                counts.add(Event::Transfers, 1);
                cycles += self.costs.transfer;
            }
        }
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.data.set_exclusive(position, store || !others);
        }
        if missed && access != LineAccess::Overwrite {
            self.prefetch_next(id, line, counts);
        }
        cycles
    }

    /// Takes a line that is written as a whole: the right to store to it comes from where caches are kept coherent, and memory
    /// is not read. Gives the cycles that the answer takes.
    fn take_line(&mut self, line: u64) -> u64 {
        let Some(shared) = &mut self.shared else {
            return self.costs.transfer;
        };
        if shared.find(line).is_none() {
            shared.insert(line);
        }
        self.costs.l2_hit
    }

    /// CBO.CLEAN, CBO.FLUSH or CBO.INVAL by a hart: in all data caches and the second level. Gives the cycles until the answer
    /// from where caches are kept coherent. Instruction caches keep what they have.
    pub(super) fn manage_line(
        &mut self,
        id: HartId,
        line: u64,
        access: LineAccess,
        counts: &mut EventCounts,
    ) -> u64 {
        let removes = access != LineAccess::Clean;
        let mut changed = false;
        if self.presence.of(line) > 0 {
            for (index, hart) in self.harts.iter_mut().enumerate() {
                let Some(found) = hart.data.find(line) else {
                    continue;
                };
                changed |= found.exclusive && index != id.index();
                if removes {
                    hart.give_up(line, found.position, true);
                    self.presence.remove(line);
                }
            }
        }
        let mut cycles = self.costs.transfer;
        if let Some(shared) = &mut self.shared {
            cycles = self.costs.l2_hit;
            if let Some(found) = shared.find(line).filter(|_| removes) {
                shared.remove(found.position);
            }
        }
        if changed {
            counts.add(Event::Transfers, 1);
            cycles += self.costs.transfer;
        }
        cycles
    }

    /// An access to a hart's instruction cache; gives the cycles that it takes.
    pub(super) fn fetch_line(&mut self, id: HartId, line: u64, counts: &mut EventCounts) -> u64 {
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        if hart.instructions.find(line).is_some() {
            return 0;
        }
        counts.add(Event::FetchMisses, 1);
        if let (_, Some(evicted)) = hart.instructions.insert(line) {
            hart.fetches.forget(evicted);
        }
        self.shared_line(line, counts)
    }

    /// An access to the second level, or to memory where there is none.
    fn shared_line(&mut self, line: u64, counts: &mut EventCounts) -> u64 {
        if let Some(shared) = &mut self.shared {
            if shared.find(line).is_some() {
                return self.costs.l2_hit;
            }
            shared.insert(line);
        }
        counts.add(Event::SharedMisses, 1);
        self.memory_turn() + self.costs.memory
    }

    /// How long a line waits for its turn with memory.
    fn memory_turn(&mut self) -> u64 {
        if self.costs.memory_gap == 0 {
            return 0;
        }
        let begins = self.memory_free.max(self.now);
        self.memory_free = begins + self.costs.memory_gap;
        begins - self.now
    }

    /// Brings the line behind one that has missed, if it is in the same page and no other hart has it. It
    /// takes its turn with memory, and nobody waits for it.
    fn prefetch_next(&mut self, id: HartId, line: u64, counts: &mut EventCounts) {
        let next = line + 1;
        let same_page = next & PAGE_LINES_MASK != 0;
        if !self.prefetch || !same_page || self.presence.of(next) > 0 {
            return;
        }
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return;
        };
        if hart.data.geometry().sets < 2 {
            // The line that has missed could have to go.
            return;
        }
        counts.add(Event::Prefetches, 1);
        let (position, evicted) = hart.data.insert(next);
        hart.data.set_exclusive(position, true);
        if let Some(evicted) = evicted {
            hart.forget_line(evicted);
            self.presence.remove(evicted);
        }
        self.presence.add(next);
        let known = self
            .shared
            .as_ref()
            .is_some_and(|shared| shared.find(next).is_some());
        if !known {
            if let Some(shared) = &mut self.shared {
                shared.insert(next);
            }
            self.memory_turn();
        }
    }

    /// The update of a page-table entry by a hart's walk; gives the cycles.
    pub fn update_entry(
        &mut self,
        (id, now): (HartId, u64),
        physical: u64,
        counts: &mut EventCounts,
    ) -> u64 {
        self.now = now;
        let cycles = self.costs.update
            + self.data_line(id, physical >> LINE_SHIFT, LineAccess::Store, counts);
        counts.add(Event::Stalled, cycles);
        cycles
    }

    /// A device has read or written bytes from a physical address on. What it wrote is in the second level
    /// and in no hart's data cache; of what it read, no hart has the right to store any more.
    pub fn device_access(&mut self, physical: u64, length: u64, store: bool) {
        let last = physical.saturating_add(length.saturating_sub(1));
        for line in physical >> LINE_SHIFT..=last >> LINE_SHIFT {
            if self.presence.of(line) > 0 {
                for hart in &mut self.harts {
                    if let Some(found) = hart.data.find(line) {
                        hart.give_up(line, found.position, store);
                        if store {
                            self.presence.remove(line);
                        }
                    }
                }
            }
            if store
                && let Some(shared) = &mut self.shared
                && shared.find(line).is_none()
            {
                shared.insert(line);
            }
        }
    }
}
