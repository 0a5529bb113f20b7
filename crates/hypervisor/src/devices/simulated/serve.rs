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

    /// Mostly a device interrupts because operations have ended. Then nobody needs to ask it, as a register of the board costs more than memory:
    /// these are acknowledged and returned. What else there is keeps the wire high, so that the next look comes at once. False where it may have
    /// been another reason.
    #[inline]
    pub(super) fn serve_ended(&mut self, reach: &dyn Reach) -> bool {
        self.set_word(register::INTERRUPT_ACKNOWLEDGE, USED_BUFFER, reach);
        let (mut is_simple, mut found) = (self.due.is_none(), false);
        for number in 0..self.in_use {
            match self.serve_simply(number, reach) {
                Some(returned) => found |= returned,
                None => is_simple = false,
            }
        }
        if !is_simple {
            self.serve_watched(reach);
        }
        if found {
            reach.served(self.means.source);
        }
        found
    }

    /// Returns what has ended in a queue of which nothing else needs to be looked at, and says whether anything has. `None` where it is not so.
    #[inline(always)]
    fn serve_simply(&mut self, number: usize, reach: &dyn Reach) -> Option<bool> {
        let is_live = self.is_live();
        let Some(Some(queue)) = self.queues.get_mut(number) else {
            return Some(false);
        };
        if !is_live || !queue.is_simple() {
            return None;
        }
        if queue.is_more_than_few() && is_at_work(queue, reach) {
            return None;
        }
        match queue.return_ended(None, reach.memory()) {
            Ok(Some(wanted)) => {
                if wanted {
                    self.interrupt_status |= USED_BUFFER;
                }
                Some(true)
            }
            Ok(None) => Some(false),
            Err(_) => {
                self.fail(reach);
                None
            }
        }
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
