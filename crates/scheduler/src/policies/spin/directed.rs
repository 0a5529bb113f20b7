//! `directed`: run one partner that was preempted in its kernel, in turn, as KVM's `kvm_vcpu_on_spin` does; for comparison.
//!
//! Without such a partner the hart goes to one that yielded at a spin itself: KVM counts that vCPU as preempted, since it was runnable when it
//! left. KVM passes it over at each second scan; here it comes behind the others, which needs no memory of scans. Without this rule, the vCPU
//! whose turn it is would wait until the whole slice of a spinning vCPU has ended.

use super::exit::{Keep, SpinExit};
use super::rule::{KnownWait, Scene, SpinRule, Suspend, keep_if_continued};

pub(super) struct Directed;

impl SpinRule for Directed {
    fn keep(&self, scene: &mut Scene<'_>, _: SpinExit) -> Keep {
        keep_if_continued(self, scene)
    }

    fn suspend(&self, scene: &mut Scene<'_>, _: KnownWait) -> Suspend {
        scene
            .preempted_partner()
            .or_else(|| scene.yielded_partner())
            .map_or(Suspend::Continue, Suspend::YieldTo)
    }
}
