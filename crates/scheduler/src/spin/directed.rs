//! `directed`: run one partner that was preempted in its kernel, in turn: what KVM's
//! `kvm_vcpu_on_spin` does, for comparison.

use super::{Known, Scene, Spin, Suspend, keep_if_given_back};
use crate::decision::{Keep, SpinExit};
use crate::id::VcpuId;
use crate::table::Scheduler;

pub(super) struct Directed;

impl Spin for Directed {
    fn keep(&self, scheduler: &mut Scheduler, vcpu: VcpuId, _: SpinExit) -> Keep {
        keep_if_given_back(self, scheduler, vcpu)
    }

    fn suspend(&self, scene: &mut Scene<'_>, _: Known) -> Suspend {
        scene
            .preempted_partner()
            .map_or(Suspend::GoOn, Suspend::Favour)
    }
}
