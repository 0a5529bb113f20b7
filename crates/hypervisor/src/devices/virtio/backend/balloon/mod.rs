//! A balloon: a device by which a guest gives pages of its memory back (virtio 1.2, §5.5). It shares the computer's memory as slices share
//! a disk.
//!
//! The guest reports its free pages (VIRTIO_BALLOON_F_REPORTING, §5.5.6.5), whenever it likes. Buffers are pages that the guest gives back, so that
//! nothing is read or written there.
//!
//! The operator can ask for pages too (§5.5.6.1). Then a buffer has the numbers of pages. The guest may take a page again without a word: it gets
//! a new one at its next access.

use alloc::vec::Vec;

use riscv::virtio::balloon::{DEFLATE_QUEUE, INFLATE_QUEUE, PAGE_REPORTING};

use crate::devices::trapped::{Access, VirtioContext, WouldBlock};
use crate::devices::virtio::queue::chain::{QueueError, after, halfword};
use crate::devices::virtio::queue::guest::{GuestQueue, MAX_ENTRIES};
use crate::devices::virtio::transport::{Ids, Progress, QueueSetup, Queues, VirtioDevice};
use crate::devices::virtio::{DeviceKind, EMULATED_FEATURES, EVENT_INDEX, VENDOR};
use crate::hart::decode::Width;
use crate::memory::address::{GuestPhysical, GuestRegion, PAGE_SIZE};
use crate::memory::guest::Memory;
use crate::sort::sort_by_key;

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
/// Most numbers of pages in a chain. Linux has 256 there.
const MAX_NUMBERS: usize = 1024;
/// Bytes of a number, and of a page that it stands for (§5.5.6).
const NUMBER_BYTES: u64 = 4;
const NUMBERED_BYTES: u64 = 4096;
/// Place of the pages that the guest has given, behind those that it is asked for, in the configuration (§5.5.4).
const GIVEN: u64 = 4;
/// Most chains of the second queue that are returned at one notification.
const MAX_DESCRIPTORS_PER_NOTIFICATION: u32 = 256;

/// Chain whose pages are being given back.
#[derive(Debug)]
struct Chain {
    /// Head, and the pages that are left.
    head: Option<u16>,
    pages: Vec<GuestRegion>,
}

impl Chain {
    /// No chain, with room for the pages of one.
    fn with_room(pages: usize) -> Self {
        Self {
            head: None,
            pages: Vec::with_capacity(pages),
        }
    }

    fn forget(&mut self) {
        self.head = None;
        self.pages.clear();
    }
}

/// A balloon as after power-on.
#[derive(Debug)]
pub struct Balloon {
    /// The present report, and the present chain of pages that were asked for.
    report: Chain,
    asked: Chain,
    /// Pages that the guest is asked for, and has given by its own account.
    target: u32,
    given: u32,
}

impl Balloon {
    /// Balloon without a report.
    #[must_use]
    pub fn new() -> Self {
        Self {
            // A chain has fewer direct descriptors than its queue has entries, and the buffers of one indirect table.
            report: Chain::with_room(MAX_ENTRIES as usize + MAX_BUFFERS),
            asked: Chain::with_room(MAX_NUMBERS),
            target: 0,
            given: 0,
        }
    }

    /// Takes over what the guest is asked for. Returns true if it has changed.
    fn ask(&mut self, context: &dyn VirtioContext) -> bool {
        let before = core::mem::replace(&mut self.target, context.asked_pages());
        before != self.target
    }

    /// Continues with the chains of a queue, which are reports or were asked for, until one has to wait.
    fn take_chains(
        &mut self,
        number: usize,
        queue: &mut GuestQueue,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let memory = context.memory();
        let (chain, read): (_, Read) = match number {
            REPORTS => (&mut self.report, read_report),
            _ => (&mut self.asked, read_numbers),
        };
        let mut worked = Progress::default();
        let mut begun = 0;
        loop {
            if context.gives_back() {
                worked.more = true;
                break;
            }
            if let Some(pages) = chain.pages.pop() {
                if !context.give_back(pages) {
                    return Err(QueueError::OutsideMemory(pages.base()));
                }
                continue;
            }
            if let Some(head) = chain.head.take() {
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
            read(queue, head, memory, &mut chain.pages)?;
            queue.take();
            chain.head = Some(head);
        }
        worked.interrupt = queue.publish_used(memory)?;
        Ok(worked)
    }
}

/// Reads the chain at a head into a list of pages, which is empty and has room.
type Read = fn(&GuestQueue, u16, Memory<'_>, &mut Vec<GuestRegion>) -> Result<(), QueueError>;

/// Reads a report: its buffers are the pages.
fn read_report(
    queue: &GuestQueue,
    head: u16,
    memory: Memory<'_>,
    pages: &mut Vec<GuestRegion>,
) -> Result<(), QueueError> {
    queue.each_buffer(head, MAX_BUFFERS, memory, &mut |buffer| {
        pages.extend(whole_pages(buffer));
    })
}

/// Reads a chain whose buffers have numbers of pages. Neighbours become one piece.
fn read_numbers(
    queue: &GuestQueue,
    head: u16,
    memory: Memory<'_>,
    pages: &mut Vec<GuestRegion>,
) -> Result<(), QueueError> {
    let mut wrong = None;
    queue.each_buffer(head, MAX_BUFFERS, memory, &mut |buffer| {
        if wrong.is_none() {
            wrong = read_buffer(buffer, memory, pages).err();
        }
    })?;
    if let Some(error) = wrong {
        pages.clear();
        return Err(error);
    }
    sort_by_key(pages, |page| page.base().raw());
    let mut kept = 0_usize;
    for index in 0..pages.len() {
        let Some(&page) = pages.get(index) else { break };
        let before = kept.checked_sub(1).and_then(|last| pages.get_mut(last));
        match before {
            Some(before) if before.end().raw() >= page.base().raw() => {
                *before = GuestRegion::between(before.base(), before.end().max(page.end()))
                    .unwrap_or(*before);
            }
            _ => {
                if let Some(place) = pages.get_mut(kept) {
                    *place = page;
                }
                kept += 1;
            }
        }
    }
    pages.truncate(kept);
    Ok(())
}

/// Adds the pages whose numbers are in a buffer.
fn read_buffer(
    buffer: GuestRegion,
    memory: Memory<'_>,
    pages: &mut Vec<GuestRegion>,
) -> Result<(), QueueError> {
    let count = buffer.size() / NUMBER_BYTES;
    for number in 0..count {
        if pages.len() == MAX_NUMBERS {
            return Err(QueueError::TooLong);
        }
        let at = after(buffer.base(), NUMBER_BYTES * number)?;
        let low = halfword(memory, at)?;
        let high = halfword(memory, after(at, 2)?)?;
        let address = GuestPhysical::new((u64::from(high) << 16 | u64::from(low)) * NUMBERED_BYTES);
        let page = GuestRegion::new(address, NUMBERED_BYTES);
        pages.push(page.ok_or(QueueError::OutsideMemory(address))?);
    }
    Ok(())
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

    /// §5.5.4.
    fn configuration(&self, offset: u64) -> u8 {
        let fields = u64::from(self.given) << (8 * GIVEN) | u64::from(self.target);
        match offset {
            0..8 => (fields >> (8 * offset)) as u8,
            _ => 0,
        }
    }

    fn store_configuration(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn VirtioContext,
    ) -> bool {
        let is_given = access.offset == GIVEN && access.width == Width::Word;
        if is_given {
            self.given = value as u32;
            context.note_given_pages(self.given);
        }
        is_given
    }

    fn power_on(&mut self, context: &dyn VirtioContext) {
        self.ask(context);
    }

    fn notify(
        &mut self,
        number: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        match (number, queues.get_mut(number)) {
            (REPORTS | INFLATE, Some(Some(queue))) => self.take_chains(number, queue, context),
            (DEFLATE, Some(Some(queue))) => return_unread(queue, context),
            _ => Ok(Progress::default()),
        }
    }

    fn poll(
        &mut self,
        _: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        Ok(self.poll_idle(context))
    }

    fn poll_idle(&mut self, context: &dyn VirtioContext) -> Progress {
        Progress {
            configuration_changed: self.ask(context),
            ..Progress::default()
        }
    }

    /// Waits for pages that are being reclaimed; the other pages of a chain stay with the guest.
    fn stop_queue(
        &mut self,
        number: usize,
        queues: &mut Queues<GuestQueue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let chain = match number {
            REPORTS => &mut self.report,
            INFLATE => &mut self.asked,
            _ => return Ok(Progress::default()),
        };
        let Some(Some(queue)) = queues.get_mut(number) else {
            return Ok(Progress::default());
        };
        chain.pages.clear();
        let mut progress = Progress {
            more: context.gives_back(),
            ..Progress::default()
        };
        if !progress.more
            && let Some(head) = chain.head.take()
        {
            queue.put_used(head, 0, context.memory())?;
            progress.interrupt = queue.publish_used(context.memory())?;
        }
        Ok(progress)
    }

    /// Drops the present chains; pages already in reclaim are still reclaimed.
    fn reset(&mut self, context: &dyn VirtioContext) -> Result<(), WouldBlock> {
        self.report.forget();
        self.asked.forget();
        self.given = 0;
        context.note_given_pages(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
