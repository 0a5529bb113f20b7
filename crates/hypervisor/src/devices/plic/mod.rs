//! A guest's PLIC (RISC-V PLIC specification 1.0.0), for boards without interrupt files: one context a vCPU, for its supervisor level.
//!
//! Its sources are *virtual*, with a level that the hypervisor sets, or *physical*: a device that was passed through. The board's controller sends
//! a physical source to the hypervisor, which has claimed the source and [raises](Plic::raise) it here. The board's completion waits for the
//! guest's, so a device whose line stays high interrupts once, and again when the guest has completed.
//!
//! A context's wire to its vCPU comes out as an [`Effect::External`].
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod registers;
mod source;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use riscv::plic as offset;

use crate::devices::irq::{
    Destination, Effect, HartIndex, SOURCES_LIMIT, SourceMode, SourceNumber, SourceSetting,
};
use crate::interrupts::softfile::Identity;
use source::{Source, SourceKind};

/// Highest priority and threshold: three bits, as on most boards (both registers are WARL).
const MAX_PRIORITY: u32 = 7;
/// Words of the enable bits of a context, and of the pending bits.
const WORDS: usize = 32;
/// Bytes of a register.
const WORD: u64 = 4;
/// End of the enable bits of the contexts that the specification has room for.
const ENABLE_END: u64 = offset::ENABLE + offset::CONTEXTS as u64 * offset::ENABLE_STRIDE;

/// Registers of a vCPU's context.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Context {
    threshold: u32,
    enabled: [u32; WORDS],
    /// Level of the wire to the vCPU.
    asserts: bool,
}

impl Context {
    fn enables(&self, number: SourceNumber) -> bool {
        let word = self.enabled.get(number.0 as usize / 32);
        word.is_some_and(|word| word >> (number.0 % 32) & 1 != 0)
    }
}

/// A guest's PLIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plic {
    /// Source `i + 1` is at `i`.
    sources: Vec<Source>,
    /// That of vCPU `i` is at `i`.
    contexts: Vec<Context>,
}

impl Plic {
    /// PLIC in the state of reset, with `sources` source numbers of which none is wired, for a guest with `harts` vCPUs.
    #[must_use]
    pub fn new(sources: u32, harts: u32) -> Self {
        let sources = sources.min(SOURCES_LIMIT) as usize;
        let contexts = harts.min(offset::CONTEXTS) as usize;
        Self {
            sources: alloc::vec![Source::default(); sources],
            contexts: alloc::vec![Context::default(); contexts],
        }
    }

    /// Wires a source that the hypervisor drives by [`set_input`](Self::set_input). A number that the PLIC does not have is ignored.
    pub fn add_virtual(&mut self, number: SourceNumber) {
        self.wire(number, SourceKind::Virtual);
    }

    /// Wires a source of the board. A number that the PLIC does not have is ignored.
    pub fn add_physical(&mut self, number: SourceNumber) {
        self.wire(number, SourceKind::Physical);
    }

    fn wire(&mut self, number: SourceNumber, kind: SourceKind) {
        if let Some(source) = self.source_mut(number) {
            source.kind = kind;
        }
    }

    /// Resets the PLIC, wires kept, with the effects that silence the board's sources and the vCPUs' wires.
    pub fn reset(&mut self, effect: &mut dyn FnMut(Effect)) {
        for (number, source) in (1..).map(SourceNumber).zip(&mut self.sources) {
            if source.reset() {
                effect(Effect::Complete(number));
            }
        }
        for (index, context) in (0..).zip(&mut self.contexts) {
            *context = Context::default();
            effect(Effect::External {
                hart: HartIndex(index),
                high: false,
            });
        }
        for number in (1..=self.sources.len() as u32).map(SourceNumber) {
            self.settle(number, effect);
        }
    }

    /// Sets the level of a virtual source's wire.
    pub fn set_input(&mut self, number: SourceNumber, high: bool, effect: &mut dyn FnMut(Effect)) {
        if let Some(source) = self.source_mut(number)
            && source.kind == SourceKind::Virtual
        {
            source.level = high;
            source.request();
            self.show(number, effect);
        }
    }

    /// Raises a physical source, which the hypervisor has claimed at the board.
    pub fn raise(&mut self, number: SourceNumber, effect: &mut dyn FnMut(Effect)) {
        if let Some(source) = self.source_mut(number)
            && source.kind == SourceKind::Physical
        {
            source.pending = true;
            source.claimed_at_board = true;
            self.show(number, effect);
        }
    }

    fn source(&self, number: SourceNumber) -> Option<&Source> {
        self.sources.get(number.0.checked_sub(1)? as usize)
    }

    fn source_mut(&mut self, number: SourceNumber) -> Option<&mut Source> {
        self.sources.get_mut(number.0.checked_sub(1)? as usize)
    }

    /// The most urgent source that is pending and enabled for a context, and above `threshold`: of several with the highest priority, the one
    /// with the lowest number ("Interrupt Priorities").
    fn top(&self, context: &Context, threshold: u32) -> Option<SourceNumber> {
        let mut top: Option<(u32, SourceNumber)> = None;
        for (word, bits) in (0..).zip(context.enabled) {
            let mut left = bits;
            while left != 0 {
                let number = SourceNumber(word * 32 + left.trailing_zeros());
                left &= left - 1;
                let pending = self.source(number).filter(|source| source.pending);
                let priority = pending.map_or(0, |source| source.priority);
                if priority > top.map_or(threshold, |(priority, _)| priority) {
                    top = Some((priority, number));
                }
            }
        }
        top.map(|(_, number)| number)
    }

    /// Bits of the 32 sources of a word for which `test` holds.
    #[inline(never)]
    fn bits(&self, word: usize, test: fn(&Source) -> bool) -> u32 {
        let first = word as u32 * 32;
        let all = (0..32).filter(|bit| self.source(SourceNumber(first + bit)).is_some_and(test));
        all.fold(0, |bits, bit| bits | 1 << bit)
    }

    /// Shows a change of a source to the vCPUs that have enabled it.
    #[inline(never)]
    fn show(&mut self, number: SourceNumber, effect: &mut dyn FnMut(Effect)) {
        for index in 0..self.contexts.len() {
            let concerned = self.contexts.get(index);
            if concerned.is_some_and(|context| context.enables(number)) {
                self.show_to(index, effect);
            }
        }
    }

    /// Sets the wire to a vCPU.
    #[inline(never)]
    fn show_to(&mut self, index: usize, effect: &mut dyn FnMut(Effect)) {
        let Some(context) = self.contexts.get(index) else {
            return;
        };
        let high = self.top(context, context.threshold).is_some();
        if high != context.asserts
            && let Some(context) = self.contexts.get_mut(index)
        {
            context.asserts = high;
            effect(Effect::External {
                hart: HartIndex(index as u32),
                high,
            });
        }
    }

    /// Sets a physical source at the board as the guest's registers say: on if any context has it enabled.
    #[inline(never)]
    fn settle(&self, number: SourceNumber, effect: &mut dyn FnMut(Effect)) {
        let physical = self.source(number);
        if physical.is_none_or(|source| source.kind != SourceKind::Physical) {
            return;
        }
        let mut contexts = (0..).zip(&self.contexts);
        let enabling = contexts.find(|(_, context)| context.enables(number));
        let destination = enabling.and_then(|(index, _)| {
            Some(Destination {
                hart: HartIndex(index),
                identity: Identity::new(1)?,
            })
        });
        effect(Effect::Set(SourceSetting {
            source: number,
            mode: SourceMode::LevelHigh,
            destination,
        }));
    }

    fn set_priority(
        &mut self,
        number: SourceNumber,
        priority: u32,
        effect: &mut dyn FnMut(Effect),
    ) {
        if let Some(source) = self.source_mut(number)
            && source.kind != SourceKind::Absent
        {
            source.priority = priority & MAX_PRIORITY;
            self.show(number, effect);
        }
    }

    /// Sets the enable bits of a context for 32 sources. Bits of sources that are not wired are read-only zeros.
    fn enable(&mut self, index: usize, word: usize, bits: u32, effect: &mut dyn FnMut(Effect)) {
        let first = word as u32 * 32;
        let bits = bits & self.bits(word, |source| source.kind != SourceKind::Absent);
        let context = self.contexts.get_mut(index);
        let Some(enabled) = context.and_then(|context| context.enabled.get_mut(word)) else {
            return;
        };
        let changed = *enabled ^ bits;
        *enabled = bits;
        for bit in (0..32).filter(|bit| changed >> bit & 1 != 0) {
            self.settle(SourceNumber(first + bit), effect);
        }
        self.show_to(index, effect);
    }

    /// Claims for a context: its most urgent source, or 0. The threshold does not hold claims back ("Interrupt Claim Process").
    fn claim(&mut self, index: usize, effect: &mut dyn FnMut(Effect)) -> u32 {
        let context = self.contexts.get(index);
        let Some(number) = context.and_then(|context| self.top(context, 0)) else {
            return 0;
        };
        if let Some(source) = self.source_mut(number) {
            source.pending = false;
            source.in_service = true;
        }
        self.show(number, effect);
        number.0
    }

    /// Completes a source for a context. A source that the context has not enabled is ignored ("Interrupt Completion").
    fn complete(&mut self, index: usize, number: SourceNumber, effect: &mut dyn FnMut(Effect)) {
        let context = self.contexts.get(index);
        if context.is_none_or(|context| !context.enables(number)) {
            return;
        }
        let Some(source) = self.source_mut(number) else {
            return;
        };
        if !source.in_service {
            return;
        }
        source.in_service = false;
        if source.kind == SourceKind::Physical {
            // What was raised meanwhile has not been seen by the guest yet: the board waits for its completion.
            if !source.pending && core::mem::take(&mut source.claimed_at_board) {
                effect(Effect::Complete(number));
            }
        } else {
            source.request();
            self.show(number, effect);
        }
    }
}
