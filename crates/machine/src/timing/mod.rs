//! What instructions cost in the measured gear: TLBs, caches, walks, and single instructions.
//!
//! The models know nothing of values: they are told where accesses go and answer with cycles.
//! Replacement is round robin everywhere, so that a hit changes nothing in a model; that is why a
//! [`filter`] may answer for the models as long as what it remembers is still in them, exactly.

mod cache;
mod field;
mod filter;
mod hart;
mod mistake;
mod profile;

pub use cache::{Cache, Geometry};
pub use field::{Field, Kind, fields};
pub use hart::{Charge, HartTiming, TimingCounts};
pub use mistake::{Mistake, Mistakes};
pub use profile::{
    CacheProfile, Costs, DiskProfile, NAMES, NetworkProfile, Profile, ProfileError, TlbProfile,
    UartProfile,
};

use serde::{Deserialize, Serialize};

use crate::device::HartId;
use crate::translation::Reference;

/// log2 of the bytes of a cache line.
pub const LINE_SHIFT: u32 = 6;

/// The models of the whole machine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Timing {
    /// Costs in cycles.
    pub costs: Costs,
    harts: Vec<HartTiming>,
    shared: Cache,
}

impl Timing {
    /// Cold models for a number of harts.
    #[must_use]
    pub fn new(profile: &Profile, harts: usize) -> Self {
        Self {
            costs: profile.costs,
            harts: vec![HartTiming::new(profile); harts],
            shared: Cache::new(profile.l2.geometry()),
        }
    }

    /// Whether the filter vouches for a load of this line: it costs nothing extra.
    #[inline(always)]
    #[must_use]
    pub fn load_is_free(&self, hart: HartId, line: u64, tag: u64) -> bool {
        self.harts
            .get(hart.index())
            .is_some_and(|hart| hart.loads.vouches(line, tag))
    }

    /// Whether the filter vouches for a store to this line.
    #[inline(always)]
    #[must_use]
    pub fn store_is_free(&self, hart: HartId, line: u64, tag: u64) -> bool {
        self.harts
            .get(hart.index())
            .is_some_and(|hart| hart.stores.vouches(line, tag))
    }

    /// Whether the filter vouches for a fetch from this line.
    #[inline(always)]
    #[must_use]
    pub fn fetch_is_free(&self, hart: HartId, line: u64, tag: u64) -> bool {
        self.harts
            .get(hart.index())
            .is_some_and(|hart| hart.fetches.vouches(line, tag))
    }

    /// Whether the models can be those of a profile and a number of harts.
    #[must_use]
    pub fn belongs_to(&self, profile: &Profile, harts: usize) -> bool {
        self.costs == profile.costs
            && self.harts.len() == harts
            && self.harts.iter().all(|hart| hart.belongs_to(profile))
            && self.shared.is_of(profile.l2.geometry())
    }

    /// What a hart has counted.
    #[must_use]
    pub fn counts(&self, hart: HartId) -> TimingCounts {
        self.harts
            .get(hart.index())
            .map_or_else(TimingCounts::default, |hart| hart.counts)
    }

    /// Charges an access of `hart` to the line at physical address `charge.physical`. `walk` gives
    /// the references of the page-table walk if the TLB model misses.
    pub fn access(
        &mut self,
        id: HartId,
        charge: Charge,
        walk: impl FnOnce() -> Vec<Reference>,
    ) -> u64 {
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        let mut cycles = 0;
        let (level, references) = if hart.find_page(charge) {
            (0, Vec::new())
        } else if hart.find_second_page(charge) {
            hart.fill_page(charge);
            (1, Vec::new())
        } else {
            (2, walk())
        };
        if level == 1 {
            cycles += self.costs.l2_tlb_hit;
        }
        if level == 2 {
            hart.counts.walks += 1;
            hart.counts.walk_references += references.len() as u64;
            hart.fill_page(charge);
            for reference in references {
                cycles += self.data_line(id, reference.physical, false);
            }
        }
        cycles += if charge.is_fetch() {
            self.fetch_line(id, charge.physical)
        } else {
            self.data_line(id, charge.physical, charge.is_store())
        };
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.vouch(charge);
            hart.counts.stalled += cycles;
        }
        cycles
    }

    /// An access to the first-level data cache.
    fn data_line(&mut self, id: HartId, physical: u64, store: bool) -> u64 {
        let line = physical >> LINE_SHIFT;
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        hart.counts.data_accesses += 1;
        let mut cycles = 0;
        match hart.data.find(line) {
            Some(exclusive) if exclusive || !store => return 0,
            Some(_) => cycles += self.costs.l2_hit,
            None => {
                hart.counts.data_misses += 1;
                if let Some(evicted) = hart.data.insert(line) {
                    hart.forget_line(evicted);
                }
                cycles += self.shared_line(id, line);
            }
        }
        // Coherence: a store wants the only copy; a load takes the others' right to store.
        let mut others = false;
        for (index, other) in self.harts.iter_mut().enumerate() {
            if index != id.index() && other.data.find(line).is_some() {
                others = true;
                other.give_up(line, store);
            }
        }
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.data.set_exclusive(line, store || !others);
        }
        cycles
    }

    fn fetch_line(&mut self, id: HartId, physical: u64) -> u64 {
        let line = physical >> LINE_SHIFT;
        let Some(hart) = self.harts.get_mut(id.index()) else {
            return 0;
        };
        hart.counts.fetch_accesses += 1;
        if hart.instructions.find(line).is_some() {
            return 0;
        }
        hart.counts.fetch_misses += 1;
        if let Some(evicted) = hart.instructions.insert(line) {
            hart.fetches.forget_line(evicted);
        }
        self.shared_line(id, line)
    }

    /// An access to the second level, which all harts share.
    fn shared_line(&mut self, id: HartId, line: u64) -> u64 {
        if self.shared.find(line).is_some() {
            return self.costs.l2_hit;
        }
        self.shared.insert(line);
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.counts.l2_misses += 1;
        }
        self.costs.memory
    }

    /// A fence or a change of address spaces has made translations of the page, or all if `None`,
    /// unusable on a hart.
    pub fn forget_translations(&mut self, id: HartId, page: Option<u64>) {
        if let Some(hart) = self.harts.get_mut(id.index()) {
            hart.forget_pages(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timing(harts: usize) -> Timing {
        Timing::new(&Profile::default(), harts)
    }

    #[test]
    fn a_second_access_to_a_line_is_free_until_another_hart_stores_to_it() {
        let mut timing = timing(2);
        let (first, second) = (HartId(0), HartId(1));
        let load = Charge::load(0x1000, 0x8000_1000, 8);
        assert!(timing.access(first, load, Vec::new) >= timing.costs.memory);
        assert!(timing.load_is_free(first, 0x1000 >> LINE_SHIFT, 8));
        assert_eq!(timing.access(first, load, Vec::new), 0);
        timing.access(second, Charge::store(0x1000, 0x8000_1000, 8), Vec::new);
        assert!(!timing.load_is_free(first, 0x1000 >> LINE_SHIFT, 8));
        assert!(timing.access(first, load, Vec::new) > 0);
    }

    #[test]
    fn a_filter_forgets_what_the_models_evict() {
        let mut timing = timing(1);
        let id = HartId(0);
        let geometry = Profile::default().l1d.geometry();
        let way = (geometry.sets as u64) << LINE_SHIFT;
        for n in 0..=geometry.ways as u64 {
            let address = 0x8000_0000 + n * way;
            timing.access(id, Charge::load(address, address, 0), Vec::new);
        }
        assert!(!timing.load_is_free(id, 0x8000_0000 >> LINE_SHIFT, 0));
        let last = 0x8000_0000 + geometry.ways as u64 * way;
        assert!(timing.load_is_free(id, last >> LINE_SHIFT, 0));
    }

    #[test]
    fn a_walk_is_charged_by_its_references() {
        let mut timing = timing(1);
        let reference = Reference {
            physical: 0x8100_0000,
            ..Reference::default()
        };
        let load = Charge::load(0x5000, 0x8000_5000, 8);
        timing.access(HartId(0), load, || vec![reference; 3]);
        assert_eq!(timing.counts(HartId(0)).walk_references, 3);
        timing.forget_translations(HartId(0), Some(5));
        assert!(!timing.load_is_free(HartId(0), 0x5000 >> LINE_SHIFT, 8));
        timing.access(HartId(0), load, || vec![reference; 3]);
        assert_eq!(timing.counts(HartId(0)).walks, 2);
    }
}
