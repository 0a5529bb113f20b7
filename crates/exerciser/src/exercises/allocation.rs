//! `allocation`: all three handshakes of paper 000 §3.1 while the operator changes the form of allocation: the flag *f* in
//! the communication area, the code that the call returns, and the notification interrupt.
//!
//! Each hart spins where the flag says that it has a hart to itself, and calls the hypervisor where it shares. In the end
//! all three must tell the same, and every hart must have been told of the last change.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use abi::sbi::{AllocationForm, Function, NOTIFICATION_INTERRUPT, communication_area};
use exerciser::arguments::Arguments;
use exerciser::sbi::Return;

use super::work::has_vendor_calls;
use super::{Exercise, Outcome, Verdict};
use crate::arch::{csr, sbi, team};
use crate::board::{MAX_HARTS, board};
use crate::console::say;
use crate::harts::{self, Hart};

pub const EXERCISE: Exercise = Exercise {
    name: "allocation",
    parameters: &["harts", "duration-ms", "changes"],
    run,
};

const ENABLE: u64 = 1 << NOTIFICATION_INTERRUPT;
const WORDS: usize = abi::sbi::COMMUNICATION_AREA_SIZE as usize / 4;

/// The communication area.
#[repr(C, align(4096))]
struct Area([AtomicU32; WORDS]);

static AREA: Area = Area([const { AtomicU32::new(u32::MAX) }; WORDS]);

/// By hart: how often it was interrupted, and the number of changes when it last was.
static TAKEN: [AtomicU64; MAX_HARTS] = [const { AtomicU64::new(0) }; MAX_HARTS];
static TOLD: [AtomicU32; MAX_HARTS] = [const { AtomicU32::new(0) }; MAX_HARTS];

fn word(offset: u64) -> u32 {
    let place = AREA.0.get(offset as usize / 4);
    u32::from_le(place.map_or(u32::MAX, |word| word.load(Ordering::Acquire)))
}

/// Tries to read the area while the hypervisor does not write to it, which takes it a moment at each change.
const TRIES: u32 = 1000;

/// The flag, the dedicated harts and the changes, which agree; `None` if the hypervisor writes to the area all the time.
fn agreeing_words() -> Option<[u32; 3]> {
    use communication_area::{CHANGES, DEDICATED_HARTS, FLAG, SEQUENCE};
    for _ in 0..TRIES {
        let before = word(SEQUENCE);
        let words = [FLAG, DEDICATED_HARTS, CHANGES].map(word);
        fence(Ordering::Acquire);
        if before.is_multiple_of(2) && before == word(SEQUENCE) {
            return Some(words);
        }
    }
    None
}

fn call(function: Function, argument: u64) -> Return {
    let extension = abi::sbi::EXTENSION as u64;
    sbi::call(extension, function.id() as u64, [argument, 0, 0, 0, 0, 0])
}

/// A notification interrupt. The bit goes first: a change that follows sets it again.
pub fn notified() {
    csr::clear_pending(ENABLE);
    let hart = team::current();
    if let (Some(taken), Some(told)) = (TAKEN.get(hart.index()), TOLD.get(hart.index())) {
        told.store(word(communication_area::CHANGES), Ordering::Release);
        taken.fetch_add(1, Ordering::Relaxed);
    }
}

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let count = super::harts(arguments)?;
    let duration = arguments.number("duration-ms", 2000, 1, 1 << 32)?;
    let least = arguments.number("changes", 0, 0, 1 << 20)?;
    if !has_vendor_calls() {
        say!("allocation needs a hypervisor that tells");
        return Ok(Verdict::Fail);
    }
    let code_at_start = call(Function::Allocation, 0).value;
    let refused = call(Function::SetCommunicationArea, 1).error;
    let address = core::ptr::from_ref(&AREA).addr() as u64;
    let taken = call(Function::SetCommunicationArea, address).error;
    say!(
        "allocation start code={code_at_start:#x} flag={} harts={}",
        word(communication_area::FLAG),
        word(communication_area::DEDICATED_HARTS)
    );
    let begin = csr::time();
    let until = begin + board().ticks(duration * 1000);
    let (calls, spins) = (AtomicU64::new(0), AtomicU64::new(0));
    harts::run(count, &|_| {
        csr::set_interrupt_enables(csr::interrupt_enables() | ENABLE);
        let mut mine = (0u64, 0u64);
        while csr::time() < until {
            csr::take_interrupts();
            if word(communication_area::FLAG) == AllocationForm::Dedicated as u32 {
                mine.1 += 1;
                csr::pause();
            } else {
                mine.0 += 1;
                call(Function::Spin, u64::MAX);
            }
        }
        // What was changed a moment ago is still to be told.
        let settled = csr::time() + board().ticks(100_000);
        while csr::time() < settled {
            csr::take_interrupts();
        }
        calls.fetch_add(mine.0, Ordering::Relaxed);
        spins.fetch_add(mine.1, Ordering::Relaxed);
    });
    let code = call(Function::Allocation, 0).value;
    let Some([flag, dedicated, changes]) = agreeing_words() else {
        say!("allocation words=disagree");
        return Ok(Verdict::Fail);
    };
    let told = |hart: &Hart| {
        TOLD.get(hart.index())
            .map_or(0, |told| told.load(Ordering::Acquire))
    };
    let untold = harts::all(count)
        .iter()
        .filter(|hart| told(hart) != changes);
    let untold = untold.count();
    let interrupts: u64 = TAKEN
        .iter()
        .map(|taken| taken.load(Ordering::Relaxed))
        .sum();
    say!(
        "allocation end code={code:#x} flag={flag} harts={dedicated} changes={changes} interrupts={interrupts} \
         untold={untold} calls={} spins={}",
        calls.load(Ordering::Relaxed),
        spins.load(Ordering::Relaxed)
    );
    let agree = code == u64::from(dedicated) << 8 | u64::from(flag);
    let is_known = untold == 0 && u64::from(changes) >= least;
    Ok(Verdict::of(agree && is_known && taken == 0 && refused != 0))
}
