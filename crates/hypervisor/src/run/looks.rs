//! A vCPU makes room for a partner whose turn has come.
//!
//! A waiter that has no hart gets its turn while the vCPU that gave it goes on with something else. All behind the waiter wait for it, and where the vCPU comes
//! back to the lock it waits too, so that from then on each turn takes a slice or a change of vCPU. So a hart that is given to a vCPU while partners wait for words looks
//! at these words, and gives itself to whoever's turn has come.

use scheduler::groups::NumberSet;

use crate::system::harts::Hart;
use crate::system::{Hypervisor, now};

/// Looks at the words that partners wait for. Whether the hart is to be given to one of them.
#[inline(never)]
pub fn has_come(system: &Hypervisor, hart: &Hart) -> bool {
    let mut partners = NumberSet::EMPTY;
    let some_wait = system.with_hart(hart.index, |group| {
        let scheduler = group.scheduler_mut();
        let waiting = scheduler.waiting_partners(hart.index);
        let unseen = scheduler.unseen(waiting);
        group.name(unseen, &mut partners);
        !waiting.is_empty()
    });
    let for_turns = hart.looks.is_for_turns();
    let comes = |vcpu| {
        let waits = system.vcpu(vcpu);
        let mut word = waits.word.lock();
        word.as_mut()
            .is_some_and(|word| (word.place().is_some() || !for_turns) && word.test(&waits.beside))
    };
    if partners.iter().any(comes) {
        return true;
    }
    match some_wait {
        true => hart.looks.found_nothing(now()),
        false => hart.looks.end(),
    }
    false
}
