//! `directed`: run one partner that was preempted in its kernel, in turn: what KVM's
//! `kvm_vcpu_on_spin` does, for comparison.
//!
//! Where no partner was preempted, the hart goes to one that gave way at a spin itself: to KVM such a vCPU counts as preempted,
//! as it was runnable when it left. KVM passes it over at each second look, whether or not others were preempted; here it
//! comes behind them, which needs no memory of looks. Without it, the vCPU whose turn it is waits until a whole slice of a vCPU
//! that spins has ended.

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
            .or_else(|| scene.partner_that_gave_way())
            .map_or(Suspend::GoOn, Suspend::Favour)
    }
}
