//! Pages that a guest gives back while it runs (placement `paged`).
//!
//! A frame that leaves a guest's tables may still be used: by a hart that keeps the old translation, by hypervisor code that has looked the
//! page up and not yet used it, or by a device that was given its address. So a page goes in steps:
//!
//! 1. A page that an operation of a device still reaches, or whose word a vCPU waits for, stays with the guest. No such operation
//!    begins meanwhile: it takes the lock of the VM's devices, which this step holds.
//! 2. The pages leave the table, and its generation grows. A lookup of a page from here on gets a new frame. A vCPU that faults on one before the
//!    generation has grown, and so gets its new frame without having dropped the old one, drops it then.
//! 3. The frames are free when no other hart uses an older generation: each has entered its guest again, and dropped what it knew, or has
//!    left it. Hypervisor code on behalf of a guest runs while its hart still declares the generation with which the guest was entered.
//!
//! The guest's own hart drops its translations before it enters the guest again. Until a frame is free it is the guest's.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use alloc::vec::Vec;

use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, HostRegion, PAGE_SIZE};
use crate::sort::sort_by_key;

/// Pages that one step visits. Each is looked up, leaves the table and is freed, some thousand cycles in all; nothing else of the hart comes in between.
pub const MAX_PAGES_A_STEP: u64 = 16;

/// Environment of a step. The lock of the VM's devices is held throughout.
pub trait Port {
    /// The frame of the page at `page`, if it has one.
    fn frame(&self, page: GuestPhysical) -> Option<HostPhysical>;
    /// Passes all memory to `tell` that is in use besides the table: by operations of devices, and as words that vCPUs wait for.
    fn in_use(&self, tell: &mut dyn FnMut(HostRegion));
    /// Takes a page out of the table. Returns false if it was not mapped.
    fn unmap(&self, page: GuestPhysical) -> bool;
    /// Advances the table's generation, and returns it. Everything in the table may have changed.
    fn advance(&self) -> u64;
    /// Tests whether another hart may use a translation from before this generation. Such a hart is kicked, so that it enters its guest anew.
    fn is_used(&self, generation: u64) -> bool;
    /// Clears knowledge of these frames besides the table. No hart uses them any more.
    fn forget(&self, frames: &[HostPhysical]);
    /// Frees a frame.
    fn free(&self, frame: HostPhysical);
}

/// Outcome of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// All given pages are free, except those still in use.
    Done,
    /// More to do, or another hart has to exit first. The guest asks again when others have had the hart.
    Later,
}

/// The pages that one guest is giving back.
#[derive(Debug, Default)]
pub struct Reclaim {
    /// The part of the given region that no step has visited yet.
    left: Option<GuestRegion>,
    /// Frames that are in no table any more, and the generation that this led to.
    leaving: Vec<HostPhysical>,
    generation: u64,
    /// Pages of the present step, by their frames, so that nothing is allocated.
    pages: Vec<(HostPhysical, GuestPhysical)>,
    /// Number of pages gone so far.
    gone: u64,
}

impl Reclaim {
    /// State of a guest that can give pages back.
    #[must_use]
    pub fn new() -> Self {
        Self {
            leaving: Vec::with_capacity(MAX_PAGES_A_STEP as usize),
            pages: Vec::with_capacity(MAX_PAGES_A_STEP as usize),
            ..Self::default()
        }
    }

    /// Begins the reclaim of these pages. Returns false if earlier pages are not done yet.
    #[must_use]
    pub fn give(&mut self, pages: GuestRegion) -> bool {
        if self.left.is_some() {
            return false;
        }
        self.left = Some(pages).filter(|pages| !pages.is_empty());
        true
    }

    /// Tests whether work is left.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.left.is_some() || !self.leaving.is_empty()
    }

    /// Number of pages gone since the guest was started.
    #[must_use]
    pub const fn gone(&self) -> u64 {
        self.gone
    }

    /// Clears the state, after all of the guest's pages have gone at once.
    pub fn clear(&mut self) {
        self.left = None;
        self.leaving.clear();
        self.gone = 0;
    }

    /// Continues, for a bounded time.
    pub fn step(&mut self, port: &impl Port) -> Step {
        if !self.free(port) {
            return Step::Later;
        }
        let Some(now) = self.next() else {
            return Step::Done;
        };
        self.collect(now, port);
        if self.unmap(port) {
            self.generation = port.advance();
        }
        match self.free(port) && self.left.is_none() {
            true => Step::Done,
            false => Step::Later,
        }
    }

    /// Pages of the next step.
    fn next(&mut self) -> Option<GuestRegion> {
        let left = self.left.take()?;
        let now = GuestRegion::new(left.base(), left.size().min(MAX_PAGES_A_STEP * PAGE_SIZE))?;
        let rest = GuestRegion::between(now.end(), left.end());
        self.left = rest.filter(|rest| !rest.is_empty());
        Some(now)
    }

    /// Finds the pages that have frames, in the order of these.
    fn collect(&mut self, now: GuestRegion, port: &impl Port) {
        let addresses = (now.base().raw()..now.end().raw()).step_by(PAGE_SIZE as usize);
        let there = addresses.filter_map(|at| {
            let page = GuestPhysical::new(at);
            Some((port.frame(page)?, page))
        });
        self.pages.clear();
        self.pages.extend(there);
        sort_by_key(&mut self.pages, |page| *page);
        let pages = &mut self.pages;
        if pages.is_empty() {
            return;
        }
        port.in_use(&mut |used| {
            let first = used.base().align_down(PAGE_SIZE);
            let from = pages.partition_point(|(frame, _)| *frame < first);
            let behind = pages.partition_point(|(frame, _)| *frame < used.end());
            pages.drain(from..behind.max(from));
        });
    }

    /// Takes them out of the table. Returns true if one was mapped.
    fn unmap(&mut self, port: &impl Port) -> bool {
        for (frame, page) in self.pages.drain(..) {
            if port.unmap(page) {
                self.leaving.push(frame);
            }
        }
        !self.leaving.is_empty()
    }

    /// Frees the frames that have left the table, if no hart uses them any more.
    fn free(&mut self, port: &impl Port) -> bool {
        if self.leaving.is_empty() {
            return true;
        }
        if port.is_used(self.generation) {
            return false;
        }
        port.forget(&self.leaving);
        self.gone += self.leaving.len() as u64;
        for frame in self.leaving.drain(..) {
            port.free(frame);
        }
        true
    }
}

#[cfg(test)]
mod tests;
