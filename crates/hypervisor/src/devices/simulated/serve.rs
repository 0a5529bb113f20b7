//! Both sides of a device's queues: what the guest makes available is passed on, and what the device has ended is returned.

use abi::monitor::Event;

use super::Simulated;
use super::queue::{Passed, Queue};
use crate::devices::trapped::Reach;
use crate::devices::virtio::{USED_BUFFER, register};

impl Simulated {
    /// The guest has notified of a queue. Says whether there is more that could be passed on.
    #[inline]
    pub(super) fn notified(&mut self, number: usize, reach: &dyn Reach) -> bool {
        let queue = self.queues.get(number).and_then(Option::as_ref);
        match queue.and_then(Queue::next_look) {
            // What has ended is returned, too.
            Some(_) => {
                self.serve_watched(reach);
                false
            }
            None => self.pass(number, reach),
        }
    }

    /// Passes on what is available in a queue. Says whether there is more that could be.
    #[inline(never)]
    pub(super) fn pass(&mut self, number: usize, reach: &dyn Reach) -> bool {
        if !self.is_live() {
            return false;
        }
        let Some(Some(queue)) = self.queues.get_mut(number) else {
            return false;
        };
        let now = queue.is_busy().then(|| reach.time());
        match queue.pass(now, reach.memory()) {
            Ok(passed) => {
                self.tell(number, passed, reach);
                passed.more
            }
            Err(_) => {
                self.fail(reach);
                false
            }
        }
    }

    /// Tells the device of what was passed on, and counts it.
    #[inline]
    fn tell(&self, number: usize, passed: Passed, reach: &dyn Reach) {
        if !passed.any {
            return;
        }
        self.set_word(register::QUEUE_NOTIFY, number as u32, reach);
        if passed.fast != 0 {
            reach.count(Event::ChainFast, passed.fast);
        }
        if passed.general != 0 {
            reach.count(Event::ChainGeneral, passed.general);
        }
    }

    /// The device is told that its interrupt was taken, for these reasons.
    #[inline]
    pub(super) fn acknowledge(&self, why: u32, reach: &dyn Reach) {
        self.set_word(register::INTERRUPT_ACKNOWLEDGE, why, reach);
        // A device that needs a reset may keep its wire high with nothing to say: then nothing is asked for again, or it would
        // interrupt for ever. A wire that falls and rises sends by itself (AIA §4.7).
        reach.served(self.means.source);
    }

    /// Acknowledges that operations have ended and returns them, if some have.
    #[inline]
    pub(super) fn serve_ended(&mut self, reach: &dyn Reach) -> bool {
        let queues = self.queues.iter().take(self.in_use).flatten();
        let host = reach.memory().host;
        let has_ended = queues.fold(false, |any, queue| any || queue.has_ended(host));
        if has_ended {
            self.acknowledge(USED_BUFFER, reach);
            self.serve(reach);
        }
        has_ended
    }

    /// Returns what has ended, and passes on what there is room for now, and what the guest has not told of.
    #[inline]
    pub(super) fn serve(&mut self, reach: &dyn Reach) {
        let mut is_simple = self.due.is_none();
        for number in 0..self.in_use {
            is_simple &= self.serve_simply(number, reach);
        }
        if !is_simple {
            self.serve_watched(reach);
        }
    }

    /// Returns what has ended in a queue of which nothing else needs to be looked at. False where it is not so.
    #[inline(always)]
    fn serve_simply(&mut self, number: usize, reach: &dyn Reach) -> bool {
        let is_live = self.is_live();
        let Some(Some(queue)) = self.queues.get_mut(number) else {
            return true;
        };
        if !is_live || !queue.is_simple() {
            return false;
        }
        if queue.is_more_than_few() && is_at_work(queue, reach) {
            return false;
        }
        match queue.return_ended(None, reach.memory()) {
            Ok(Some(true)) => self.interrupt_status |= USED_BUFFER,
            Ok(_) => {}
            Err(_) => self.fail(reach),
        }
        true
    }

    /// Looks at both sides of all queues that have more to them than what has ended. Out of line: most have not.
    #[inline(never)]
    pub(super) fn serve_watched(&mut self, reach: &dyn Reach) {
        let mut next: Option<u64> = None;
        for number in 0..self.in_use {
            if let Some(own) = self.serve_both_sides(number, reach) {
                next = Some(next.map_or(own, |next| next.min(own)));
            }
        }
        self.due = next.filter(|_| self.is_live()).map(|ticks| {
            let at = reach.time().saturating_add(ticks);
            reach.look_by(self.means.source, at);
            at
        });
        self.show_interrupts(reach);
    }

    /// The same for one queue. Says in how many ticks it is to be looked at again, if it is.
    #[inline(always)]
    fn serve_both_sides(&mut self, number: usize, reach: &dyn Reach) -> Option<u64> {
        if !self.is_live() {
            return None;
        }
        let queue = self.queues.get_mut(number)?.as_mut()?;
        is_at_work(queue, reach);
        let now = queue.is_busy().then(|| reach.time());
        match queue.serve(now, reach.memory()) {
            Ok(served) => {
                let next = queue.next_look();
                if served.interrupt {
                    self.interrupt_status |= USED_BUFFER;
                }
                self.tell(number, served.passed, reach);
                next
            }
            Err(_) => {
                self.fail(reach);
                None
            }
        }
    }
}

/// Notes whether the guest is at work now. Says whether it has been for long enough.
#[inline(never)]
fn is_at_work(queue: &mut Queue, reach: &dyn Reach) -> bool {
    queue.note_guest(|| reach.is_at_work())
}
