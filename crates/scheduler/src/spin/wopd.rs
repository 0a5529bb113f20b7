//! `wopd`: waiting for one partner to be dispatched (paper 000 §3.2.2, 4).

use super::{Known, Scene, Spin, Suspend, keep_if_given_back};
use crate::decision::{Keep, SpinExit};
use crate::id::VcpuId;
use crate::queue::Queue;
use crate::table::Scheduler;

pub(super) struct OnePartner;

impl Spin for OnePartner {
    fn keep(&self, scheduler: &mut Scheduler, vcpu: VcpuId, _: SpinExit) -> Keep {
        keep_if_given_back(self, scheduler, vcpu)
    }

    fn suspend(&self, scene: &mut Scene<'_>, _: Known) -> Suspend {
        if !scene.working.is_empty() {
            return Suspend::GoOn;
        }
        let ready = scene.ready_partners();
        // Where all partners wait for interrupts, there is nobody to wait for, and others go first.
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
