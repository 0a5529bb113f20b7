//! A guest's PLIC as a device on its bus (PLIC specification, "Memory Map").

use super::{ENABLE_END, Plic, WORD, WORDS, offset};
use crate::devices::irq::{Effect, SourceNumber};
use crate::devices::trapped::Access;
use crate::hart::decode::Width;

/// Register behind an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Register {
    Priority(SourceNumber),
    Pending(usize),
    Enable { context: usize, word: usize },
    Threshold(usize),
    Claim(usize),
}

impl Register {
    /// The register at an offset; none where the offset is not a word's, or reserved.
    pub(super) fn at(at: u64) -> Option<Self> {
        if !at.is_multiple_of(WORD) {
            return None;
        }
        // Each offset was compared with the end of its array, so that the quotients fit.
        let index = |first: u64, step: u64| ((at - first) / step) as usize;
        match at {
            ..offset::PENDING => Some(Self::Priority(SourceNumber((at / WORD) as u32))),
            offset::PENDING..offset::ENABLE => {
                let word = index(offset::PENDING, WORD);
                (word < WORDS).then_some(Self::Pending(word))
            }
            offset::ENABLE..ENABLE_END => Some(Self::Enable {
                context: index(offset::ENABLE, offset::ENABLE_STRIDE),
                word: index(offset::ENABLE, WORD) % WORDS,
            }),
            offset::THRESHOLD.. => {
                let context = index(offset::THRESHOLD, offset::CONTEXT_STRIDE);
                match (at - offset::THRESHOLD) % offset::CONTEXT_STRIDE {
                    0 => Some(Self::Threshold(context)),
                    WORD => Some(Self::Claim(context)),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

impl Plic {
    /// Reads for the guest. The registers are words: an access of another width, and what is reserved, reads as zero. Reading a claim
    /// register claims.
    pub fn load(&mut self, access: Access, effect: &mut dyn FnMut(Effect)) -> u64 {
        let register = Register::at(access.offset).filter(|_| access.width == Width::Word);
        let Some(register) = register else {
            return 0;
        };
        let value = match register {
            Register::Priority(number) => self.source(number).map_or(0, |source| source.priority),
            Register::Pending(word) => self.bits(word, |source| source.pending),
            Register::Enable { context, word } => {
                let context = self.contexts.get(context);
                let bits = context.and_then(|context| context.enabled.get(word));
                bits.copied().unwrap_or(0)
            }
            Register::Threshold(context) => {
                let context = self.contexts.get(context);
                context.map_or(0, |context| context.threshold)
            }
            Register::Claim(context) => self.claim(context, effect),
        };
        value.into()
    }

    /// Writes for the guest. An access of another width, and a write to what is reserved, are ignored.
    pub fn store(&mut self, access: Access, value: u64, effect: &mut dyn FnMut(Effect)) {
        let register = Register::at(access.offset).filter(|_| access.width == Width::Word);
        let value = value as u32;
        match register {
            Some(Register::Priority(number)) => self.set_priority(number, value, effect),
            Some(Register::Enable { context, word }) => self.enable(context, word, value, effect),
            Some(Register::Threshold(index)) => {
                if let Some(context) = self.contexts.get_mut(index) {
                    context.threshold = value & super::MAX_PRIORITY;
                    self.show_to(index, effect);
                }
            }
            Some(Register::Claim(context)) => self.complete(context, SourceNumber(value), effect),
            Some(Register::Pending(_)) | None => {}
        }
    }
}
