//! `directed`: run one partner that was preempted in its kernel, in turn: what KVM's
//! `kvm_vcpu_on_spin` does, for comparison.

use super::{Scene, Spin, Suspend};
use crate::vcpu::Word;

pub(super) struct Directed;

impl Spin for Directed {
    fn may_go_on(&self) -> bool {
        true
    }

    fn suspend(&self, scene: &mut Scene<'_>, _: Option<Word>) -> Suspend {
        scene
            .preempted_partner()
            .map_or(Suspend::GoOn, Suspend::Favour)
    }
}
