//! Stopping one queue (virtio 1.2, §4.2.2, `QueueReady`).
//!
//! Most operations in flight complete soon and are waited for. Buffers of a receive queue do not: they are taken back by a reset of the device,
//! after which it is set up again and given the chains in flight on its other queues. Devices are not asked to stop a queue, since some go on with one
//! that reads as stopped. A reset also drops what a driver has set by a control queue, as filters of a network card: it then takes everything.

use super::queue::Queue;
use super::{Mediated, Stopping};
use crate::devices::trapped::VirtioContext;
use crate::devices::virtio::queue::chain::QueueError;
use crate::devices::virtio::transport::{Progress, Queues};
use crate::devices::virtio::{register, status};

/// Time for which operations in flight are waited for, in units of the longest time between two polls: 100 ms.
const WAIT: u64 = 5_000;

impl Mediated {
    /// Stops a queue: to be called until there is no more to do.
    #[cold]
    pub(super) fn stop(
        &mut self,
        number: usize,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<Progress, QueueError> {
        let memory = context.memory();
        let Some(Some(queue)) = queues.get_mut(number) else {
            return Ok(Progress::default());
        };
        queue.stop_passing();
        let mut progress = Progress::default();
        if !self.stopping.is_resetting() {
            progress.interrupt = queue.return_ended(None, memory)?.unwrap_or(false);
        }
        if queue.is_in_flight() {
            progress.more = true;
            let now = context.time();
            match self.stopping {
                Stopping::Waits { until } if now >= until => self.stopping = Stopping::Resets,
                Stopping::Waits { .. } => return Ok(progress),
                Stopping::Resets => {}
                Stopping::None => {
                    let until = now.saturating_add(WAIT * self.config.patience);
                    self.stopping = Stopping::Waits { until };
                    return Ok(progress);
                }
            }
            self.set_word(register::STATUS, 0, context);
            if self.word(register::STATUS, context) != 0 {
                return Ok(progress);
            }
            progress.interrupt |= self.set_up_again(number, queues, context)?;
            progress.more = false;
        }
        self.stopping = Stopping::None;
        if let (Some(queue), Some(spare)) = (
            queues.get_mut(number).and_then(Option::take),
            self.spare.get_mut(number),
        ) {
            let device = spare.insert(queue.into_device_queue());
            // Completions of the next queue interrupt.
            device.set_interrupts(true, memory.host);
        }
        Ok(progress)
    }

    /// Sets the device up again after its reset, without the chains in flight on queue `number`. Returns true if the guest is to be interrupted.
    fn set_up_again(
        &mut self,
        number: usize,
        queues: &mut Queues<Queue>,
        context: &dyn VirtioContext,
    ) -> Result<bool, QueueError> {
        let memory = context.memory();
        let mut interrupt = false;
        for queue in queues.iter_mut().flatten() {
            interrupt |= queue.return_ended(None, memory)?.unwrap_or(false);
        }
        let (features, live) = self.given;
        let mut status = status::ACKNOWLEDGE | status::DRIVER;
        self.set_word(register::STATUS, status, context);
        self.set_features(features, context);
        status |= status::FEATURES_OK;
        self.set_word(register::STATUS, status, context);
        if self.word(register::STATUS, context) & status::FEATURES_OK == 0 {
            return Err(QueueError::Device);
        }
        let taken_back = queues.get_mut(number).and_then(Option::as_mut);
        if let Some(queue) = taken_back {
            queue.device_mut().abandon();
        }
        let used = queues.iter_mut().flatten().map(Queue::device_mut);
        for queue in used.chain(self.spare.iter_mut().flatten()) {
            if queue.is_in_use() {
                queue.restart(memory.host);
            }
        }
        let used = queues.iter().map(|queue| queue.as_ref().map(Queue::device));
        for (number, (used, spare)) in used.zip(&self.spare).enumerate() {
            let queue = used.or(spare.as_ref());
            if let Some(queue) = queue.filter(|queue| queue.is_in_use()) {
                self.set_up_queue(number, queue, context);
            }
        }
        self.set_word(register::STATUS, live, context);
        let is_in_flight = |queue: &Option<Queue>| queue.as_ref().is_some_and(Queue::is_in_flight);
        for number in (0..)
            .zip(queues.iter())
            .filter(|(_, queue)| is_in_flight(queue))
        {
            self.set_word(register::QUEUE_NOTIFY, number.0, context);
        }
        Ok(interrupt)
    }
}
