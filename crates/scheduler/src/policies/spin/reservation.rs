//! `reservation`: wait until the word that the vCPU waits on has changed.
//!
//! The vCPU joins the self-wait queue; [`crate::Probe::changed`] is its test. If it waits for its turn, its hart goes to a partner that delays all
//! waiters: the lock's holder if it is known and was preempted, else a partner that was preempted with its interrupts disabled, else one that was
//! preempted in its kernel. If it waits for a plain word, no vCPU is preferred. An unknown spin is treated as by `wapd`.
//!
//! Before it leaves, a vCPU polls the word briefly if the wait is probably short: the next in line polls while the holder runs, or while no
//! candidate for the holder was preempted; a waiter at a plain word polls while a partner runs and none is ready.

use super::exit::{Keep, SpinExit, SpinOn};
use super::rule::{KnownWait, Scene, SpinRule, Suspend};
use super::wapd;
use crate::base::id::VcpuId;
use crate::base::ticks::Ticks;

/// Inverse of the longest poll in slices. It bounds polls where switches take long because the host takes the hypervisor's hart away.
const MAX_POLLS_PER_SLICE: u64 = 64;

pub(super) struct Reservation;

impl SpinRule for Reservation {
    fn suspend(&self, scene: &mut Scene<'_>, known: KnownWait) -> Suspend {
        match known {
            KnownWait::Turn => Suspend::WaitForWord {
                yield_to: blocking_partner(scene),
            },
            KnownWait::Word => Suspend::WaitForWord { yield_to: None },
            KnownWait::None => wapd::AllPartners.suspend(scene, known),
        }
    }

    fn keep(&self, scene: &mut Scene<'_>, exit: SpinExit) -> Keep {
        let is_short = match (exit.on, exit.holder) {
            (SpinOn::Unknown | SpinOn::Turn { next: false }, _) => return Keep::No,
            (SpinOn::Turn { .. }, Some(_)) => scene.holder_runs,
            (SpinOn::Turn { .. }, None) => scene.preempted_partner().is_none(),
            (SpinOn::Word, _) => scene.ready_partners().is_empty() && !scene.executing.is_empty(),
        };
        match is_short {
            true => Keep::Poll(Ticks::new(scene.slice.get() / MAX_POLLS_PER_SLICE)),
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

/// Partner that all waiters in line wait for.
fn blocking_partner(scene: &Scene<'_>) -> Option<VcpuId> {
    scene
        .ready_holder()
        .or_else(|| scene.preempted_interrupts_off_partner())
        .or_else(|| scene.preempted_partner())
}
