//! `reservation`: wait until the word that the vCPU waits on has changed.
//!
//! The vCPU joins the self-wait queue; [`crate::Probe::changed`] is its test. Where it waits for its turn, its hart goes to
//! whoever is in the way: to the lock's holder if that is known and was preempted, else to a partner that was preempted with
//! its interrupts closed, else to one that was preempted in its kernel. Where a word just changes, nobody is preferred. A spin
//! on a word that nobody knows is treated as by `wapd`.
//!
//! Before that, whoever may be served soon looks for a little while: the next in line whose holder runs, and one that waits for
//! a word while a partner runs and none is ready, so that the one that it waits for probably runs.

use super::{Known, Scene, Spin, Suspend, wapd};
use crate::decision::{Keep, SpinExit, SpinOn};
use crate::id::VcpuId;
use crate::table::Scheduler;
use crate::ticks::Ticks;

/// The longest look, as a part of a slice: where changes take long because the hypervisor's own hart is taken away from it.
const LOOKS_IN_A_SLICE: u64 = 64;

pub(super) struct Reservation;

impl Spin for Reservation {
    fn suspend(&self, scene: &mut Scene<'_>, known: Known) -> Suspend {
        match known {
            Known::Turn => Suspend::WaitForWord {
                favour: who_is_in_the_way(scene),
            },
            Known::Word => Suspend::WaitForWord { favour: None },
            Known::Nothing => wapd::AllPartners.suspend(scene, known),
        }
    }

    fn keep(&self, scheduler: &mut Scheduler, vcpu: VcpuId, exit: SpinExit) -> Keep {
        let soon = match (exit.on, exit.holder) {
            (SpinOn::Unknown | SpinOn::Turn { next: false }, _) => return Keep::No,
            (SpinOn::Turn { .. }, Some(holder)) => scheduler.running_on(holder).is_some(),
            (SpinOn::Turn { .. }, None) => scheduler.spin_scene(vcpu).preempted_partner().is_none(),
            (SpinOn::Word, _) => {
                !scheduler.a_partner_is_ready(vcpu) && scheduler.a_partner_works(vcpu)
            }
        };
        match soon {
            true => Keep::Look(Ticks::new(scheduler.config.slice.get() / LOOKS_IN_A_SLICE)),
            false => Keep::No,
        }
    }

    fn waits_for_words(&self) -> bool {
        true
    }

    fn dispatched(&self, scene: &mut Scene<'_>) {
        wapd::AllPartners.dispatched(scene);
    }
}

/// The partner whose hart all that wait for their turn wait for.
fn who_is_in_the_way(scene: &Scene<'_>) -> Option<VcpuId> {
    scene
        .ready_holder()
        .or_else(|| scene.preempted_closed_partner())
        .or_else(|| scene.preempted_partner())
}
