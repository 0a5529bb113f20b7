//! A balloon: a device by which a guest gives pages of its memory back (virtio 1.2, §5.5). It shares the computer's memory as slices share
//! a disk.
//!
//! The guest reports its free pages (VIRTIO_BALLOON_F_REPORTING, §5.5.6.5), whenever it likes, and needs no policy on this side: the device
//! never asks for a page. Buffers are pages that the guest gives back, so that nothing is read or written there.

use alloc::vec::Vec;

use riscv::virtio::balloon::{DEFLATE_QUEUE, INFLATE_QUEUE, PAGE_REPORTING};

use crate::devices::trapped::{VirtioContext, WouldBlock};
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::queue::guest::{GuestQueue, MAX_ENTRIES};
use crate::devices::virtio::transport::{Ids, Progress, QueueSetup, Queues, VirtioDevice};
use crate::devices::virtio::{DeviceKind, EMULATED_FEATURES, EVENT_INDEX, VENDOR};
use crate::memory::address::{GuestRegion, PAGE_SIZE};

/// The queues by which pages come and go at the device's wish, and that of reports: the next one, as those of features that are not offered
/// are left out.
const INFLATE: usize = INFLATE_QUEUE;
const DEFLATE: usize = DEFLATE_QUEUE;
const REPORTS: usize = 2;
const QUEUES: usize = 3;
/// Buffers of a report.
const MAX_BUFFERS: usize = 256;
/// Most reports begun at one notification: a guest may make new ones as fast as they are returned.
const REPORTS_IN_ONE_GO: u32 = 4;
/// Most chains of the first two queues that are returned at one notification.
const MAX_DESCRIPTORS_PER_NOTIFICATION: u32 = 256;

/// A balloon as after power-on.
#[derive(Debug)]
pub struct Balloon {
    /// Head of the present report, and the rest of it.
    report: Option<u16>,
    pages: Vec<GuestRegion>,
}

impl Balloon {
    /// Balloon without a report.
    #[must_use]
    pub fn new() -> Self {
        Self {
            report: None,
            // A chain has fewer direct descriptors than its queue has entries, and the buffers of one indirect table.
            pages: Vec::with_capacity(MAX_ENTRIES as usize + MAX_BUFFERS),
        }
    }

    /// Continues with reports until one has to wait.
    fn take_reports(
        &mut self,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let memory = context.memory();
        let mut worked = Progress::default();
        let mut begun = 0;
        loop {
            if context.gives_back() {
                worked.more = true;
                break;
            }
            if let Some(pages) = self.pages.pop() {
                if !context.give_back(pages) {
                    return Err(QueueError::OutsideMemory(pages.base()));
                }
                continue;
            }
            if let Some(head) = self.report.take() {
                queue.put_used(head, 0, memory)?;
            }
            if begun == REPORTS_IN_ONE_GO {
                worked.more = true;
                break;
            }
            begun += 1;
            let Some(head) = queue.next(memory)? else {
                if queue.request_notification(memory)? {
                    continue;
                }
                break;
            };
            let pages = &mut self.pages;
            queue.each_buffer(head, MAX_BUFFERS, memory, &mut |buffer| {
                pages.extend(whole_pages(buffer));
            })?;
            queue.take();
            self.report = Some(head);
        }
        worked.interrupt = queue.publish_used(memory)?;
        Ok(worked)
    }
}

/// The pages that lie in a buffer with all of their bytes.
fn whole_pages(buffer: GuestRegion) -> Option<GuestRegion> {
    let first = buffer.base().align_up(PAGE_SIZE)?;
    let pages = GuestRegion::between(first, buffer.end().align_down(PAGE_SIZE))?;
    (!pages.is_empty()).then_some(pages)
}

/// Returns a chain that was not asked for, so that the guest keeps the pages in it.
fn return_unread(
    queue: &mut GuestQueue,
    context: &dyn VirtioContext,
) -> Result<Progress, QueueError> {
    let memory = context.memory();
    let mut more = true;
    for _ in 0..MAX_DESCRIPTORS_PER_NOTIFICATION {
        let Some(head) = queue.next(memory)? else {
            more = queue.request_notification(memory)?;
            break;
        };
        queue.take();
        queue.put_used(head, 0, memory)?;
    }
    let interrupt = queue.publish_used(memory)?;
    Ok(Progress {
        interrupt,
        more,
        ..Progress::default()
    })
}

impl VirtioDevice for Balloon {
    type Queue = GuestQueue;

    fn ids(&self) -> Ids {
        Ids {
            device: DeviceKind::Balloon as u32,
            vendor: VENDOR,
        }
    }

    fn max_entries(&self, queue: usize) -> u16 {
        if queue < QUEUES { MAX_ENTRIES } else { 0 }
    }

    fn create_queue(
        &mut self,
        setup: QueueSetup,
        context: &dyn VirtioContext,
    ) -> Result<GuestQueue, QueueError> {
        let event_indices = setup.features & EVENT_INDEX != 0;
        GuestQueue::new(setup.layout, event_indices, context.memory())
    }

    fn features(&self) -> u64 {
        EMULATED_FEATURES | PAGE_REPORTING
    }

    /// §5.5.4: no page is asked for.
    fn configuration(&self, _: u64) -> u8 {
        0
    }

    fn notify(
        &mut self,
        number: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        match (number, queues.get_mut(number)) {
            (REPORTS, Some(Some(queue))) => self.take_reports(queue, context),
            (INFLATE | DEFLATE, Some(Some(queue))) => return_unread(queue, context),
            _ => Ok(Progress::default()),
        }
    }

    fn poll(
        &mut self,
        _: &mut Queues<GuestQueue>,
        _: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        Ok(Progress::default())
    }

    /// Waits for pages that are being reclaimed; the other pages of a report stay with the guest.
    fn stop_queue(
        &mut self,
        number: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let (REPORTS, Some(Some(queue))) = (number, queues.get_mut(number)) else {
            return Ok(Progress::default());
        };
        self.pages.clear();
        let mut progress = Progress {
            more: context.gives_back(),
            ..Progress::default()
        };
        if !progress.more
            && let Some(head) = self.report.take()
        {
            queue.put_used(head, 0, context.memory())?;
            progress.interrupt = queue.publish_used(context.memory())?;
        }
        Ok(progress)
    }

    /// Drops the present report; pages already in reclaim are still reclaimed.
    fn reset(&mut self, _: &dyn VirtioContext) -> Result<(), WouldBlock> {
        self.report = None;
        self.pages.clear();
        Ok(())
    }
}

#[cfg(test)]
mod tests;
