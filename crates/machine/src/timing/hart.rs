//! The models of one hart.

use serde::{Deserialize, Serialize};

use super::cache::Evicted;
use super::filter::{FilterTables, LineFilter, PageFilter, PageName};
use super::flights::Flights;
use super::predictor::Predictor;
use super::prefetcher::Prefetcher;
use super::tlb::{Entry, Tlb};
use super::{Cache, Charge, FenceRules, Honours, Profile, Space};
use crate::base::PAGE_SHIFT;
use crate::base::{Access, Fence, VirtualFence};

/// Entry that serves an access at the first level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Server {
    /// No TLB has to: nothing is translated.
    Untranslated,
    /// The TLB entry in this slot.
    Slot(usize),
    /// The TLB has no entry for it.
    Nobody,
}

/// Caches of walks besides translations.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct WalkCaches {
    /// Entries of S- and VS-stage tables that lead to tables, by their physical addresses.
    pub first_stage: Option<Cache>,
    /// The same of the G-stage.
    pub guest_stage: Option<Cache>,
    /// G-stage translations of guest physical pages.
    pub guest_pages: Option<Tlb>,
}

impl WalkCaches {
    fn new(profile: &Profile) -> Self {
        let cache = |size: Option<super::TlbProfile>| {
            size.map(|size| Cache::new(size.geometry(), size.replacement))
        };
        Self {
            first_stage: cache(profile.walk_cache),
            guest_stage: cache(profile.guest_walk_cache),
            guest_pages: profile.guest_tlb.map(Tlb::new),
        }
    }

    fn belongs_to(&self, profile: &Profile) -> bool {
        let same = |cache: &Option<Cache>, size: Option<super::TlbProfile>| match (cache, size) {
            (Some(cache), Some(size)) => cache.is_of(size.geometry(), size.replacement),
            (None, None) => true,
            _ => false,
        };
        let pages = match (&self.guest_pages, profile.guest_tlb) {
            (Some(tlb), Some(size)) => tlb.is_of(size),
            (None, None) => true,
            _ => false,
        };
        pages
            && same(&self.first_stage, profile.walk_cache)
            && same(&self.guest_stage, profile.guest_walk_cache)
    }
}

/// The models of one hart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HartTiming {
    // What a filter remembers can be found out again: it is not part of the state.
    /// Pages in the data TLB.
    #[serde(skip)]
    data_pages: PageFilter,
    /// Pages in the instruction TLB.
    #[serde(skip)]
    code_pages: PageFilter,
    /// Lines in the data cache.
    #[serde(skip)]
    pub(super) loads: LineFilter,
    /// Lines in the data cache that no other hart has.
    #[serde(skip)]
    pub(super) stores: LineFilter,
    /// Lines in the instruction cache.
    #[serde(skip)]
    pub(super) fetches: LineFilter,
    pub(super) data: Cache,
    pub(super) instructions: Cache,
    data_tlb: Tlb,
    instruction_tlb: Tlb,
    second_tlb: Option<Tlb>,
    pub(super) walks: WalkCaches,
    /// Lines on their way that nothing waits for.
    pub(super) flights: Flights,
    pub(super) prefetcher: Option<Prefetcher>,
    pub(super) predictor: Option<Predictor>,
}

impl HartTiming {
    /// Cold models.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Self {
            data_pages: PageFilter::default(),
            code_pages: PageFilter::default(),
            loads: LineFilter::default(),
            stores: LineFilter::default(),
            fetches: LineFilter::default(),
            data: Cache::new(profile.l1d.geometry(), profile.l1d.replacement),
            instructions: Cache::new(profile.l1i.geometry(), profile.l1i.replacement),
            data_tlb: Tlb::new(profile.dtlb),
            instruction_tlb: Tlb::new(profile.itlb),
            second_tlb: profile.l2tlb.map(Tlb::new),
            walks: WalkCaches::new(profile),
            flights: Flights::default(),
            prefetcher: profile.prefetcher.map(Prefetcher::new),
            predictor: profile.predictor.map(Predictor::new),
        }
    }

    /// Tests whether the models can be those of a profile.
    pub(super) fn belongs_to(&self, profile: &Profile) -> bool {
        let second = match (&self.second_tlb, profile.l2tlb) {
            (Some(tlb), Some(size)) => tlb.is_of(size),
            (None, None) => true,
            _ => false,
        };
        let prefetcher = match (&self.prefetcher, profile.prefetcher) {
            (Some(prefetcher), Some(profile)) => prefetcher.is_of(profile),
            (None, None) => true,
            _ => false,
        };
        let predictor = match (&self.predictor, profile.predictor) {
            (Some(predictor), Some(profile)) => predictor.is_of(profile),
            (None, None) => true,
            _ => false,
        };
        let (data, instructions) = (profile.l1d, profile.l1i);
        second
            && prefetcher
            && predictor
            && self.data.is_of(data.geometry(), data.replacement)
            && (self.instructions).is_of(instructions.geometry(), instructions.replacement)
            && self.data_tlb.is_of(profile.dtlb)
            && self.instruction_tlb.is_of(profile.itlb)
            && self.walks.belongs_to(profile)
    }

    /// Entry that serves an access at the first level.
    pub(super) fn server(&mut self, charge: Charge) -> Server {
        if !charge.translated {
            return Server::Untranslated;
        }
        let (tlb, pages) = self.first_level(charge);
        let Some(slot) = tlb.serves(charge.page(), charge.space) else {
            return Server::Nobody;
        };
        tlb.touch(slot, |slot, entry| forget_entry(pages, slot, entry));
        Server::Slot(slot)
    }

    /// The first-level TLB for an access, and its filter.
    const fn first_level(&mut self, charge: Charge) -> (&mut Tlb, &mut PageFilter) {
        if charge.is_fetch() {
            (&mut self.instruction_tlb, &mut self.code_pages)
        } else {
            (&mut self.data_tlb, &mut self.data_pages)
        }
    }

    /// Tests whether there is a second-level TLB.
    pub(super) const fn has_second_tlb(&self) -> bool {
        self.second_tlb.is_some()
    }

    /// The second-level TLB's entry for an access.
    pub(super) fn second_entry(&mut self, charge: Charge) -> Option<Entry> {
        let second = self.second_tlb.as_mut()?;
        second.look_up(charge.page(), charge.space)
    }

    /// Puts an entry into the first-level TLB; gives its slot.
    pub(super) fn fill_first(&mut self, charge: Charge, entry: Entry) -> usize {
        let (tlb, pages) = self.first_level(charge);
        let demoted = |slot, entry| forget_entry(pages, slot, entry);
        let (slot, evicted) = tlb.insert(charge.page(), entry, demoted);
        if let Some(evicted) = evicted {
            let (_, pages) = self.first_level(charge);
            forget_entry(pages, slot, evicted);
        }
        slot
    }

    /// Puts an entry into the second-level TLB.
    pub(super) fn fill_second(&mut self, charge: Charge, entry: Entry) {
        if let Some(second) = &mut self.second_tlb {
            second.insert_unfiltered(charge.page(), entry);
        }
    }

    /// Lets the filters answer for the access from now on, which rests on the TLB entry in a slot, if it
    /// is translated.
    pub(super) fn vouch(&mut self, charge: Charge, slot: Option<usize>) {
        let line = charge.line();
        // What may be on its way the models are asked for until it is there.
        let arriving = |hart: &Self| hart.data.find(line).is_some_and(|found| found.arriving);
        if !charge.access.is_management() && (charge.is_fetch() || !arriving(self)) {
            match charge.access.access() {
                Access::Fetch => self.fetches.insert(line),
                Access::Load => self.loads.insert(line),
                Access::Store => {
                    self.loads.insert(line);
                    self.stores.insert(line);
                }
            }
        }
        if let Some(name) = charge.name
            && !(charge.shared && self.is_local(charge, slot))
        {
            let pages = if charge.is_fetch() {
                &mut self.code_pages
            } else {
                &mut self.data_pages
            };
            pages.insert(name, slot);
        }
    }

    /// Tests whether the entry in a slot, which has just served an access, serves no other address space.
    fn is_local(&self, charge: Charge, slot: Option<usize>) -> bool {
        let tlb = if charge.is_fetch() {
            &self.instruction_tlb
        } else {
            &self.data_tlb
        };
        slot.and_then(|slot| tlb.entry(slot))
            .is_some_and(|entry| !entry.global)
    }

    /// Tests whether a load of a physical line by a page certainly costs nothing extra.
    #[inline(always)]
    pub(super) fn load_is_free(&self, page: PageName, line: u64) -> bool {
        self.loads.vouches(line) && self.data_pages.vouches(page)
    }

    /// Tests whether a store to a physical line by a page certainly costs nothing extra.
    #[inline(always)]
    pub(super) fn store_is_free(&self, page: PageName, line: u64) -> bool {
        self.stores.vouches(line) && self.data_pages.vouches(page)
    }

    /// Tests whether a fetch from a physical line by a page certainly costs nothing extra.
    #[inline(always)]
    pub(super) fn fetch_is_free(&self, page: PageName, line: u64) -> bool {
        self.fetches.vouches(line) && self.code_pages.vouches(page)
    }

    /// The filters for translated code, which knows pages by their names of an epoch.
    pub(super) fn tables(&mut self, epoch: u32) -> FilterTables {
        self.data_pages.begin(epoch);
        self.code_pages.begin(epoch);
        FilterTables {
            data_pages: self.data_pages.start(),
            code_pages: self.code_pages.start(),
            loads: self.loads.start(),
            stores: self.stores.start(),
            fetches: self.fetches.start(),
            stores_done: self.flights.stores_done(),
        }
    }

    /// The line at a position of the data cache is used.
    pub(super) fn touch_data(&mut self, position: usize) {
        let (loads, stores) = (&mut self.loads, &mut self.stores);
        self.data.touch(position, |line| {
            loads.forget(line);
            stores.forget(line);
        });
    }

    /// Adds a line to the data cache; gives its position and the line that has to go.
    pub(super) fn insert_data(&mut self, line: u64) -> (usize, Option<Evicted>) {
        let (loads, stores) = (&mut self.loads, &mut self.stores);
        let (position, evicted) = self.data.insert(line, |line| {
            loads.forget(line);
            stores.forget(line);
        });
        if let Some(evicted) = evicted {
            self.forget_line(evicted.line);
        }
        (position, evicted)
    }

    /// Finds a line in the instruction cache and uses it.
    pub(super) fn look_up_instructions(&mut self, line: u64) -> bool {
        let Some(found) = self.instructions.find(line) else {
            return false;
        };
        let fetches = &mut self.fetches;
        (self.instructions).touch(found.position, |line| fetches.forget(line));
        true
    }

    /// Adds a line to the instruction cache.
    pub(super) fn insert_instructions(&mut self, line: u64) {
        let fetches = &mut self.fetches;
        let (_, evicted) = self.instructions.insert(line, |line| fetches.forget(line));
        if let Some(evicted) = evicted {
            self.fetches.forget(evicted.line);
        }
    }

    /// A line has left the data cache.
    pub(super) fn forget_line(&mut self, line: u64) {
        self.loads.forget(line);
        self.stores.forget(line);
    }

    /// Another hart wants a line, which is at a position: to store to it, or to load it.
    pub(super) fn give_up(&mut self, line: u64, position: usize, entirely: bool) {
        self.stores.forget(line);
        if entirely {
            self.loads.forget(line);
            self.data.remove(position);
        } else {
            self.data.set_exclusive(position, false);
            self.data.set_dirty(position, false);
        }
    }

    /// Memory has the bytes of a line again; the next store tells that it has not.
    pub(super) fn clean(&mut self, line: u64, position: usize) {
        self.stores.forget(line);
        self.data.set_dirty(position, false);
    }

    /// The first-level instruction cache is emptied.
    pub(super) fn forget_instructions(&mut self) {
        self.instructions.clear();
        self.fetches.clear();
    }

    /// Makes the filters ask the models again for everything.
    pub(super) fn clear_filters(&mut self) {
        self.data_pages.clear();
        self.code_pages.clear();
        self.loads.clear();
        self.stores.clear();
        self.fetches.clear();
    }

    /// Carries out a fence as coarsely as the profile says.
    pub(super) fn fence(&mut self, fence: Fence, rules: &FenceRules) {
        let (selection, walks) = match fence {
            Fence::Supervisor { address, asid } => {
                let selection = Selection::new(rules.sfence, address, asid, None);
                (selection.of_host(), (true, false))
            }
            Fence::Virtual {
                by,
                address,
                asid,
                vmid,
            } => {
                let honours = match by {
                    VirtualFence::Sfence => rules.sfence,
                    VirtualFence::Hfence => rules.hfence_vvma,
                    VirtualFence::Broadcast => rules.broadcast,
                };
                let selection = Selection::new(honours, address, asid, Some(vmid));
                (selection, (true, false))
            }
            Fence::Guest { address, vmid } => {
                self.forget_guest_pages(rules.hfence_gvma, address, vmid);
                let selection = Selection::new(rules.hfence_gvma, None, None, vmid);
                (
                    selection.of_guest_page(rules.hfence_gvma, address),
                    (false, true),
                )
            }
            Fence::Everything => return,
        };
        if (walks.0 || selection.everything)
            && let Some(cache) = &mut self.walks.first_stage
        {
            cache.clear();
        }
        if (walks.1 || selection.everything)
            && let Some(cache) = &mut self.walks.guest_stage
        {
            cache.clear();
        }
        self.forget(selection);
    }

    fn forget(&mut self, selection: Selection) {
        let mut data = Vec::new();
        let mut code = Vec::new();
        let picks = |entry: &Entry| selection.picks(entry);
        self.data_tlb
            .remove_if(picks, |slot, entry| data.push((slot, entry)));
        self.instruction_tlb
            .remove_if(picks, |slot, entry| code.push((slot, entry)));
        if let Some(second) = &mut self.second_tlb {
            second.remove_if(picks, |_, _| {});
        }
        forget_entries(&mut self.data_pages, &data);
        forget_entries(&mut self.code_pages, &code);
    }

    fn forget_guest_pages(&mut self, honours: Honours, address: Option<u64>, vmid: Option<u16>) {
        let page = address.filter(|_| honours.address).map(|a| a >> PAGE_SHIFT);
        let vmid = vmid.filter(|_| honours.vmid);
        if let Some(tlb) = &mut self.walks.guest_pages {
            tlb.remove_if(
                |entry| {
                    vmid.is_none_or(|vmid| entry.space.vmid == vmid)
                        && page.is_none_or(|page| entry.covers(page))
                },
                |_, _| {},
            );
        }
    }
}

/// Makes a filter forget what rests on entries of a TLB that are gone from their slots.
fn forget_entries(filter: &mut PageFilter, entries: &[(usize, Entry)]) {
    for &(slot, entry) in entries {
        forget_entry(filter, slot, entry);
    }
}

fn forget_entry(filter: &mut PageFilter, slot: usize, entry: Entry) {
    filter.forget_entry(slot, entry.page, entry.pages());
}

/// Which entries a fence removes.
#[derive(Debug, Clone, Copy)]
struct Selection {
    everything: bool,
    virtualized: bool,
    page: Option<u64>,
    asid: Option<u16>,
    vmid: Option<u16>,
    guest_page: Option<u64>,
}

impl Selection {
    /// Entries of virtual machines.
    fn new(honours: Honours, address: Option<u64>, asid: Option<u16>, vmid: Option<u16>) -> Self {
        Self {
            everything: !honours.host,
            virtualized: true,
            page: address
                .filter(|_| honours.address)
                .map(|address| address >> PAGE_SHIFT),
            asid: asid.filter(|_| honours.asid),
            vmid: vmid.filter(|_| honours.vmid),
            guest_page: None,
        }
    }

    /// Only entries that lead to the guest page of an address.
    fn of_guest_page(self, honours: Honours, address: Option<u64>) -> Self {
        Self {
            guest_page: address
                .filter(|_| honours.address)
                .map(|address| address >> PAGE_SHIFT),
            ..self
        }
    }

    /// Entries of the host instead.
    const fn of_host(self) -> Self {
        Self {
            everything: false,
            virtualized: false,
            ..self
        }
    }

    fn picks(&self, entry: &Entry) -> bool {
        let Space {
            virtualized,
            paged,
            asid,
            vmid,
        } = entry.space;
        self.everything
            || virtualized == self.virtualized
                && self.vmid.is_none_or(|own| own == vmid)
                && self.page.is_none_or(|page| entry.covers(page))
                && self.guest_page.is_none_or(|page| entry.leads_to(page))
                && self
                    .asid
                    .is_none_or(|own| paged && !entry.global && own == asid)
    }
}
