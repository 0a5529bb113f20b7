//! `wopd`: waiting for one partner to be dispatched (paper 000 §3.2.2, 4).

use super::exit::{Keep, SpinExit};
use super::rule::{KnownWait, Scene, SpinRule, Suspend, keep_if_continued};
use crate::policies::queues::Queue;

pub(super) struct OnePartner;

impl SpinRule for OnePartner {
    fn keep(&self, scene: &mut Scene<'_>, _: SpinExit) -> Keep {
        keep_if_continued(self, scene)
    }

    fn suspend(&self, scene: &mut Scene<'_>, _: KnownWait) -> Suspend {
        if !scene.executing.is_empty() {
            return Suspend::Continue;
        }
        let ready = scene.ready_partners();
        // If all partners wait for interrupts, there is no partner to wait for, and other VMs go first.
        if ready.is_empty() {
            Suspend::Requeue(Queue::ProperReady)
        } else {
            Suspend::Wait(ready)
        }
    }

    fn dispatched(&self, scene: &mut Scene<'_>) {
        scene.waits.release_all(scene.partners);
    }
}
