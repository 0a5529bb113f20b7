//! `wapd`: waiting for all partners to be dispatched (paper 000 §3.2.2, 3).

use super::rule::{KnownWait, Scene, SpinRule, Suspend};
use crate::policies::queues::Queue;

pub(super) struct AllPartners;

impl SpinRule for AllPartners {
    fn suspend(&self, scene: &mut Scene<'_>, _: KnownWait) -> Suspend {
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
