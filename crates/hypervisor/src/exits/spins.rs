//! Spin exits: WRS.NTO that traps, and the spin call.

use abi::monitor::Event;
use scheduler::{Leave, VcpuId};

use super::{Exit, Next};
use crate::hart;
use crate::spin::{Spin, Word};

/// How long the next in line for a lock stays on its hart and looks, in parts of a second: about what two changes of
/// the vCPU on a hart cost (docs/scheduling.md, "What a dispatch costs").
const STAY: u64 = 100_000;

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
    if place.is_some() {
        count(Event::TicketKnown);
        *exit.vcpu.place.lock() = place;
    }
    let holder = word.and_then(|word| holder(exit, word));
    exit.registers.holder = holder;
    let next = word.filter(|word| word.is_next());
    let (stays, goes_on) = {
        let mut scheduler = exit.system.scheduler.lock();
        let stays = next.is_some() && scheduler.next_in_line_stays(exit.hart.index, holder);
        (stays, scheduler.goes_on_spinning(exit.hart.index))
    };
    if goes_on || stays && next.is_some_and(|word| comes_soon(exit, word)) {
        count(Event::SpinKept);
        return Next::Resume;
    }
    count(Event::SpinSuspended);
    if holder.is_some_and(|holder| !is_running(exit, holder)) {
        count(Event::HolderFavoured);
    }
    *exit.vcpu.word.lock() = word;
    Next::Leave(match word {
        Some(_) if place.is_some() => Leave::SpinForTurn,
        Some(_) => Leave::SpinOnWord,
        None => Leave::Spin,
    })
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

/// The sibling that holds the lock: it waited for the ticket that is served now.
fn holder(exit: &Exit<'_>, word: Word) -> Option<VcpuId> {
    let served = word.served()?;
    let siblings = exit.system.vcpus_of(exit.vm.id).iter();
    siblings
        .filter(|sibling| sibling.id != exit.vcpu.id)
        .find(|sibling| *sibling.place.lock() == Some(served))
        .map(|sibling| sibling.id)
}

fn is_running(exit: &Exit<'_>, vcpu: VcpuId) -> bool {
    exit.system.vcpu(vcpu).guest_hart().is_some()
}

/// Keeps the next in line on its hart for a little while. True where its turn has come.
fn comes_soon(exit: &Exit<'_>, word: Word) -> bool {
    let end = hart::time() + u64::from(exit.system.board.timebase_hertz) / STAY;
    while hart::time() < end {
        if word.has_come() {
            return true;
        }
        word.stall();
    }
    false
}
