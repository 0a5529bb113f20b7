//! A board's controller that interrupts harts by wires: a PLIC, or an APLIC in direct delivery mode.
//!
//! A hart claims a source, and the source is silent until it is completed. A PLIC's gateway waits for the completion itself (PLIC
//! specification, "Interrupt Completion"). An APLIC does not: in direct delivery mode a level-sensitive source is pending as long as its line is
//! high (AIA §4.7), so a claimed source is disabled until it is completed. QEMU's stays pending, once, after its line has fallen: a claim of a source
//! whose line is low is no interrupt.
//!
//! Each source leads to one hart at a time.

use alloc::vec::Vec;

use board::{Delivery, Wired};
use riscv::aplic::register::{CLRIENUM, DOMAINCFG, IN_CLRIP, SETIENUM, SOURCECFG, TARGET};
use riscv::aplic::{DOMAINCFG_IE, HART_INDEX_SHIFT, delivery};
use riscv::plic;

use crate::devices::irq::SourceMode;
use crate::hart::decode::Width;
use crate::hart::device;
use crate::lock::{Mutex, place};

/// Priority of all sources at an APLIC and a PLIC, the least urgent one at the former and the lowest that interrupts at the latter.
const PRIORITY: u32 = 1;
/// Bytes of a register.
const WORD: u64 = 4;
/// Offset of a PLIC context's claim register from its threshold.
const CLAIM: u64 = plic::CLAIM - plic::THRESHOLD;
/// Words of the enable bits of a PLIC's context, at most.
const MAX_WORDS: usize = plic::MAX_SOURCE.div_ceil(32) as usize;
/// Place of the source's number in an APLIC's `claimi` (AIA §4.8.1.4).
const TOP_SHIFT: u32 = 16;

/// Registers of the board.
pub trait Registers {
    /// Reads a word.
    fn read(&self, address: u64) -> u32;
    /// Writes a word.
    fn write(&self, address: u64, value: u32);
}

/// The registers of the computer itself.
#[derive(Debug)]
pub struct BoardRegisters;

impl Registers for BoardRegisters {
    fn read(&self, address: u64) -> u32 {
        // SAFETY: the driver reads no other addresses than those of the controller that the board's device tree names. Its registers are words.
        let word = unsafe { device::load(address, Width::Word) };
        u32::from_le(word.unwrap_or(0) as u32)
    }

    fn write(&self, address: u64, value: u32) {
        // SAFETY: as for `read`; an interrupt controller accesses no memory.
        let _ = unsafe { device::store(address, Width::Word, value.to_le().into()) };
    }
}

/// Kinds of controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControllerKind {
    /// An APLIC in direct delivery mode.
    Aplic,
    /// A PLIC.
    Plic,
}

/// State of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Source {
    /// Index of the hart that the source leads to; none if the source is off.
    to: Option<u32>,
    /// Claimed and not completed yet.
    claimed: bool,
}

/// Driver of the controller.
#[derive(Debug)]
pub struct WiredDriver<R = BoardRegisters> {
    kind: ControllerKind,
    base: u64,
    has_claim_erratum: bool,
    /// That of source `i` is at `i`.
    sources: Mutex<Vec<Source>, { place::SOURCE }>,
    registers: R,
}

impl<R: Registers> WiredDriver<R> {
    /// Switches the controller on with every source off.
    #[must_use]
    pub fn new(kind: ControllerKind, wired: &Wired, registers: R) -> Self {
        let driver = Self {
            kind,
            base: wired.base,
            has_claim_erratum: wired.has_claim_erratum,
            sources: Mutex::new(alloc::vec![Source::default(); wired.sources as usize + 1]),
            registers,
        };
        for source in 1..=wired.sources {
            match kind {
                ControllerKind::Plic => {
                    driver.write(plic::PRIORITY + WORD * u64::from(source), PRIORITY)
                }
                ControllerKind::Aplic => {
                    driver.write(CLRIENUM, source);
                    driver.write_mode(source, SourceMode::Inactive);
                }
            }
        }
        match kind {
            ControllerKind::Plic => wired.indices().for_each(|index| driver.disable_all(index)),
            ControllerKind::Aplic => driver.write(DOMAINCFG, DOMAINCFG_IE),
        }
        driver
    }

    /// Clears all enable bits of a PLIC's context: the firmware may have left some.
    fn disable_all(&self, context: u64) {
        let words = words(&self.sources.lock());
        for at in (0..words).map(|word| enable_word(context, word)) {
            self.write(at, 0);
        }
    }

    /// Lets the calling hart, whose place this is, be interrupted.
    pub fn open(&self, own: Delivery) {
        match self.kind {
            ControllerKind::Plic => self.registers.write(own.address, 0),
            ControllerKind::Aplic => {
                self.registers.write(own.address + delivery::ITHRESHOLD, 0);
                self.registers.write(own.address + delivery::IDELIVERY, 1);
            }
        }
    }

    /// Makes `source` lead to the hart of this index, whether or not it was on.
    pub fn enable(&self, source: u32, to: u32) {
        self.change(source, &mut |state| self.lead(source, state, Some(to)));
    }

    /// Makes `source`, if it is on, lead to another hart.
    pub fn send_to(&self, source: u32, to: u32) {
        self.change(source, &mut |state| {
            if state.to.is_some() {
                self.lead(source, state, Some(to));
            }
        });
    }

    /// Switches `source` off. It need not be completed any more.
    pub fn silence(&self, source: u32) {
        self.change(source, &mut |state| {
            // A completion of a source that is off is ignored.
            self.end_claim(source, state);
            self.lead(source, state, None);
        });
    }

    /// Claims the most urgent source for the calling hart, whose place this is.
    #[inline(never)]
    pub fn claim(&self, own: Delivery) -> Option<u32> {
        let source = match self.kind {
            ControllerKind::Plic if self.has_claim_erratum => self.claim_alone(own),
            ControllerKind::Plic => self.registers.read(own.address + CLAIM),
            ControllerKind::Aplic => {
                let source = self.registers.read(own.address + delivery::CLAIMI) >> TOP_SHIFT;
                let lines = self.read(IN_CLRIP + WORD * u64::from(source / 32));
                // Source 0 is none.
                source * (lines >> (source % 32) & 1)
            }
        };
        let mut known = false;
        self.change(source, &mut |state| {
            known = true;
            state.claimed = true;
            if self.kind == ControllerKind::Aplic {
                self.write(CLRIENUM, source);
            }
        });
        known.then_some(source)
    }

    /// Claims for the calling hart while it has one source enabled, which is pending. Returns 0 if no source is pending.
    ///
    /// The claim register of some PLICs may name a wrong source while several are pending and enabled.
    fn claim_alone(&self, own: Delivery) -> u32 {
        // Nobody else changes enable bits meanwhile, or completes: a completion of a disabled source is ignored.
        let sources = self.sources.lock();
        let mut enabled = [0; MAX_WORDS];
        let enabled = enabled
            .get_mut(..words(&sources) as usize)
            .unwrap_or_default();
        let mut alone = None;
        for (word, bits) in (0..).zip(&mut *enabled) {
            *bits = self.read(enable_word(own.index, word));
            if *bits != 0 && alone.is_none() {
                let pending = *bits & self.read(plic::PENDING + WORD * word);
                alone = (pending != 0).then_some((word, pending & pending.wrapping_neg()));
            }
        }
        let Some((place, bit)) = alone else {
            return 0;
        };
        let set = |others: bool| {
            for (word, bits) in (0..).zip(&*enabled) {
                let alone = if word == place { bit } else { 0 };
                if *bits != alone {
                    let bits = if others { *bits } else { alone };
                    self.write(enable_word(own.index, word), bits);
                }
            }
        };
        set(false);
        let source = self.registers.read(own.address + CLAIM);
        set(true);
        source
    }

    /// Completes a source: it interrupts again if its line is still high. A source that is not claimed is left alone.
    pub fn complete(&self, source: u32) {
        self.change(source, &mut |state| self.end_claim(source, state));
    }

    /// Changes the state of a source that exists. One copy of the code serves all changes.
    #[inline(never)]
    fn change(&self, source: u32, change: &mut dyn FnMut(&mut Source)) {
        let mut sources = self.sources.lock();
        if let Some(state) = sources.get_mut(source as usize).filter(|_| source != 0) {
            change(state);
        }
    }

    fn end_claim(&self, source: u32, state: &mut Source) {
        if !core::mem::take(&mut state.claimed) {
            return;
        }
        if let Some(to) = state.to {
            match self.kind {
                ControllerKind::Plic => {
                    self.write(plic::CLAIM + plic::CONTEXT_STRIDE * u64::from(to), source)
                }
                ControllerKind::Aplic => self.write(SETIENUM, source),
            }
        }
    }

    fn lead(&self, source: u32, state: &mut Source, to: Option<u32>) {
        let from = core::mem::replace(&mut state.to, to);
        match self.kind {
            // The new context comes first, so that a claimed source is always on somewhere.
            ControllerKind::Plic => {
                for (context, on) in [(to, true), (from.filter(|_| from != to), false)] {
                    if let Some(context) = context {
                        self.set_enabled(source, context, on);
                    }
                }
            }
            ControllerKind::Aplic => match to {
                Some(to) => {
                    self.write_mode(source, SourceMode::LevelHigh);
                    let target = to << HART_INDEX_SHIFT | PRIORITY;
                    self.write(TARGET - WORD + WORD * u64::from(source), target);
                    if !state.claimed {
                        self.write(SETIENUM, source);
                    }
                }
                None => {
                    self.write(CLRIENUM, source);
                    self.write_mode(source, SourceMode::Inactive);
                }
            },
        }
    }

    /// Sets a PLIC's enable bit of a source for a context.
    fn set_enabled(&self, source: u32, context: u32, on: bool) {
        let at = enable_word(context.into(), u64::from(source / 32));
        let bit = 1 << (source % 32);
        let bits = self.read(at);
        let bits = if on { bits | bit } else { bits & !bit };
        self.write(at, bits);
        if on {
            // QEMU tests for pending sources when a threshold is written, and not when one is enabled.
            self.write(
                plic::THRESHOLD + plic::CONTEXT_STRIDE * u64::from(context),
                0,
            );
        }
    }

    #[inline(never)]
    fn write_mode(&self, source: u32, mode: SourceMode) {
        self.write(SOURCECFG - WORD + WORD * u64::from(source), mode.field());
    }

    #[inline(never)]
    fn read(&self, offset: u64) -> u32 {
        self.registers.read(self.base + offset)
    }

    #[inline(never)]
    fn write(&self, offset: u64, value: u32) {
        self.registers.write(self.base + offset, value);
    }
}

/// Offset of a word of a PLIC context's enable bits.
fn enable_word(context: u64, word: u64) -> u64 {
    plic::ENABLE + plic::ENABLE_STRIDE * context + WORD * word
}

/// Words of the enable bits of a PLIC's context.
fn words(sources: &[Source]) -> u64 {
    sources.len().div_ceil(32) as u64
}

#[cfg(test)]
mod tests;
