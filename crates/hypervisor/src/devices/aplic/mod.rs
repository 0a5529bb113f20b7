//! A guest's APLIC: a supervisor-level interrupt domain in MSI delivery mode (AIA chapter 4).
//!
//! Its sources are *virtual*, with a level that the hypervisor sets (the emulated UART), or
//! *physical*: a device passed through, whose source of the board's APLIC does the work. For a
//! physical source nothing is emulated but the registers. What the guest writes comes out as an
//! [`Effect`], which the hypervisor carries out on the board's APLIC, and the device's interrupts
//! then reach the vCPU's interrupt file without it.
//!
//! The domain is a leaf, little-endian, and knows only MSI delivery: `domaincfg`.DM reads as one
//! and BE as zero, which the specification allows (both are WARL). There are no structures for
//! direct delivery, and the MSI addresses belong to the machine level.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod board;
mod registers;
mod source;
#[cfg(test)]
mod tests;

use alloc::vec::Vec;

use riscv::aplic::{DOMAINCFG_DM, DOMAINCFG_IE, HART_INDEX, register as offset};
use source::{Source, SourceKind};

use crate::devices::irq::{
    Destination, Effect, HartIndex, SOURCES_LIMIT, SourceMode, SourceNumber, SourceSetting, Sources,
};
use crate::interrupts::softfile::Identity;

/// `domaincfg` without IE: the byte that shows the byte order, and DM.
const DOMAINCFG_FIXED: u32 = riscv::aplic::DOMAINCFG_FIXED | DOMAINCFG_DM;
/// Hart index (31:18) and EIID, of which 63 identities need six bits. The guest's harts have no
/// guest interrupt files, so the guest index is read-only zero.
const TARGET_BITS: u32 = HART_INDEX | 0x3f;

/// Words of a bitmap of the sources.
const SOURCE_WORDS: usize = (SOURCES_LIMIT / u64::BITS + 1) as usize;

/// Effect of a bit of a bitmap register, or of a number register, on its source.
#[derive(Clone, Copy)]
enum Change {
    Pend,
    Clear,
    Enable,
    Disable,
}

/// A guest's APLIC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aplic {
    /// Source `i + 1` is at `i`.
    sources: Vec<Source>,
    /// A bit for each wired source, by its number. All others stay as they are at reset, so that they are never visited.
    wired: [u64; SOURCE_WORDS],
    harts: u32,
    interrupts_enabled: bool,
    extempore: u32,
}

impl Aplic {
    /// APLIC in the state of reset, with `sources` source numbers of which none is wired, for a
    /// guest with `harts` vCPUs.
    pub fn new(sources: u32, harts: u32) -> Self {
        let count = sources.min(SOURCES_LIMIT) as usize;
        let sources = core::iter::repeat_with(Source::default)
            .take(count)
            .collect();
        Self {
            sources,
            wired: [0; SOURCE_WORDS],
            harts,
            interrupts_enabled: false,
            extempore: 0,
        }
    }

    /// Wires a source that the hypervisor drives by [`set_input`](Self::set_input). A number that
    /// the APLIC does not have is ignored.
    pub fn add_virtual(&mut self, number: SourceNumber) {
        self.wire(number, SourceKind::Virtual);
    }

    /// Wires a source of the board. A number that the APLIC does not have is ignored.
    pub fn add_physical(&mut self, number: SourceNumber) {
        self.wire(number, SourceKind::Physical);
    }

    fn wire(&mut self, number: SourceNumber, kind: SourceKind) {
        if let Some(source) = self.source_mut(number) {
            source.kind = kind;
            if let Some(word) = self.wired.get_mut((number.0 / u64::BITS) as usize) {
                *word |= 1 << (number.0 % u64::BITS);
            }
        }
    }

    /// The wired sources: a word of the bitmap for each 64 numbers, and the ones in it.
    fn wired(&self) -> impl Iterator<Item = SourceNumber> + use<> {
        (0..).zip(self.wired).flat_map(|(word, bits)| {
            let left = |bits: u64| (bits != 0).then_some(bits);
            core::iter::successors(left(bits), move |bits| left(bits & (bits - 1)))
                .map(move |bits| SourceNumber(word * u64::BITS + bits.trailing_zeros()))
        })
    }

    /// Resets the APLIC, wires kept, with the effects that silence the board's sources.
    pub fn reset(&mut self, effect: &mut dyn FnMut(Effect)) {
        self.interrupts_enabled = false;
        self.extempore = 0;
        for number in self.wired() {
            if let Some(source) = self.source_mut(number) {
                source.reset();
            }
        }
        for route in self.routes() {
            effect(Effect::Set(route));
        }
    }

    /// Settings of every physical source, for a vCPU's migration to another hart.
    pub fn routes(&self) -> impl Iterator<Item = SourceSetting> {
        self.wired().filter_map(|number| self.route(number))
    }

    /// Sets the level of a virtual source's wire.
    pub fn set_input(&mut self, number: SourceNumber, high: bool, effect: &mut dyn FnMut(Effect)) {
        if let Some(source) = self.source_mut(number)
            && source.kind == SourceKind::Virtual
        {
            source.set_wire(high);
            self.forward(number, effect);
        }
    }

    /// Recovers missed edges; to be called some tens of milliseconds apart. An enabled, edge-sensitive
    /// physical source whose input was high and not pending at two calls in a row is set pending.
    ///
    /// A device whose line stays high makes no edge any more, and a guest that did not serve
    /// all of its causes waits for ever. For a guest that was only slow the interrupt is
    /// spurious, which drivers of devices with a status register bear.
    pub fn recover_missed_edges(&mut self, board: &dyn Sources, effect: &mut dyn FnMut(Effect)) {
        for number in self.wired() {
            let Some(source) = self.source_mut(number) else {
                continue;
            };
            let waits = source.kind == SourceKind::Physical
                && source.mode().is_edge()
                && source.enabled
                && board.rectified_input(number)
                && !board.pending(number);
            if waits && source.suspected {
                effect(Effect::SetPending(number));
            }
            source.suspected = waits && !source.suspected;
        }
    }

    /// Reads the 32-bit word at `offset` of the control region for the guest. A word that is reserved,
    /// not aligned or beyond the first 16 KiB reads as zero.
    pub fn read(&self, offset: u64, board: &dyn Sources) -> u32 {
        if !offset.is_multiple_of(4) {
            return 0;
        }
        match offset {
            offset::DOMAINCFG => {
                DOMAINCFG_FIXED
                    | if self.interrupts_enabled {
                        DOMAINCFG_IE
                    } else {
                        0
                    }
            }
            offset::SOURCECFG..=offset::SOURCECFG_LAST => self
                .source(numbered_register(offset, offset::SOURCECFG))
                .map_or(0, |source| source.mode().field()),
            offset::SETIP..=offset::SETIP_LAST => {
                self.bits(offset, offset::SETIP, |number, source| match source.kind {
                    SourceKind::Physical => source.mode().is_active() && board.pending(number),
                    _ => source.pending,
                })
            }
            offset::IN_CLRIP..=offset::IN_CLRIP_LAST => {
                self.bits(offset, offset::IN_CLRIP, |number, source| {
                    match source.kind {
                        SourceKind::Physical => {
                            source.mode().has_wire() && board.rectified_input(number)
                        }
                        _ => source.rectified_input(),
                    }
                })
            }
            offset::SETIE..=offset::SETIE_LAST => {
                self.bits(offset, offset::SETIE, |_, source| source.enabled)
            }
            offset::GENMSI => self.extempore,
            offset::TARGET..=offset::TARGET_LAST => self
                .source(numbered_register(offset, offset::TARGET))
                .map_or(0, |source| source.target),
            _ => 0,
        }
    }

    /// Writes the 32-bit word at `offset` for the guest. Reserved, read-only and unaligned words are
    /// ignored.
    pub fn write(&mut self, offset: u64, value: u32, effect: &mut dyn FnMut(Effect)) {
        if !offset.is_multiple_of(4) {
            return;
        }
        match offset {
            offset::DOMAINCFG => self.write_domaincfg(value, effect),
            offset::SOURCECFG..=offset::SOURCECFG_LAST => {
                self.write_sourcecfg(numbered_register(offset, offset::SOURCECFG), value, effect);
            }
            offset::SETIP..=offset::SETIP_LAST => {
                self.change_bits(offset, offset::SETIP, value, Change::Pend, effect);
            }
            offset::IN_CLRIP..=offset::IN_CLRIP_LAST => {
                self.change_bits(offset, offset::IN_CLRIP, value, Change::Clear, effect);
            }
            offset::SETIE..=offset::SETIE_LAST => {
                self.change_bits(offset, offset::SETIE, value, Change::Enable, effect);
            }
            offset::CLRIE..=offset::CLRIE_LAST => {
                self.change_bits(offset, offset::CLRIE, value, Change::Disable, effect);
            }
            offset::SETIPNUM | offset::SETIPNUM_LE => {
                self.change(SourceNumber(value), Change::Pend, effect);
            }
            offset::SETIPNUM_BE => {
                self.change(SourceNumber(value.swap_bytes()), Change::Pend, effect);
            }
            offset::CLRIPNUM => self.change(SourceNumber(value), Change::Clear, effect),
            offset::SETIENUM => self.change(SourceNumber(value), Change::Enable, effect),
            offset::CLRIENUM => self.change(SourceNumber(value), Change::Disable, effect),
            offset::GENMSI => {
                // It leaves at once, whatever IE says, so Busy is never seen.
                self.extempore = value & TARGET_BITS;
                if let Some(destination) = self.destination(self.extempore) {
                    effect(Effect::Message(destination));
                }
            }
            offset::TARGET..=offset::TARGET_LAST => {
                let number = numbered_register(offset, offset::TARGET);
                if let Some(source) = self.active_mut(number) {
                    source.target = value & TARGET_BITS;
                    self.settle(number, effect);
                }
            }
            _ => {}
        }
    }

    fn write_domaincfg(&mut self, value: u32, effect: &mut dyn FnMut(Effect)) {
        let enabled = value & DOMAINCFG_IE != 0;
        if enabled == self.interrupts_enabled {
            return;
        }
        self.interrupts_enabled = enabled;
        for number in self.wired() {
            if self
                .source(number)
                .is_some_and(|source| source.mode().is_active())
            {
                self.settle(number, effect);
            }
        }
    }

    fn write_sourcecfg(
        &mut self,
        number: SourceNumber,
        value: u32,
        effect: &mut dyn FnMut(Effect),
    ) {
        if let Some(source) = self.source_mut(number)
            && source.kind != SourceKind::Absent
        {
            source.set_mode(SourceMode::from_field(value));
            self.settle(number, effect);
        }
    }

    /// Applies `change` to each source whose bit is one in `value`, written to a register of the
    /// bitmap that begins at `first`.
    fn change_bits(
        &mut self,
        offset: u64,
        first: u64,
        value: u32,
        change: Change,
        effect: &mut dyn FnMut(Effect),
    ) {
        let base = bitmap_base(offset, first);
        for bit in (0..32).filter(|bit| value >> bit & 1 == 1) {
            self.change(SourceNumber(base.saturating_add(bit)), change, effect);
        }
    }

    #[inline]
    fn change(&mut self, number: SourceNumber, change: Change, effect: &mut dyn FnMut(Effect)) {
        let Some(source) = self.active_mut(number) else {
            return;
        };
        let physical = source.kind == SourceKind::Physical;
        match change {
            Change::Pend if physical => effect(Effect::SetPending(number)),
            Change::Clear if physical => effect(Effect::ClearPending(number)),
            Change::Pend => {
                source.pend();
                self.forward(number, effect);
            }
            Change::Clear => source.pending = false,
            Change::Enable | Change::Disable => {
                let enable = matches!(change, Change::Enable);
                if source.enabled != enable {
                    source.enabled = enable;
                    self.settle(number, effect);
                }
            }
        }
    }

    /// Follows a change of mode, enable bit or target: a physical source is set at the board, and a
    /// virtual one is forwarded if it may be now.
    fn settle(&mut self, number: SourceNumber, effect: &mut dyn FnMut(Effect)) {
        match self.route(number) {
            Some(route) => effect(Effect::Set(route)),
            None => self.forward(number, effect),
        }
    }

    /// Sends the message of a virtual source that is pending and enabled (AIA §4.9).
    #[inline]
    fn forward(&mut self, number: SourceNumber, effect: &mut dyn FnMut(Effect)) {
        let interrupts_enabled = self.interrupts_enabled;
        let Some(source) = self.source_mut(number) else {
            return;
        };
        if interrupts_enabled && source.pending && source.enabled {
            // A message with an identity or to a hart that does not exist is sent, and lost.
            source.pending = false;
            let target = source.target;
            if let Some(destination) = self.destination(target) {
                effect(Effect::Message(destination));
            }
        }
    }

    #[inline]
    fn route(&self, number: SourceNumber) -> Option<SourceSetting> {
        let source = self
            .source(number)
            .filter(|source| source.kind == SourceKind::Physical)?;
        let destination = (self.interrupts_enabled && source.enabled)
            .then(|| self.destination(source.target))
            .flatten();
        Some(SourceSetting {
            source: number,
            mode: source.mode(),
            destination,
        })
    }

    /// The hart and identity of a `target` or `genmsi` register, if the guest has such.
    fn destination(&self, target: u32) -> Option<Destination> {
        let hart = target >> 18;
        let identity = Identity::new(target & 0x7ff)?;
        (hart < self.harts).then_some(Destination {
            hart: HartIndex(hart),
            identity,
        })
    }

    fn bits(
        &self,
        offset: u64,
        first: u64,
        mut bit_of: impl FnMut(SourceNumber, &Source) -> bool,
    ) -> u32 {
        let base = bitmap_base(offset, first);
        (0..32).fold(0, |word, bit| {
            let number = SourceNumber(base.saturating_add(bit));
            let one = self
                .source(number)
                .is_some_and(|source| bit_of(number, source));
            word | u32::from(one) << bit
        })
    }

    fn source(&self, number: SourceNumber) -> Option<&Source> {
        self.sources.get(number.0.checked_sub(1)? as usize)
    }

    fn source_mut(&mut self, number: SourceNumber) -> Option<&mut Source> {
        self.sources.get_mut(number.0.checked_sub(1)? as usize)
    }

    /// Returns true if `number` is an active source of the board.
    #[inline]
    fn is_physical(&self, number: SourceNumber) -> bool {
        self.source(number)
            .is_some_and(|source| source.kind == SourceKind::Physical && source.mode().is_active())
    }

    fn active_mut(&mut self, number: SourceNumber) -> Option<&mut Source> {
        self.source_mut(number)
            .filter(|source| source.mode().is_active())
    }
}

/// The source of a register in an array whose first belongs to source 1.
fn numbered_register(offset: u64, first: u64) -> SourceNumber {
    SourceNumber((offset.saturating_sub(first) / 4).saturating_add(1) as u32)
}

/// The source of bit 0 of a bitmap's register.
fn bitmap_base(offset: u64, first: u64) -> u32 {
    (offset.saturating_sub(first) / 4).saturating_mul(32) as u32
}
