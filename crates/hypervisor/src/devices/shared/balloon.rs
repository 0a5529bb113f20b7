//! A balloon: a device by which a guest gives pages of its memory back (virtio 1.2, §5.5). It shares the computer's memory as slices share
//! a disk.
//!
//! The guest reports what is free anyway (VIRTIO_BALLOON_F_REPORTING, §5.5.6.5), whenever it likes, and needs no policy on this side: the device
//! never asks for a page. Buffers are pages that the guest gives back, so that nothing is read or written there.

use alloc::vec::Vec;

use super::front::{Kind, Queues, Worked};
use super::queue::GuestQueue;
use crate::devices::simulated::chain::Wrong;
use crate::devices::trapped::{NotNow, Reach};
use crate::devices::virtio::DeviceKind;
use crate::memory::address::{GuestRegion, PAGE_SIZE};

/// VIRTIO_BALLOON_F_REPORTING (§5.5.3).
const REPORTING: u64 = 1 << 5;
/// The queues by which pages come and go at the device's wish, and that of reports: the next one, as those of features that are not offered
/// are left out.
const INFLATE: usize = 0;
const DEFLATE: usize = 1;
const REPORTS: usize = 2;
/// Buffers of a report.
const MOST_BUFFERS: usize = 256;
/// Reports that are begun in one go: a guest may make new ones as fast as they are returned.
const REPORTS_IN_ONE_GO: u32 = 4;
/// Chains of the first two queues that are returned in one go.
const IN_ONE_GO: u32 = 256;

/// A balloon as after power-on.
#[derive(Debug)]
pub struct Balloon {
    /// The head of the report at hand, and what of it is left.
    report: Option<u16>,
    pages: Vec<GuestRegion>,
}

impl Balloon {
    /// A balloon that nobody has reported to.
    #[must_use]
    pub fn new() -> Self {
        Self {
            report: None,
            pages: Vec::with_capacity(MOST_BUFFERS),
        }
    }

    /// Goes on with reports until one has to be waited for.
    fn take_reports(&mut self, queue: &mut GuestQueue, reach: &dyn Reach) -> Result<Worked, Wrong> {
        let memory = reach.memory();
        let mut worked = Worked::default();
        let mut begun = 0;
        loop {
            if reach.gives_back() {
                worked.more = true;
                break;
            }
            if let Some(pages) = self.pages.pop() {
                if !reach.give_back(pages) {
                    return Err(Wrong::Outside(pages.base()));
                }
                continue;
            }
            if let Some(head) = self.report.take() {
                queue.give_back(head, 0, memory)?;
            }
            if begun == REPORTS_IN_ONE_GO {
                worked.more = true;
                break;
            }
            begun += 1;
            let Some(head) = queue.next(memory)? else {
                if queue.ask(memory)? {
                    continue;
                }
                break;
            };
            let pages = &mut self.pages;
            queue.each_buffer(head, MOST_BUFFERS, memory, &mut |buffer| {
                pages.extend(whole_pages(buffer));
            })?;
            queue.take();
            self.report = Some(head);
        }
        worked.interrupt = queue.show(memory)?;
        Ok(worked)
    }
}

/// The pages that lie in a buffer with all of their bytes.
fn whole_pages(buffer: GuestRegion) -> Option<GuestRegion> {
    let first = buffer.base().align_up(PAGE_SIZE)?;
    let pages = GuestRegion::between(first, buffer.end().align_down(PAGE_SIZE))?;
    (!pages.is_empty()).then_some(pages)
}

/// Nothing was asked for, so that what the guest gives here stays with it.
fn return_unread(queue: &mut GuestQueue, reach: &dyn Reach) -> Result<Worked, Wrong> {
    let memory = reach.memory();
    let mut more = true;
    for _ in 0..IN_ONE_GO {
        let Some(head) = queue.next(memory)? else {
            more = queue.ask(memory)?;
            break;
        };
        queue.take();
        queue.give_back(head, 0, memory)?;
    }
    let interrupt = queue.show(memory)?;
    Ok(Worked { interrupt, more })
}

impl Kind for Balloon {
    fn id(&self) -> DeviceKind {
        DeviceKind::Balloon
    }

    fn queues(&self) -> usize {
        3
    }

    fn features(&self) -> u64 {
        REPORTING
    }

    /// §5.5.4: no page is asked for.
    fn configuration(&self, _: u64) -> u8 {
        0
    }

    fn work(
        &mut self,
        number: usize,
        queues: &mut Queues,
        reach: &dyn Reach,
    ) -> Result<Worked, Wrong> {
        match (number, queues.get_mut(number)) {
            (REPORTS, Some(Some(queue))) => self.take_reports(queue, reach),
            (INFLATE | DEFLATE, Some(Some(queue))) => return_unread(queue, reach),
            _ => Ok(Worked::default()),
        }
    }

    fn look(&mut self, _: &mut Queues, _: &dyn Reach) -> Result<Worked, Wrong> {
        Ok(Worked::default())
    }

    /// What is being given back goes all the same.
    fn stop(&mut self, _: &dyn Reach) -> Result<(), NotNow> {
        self.report = None;
        self.pages.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
