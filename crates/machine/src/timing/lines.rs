//! Second level that all harts share, memory behind it, prefetches, and accesses by devices.

use super::{LINE_SHIFT, LineAccess, Timing};
use crate::base::HartId;
use crate::base::PAGE_SHIFT;
use crate::count::{Event, EventCounts};

/// The number of a line in its page.
const PAGE_LINES_MASK: u64 = (1 << (PAGE_SHIFT - LINE_SHIFT)) - 1;

impl Timing {
    /// An access to a hart's instruction cache; gives the cycles that it takes.
    pub(super) fn fetch_line(&mut self, id: HartId, line: u64, counts: &mut EventCounts) -> u64 {
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        if hart.look_up_instructions(line) {
            return 0;
        }
        counts.add(Event::FetchMisses, 1);
        hart.insert_instructions(line);
        self.shared_line(line, counts)
    }

    /// An access to the second level, or to memory where there is none.
    pub(super) fn shared_line(&mut self, line: u64, counts: &mut EventCounts) -> u64 {
        if let Some(shared) = &mut self.shared
            && shared.look_up(line).is_some()
        {
            return self.costs.l2_hit;
        }
        counts.add(Event::SharedMisses, 1);
        let cycles = self.memory_turn(line, counts) + self.costs.memory;
        self.insert_shared(line, false, counts);
        cycles
    }

    /// Adds a line to the second level, if there is one; what has to go is written back.
    pub(super) fn insert_shared(&mut self, line: u64, dirty: bool, counts: &mut EventCounts) {
        let Some(shared) = &mut self.shared else {
            return;
        };
        let (position, evicted) = shared.insert(line, |_| {});
        shared.set_dirty(position, dirty);
        if let Some(evicted) = evicted.filter(|evicted| evicted.dirty) {
            self.write_memory(evicted.line, counts);
        }
    }

    /// A first-level data cache gives bytes of a line away that memory lacks: to the second level, or to memory where there is none.
    pub(super) fn write_back(&mut self, line: u64, counts: &mut EventCounts) {
        if self.channels.is_none() {
            return;
        }
        let Some(shared) = &mut self.shared else {
            return self.write_memory(line, counts);
        };
        match shared.find(line) {
            Some(found) => shared.set_dirty(found.position, true),
            None => self.insert_shared(line, true, counts),
        }
    }

    /// Writes a line to memory, which takes its turn there. Nothing waits for it.
    pub(super) fn write_memory(&mut self, line: u64, counts: &mut EventCounts) {
        if let Some(channels) = &mut self.channels {
            counts.add(Event::WriteBacks, 1);
            channels.turn(line, self.now);
        }
    }

    /// How long a line waits for its turn with memory.
    fn memory_turn(&mut self, line: u64, counts: &mut EventCounts) -> u64 {
        let wait = if let Some(channels) = &mut self.channels {
            channels.turn(line, self.now)
        } else if self.costs.memory_gap == 0 {
            0
        } else {
            let begins = self.memory_free.max(self.now);
            self.memory_free = begins + self.costs.memory_gap;
            begins - self.now
        };
        counts.add(Event::MemoryQueue, wait);
        wait
    }

    /// Brings the line behind one that has missed, if it is in the same page and no other hart has it. It
    /// takes its turn with memory, and nobody waits for it.
    pub(super) fn prefetch_next(&mut self, id: HartId, line: u64, counts: &mut EventCounts) {
        let next = line + 1;
        let same_page = next & PAGE_LINES_MASK != 0;
        if !self.prefetch || !same_page || self.presence.of(next) > 0 {
            return;
        }
        let sets = |hart: &super::HartTiming| hart.data.geometry().sets;
        // With one set the line that has missed could have to go.
        if self.harts.get(id.index()).is_none_or(|hart| sets(hart) < 2) {
            return;
        }
        self.prefetch(id, next, counts);
    }

    /// Puts a line that no data cache has into a hart's; gives its position, and the cycles until it comes.
    fn prefetch(
        &mut self,
        id: HartId,
        line: u64,
        counts: &mut EventCounts,
    ) -> Option<(usize, u64)> {
        counts.add(Event::Prefetches, 1);
        let (position, evicted) = self.insert_data(id, line)?;
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.data.set_exclusive(position, true);
        }
        let known = (self.shared.as_mut()).is_some_and(|shared| shared.look_up(line).is_some());
        let cycles = if known {
            self.costs.l2_hit
        } else {
            let cycles = self.memory_turn(line, counts) + self.costs.memory;
            self.insert_shared(line, false, counts);
            cycles
        };
        if let Some(dirty) = evicted {
            self.write_back(dirty, counts);
        }
        Some((position, cycles))
    }

    /// A hart's prefetcher learns of a miss, or of the first use of a line that it has asked for.
    pub(super) fn follow_stream(&mut self, id: HartId, line: u64, counts: &mut EventCounts) {
        let now = self.now;
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return;
        };
        let Some(prefetcher) = &mut hart.prefetcher else {
            return;
        };
        let limit = prefetcher.limit();
        let Some((stream, lines)) = prefetcher.note(line) else {
            return;
        };
        hart.flights.settle(now);
        let mut room = limit.saturating_sub(hart.flights.prefetched());
        let mut ahead = lines.start;
        for next in lines {
            if room == 0 {
                break;
            }
            ahead = next + 1;
            if self.is_in_a_data_cache(id, next) {
                continue;
            }
            let Some((position, cycles)) = self.prefetch(id, next, counts) else {
                break;
            };
            if let Some(hart) = self.harts.get_mut(id.index()) {
                hart.data.set_arriving(position, true);
                hart.data.set_prefetched(position, true);
                hart.flights.prefetch(next, now + cycles);
            }
            room -= 1;
        }
        if let Some(hart) = self.harts.get_mut(id.index())
            && let Some(prefetcher) = &mut hart.prefetcher
        {
            prefetcher.advance(stream, ahead);
        }
    }

    fn is_in_a_data_cache(&self, id: HartId, line: u64) -> bool {
        self.presence.of(line) > 0
            && (self.others_have(id, line, |_| true)
                || (self.harts.get(id.index())).is_some_and(|hart| hart.data.find(line).is_some()))
    }

    /// The update of a page-table entry by a hart's walk; gives the cycles.
    pub fn update_entry(
        &mut self,
        (id, now): (HartId, u64),
        physical: u64,
        counts: &mut EventCounts,
    ) -> u64 {
        self.now = now;
        let line = physical >> LINE_SHIFT;
        let cycles = self.costs.update + self.data_line(id, line, LineAccess::Store, counts);
        counts.add(Event::Stalled, cycles);
        cycles
    }

    /// A device has read or written bytes from a physical address on. What it wrote is in the second level
    /// and in no hart's data cache; of what it read, no hart has the right to store any more.
    pub fn device_access(&mut self, physical: u64, length: u64, store: bool) {
        // No hart's: what devices cause belongs to none.
        let mut counts = EventCounts::default();
        let last = physical.saturating_add(length.saturating_sub(1));
        for line in physical >> LINE_SHIFT..=last >> LINE_SHIFT {
            let mut dirty = store;
            if self.presence.of(line) > 0 {
                for hart in &mut self.harts {
                    if let Some(found) = hart.data.find(line) {
                        dirty |= found.dirty;
                        hart.give_up(line, found.position, store);
                        if store {
                            self.presence.remove(line);
                        }
                    }
                }
            }
            if dirty {
                self.write_back(line, &mut counts);
            }
            if store
                && let Some(shared) = &self.shared
                && shared.find(line).is_none()
            {
                self.insert_shared(line, false, &mut counts);
            }
        }
    }
}
