//! `reservation`: wait until the word that the vCPU waits on has changed.
//!
//! The vCPU joins the self-wait queue; [`crate::Probe::changed`] is its test. Where it waits for its turn, its hart goes to
//! whoever is in the way: to the lock's holder if that is known and was preempted, else to a partner that was preempted with
//! its interrupts closed, else to one that was preempted in its kernel. Where a word just changes, nobody is preferred. A spin
//! on a word that nobody knows is treated as by `wapd`.

use super::{Scene, Spin, Suspend, wapd};
use crate::id::VcpuId;
use crate::vcpu::Word;

pub(super) struct Reservation;

impl Spin for Reservation {
    fn suspend(&self, scene: &mut Scene<'_>, word: Option<Word>) -> Suspend {
        match word {
            Some(word) => Suspend::WaitForWord {
                word,
                favour: word.turn.then(|| who_is_in_the_way(scene)).flatten(),
            },
            None => wapd::AllPartners.suspend(scene, None),
        }
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
