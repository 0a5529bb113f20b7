//! `reservation`: wait until the word that the vCPU waits on has changed.
//!
//! The vCPU joins the self-wait queue; [`crate::Probe::changed`] is its test. Its hart goes to whoever is to change the
//! word: to the lock's holder if that is known and was preempted, else to a partner that was preempted with its
//! interrupts closed, else to one that was preempted in its kernel. A spin on a word that nobody knows is treated
//! as by `wapd`.

use super::{Scene, Spin, Suspend, wapd};
use crate::ticks::Ticks;

pub(super) struct Reservation;

impl Spin for Reservation {
    fn suspend(&self, scene: &mut Scene<'_>, word: Option<Ticks>) -> Suspend {
        match word {
            Some(until) => Suspend::WaitForWord {
                until,
                favour: scene
                    .ready_holder()
                    .or_else(|| scene.preempted_closed_partner())
                    .or_else(|| scene.preempted_partner()),
            },
            None => wapd::AllPartners.suspend(scene, None),
        }
    }

    fn dispatched(&self, scene: &mut Scene<'_>) {
        wapd::AllPartners.dispatched(scene);
    }
}
