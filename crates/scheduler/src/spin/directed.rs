//! `directed`: run one partner that was preempted in its kernel, in turn: what KVM's
//! `kvm_vcpu_on_spin` does, for comparison.

use super::{Scene, Spin, Suspend};
use crate::id::VcpuSet;
use crate::ticks::Ticks;

pub(super) struct Directed;

impl Spin for Directed {
    fn suspend(&self, scene: &mut Scene<'_>, _: Option<Ticks>) -> Suspend {
        let candidates = scene
            .ready_partners()
            .intersection(scene.preempted_in_supervisor);
        // In turn: behind the one that was favoured last, then from the beginning.
        let after: VcpuSet = candidates
            .iter()
            .filter(|&vcpu| Some(vcpu) > scene.favoured)
            .collect();
        after
            .first()
            .or_else(|| candidates.first())
            .map_or(Suspend::GoOn, Suspend::Favour)
    }
}
