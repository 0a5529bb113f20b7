//! Spin exits: WRS.NTO that traps, and the spin call.

use abi::monitor::Event;
use abi::system::SpinMethod;
use scheduler::{Keep, Leave, SpinExit, SpinOn, Ticks, VcpuNumber};

use super::exit::{Exit, Next};
use crate::hart::capabilities::Capability;
use crate::hart::custom;
use crate::run::probe;
use crate::vm::word::{Spin, Word};

/// What becomes of a vCPU that spins; its program counter is behind the instruction already.
pub fn spin(exit: &mut Exit<'_>, spin: Spin) -> Next {
    let books = exit.books;
    let count = |event| books.count(event);
    if let Some(before) = exit.registers.spinning.exit(spin) {
        count(Event::SpinBegun);
        let (exits, interrupts) = before;
        if let Some(event) = length(exits) {
            count(event);
        }
        if exits.saturating_sub(interrupts) > 4 {
            count(Event::SpinsMoreByItself);
        }
    }
    let word = match spin {
        Spin::Over(_) => {
            count(Event::SpinOver);
            return Next::Resume;
        }
        Spin::On(word) => Some(word),
        Spin::Unknown => None,
    };
    let place = word.and_then(Word::place);
    if let Some(place) = place {
        count(Event::TicketKnown);
        exit.vcpu.place.set(place);
    }
    let holder = word.and_then(|word| told_holder(exit, word).or_else(|| holder(exit, word)));
    exit.registers.holder = holder;
    let spins = SpinExit {
        on: match spin_on(word) {
            // Where the holder is in another group, the scheduler cannot tell that it is on no hart.
            SpinOn::Turn { next } => SpinOn::Turn {
                next: next && !holder.is_some_and(|holder| is_off_elsewhere(exit, holder)),
            },
            on => on,
        },
        holder,
    };
    let groups = &exit.system.scheduler;
    // Nothing changes by it that another group could want to know.
    let keep = groups
        .lock_of(exit.hart.index)
        .keeps(exit.hart.index, spins, groups.places());
    let goes_on = match keep {
        Keep::No => false,
        Keep::Look(longest) => word.is_some_and(|word| comes_soon(exit, word, longest)),
        Keep::GoOn => true,
    };
    if goes_on {
        count(Event::SpinKept);
        return Next::Resume;
    }
    count(Event::SpinSuspended);
    if holder.is_some_and(|holder| !is_running(exit, holder)) {
        count(Event::HolderFavoured);
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
        exit.registers.waits_for_word = true;
    }
    Next::Leave(match word {
        Some(_) if place.is_some() => Leave::SpinForTurn,
        Some(_) => Leave::SpinOnWord,
        None => Leave::Spin,
    })
}

fn spin_on(word: Option<Word>) -> SpinOn {
    match word {
        None => SpinOn::Unknown,
        Some(word) if word.place().is_some() => SpinOn::Turn {
            next: word.is_next(),
        },
        Some(_) => SpinOn::Word,
    }
}

/// Under which event a wait of so many exits is counted.
fn length(exits: u32) -> Option<Event> {
    Some(match exits {
        0 => return None,
        1 => Event::SpinsOne,
        2 => Event::SpinsTwo,
        3 => Event::SpinsThree,
        4 => Event::SpinsFour,
        _ => Event::SpinsMore,
    })
}

/// The sibling that holds the lock, where the machine tells and the method asks: for comparison with a hypervisor that knows.
fn told_holder(exit: &Exit<'_>, word: Word) -> Option<VcpuNumber> {
    if exit.system.spin() != SpinMethod::Oracle || !exit.hart.has(Capability::LockHolder) {
        return None;
    }
    // SAFETY: the hart has the register.
    let tag = unsafe { custom::lock_holder(word.host().raw()) };
    let tags = exit.system.board.translation.tags();
    let siblings = exit.system.vcpus_of(exit.vm.id).iter();
    siblings
        .filter(|sibling| sibling.id != exit.vcpu.id)
        .find(|sibling| tag != 0 && u64::from(tags.of(sibling.id).number()) == tag)
        .map(|sibling| sibling.id)
}

/// The sibling that holds the lock: it waited for the ticket that is served now.
fn holder(exit: &Exit<'_>, word: Word) -> Option<VcpuNumber> {
    let served = word.served()?;
    let siblings = exit.system.vcpus_of(exit.vm.id).iter();
    siblings
        .filter(|sibling| sibling.id != exit.vcpu.id)
        .find(|sibling| sibling.place.is(served))
        .map(|sibling| sibling.id)
}

/// Whether a vCPU is in another group of harts, and not in its guest.
fn is_off_elsewhere(exit: &Exit<'_>, vcpu: VcpuNumber) -> bool {
    exit.system.scheduler.is_elsewhere(vcpu, exit.hart.index) && !is_running(exit, vcpu)
}

fn is_running(exit: &Exit<'_>, vcpu: VcpuNumber) -> bool {
    exit.system.vcpu(vcpu).guest_hart().is_some()
}

/// Keeps the vCPU on its hart for as long as it takes to change to another and back, but not longer than this; or not at all, where
/// that has come to nothing lately. True where what it waits for has come.
fn comes_soon(exit: &mut Exit<'_>, word: Word, longest: Ticks) -> bool {
    if !exit.registers.looks.try_again() {
        return false;
    }
    let there_and_back = exit.hart.change.there_and_back();
    let has_come = probe::comes_within(exit.hart, exit.vcpu, word, there_and_back.min(longest));
    exit.registers.looks.end(has_come);
    if has_come {
        exit.registers.spinning.has_come();
    }
    has_come
}
