//! Polls of a hart while a vCPU has it: of words that partners wait for, and of the vCPU itself.
//!
//! **A vCPU yields its hart to a partner whose turn has come.** A waiter without a hart gets its turn while the vCPU that released the lock goes on with
//! other work. All behind the waiter wait for it, and the vCPU waits too when it comes back to the lock: from then on each turn takes a slice or a
//! context switch. So a hart that is given to a vCPU while partners wait for words polls these words, and switches to a partner whose turn has come.
//!
//! **A vCPU that spins without trapping is found.** WRS.NTO ends at once if an interrupt is pending (Zawrs), even with sstatus.SIE = 0 in the guest:
//! a guest that waits so for a partner without a hart would keep this hart until its slice ends.

use abi::monitor::Event;
use scheduler::groups::NumberSet;
use scheduler::{HartId, Leave, Scheduler};
use spinwait::PollReason;

use crate::hart::csr::{self, number, status};
use crate::run::exits::exit::{Exit, Next};
use crate::run::exits::spins;
use crate::run::spin;
use crate::system::harts::Hart;
use crate::system::{Hypervisor, now};
use crate::vm::word::Spin;

/// Reason to poll while the vCPU that `hart` gets runs, with a slice or without. A hart without a slice is wanted by no partner.
pub fn poll_reason(scheduler: &mut Scheduler, hart: HartId, has_slice: bool) -> Option<PollReason> {
    if scheduler.fills_gap(hart) {
        return Some(PollReason::Boosted);
    }
    match scheduler.waiting_partners(hart).is_empty() {
        false => Some(PollReason::Partners),
        true => (has_slice && scheduler.may_spin_undetected(hart))
            .then_some(PollReason::Undetected { again: false }),
    }
}

/// Polls the words that partners wait for. Returns true if the hart is to switch to a partner.
fn poll_partners(system: &Hypervisor, hart: &Hart) -> bool {
    let mut partners = NumberSet::EMPTY;
    let mut ready = false;
    let goes_on = system.with_hart(hart.index, |group| {
        let scheduler = group.scheduler_mut();
        let waiting = scheduler
            .waiting_partners(hart.index)
            .union(scheduler.boosted_words(hart.index));
        let unpolled = scheduler.unpolled(waiting);
        ready = scheduler.boosted_is_ready(hart.index);
        let goes_on = scheduler.fills_gap(hart.index)
            || !waiting.is_empty()
            || scheduler.may_spin_undetected(hart.index);
        group.name(unpolled, &mut partners);
        goes_on
    });
    let tickets_only = hart.poll_timer.polls_tickets_only();
    let is_over = |vcpu| {
        let waits = system.vcpu(vcpu);
        let mut word = waits.word.lock();
        word.as_mut().is_some_and(|word| {
            (word.position().is_some() || !tickets_only)
                && word.poll(|| waits.conditions.lock().hold())
        })
    };
    if ready || partners.iter().any(is_over) {
        return true;
    }
    match goes_on {
        true => hart.poll_timer.back_off(now().get()),
        false => hart.poll_timer.stop(),
    }
    false
}

/// Polls an interrupted vCPU, and the words that its partners wait for. Returns the reason if it leaves.
#[inline(never)]
pub fn poll(exit: &mut Exit<'_>) -> Option<Leave> {
    if let Next::Leave(reason) = poll_vcpu(exit) {
        return Some(reason);
    }
    if exit.hart.poll_timer.polls_partners() {
        return poll_partners(exit.system, exit.hart).then_some(Leave::Preempted);
    }
    exit.hart.poll_timer.back_off(now().get());
    None
}

/// Treats a vCPU that spins without trapping as if it had trapped at its WRS.NTO.
fn poll_vcpu(exit: &mut Exit<'_>) -> Next {
    let supervisor = !exit.state.context.in_user_mode();
    let closed = supervisor && csr::read::<{ number::VSSTATUS }>() & status::SIE == 0;
    let pending = csr::read::<{ number::VSIP }>() & csr::read::<{ number::VSIE }>() != 0;
    if !closed || !pending {
        exit.state.spins_undetected = false;
        return Next::Resume;
    }
    let found = spin::at_interrupt(exit.vm, exit.state);
    exit.state.spins_undetected = matches!(found, Spin::On(_));
    if !exit.state.spins_undetected {
        return Next::Resume;
    }
    exit.cpu_time.count(Event::SpinDetected);
    spins::spin(exit, found)
}
