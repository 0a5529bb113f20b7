//! `wapd`: waiting for all partners to be dispatched (paper 000 §3.2.2, 3).

use super::{Known, Scene, Spin, Suspend};
use crate::queue::Queue;

pub(super) struct AllPartners;

impl Spin for AllPartners {
    fn suspend(&self, scene: &mut Scene<'_>, _: Known) -> Suspend {
        let ready = scene.ready_partners();
        if ready.is_empty() {
            Suspend::Requeue(Queue::ProperReady)
        } else {
            Suspend::Wait(ready)
        }
    }

    fn dispatched(&self, scene: &mut Scene<'_>) {
        scene.waits.strike(scene.vcpu, scene.partners);
    }
}
