//! Both sides of a device's queues: available chains are passed on, and completed chains are returned.

use abi::monitor::Event;

use super::Mediated;
use super::queue::{Passed, Queue};
use crate::devices::trapped::VirtioContext;
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::transport::{Progress, Queues};
use crate::devices::virtio::{USED_BUFFER, register};

impl Mediated {
    /// Handles the guest's notification of a queue.
    #[inline]
    pub(super) fn notified(
        &mut self,
        number: usize,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let queue = queues.get(number).and_then(Option::as_ref);
        match queue.and_then(Queue::next_poll) {
            // Completions are returned, too.
            Some(_) => Ok(Progress {
                interrupt: self.serve_watched(queues, context)?,
                ..Progress::default()
            }),
            None => self.pass(number, queues, context),
        }
    }

    /// Passes on the available chains of a queue.
    #[inline(never)]
    fn pass(
        &mut self,
        number: usize,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let Some(Some(queue)) = queues.get_mut(number) else {
            return Ok(Progress::default());
        };
        let now = queue.is_busy().then(|| context.time());
        let passed = queue.pass(now, context.memory())?;
        self.notify_device(number, passed, context);
        Ok(Progress {
            more: passed.more,
            ..Progress::default()
        })
    }

    /// Notifies the device of the chains that were passed on, and counts them.
    #[inline]
    fn notify_device(&self, number: usize, passed: Passed, context: &dyn VirtioContext) {
        if !passed.any {
            return;
        }
        self.set_word(register::QUEUE_NOTIFY, number as u32, context);
        if passed.fast != 0 {
            context.count(Event::RequestFast, passed.fast);
        }
        if passed.general != 0 {
            context.count(Event::RequestGeneral, passed.general);
        }
    }

    /// Mostly a device interrupts for completions. Then its cause is not read, as a register of the board costs more than memory:
    /// the completions are acknowledged and returned. Any other cause keeps the line high, so that the next poll comes at once. Returns
    /// whether there were completions, and whether the guest is to be interrupted.
    #[inline]
    pub(super) fn serve_ended(
        &mut self,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<(bool, bool), QueueError> {
        self.set_word(register::INTERRUPT_ACKNOWLEDGE, USED_BUFFER, context);
        let (mut is_simple, mut found, mut interrupt) = (self.due.is_none(), false, false);
        for queue in queues.iter_mut().take(self.in_use).flatten() {
            match serve_simply(queue, context)? {
                Simple::No => is_simple = false,
                Simple::Nothing => {}
                Simple::Returned(wanted) => {
                    found = true;
                    interrupt |= wanted;
                }
            }
        }
        if !is_simple {
            interrupt |= self.serve_watched(queues, context)?;
        }
        if found {
            context.resample(self.config.source);
        }
        Ok((found, interrupt))
    }

    /// Serves both sides of all queues that need more than the return of completions. Returns true if the guest is to be interrupted. Out of
    /// line: most queues do not.
    #[inline(never)]
    pub(super) fn serve_watched(
        &mut self,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<bool, QueueError> {
        let (mut next, mut interrupt): (Option<u64>, bool) = (None, false);
        self.due = None;
        for number in 0..self.in_use {
            let Some(Some(queue)) = queues.get_mut(number) else {
                continue;
            };
            is_busy(queue, context);
            let now = queue.is_busy().then(|| context.time());
            let served = queue.serve(now, context.memory())?;
            if let Some(own) = queue.next_poll() {
                next = Some(next.map_or(own, |next| next.min(own)));
            }
            interrupt |= served.interrupt;
            self.notify_device(number, served.passed, context);
        }
        self.due = next.map(|ticks| {
            let at = context.time().saturating_add(ticks);
            context.poll_by(self.config.source, at);
            at
        });
        Ok(interrupt)
    }
}

/// Result for a queue of which only completions may need work.
enum Simple {
    /// The queue needs more.
    No,
    Nothing,
    /// Operations were returned, and whether the guest is to be interrupted.
    Returned(bool),
}

/// Returns the completions of a queue that needs nothing else.
#[inline(always)]
fn serve_simply(queue: &mut Queue, context: &dyn VirtioContext) -> Result<Simple, QueueError> {
    if !queue.is_simple() || queue.may_depend_on_guest() && is_busy(queue, context) {
        return Ok(Simple::No);
    }
    Ok(match queue.return_ended(None, context.memory())? {
        Some(wanted) => Simple::Returned(wanted),
        None => Simple::Nothing,
    })
}

/// Notes whether the guest is busy now. Returns true if it has been for long enough.
#[inline(never)]
fn is_busy(queue: &mut Queue, context: &dyn VirtioContext) -> bool {
    queue.note_guest(|| context.is_guest_busy())
}
