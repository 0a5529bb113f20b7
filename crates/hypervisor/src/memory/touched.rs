//! Demand paging: pages that are mapped at their first touch (placement `paged`).
//!
//! A guest's memory begins without a page. A vCPU's first touch faults, and the hypervisor's own accesses for the guest come here;
//! either way the page gets a free frame of zeros, and its entry in the G-stage table, which is the only list of the pages'
//! places. A guest may give pages back while it runs ([`reclaim`](super::reclaim)). When the run ends, entries and frames go
//! back together.
//!
//! A hart may cache that a page was not mapped (privileged architecture, "Hypervisor Memory-Management Fence
//! Instructions"). So a vCPU that faults on a mapped page drops its hart's translation of the page.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod cache;

use alloc::sync::Arc;
use core::fmt::Debug;

use crate::lock::{Mutex, place};
use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, HostRegion, PAGE_SIZE};
use crate::memory::gstage::{GStage, Permissions, TableMemory};
use crate::memory::guest::{Pages, Piece, Touch};
use crate::memory::owned::OwnedRegion;
use cache::PageCache;

/// G-stage table of a VM, shared by its readers and writers.
pub type SharedTable = Arc<Mutex<GStage, { place::TABLE }>>;

/// Memory for the tables and the pages of one guest: [`TableMemory::allocate`] gives both, zeroed. Called under the
/// table's lock.
pub trait PageStore: Debug + Send + Sync {
    /// Passes the tables' memory to `with`, to be read.
    fn with_tables<T>(&self, with: impl FnOnce(&dyn TableMemory) -> T) -> T;
    /// Passes the tables' memory to `with`, to be changed and to allocate.
    fn with_tables_mut<T>(&self, with: impl FnOnce(&mut dyn TableMemory) -> T) -> T;
    /// Frees all that was allocated.
    fn give_back(&self);
    /// Frees one frame.
    fn free(&self, frame: HostRegion);
    /// Bytes that are allocated.
    fn bytes(&self) -> u64;
}

/// Demand-paged memory of one guest.
#[derive(Debug)]
pub struct TouchedPages<S> {
    region: GuestRegion,
    table: SharedTable,
    store: S,
    cache: PageCache,
}

impl<S: PageStore> TouchedPages<S> {
    /// Memory at `region`, whole pages in gibibytes of which `table` maps nothing else.
    pub fn new(region: GuestRegion, table: SharedTable, store: S) -> Self {
        Self {
            region,
            table,
            store,
            cache: PageCache::new(),
        }
    }

    /// The number of a page that lies in the memory.
    #[inline]
    fn number(&self, page: GuestPhysical) -> u64 {
        page.raw().wrapping_sub(self.region.base().raw()) / PAGE_SIZE
    }

    /// Frame of the page at `page`; the flag is set if the page had a frame already.
    fn page(&self, page: GuestPhysical) -> Option<(HostPhysical, bool)> {
        let wanted = GuestRegion::new(page, PAGE_SIZE).filter(|page| self.region.covers(*page))?;
        let number = self.number(page);
        if let Some(frame) = self.cache.find(number) {
            return Some((frame, true));
        }
        let mut table = self.table.lock();
        let there = self
            .store
            .with_tables(|memory| table.translate(memory, page));
        if let Some(there) = there {
            self.cache.keep(number, there.host);
            return Some((there.host, true));
        }
        let (came, mapped) = self.store.with_tables_mut(|memory| {
            let frame = memory.allocate(PAGE_SIZE)?;
            let mapped = table.map(memory, wanted, frame, Permissions::MEMORY);
            Some((frame, mapped))
        })?;
        if mapped.is_err() {
            self.free(came);
            return None;
        }
        self.cache.keep(number, came);
        Some((came, false))
    }
}

impl<S: PageStore> Pages for TouchedPages<S> {
    fn contiguous_from(&self, from: GuestPhysical) -> Option<OwnedRegion> {
        let page = from.align_down(PAGE_SIZE);
        let (host, _) = self.page(page)?;
        let frame = HostRegion::new(host, PAGE_SIZE)?;
        // SAFETY: the store gave the frame, and nothing else is mapped there.
        let frame = unsafe { OwnedRegion::new(frame) };
        Some(frame.skip(from.raw().wrapping_sub(page.raw())))
    }

    fn mapped(&self) -> &[Piece] {
        &[]
    }

    fn are_demand_paged(&self) -> bool {
        true
    }

    fn touch(&self, at: GuestPhysical) -> Touch {
        match self.page(at.align_down(PAGE_SIZE)) {
            Some((_, false)) => Touch::FaultedIn,
            Some((_, true)) => Touch::Present,
            None => Touch::NoFrame,
        }
    }

    fn frame(&self, page: GuestPhysical) -> Option<HostPhysical> {
        let table = self.table.lock();
        let there = (self.region.contains(page)).then(|| {
            self.store
                .with_tables(|memory| table.translate(memory, page))
        });
        Some(there.flatten()?.host)
    }

    fn unmap(&self, page: GuestPhysical) -> bool {
        let wanted = GuestRegion::new(page, PAGE_SIZE).filter(|page| self.region.covers(*page));
        let mut table = self.table.lock();
        self.cache.forget(self.number(page));
        let gone = wanted.map(|page| {
            self.store
                .with_tables_mut(|memory| table.unmap(memory, page))
        });
        matches!(gone, Some(Ok(())))
    }

    fn free(&self, frame: HostPhysical) {
        if let Some(frame) = HostRegion::new(frame, PAGE_SIZE) {
            self.store.free(frame);
        }
    }

    fn resident(&self) -> Option<u64> {
        Some(self.store.bytes())
    }

    fn give_back(&self) {
        let mut table = self.table.lock();
        self.cache.clear();
        // It lies where `new` says, so it can be cut.
        let cut = self
            .store
            .with_tables_mut(|memory| table.cut(memory, self.region));
        if cut.is_ok() {
            self.store.give_back();
        }
    }
}

#[cfg(test)]
mod tests;
