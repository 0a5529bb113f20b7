//! First-level data caches: coherence, buffered stores, and operations on cache blocks.

use super::cache::Found;
use super::{LineAccess, Timing};
use crate::base::HartId;
use crate::count::{Event, EventCounts};

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
        self.others_have(id, line, |found| store || found.exclusive)
    }

    /// Tests whether another hart's data cache has a line that fits.
    pub(super) fn others_have(&self, id: HartId, line: u64, fits: impl Fn(Found) -> bool) -> bool {
        self.harts
            .iter()
            .enumerate()
            .any(|(index, other)| index != id.index() && other.data.find(line).is_some_and(&fits))
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
        let found = hart.data.find(line);
        let mut waited = 0;
        let (position, latency) = match found {
            Some(found) => {
                hart.touch_data(found.position);
                waited = self.meet_line(id, line, found, access, counts);
                if !store || found.exclusive {
                    self.mark_line(id, found.position, found.exclusive, store);
                    return waited;
                }
                counts.add(Event::Upgrades, 1);
                (found.position, self.costs.transfer)
            }
            None => self.bring_line(id, line, access, counts),
        };
        let (others, moved) = self.ask_others(id, line, store, counts);
        self.mark_line(id, position, store || !others, store);
        let missed = found.is_none();
        let arrives = missed.then_some(position);
        let latency = latency + moved;
        waited += self.wait_or_buffer(id, (line, arrives), access, latency);
        if missed && access != LineAccess::Overwrite {
            self.prefetch_next(id, line, counts);
            self.follow_stream(id, line, counts);
        }
        waited
    }

    /// Puts a line that a hart's data cache lacks there; gives its position, and the cycles until it comes.
    fn bring_line(
        &mut self,
        id: HartId,
        line: u64,
        access: LineAccess,
        counts: &mut EventCounts,
    ) -> (usize, u64) {
        let event = if access.is_store() {
            Event::StoreMisses
        } else {
            Event::LoadMisses
        };
        counts.add(event, 1);
        let Some((position, evicted)) = self.insert_data(id, line) else {
            return (0, 0);
        };
        let latency = match access {
            LineAccess::Overwrite => self.take_line(line, counts),
            _ => self.shared_line(line, counts),
        };
        if let Some(dirty) = evicted {
            self.write_back(dirty, counts);
        }
        (position, latency)
    }

    /// Adds a line to a hart's data cache; gives its position, and the line that is to be written back, if one had to go and is.
    pub(super) fn insert_data(&mut self, id: HartId, line: u64) -> Option<(usize, Option<u64>)> {
        let hart = self.harts.get_mut(id.index())?;
        let (position, evicted) = hart.insert_data(line);
        if let Some(evicted) = evicted {
            self.presence.remove(evicted.line);
        }
        self.presence.add(line);
        let dirty = evicted.filter(|evicted| evicted.dirty);
        Some((position, dirty.map(|evicted| evicted.line)))
    }

    fn mark_line(&mut self, id: HartId, position: usize, exclusive: bool, store: bool) {
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.data.set_exclusive(position, exclusive);
            if store {
                hart.data.set_dirty(position, true);
            }
        }
    }

    /// Coherence: a store wants the only copy; a load takes the others' right to store. Tells whether others have the line, and gives
    /// the cycles that asking a cache takes that could have changed it.
    fn ask_others(
        &mut self,
        id: HartId,
        line: u64,
        store: bool,
        counts: &mut EventCounts,
    ) -> (bool, u64) {
        if self.presence.of(line) <= 1 {
            return (false, 0);
        }
        let (mut others, mut changed, mut dirty) = (false, false, false);
        for (index, other) in self.harts.iter_mut().enumerate() {
            if index != id.index()
                && let Some(found) = other.data.find(line)
            {
                others = true;
                changed |= found.exclusive;
                dirty |= found.dirty;
                other.give_up(line, found.position, store);
                if store {
                    self.presence.remove(line);
                }
            }
        }
        if dirty && !store {
            // Now several have it, and the second level knows what it holds.
            self.write_back(line, counts);
        }
        if !changed {
            return (others, 0);
        }
        counts.add(Event::Transfers, 1);
        (others, self.costs.transfer)
    }

    /// Takes a line that is written as a whole: the right to store to it comes from where caches are kept coherent, and memory
    /// is not read. Gives the cycles that the answer takes.
    fn take_line(&mut self, line: u64, counts: &mut EventCounts) -> u64 {
        let Some(shared) = &mut self.shared else {
            return self.costs.transfer;
        };
        if shared.look_up(line).is_none() {
            self.insert_shared(line, false, counts);
        }
        self.costs.l2_hit
    }

    /// Tests whether the hart goes on while the line of such an access is on its way.
    const fn is_buffered(&self, access: LineAccess) -> bool {
        self.store_buffer != 0 && matches!(access, LineAccess::Store | LineAccess::Overwrite)
    }

    /// The hart meets a line of its data cache, which may be on its way. Gives the cycles until it is there; a buffered store does not
    /// wait.
    fn meet_line(
        &mut self,
        id: HartId,
        line: u64,
        found: Found,
        access: LineAccess,
        counts: &mut EventCounts,
    ) -> u64 {
        let (now, buffered) = (self.now, self.is_buffered(access));
        let Some(hart) = (self.harts.get_mut(id.index())).filter(|_| found.arriving) else {
            return 0;
        };
        let wait = hart.flights.wait(line, now);
        if wait == 0 || !buffered {
            hart.data.set_arriving(found.position, false);
        }
        if found.prefetched {
            hart.data.set_prefetched(found.position, false);
            self.follow_stream(id, line, counts);
        }
        if buffered { 0 } else { wait }
    }

    /// The cycles that a hart waits for a line that takes `latency` cycles: all of them, or, for a buffered store, until the buffer has
    /// a place. `arrives` is the position of a line that then is on its way.
    fn wait_or_buffer(
        &mut self,
        id: HartId,
        (line, arrives): (u64, Option<usize>),
        access: LineAccess,
        latency: u64,
    ) -> u64 {
        let (now, places) = (self.now, self.store_buffer);
        let buffered = self.is_buffered(access) && latency != 0;
        let Some(hart) = (self.harts.get_mut(id.index())).filter(|_| buffered) else {
            return latency;
        };
        hart.flights.settle(now);
        if let Some(position) = arrives {
            hart.data.set_arriving(position, true);
        }
        hart.flights.buffer_store((line, latency), now, places)
    }

    /// CBO.CLEAN, CBO.FLUSH or CBO.INVAL by a hart: in all data caches and the second level. Gives the cycles until the answer
    /// from where caches are kept coherent; nothing waits for memory to be written. Instruction caches keep what they have.
    pub(super) fn manage_line(
        &mut self,
        id: HartId,
        line: u64,
        access: LineAccess,
        counts: &mut EventCounts,
    ) -> u64 {
        let removes = access != LineAccess::Clean;
        let (mut changed, mut dirty) = (false, false);
        if self.presence.of(line) > 0 {
            for (index, hart) in self.harts.iter_mut().enumerate() {
                let Some(found) = hart.data.find(line) else {
                    continue;
                };
                changed |= found.exclusive && index != id.index();
                dirty |= found.dirty;
                if removes {
                    hart.give_up(line, found.position, true);
                    self.presence.remove(line);
                } else {
                    hart.clean(line, found.position);
                }
            }
        }
        let mut cycles = self.costs.transfer;
        if let Some(shared) = &mut self.shared {
            cycles = self.costs.l2_hit;
            if let Some(found) = shared.find(line) {
                dirty |= found.dirty;
                shared.set_dirty(found.position, false);
                if removes {
                    shared.remove(found.position);
                }
            }
        }
        if dirty && access != LineAccess::Invalidate {
            self.write_memory(line, counts);
        }
        if changed {
            counts.add(Event::Transfers, 1);
            cycles += self.costs.transfer;
        }
        cycles
    }
}
