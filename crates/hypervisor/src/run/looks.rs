//! What a hart looks at now and then while a vCPU has it: whether a partner's turn has come, and whether the vCPU waits itself.
//!
//! **A vCPU makes room for a partner whose turn has come.** A waiter that has no hart gets its turn while the vCPU that gave it goes on with something else. All behind the waiter wait
//! for it, and where the vCPU comes back to the lock it waits too, so that from then on each turn takes a slice or a change of vCPU. So a hart that is given to a vCPU while partners
//! wait for words looks at these words, and gives itself to whoever's turn has come.
//!
//! **A vCPU that waits without leaving is found.** A WRS.NTO ends at once where an interrupt is pending (Zawrs), also one that the guest has closed: a guest that waits so for a partner
//! without a hart would have this one until its slice ends.

use abi::monitor::Event;
use scheduler::groups::NumberSet;
use scheduler::{HartId, Leave, Scheduler};

use crate::hart::csr::{self, number, status};
use crate::run::exits::exit::{Exit, Next};
use crate::run::exits::spins;
use crate::run::spin;
use crate::system::harts::Hart;
use crate::system::{Hypervisor, now};
use crate::vm::looks::LookFor;
use crate::vm::word::Spin;

/// Why the hart is to look at the vCPU that it is given to, for a slice or not. Where nobody else wants the hart, no partner does.
pub fn reason(scheduler: &mut Scheduler, hart: HartId, has_slice: bool) -> Option<LookFor> {
    if scheduler.fills(hart) {
        return Some(LookFor::Favoured);
    }
    match scheduler.waiting_partners(hart).is_empty() {
        false => Some(LookFor::Partners),
        true => {
            (has_slice && scheduler.may_wait_unseen(hart)).then_some(LookFor::Wait { again: false })
        }
    }
}

/// Looks at the words that partners wait for. Whether the hart is to be given to one of them.
fn has_come(system: &Hypervisor, hart: &Hart) -> bool {
    let mut partners = NumberSet::EMPTY;
    let mut ready = false;
    let goes_on = system.with_hart(hart.index, |group| {
        let scheduler = group.scheduler_mut();
        let waiting = scheduler
            .waiting_partners(hart.index)
            .union(scheduler.favoured_words(hart.index));
        let unseen = scheduler.unseen(waiting);
        ready = scheduler.favoured_is_ready(hart.index);
        let goes_on = scheduler.fills(hart.index)
            || !waiting.is_empty()
            || scheduler.may_wait_unseen(hart.index);
        group.name(unseen, &mut partners);
        goes_on
    });
    let for_turns = hart.looks.is_for_turns();
    let comes = |vcpu| {
        let waits = system.vcpu(vcpu);
        let mut word = waits.word.lock();
        word.as_mut()
            .is_some_and(|word| (word.place().is_some() || !for_turns) && word.test(&waits.beside))
    };
    if ready || partners.iter().any(comes) {
        return true;
    }
    match goes_on {
        true => hart.looks.found_nothing(now()),
        false => hart.looks.end(),
    }
    false
}

/// Looks at a vCPU that was interrupted, and at what its partners wait for. Why it leaves, if it does.
#[inline(never)]
pub fn look(exit: &mut Exit<'_>) -> Option<Leave> {
    if let Next::Leave(reason) = wait_of(exit) {
        return Some(reason);
    }
    if exit.hart.looks.is_for_partners() {
        return has_come(exit.system, exit.hart).then_some(Leave::Preempted);
    }
    exit.hart.looks.found_nothing(now());
    None
}

/// What becomes of a vCPU that waits without leaving, as if it had left at the instruction of its wait.
fn wait_of(exit: &mut Exit<'_>) -> Next {
    let supervisor = !exit.registers.context.in_user_mode();
    let closed = supervisor && csr::read::<{ number::VSSTATUS }>() & status::SIE == 0;
    let pending = csr::read::<{ number::VSIP }>() & csr::read::<{ number::VSIE }>() != 0;
    if !closed || !pending {
        exit.registers.spins_unseen = false;
        return Next::Resume;
    }
    let found = spin::look_ahead(exit.vm, exit.registers);
    exit.registers.spins_unseen = matches!(found, Spin::On(_));
    if !exit.registers.spins_unseen {
        return Next::Resume;
    }
    exit.books.count(Event::SpinFound);
    spins::spin(exit, found)
}
