//! Caches: a hart's own first levels and the second level that all share.

use serde::{Deserialize, Serialize};

use super::{Geometry, Timing};
use crate::device::HartId;
use crate::monitor::{Event, EventCounts};

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

    fn slot(&mut self, line: u64) -> Option<&mut u32> {
        let index = line as usize & (self.counts.len().wrapping_sub(1));
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

    fn of(&mut self, line: u64) -> u32 {
        self.slot(line).map_or(0, |count| *count)
    }
}

impl Timing {
    /// An access to a hart's first-level data cache; gives the cycles that it takes.
    pub(super) fn data_line(
        &mut self,
        id: HartId,
        line: u64,
        store: bool,
        counts: &mut EventCounts,
    ) -> u64 {
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        let mut cycles = 0;
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
                cycles += self.shared_line(line, counts);
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
            hart.fetches.forget_line(evicted);
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
        self.costs.memory
    }
}
