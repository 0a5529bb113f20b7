//! Both sides of a device's queues: what the guest makes available is passed on, and what the device has ended is returned.

use abi::monitor::Event;

use super::Simulated;
use super::queue::{Passed, Queue};
use crate::devices::trapped::Reach;
use crate::devices::virtio::{USED_BUFFER, register};

impl Simulated {
    /// Passes on what is available in a queue. Says whether there is more that could be.
    #[inline(never)]
    pub(super) fn pass(&mut self, number: usize, reach: &dyn Reach) -> bool {
        if !self.is_live() {
            return false;
        }
        let Some(Some(queue)) = self.queues.get_mut(number) else {
            return false;
        };
        if queue.next_look().is_some() {
            self.serve_watched(reach);
            return false;
        }
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

    /// Returns what has ended, and passes on what there is room for now, and what the guest has not told of.
    #[inline(always)]
    pub(super) fn serve(&mut self, reach: &dyn Reach) {
        let mut is_watched = self.due.is_some();
        for number in 0..self.in_use {
            is_watched |= self.serve_queue(number, reach);
        }
        if is_watched {
            self.look_again(reach);
        }
    }

    /// The same for one queue. Says whether it is to be looked at again.
    #[inline(always)]
    fn serve_queue(&mut self, number: usize, reach: &dyn Reach) -> bool {
        if !self.is_live() {
            return false;
        }
        let Some(Some(queue)) = self.queues.get_mut(number) else {
            return false;
        };
        if !queue.is_simple() {
            return self.serve_both_sides(number, reach);
        }
        match queue.return_ended(None, reach.memory()) {
            Ok(Some(true)) => self.interrupt_status |= USED_BUFFER,
            Ok(_) => {}
            Err(_) => self.fail(reach),
        }
        false
    }

    /// The same for a queue that has more to it than what has ended. Out of line: most have not.
    #[inline(never)]
    fn serve_both_sides(&mut self, number: usize, reach: &dyn Reach) -> bool {
        let Some(Some(queue)) = self.queues.get_mut(number) else {
            return false;
        };
        let now = queue.is_busy().then(|| reach.time());
        match queue.serve(now, reach.memory()) {
            Ok(served) => {
                let is_watched = queue.next_look().is_some();
                if served.interrupt {
                    self.interrupt_status |= USED_BUFFER;
                }
                self.tell(number, served.passed, reach);
                is_watched
            }
            Err(_) => {
                self.fail(reach);
                false
            }
        }
    }

    /// Has the device looked at again when one of its queues is to be, if one is.
    #[inline(never)]
    fn look_again(&mut self, reach: &dyn Reach) {
        let queues = self.queues.iter().flatten();
        let next = queues.filter_map(Queue::next_look).min();
        self.due = next.filter(|_| self.is_live()).map(|ticks| {
            let at = reach.time().saturating_add(ticks);
            reach.look_by(self.means.source, at);
            at
        });
    }

    /// The guest has notified of a queue that is watched: what has ended is returned, too.
    #[inline(never)]
    pub(super) fn serve_watched(&mut self, reach: &dyn Reach) {
        self.serve(reach);
        self.show_interrupts(reach);
    }
}
