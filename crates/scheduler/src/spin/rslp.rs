//! `rslp`: requeuing the spinning vCPU behind all its partners (paper 000 §3.2.2, 5).

use super::{Known, Scene, Spin, Suspend};
use crate::queue::Queue;

pub(super) struct Requeue;

impl Spin for Requeue {
    fn suspend(&self, scene: &mut Scene<'_>, _: Known) -> Suspend {
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
