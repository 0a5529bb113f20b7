//! Costs of instructions in the timing mode: TLBs, caches, walks, and single instructions.
//!
//! The models know nothing of values: they are told where accesses go and answer with cycles.
//! A [`filter`] answers for the models where a hit changes nothing in them, exactly: what it remembers is still in them, and its
//! next use changes nothing of what replacement knows ([`replacement`]).

mod branches;
mod cache;
mod charge;
mod data;
mod filter;
mod flights;
mod hart;
mod lines;
mod memory;
mod predictor;
mod prefetcher;
mod presence;
mod replacement;
mod tlb;
mod walks;

#[cfg(test)]
mod exact;
#[cfg(test)]
mod tests;

pub use crate::profile::{
    CacheProfile, Costs, DiskProfile, FenceRules, Field, Found, Geometry, Honours, MeasureError,
    Measurements, MemoryProfile, Mistake, Mistakes, NAMES, Need, NetworkProfile, PredictorProfile,
    PrefetcherProfile, Profile, ProfileError, ReplacementPolicy, TlbProfile, UartProfile,
    ValueKind, VectorCosts, VectorProfile, fields,
};
pub use cache::Cache;
pub use charge::{Charge, LineAccess, Walked};
pub use hart::HartTiming;
pub use predictor::Transfer;
pub use tlb::{Entry, Tlb};

pub use crate::base::Space;

use serde::{Deserialize, Serialize};

use crate::base::PAGE_SHIFT;
use crate::base::{Fence, HartId};
use crate::count::{Event, EventCounts};
use hart::Server;
use memory::MemoryChannels;
use presence::Presence;

pub use filter::{FilterTables, PageName};
pub(crate) use filter::{LINE_PLACES, LineFilter, PAGE_PLACES};

pub use crate::base::LINE_SHIFT;

/// The models of the whole machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Timing {
    /// Costs in cycles.
    pub costs: Costs,
    /// Costs of vector instructions, if the profile tells them.
    pub vector: Option<VectorCosts>,
    fences: FenceRules,
    fence_i_clears: bool,
    /// True if misaligned loads and stores trap.
    pub misaligned_traps: bool,
    prefetch: bool,
    /// The hart's time at the access that is charged for.
    now: u64,
    /// When memory can begin with the next line, if it has no channels.
    memory_free: u64,
    /// Channels of memory, if the profile has them.
    channels: Option<MemoryChannels>,
    /// Places of each hart's store buffer.
    store_buffer: usize,
    /// True if the harts have predictors of branches.
    predicts: bool,
    harts: Vec<HartTiming>,
    shared: Option<Cache>,
    presence: Presence,
    /// True if the filters are asked: without them everything is slower, and the same.
    #[serde(skip, default = "filtered")]
    filtered: bool,
}

const fn filtered() -> bool {
    true
}

impl Timing {
    /// Cold models for a number of harts.
    #[must_use]
    pub fn new(profile: &Profile, harts: usize) -> Self {
        Self {
            costs: profile.costs,
            vector: profile.vector.and_then(|vector| vector.costs),
            fences: profile.fences,
            fence_i_clears: profile.fence_i_clears,
            misaligned_traps: profile.misaligned_traps,
            prefetch: profile.prefetch_next_line,
            now: 0,
            memory_free: 0,
            channels: (profile.memory)
                .map(|memory| MemoryChannels::new(memory, profile.costs.memory_gap)),
            store_buffer: profile.store_buffer.into(),
            predicts: profile.predictor.is_some(),
            harts: (0..harts).map(|_| HartTiming::new(profile)).collect(),
            shared: profile
                .l2
                .map(|l2| Cache::new(l2.geometry(), l2.replacement)),
            presence: Presence::new(profile.l1d.geometry()),
            filtered: true,
        }
    }

    /// Asks the models for every access, for comparison.
    pub fn without_filters(&mut self) {
        self.filtered = false;
        for hart in &mut self.harts {
            hart.clear_filters();
        }
    }

    /// Tests whether the filters vouch for a load of this physical line by a page: it costs nothing extra.
    #[inline(always)]
    #[must_use]
    pub fn load_is_free(&self, hart: HartId, page: PageName, line: u64) -> bool {
        let hart = self.harts.get(hart.index());
        hart.is_some_and(|hart| hart.load_is_free(page, line))
    }

    /// Tests whether the filters vouch for a store to this physical line by a page.
    #[inline(always)]
    #[must_use]
    pub fn store_is_free(&self, hart: HartId, page: PageName, line: u64) -> bool {
        let hart = self.harts.get(hart.index());
        hart.is_some_and(|hart| hart.store_is_free(page, line))
    }

    /// Tests whether a load of, or a store to, a physical address takes part in what other harts' caches have.
    #[must_use]
    pub fn is_shared_access(&self, hart: HartId, physical: u64, store: bool) -> bool {
        self.crosses(hart, physical >> LINE_SHIFT, store)
    }

    /// Tests whether the filters vouch for a fetch from this physical line by a page.
    #[inline(always)]
    #[must_use]
    pub fn fetch_is_free(&self, hart: HartId, page: PageName, line: u64) -> bool {
        let hart = self.harts.get(hart.index());
        hart.is_some_and(|hart| hart.fetch_is_free(page, line))
    }

    /// The filters of a hart, for translated code that knows pages by their names of an epoch.
    #[must_use]
    pub fn tables(&mut self, hart: HartId, epoch: u32) -> FilterTables {
        self.harts
            .get_mut(hart.index())
            .map_or(FilterTables::NONE, |hart| hart.tables(epoch))
    }

    /// Tests whether the models can be those of a profile and a number of harts.
    #[must_use]
    pub fn belongs_to(&self, profile: &Profile, harts: usize) -> bool {
        self.costs == profile.costs
            && self.vector == profile.vector.and_then(|vector| vector.costs)
            && self.fences == profile.fences
            && self.fence_i_clears == profile.fence_i_clears
            && self.misaligned_traps == profile.misaligned_traps
            && self.prefetch == profile.prefetch_next_line
            && self.store_buffer == usize::from(profile.store_buffer)
            && self.predicts == profile.predictor.is_some()
            && match (&self.channels, profile.memory) {
                (Some(channels), Some(memory)) => channels.is_of(memory, profile.costs.memory_gap),
                (None, None) => true,
                _ => false,
            }
            && self.harts.len() == harts
            && self.harts.iter().all(|hart| hart.belongs_to(profile))
            && self.presence.is_of(profile.l1d.geometry())
            && match (&self.shared, profile.l2) {
                (Some(cache), Some(l2)) => cache.is_of(l2.geometry(), l2.replacement),
                (None, None) => true,
                _ => false,
            }
    }

    /// Charges an access that a hart makes at the time `now`, in cycles, and counts what happens. `walk`
    /// walks the page tables if no TLB has the page. Gives the cycles that the access takes beyond those of
    /// its instruction.
    pub fn access<'a>(
        &mut self,
        (id, now): (HartId, u64),
        charge: Charge,
        counts: &mut EventCounts,
        walk: impl FnOnce() -> Walked<'a>,
    ) -> u64 {
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        self.now = now;
        let mut cycles = 0;
        let slot = match hart.server(charge) {
            Server::Untranslated => None,
            Server::Slot(slot) => Some(slot),
            Server::Nobody => {
                let (slot, missed) = self.miss_tlb(id, charge, counts, walk);
                cycles += missed;
                self.pass(missed);
                slot
            }
        };
        cycles += if charge.is_fetch() {
            self.fetch_line(id, charge.line(), counts)
        } else if charge.access.is_management() {
            self.manage_line(id, charge.line(), charge.access, counts)
        } else {
            self.data_line(id, charge.line(), charge.access, counts)
        };
        if self.filtered
            && let Some(hart) = self.harts.get_mut(id.index())
        {
            hart.vouch(charge, slot);
        }
        counts.add(Event::Stalled, cycles);
        cycles
    }

    /// Fills the first-level TLB; gives the slot that serves the access now, and the cycles. A walk begins when the
    /// second-level TLB has been looked up in vain, so the look-up is charged for it too, but is no part of
    /// [`Event::WalkCycles`]: these are what a hit there saves.
    fn miss_tlb<'a>(
        &mut self,
        id: HartId,
        charge: Charge,
        counts: &mut EventCounts,
        walk: impl FnOnce() -> Walked<'a>,
    ) -> (Option<usize>, u64) {
        counts.add(charge.tlb_miss(), 1);
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return (None, 0);
        };
        let looked_up = if hart.has_second_tlb() {
            self.costs.l2_tlb_hit
        } else {
            0
        };
        if let Some(entry) = hart.second_entry(charge) {
            return (Some(hart.fill_first(charge, entry)), looked_up);
        }
        counts.add(Event::Walks, 1);
        let walked = walk();
        let cycles = self.charge_walk(id, charge, &walked, counts);
        counts.add(Event::WalkCycles, cycles);
        let entry = Entry::new(charge.page(), walked.shift, walked.global, charge.space)
            .leading_to(walked.guest_physical >> PAGE_SHIFT);
        let slot = self.harts.get_mut(id.index()).map(|hart| {
            hart.fill_second(charge, entry);
            hart.fill_first(charge, entry)
        });
        (slot, looked_up + cycles)
    }

    /// Lets time pass within an access, where the models look at it so closely.
    const fn pass(&mut self, cycles: u64) {
        if self.channels.is_some() || self.store_buffer != 0 {
            self.now += cycles;
        }
    }

    /// Cycles of FENCE by a hart at a time: its stores have to be done.
    #[must_use]
    pub fn fence_stores(&self, id: HartId, now: u64) -> u64 {
        let hart = self.harts.get(id.index());
        self.costs.fence + hart.map_or(0, |hart| hart.flights.drain(now))
    }

    /// A hart executes a fence of translations.
    pub fn fence(&mut self, id: HartId, fence: Fence) {
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.fence(fence, &self.fences);
        }
    }

    /// A hart executes the broadcast fence; gives the cycles for the other harts.
    pub fn broadcast(&mut self, id: HartId, fence: Fence) -> u64 {
        let mut others = 0;
        for (index, hart) in self.harts.iter_mut().enumerate() {
            hart.fence(fence, &self.fences);
            others += u64::from(index != id.index());
        }
        others * self.costs.broadcast
    }

    /// A hart executes FENCE.I.
    pub fn fence_instructions(&mut self, id: HartId) {
        if self.fence_i_clears
            && let Some(hart) = self.harts.get_mut(id.index())
        {
            hart.forget_instructions();
        }
    }
}
