//! Spin exits: WRS.NTO and PAUSE that trap, and the spin call.

use abi::monitor::Event;
use abi::system::SpinMethod;
use scheduler::{Keep, Leave, SpinExit, SpinOn, Ticks, VcpuNumber};
use spinwait::EndedSpin;

use super::exit::{Exit, Next};
use crate::hart::capabilities::Capability;
use crate::hart::custom;
use crate::run::probe;
use crate::vm::word::{Spin, Word};

/// Handles a spin; the program counter is behind the instruction already.
pub fn spin(exit: &mut Exit<'_>, spin: Spin) -> Next {
    let cpu_time = exit.cpu_time;
    let count = |event| cpu_time.count(event);
    if let Some(before) = exit.state.spinning.exit(spin) {
        count(Event::SpinWait);
        let EndedSpin { exits, interrupts } = before;
        if let Some(event) = length(exits) {
            count(event);
        }
        if exits.saturating_sub(interrupts) > 4 {
            count(Event::WaitExitsMoreUninterrupted);
        }
    }
    let word = match spin {
        Spin::Over(_) => {
            count(Event::SpinSatisfied);
            return Next::Resume;
        }
        Spin::On(word) => Some(word),
        Spin::Unknown => None,
    };
    let position = word.and_then(Word::position);
    if let Some(position) = position {
        count(Event::TicketDecoded);
        exit.vcpu.position.set(position);
    }
    let holder = word.and_then(|word| machine_holder(exit, word).or_else(|| holder(exit, word)));
    exit.state.holder = holder;
    let spins = SpinExit {
        on: match spin_on(word) {
            // The scheduler of this group cannot tell that a holder in another group is on no hart.
            SpinOn::Turn { next } => SpinOn::Turn {
                next: next && !holder.is_some_and(|holder| is_off_elsewhere(exit, holder)),
            },
            on => on,
        },
        holder,
    };
    let groups = &exit.system.scheduler;
    // No load bit of this group changes.
    let keep = groups
        .lock_of(exit.hart.index)
        .keeps_hart(exit.hart.index, spins, groups.places());
    let goes_on = match keep {
        Keep::No => false,
        Keep::Poll(max) => word.is_some_and(|word| poll_briefly(exit, word, max)),
        Keep::Yes => true,
    };
    if goes_on {
        count(Event::SpinContinued);
        return Next::Resume;
    }
    count(Event::SpinSuspended);
    if holder.is_some_and(|holder| !is_running(exit, holder)) {
        count(Event::HolderBoosted);
        let favours = matches!(
            exit.system.spin(),
            SpinMethod::Reservation | SpinMethod::Oracle
        );
        if let Some(holder) = holder.filter(|_| favours) {
            exit.system.pull(holder, exit.hart.index);
        }
    }
    if let Some(word) = word {
        *exit.vcpu.word.lock() = Some(word);
        exit.state.waits_for_word = true;
    }
    Next::Leave(match word {
        Some(_) if position.is_some() => Leave::SpinForTurn,
        Some(_) => Leave::SpinOnWord,
        None => Leave::Spin,
    })
}

fn spin_on(word: Option<Word>) -> SpinOn {
    match word {
        None => SpinOn::Unknown,
        Some(word) if word.position().is_some() => SpinOn::Turn {
            next: word.is_next(),
        },
        Some(_) => SpinOn::Word,
    }
}

/// Event under which a wait of so many exits is counted.
fn length(exits: u32) -> Option<Event> {
    Some(match exits {
        0 => return None,
        1 => Event::WaitExitsOne,
        2 => Event::WaitExitsTwo,
        3 => Event::WaitExitsThree,
        4 => Event::WaitExitsFour,
        _ => Event::WaitExitsMore,
    })
}

/// Sibling that holds the lock, if the machine names it and the method is `oracle`: a bound for comparisons.
fn machine_holder(exit: &Exit<'_>, word: Word) -> Option<VcpuNumber> {
    if exit.system.spin() != SpinMethod::Oracle || !exit.hart.has(Capability::LockHolder) {
        return None;
    }
    // SAFETY: the hart has the register.
    let tag = unsafe { custom::lock_holder(word.address().host().raw()) };
    let tags = exit.system.guest_translation.tags();
    let siblings = exit.system.vcpus_of(exit.vm.id).iter();
    siblings
        .filter(|sibling| sibling.id != exit.vcpu.id)
        .find(|sibling| tag != 0 && u64::from(tags.of(sibling.id).number()) == tag)
        .map(|sibling| sibling.id)
}

/// Sibling that holds the lock: it waited with the ticket that is served now.
fn holder(exit: &Exit<'_>, word: Word) -> Option<VcpuNumber> {
    let served = word.served_position()?;
    let siblings = exit.system.vcpus_of(exit.vm.id).iter();
    siblings
        .filter(|sibling| sibling.id != exit.vcpu.id)
        .find(|sibling| sibling.position.is(served))
        .map(|sibling| sibling.id)
}

/// Returns true if a vCPU is in another group of harts, and not in its guest.
fn is_off_elsewhere(exit: &Exit<'_>, vcpu: VcpuNumber) -> bool {
    exit.system.scheduler.is_elsewhere(vcpu, exit.hart.index) && !is_running(exit, vcpu)
}

fn is_running(exit: &Exit<'_>, vcpu: VcpuNumber) -> bool {
    exit.system.vcpu(vcpu).guest_hart().is_some()
}

/// Polls the vCPU's word for a round trip of context switches, at most `max`, unless such polls have failed lately. Returns true if the wait is over.
fn poll_briefly(exit: &mut Exit<'_>, word: Word, max: Ticks) -> bool {
    if !exit.state.poll_history.should_poll() {
        return false;
    }
    let round_trip = exit.hart.switch_cost.round_trip();
    let over = probe::poll_word(exit.hart, exit.vcpu, word, round_trip.min(max));
    exit.state.poll_history.note(over);
    if over {
        exit.state.spinning.note_over();
    }
    over
}
