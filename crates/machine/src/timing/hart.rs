//! The models of one hart.

use serde::{Deserialize, Serialize};

use super::filter::Filter;
use super::{Cache, LINE_SHIFT, Profile};
use crate::memory::PAGE_SHIFT;

/// What an access is, to the models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Fetch,
    Load,
    Store,
}

/// An access to charge for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    kind: Kind,
    address: u64,
    /// Physical address.
    pub physical: u64,
    /// The context of the translation, a number.
    pub tag: u64,
    /// Whether a translation takes part at all.
    pub translated: bool,
}

impl Charge {
    const fn new(kind: Kind, address: u64, physical: u64, tag: u64) -> Self {
        Self {
            kind,
            address,
            physical,
            tag,
            translated: true,
        }
    }

    /// A fetch.
    #[must_use]
    pub const fn fetch(address: u64, physical: u64, tag: u64) -> Self {
        Self::new(Kind::Fetch, address, physical, tag)
    }

    /// A load.
    #[must_use]
    pub const fn load(address: u64, physical: u64, tag: u64) -> Self {
        Self::new(Kind::Load, address, physical, tag)
    }

    /// A store.
    #[must_use]
    pub const fn store(address: u64, physical: u64, tag: u64) -> Self {
        Self::new(Kind::Store, address, physical, tag)
    }

    /// Whether it is a fetch.
    #[must_use]
    pub const fn is_fetch(self) -> bool {
        matches!(self.kind, Kind::Fetch)
    }

    /// Whether it is a store.
    #[must_use]
    pub const fn is_store(self) -> bool {
        matches!(self.kind, Kind::Store)
    }

    const fn page(self) -> u64 {
        self.address >> PAGE_SHIFT
    }

    /// The TLBs' key: page numbers have 52 bits, contexts nine.
    const fn key(self) -> u64 {
        key(self.page(), self.tag)
    }
}

/// Bits of a page number that a key holds; the upper ones repeat the sign.
const PAGE_BITS: u32 = 44;

const fn key(page: u64, tag: u64) -> u64 {
    // The set is chosen by the low bits, so the page comes lowest.
    page & ((1 << PAGE_BITS) - 1) | (tag >> 3) << PAGE_BITS
}

/// What a hart's models have counted since reset.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimingCounts {
    /// Accesses to the data cache that the filter did not answer.
    pub data_accesses: u64,
    /// Misses of the first-level data cache.
    pub data_misses: u64,
    /// Accesses to the instruction cache that the filter did not answer.
    pub fetch_accesses: u64,
    /// Misses of the first-level instruction cache.
    pub fetch_misses: u64,
    /// Misses of the second level that this hart caused.
    pub l2_misses: u64,
    /// Misses of the first-level TLBs.
    pub tlb_misses: u64,
    /// Page-table walks.
    pub walks: u64,
    /// Memory references of walks, both stages.
    pub walk_references: u64,
    /// Cycles lost to all of this.
    pub stalled: u64,
}

/// The models of one hart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HartTiming {
    pub(super) loads: Filter,
    pub(super) stores: Filter,
    pub(super) fetches: Filter,
    pub(super) data: Cache,
    pub(super) instructions: Cache,
    data_tlb: Cache,
    instruction_tlb: Cache,
    second_tlb: Option<Cache>,
    /// What has been counted.
    pub counts: TimingCounts,
}

impl HartTiming {
    /// Cold models.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self {
            loads: Filter::new(),
            stores: Filter::new(),
            fetches: Filter::new(),
            data: Cache::new(profile.l1d.geometry()),
            instructions: Cache::new(profile.l1i.geometry()),
            data_tlb: Cache::new(profile.dtlb.geometry()),
            instruction_tlb: Cache::new(profile.itlb.geometry()),
            second_tlb: profile.l2tlb.map(|tlb| Cache::new(tlb.geometry())),
            counts: TimingCounts::default(),
        }
    }

    /// Whether the models can be those of a profile.
    pub(super) fn belongs_to(&self, profile: &Profile) -> bool {
        let second = match (&self.second_tlb, profile.l2tlb) {
            (Some(cache), Some(tlb)) => cache.is_of(tlb.geometry()),
            (None, None) => true,
            _ => false,
        };
        let filters = [&self.loads, &self.stores, &self.fetches];
        second
            && self.data.is_of(profile.l1d.geometry())
            && self.instructions.is_of(profile.l1i.geometry())
            && self.data_tlb.is_of(profile.dtlb.geometry())
            && self.instruction_tlb.is_of(profile.itlb.geometry())
            && filters.iter().all(|filter| filter.is_whole())
    }

    /// Whether the first-level TLB has the page.
    pub(super) fn find_page(&mut self, charge: Charge) -> bool {
        if !charge.translated {
            return true;
        }
        let tlb = if charge.is_fetch() {
            &self.instruction_tlb
        } else {
            &self.data_tlb
        };
        let found = tlb.find(charge.key()).is_some();
        self.counts.tlb_misses += u64::from(!found);
        found
    }

    /// Whether the second-level TLB has the page.
    pub(super) fn find_second_page(&self, charge: Charge) -> bool {
        self.second_tlb
            .as_ref()
            .is_some_and(|tlb| tlb.find(charge.key()).is_some())
    }

    /// Puts the page into the TLBs.
    pub(super) fn fill_page(&mut self, charge: Charge) {
        let key = charge.key();
        let first = if charge.is_fetch() {
            &mut self.instruction_tlb
        } else {
            &mut self.data_tlb
        };
        if let Some(evicted) = first.insert(key) {
            let page = virtual_page(evicted);
            if charge.is_fetch() {
                self.fetches.forget_page(page);
            } else {
                self.loads.forget_page(page);
                self.stores.forget_page(page);
            }
        }
        if let Some(second) = &mut self.second_tlb
            && second.find(key).is_none()
        {
            second.insert(key);
        }
    }

    /// Lets the filter answer for the access from now on.
    pub(super) fn vouch(&mut self, charge: Charge) {
        let (line, physical) = (charge.address >> LINE_SHIFT, charge.physical >> LINE_SHIFT);
        match charge.kind {
            Kind::Fetch => self.fetches.insert(line, charge.tag, physical),
            Kind::Load => self.loads.insert(line, charge.tag, physical),
            Kind::Store => self.stores.insert(line, charge.tag, physical),
        }
    }

    /// A line has left the data cache.
    pub(super) fn forget_line(&mut self, line: u64) {
        self.loads.forget_line(line);
        self.stores.forget_line(line);
    }

    /// Another hart wants a line: to store to it, or to load it.
    pub(super) fn give_up(&mut self, line: u64, entirely: bool) {
        self.stores.forget_line(line);
        if entirely {
            self.loads.forget_line(line);
            self.data.remove(line);
        } else {
            self.data.set_exclusive(line, false);
        }
    }

    /// Translations of a page, or all if `None`, are gone.
    pub(super) fn forget_pages(&mut self, page: Option<u64>) {
        let Some(page) = page else {
            for tlb in [&mut self.data_tlb, &mut self.instruction_tlb] {
                tlb.clear();
            }
            if let Some(tlb) = &mut self.second_tlb {
                tlb.clear();
            }
            for filter in [&mut self.loads, &mut self.stores, &mut self.fetches] {
                filter.clear();
            }
            return;
        };
        let bits = page & ((1 << PAGE_BITS) - 1);
        let matches = |key: u64| key & ((1 << PAGE_BITS) - 1) == bits;
        self.data_tlb.remove_if(matches);
        self.instruction_tlb.remove_if(matches);
        if let Some(tlb) = &mut self.second_tlb {
            tlb.remove_if(matches);
        }
        for filter in [&mut self.loads, &mut self.stores, &mut self.fetches] {
            filter.forget_page(page);
        }
    }
}

/// The virtual page of a TLB key, its upper bits repeated from the sign.
const fn virtual_page(key: u64) -> u64 {
    let shift = 64 - PAGE_BITS;
    let page = ((key << shift) as i64 >> shift) as u64;
    page & (u64::MAX >> PAGE_SHIFT)
}
