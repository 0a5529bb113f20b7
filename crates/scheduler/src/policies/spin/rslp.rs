//! `rslp`: requeuing the spinning vCPU behind all its partners (paper 000 §3.2.2, 5).

use super::rule::{KnownWait, Scene, SpinRule, Suspend};
use crate::policies::queues::Queue;

pub(super) struct Requeue;

impl SpinRule for Requeue {
    fn suspend(&self, scene: &mut Scene<'_>, _: KnownWait) -> Suspend {
        let holds_partner = |queue: &Queue| {
            !scene
                .queues
                .members(*queue)
                .intersection(scene.partners)
                .is_empty()
        };
        let behind = [Queue::OutService, Queue::TimeSliceEnd]
            .into_iter()
            .find(holds_partner);
        Suspend::Requeue(behind.unwrap_or(Queue::ProperReady))
    }
}
