//! Roll call: before the system is built, each hart is started once, reports that it is there, and stops again.
//!
//! Firmware may say that it has started a hart, and then lose it. OpenSBI holds a hart that its heap has too little
//! memory for, and still returns success. A scheduler that counts on such a hart waits for ever.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};

use scheduler::{HartId, HartSet};

use crate::hart;
use crate::hart::firmware::{self, FirmwareError, HartStatus};
use crate::system::harts::MAX_HARTS;
use board::BoardHart;

/// Time without an answer after which the call ends, in seconds.
const PATIENCE_SECONDS: u64 = 2;

/// Harts that have answered, by their places in the board's list. A hart that answers too late still writes here.
static RESPONDED: [AtomicBool; MAX_HARTS] = [const { AtomicBool::new(false) }; MAX_HARTS];

/// Board's side of the roll call.
pub trait Harts {
    /// Starts a hart, which is to respond and to stop.
    ///
    /// # Errors
    /// The firmware's error.
    fn start(&mut self, hart: HartId) -> Result<(), FirmwareError>;

    /// Returns true once the hart has answered and can be started again.
    fn has_responded(&mut self, hart: HartId) -> bool;

    /// The board's time, in ticks.
    fn now(&mut self) -> u64;
}

/// Starts each of `called`, and returns the harts that respond. Ends when no hart has responded for `patience` ticks, so it lasts at most so
/// long for each hart.
pub fn call(called: HartSet, patience: u64, harts: &mut impl Harts) -> HartSet {
    let mut missing = HartSet::EMPTY;
    for hart in called.iter() {
        if harts.start(hart).is_ok() {
            missing.insert(hart);
        }
    }
    let mut back = HartSet::EMPTY;
    let mut last = harts.now();
    while missing != HartSet::EMPTY {
        let before = missing;
        for hart in before.iter() {
            if harts.has_responded(hart) {
                missing.remove(hart);
                back.insert(hart);
            }
        }
        let now = harts.now();
        if missing != before {
            last = now;
        } else if now.wrapping_sub(last) >= patience {
            break;
        }
    }
    back
}

/// Calls all harts except the caller, whose id is `own`. Keeps those in `harts` that respond, and returns the ids of
/// the others.
pub fn retain_responding(harts: &mut Vec<BoardHart>, own: u64, timebase_hertz: u32) -> Vec<u64> {
    // More are not used.
    harts.truncate(MAX_HARTS);
    let others = (0..).map_while(HartId::new).zip(&*harts);
    let others = others
        .filter(|(_, hart)| hart.id != own)
        .map(|(index, _)| index);
    let patience = PATIENCE_SECONDS * u64::from(timebase_hertz);
    let there = call(others.collect(), patience, &mut OfFirmware(harts));
    let mut missing = Vec::new();
    let mut index = 0;
    harts.retain(|hart| {
        let stays = hart.id == own || HartId::new(index).is_some_and(|id| there.contains(id));
        if !stays {
            missing.push(hart.id);
        }
        index += 1;
        stays
    });
    missing
}

/// The board's own harts.
struct OfFirmware<'a>(&'a [BoardHart]);

impl Harts for OfFirmware<'_> {
    fn start(&mut self, hart: HartId) -> Result<(), FirmwareError> {
        let here = core::ptr::from_ref(&RESPONDED[hart.index()]) as u64;
        firmware::start_hart(self.0[hart.index()].id, hart::entry::roll_call(), here)
    }

    fn has_responded(&mut self, hart: HartId) -> bool {
        RESPONDED[hart.index()].load(Ordering::Relaxed)
            && firmware::hart_status(self.0[hart.index()].id) == Ok(HartStatus::STOPPED)
    }

    fn now(&mut self) -> u64 {
        hart::time()
    }
}

/// Harts by their ids, with runs in short.
struct Ids<'a>(&'a [u64]);

impl core::fmt::Display for Ids<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let plural = if self.0.len() == 1 { "" } else { "s" };
        write!(formatter, "hart{plural}")?;
        let mut separator = " ";
        for run in self.0.chunk_by(|one, next| one + 1 == *next) {
            match run {
                [first, .., last] => write!(formatter, "{separator}{first} to {last}")?,
                _ => write!(formatter, "{separator}{}", run[0])?,
            }
            separator = ", ";
        }
        Ok(())
    }
}

/// Message about harts that lack the hypervisor extension.
#[derive(Clone, Copy, Debug)]
pub struct WithoutH<'a>(pub &'a [u64]);

impl core::fmt::Display for WithoutH<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let ids = Ids(self.0);
        write!(
            formatter,
            "not used: {ids}, without the hypervisor extension (H)"
        )
    }
}

/// Message about harts that did not respond.
#[derive(Clone, Copy, Debug)]
pub struct Missing<'a>(pub &'a [u64]);

impl core::fmt::Display for Missing<'_> {
    fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(formatter, "the firmware did not start {}", Ids(self.0))?;
        formatter.write_str(
            "; it may have too little memory for so many (OpenSBI's heap): use firmware with a larger heap, or fewer harts",
        )
    }
}

#[cfg(test)]
mod tests;
