//! One interrupt domain: its sources and its control region (§4.5 to §4.9).

use riscv::aplic::{
    DOMAINCFG_DM, DOMAINCFG_FIXED, DOMAINCFG_IE, EIID, GUEST_INDEX, GUEST_INDEX_SHIFT, HART_INDEX,
    HART_INDEX_SHIFT, IDC_BYTES, IPRIO, SOURCECFG_D, SOURCECFG_SM, delivery, register as offset,
    source_mode,
};
use serde::{Deserialize, Serialize};

use super::level::DomainLevel;

/// The sourcecfg registers, and the target registers.
const SOURCECFG: core::ops::RangeInclusive<u64> = offset::SOURCECFG..=offset::SOURCECFG_LAST;
const TARGET: core::ops::RangeInclusive<u64> = offset::TARGET..=offset::TARGET_LAST;

/// A source mode (§4.5.2).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Mode {
    #[default]
    Inactive,
    Delegated,
    Detached,
    Edge1,
    Edge0,
    Level1,
    Level0,
}

impl Mode {
    const fn encoding(self) -> u32 {
        match self {
            Self::Inactive => source_mode::INACTIVE,
            Self::Delegated => SOURCECFG_D,
            Self::Detached => source_mode::DETACHED,
            Self::Edge1 => source_mode::EDGE1,
            Self::Edge0 => source_mode::EDGE0,
            Self::Level1 => source_mode::LEVEL1,
            Self::Level0 => source_mode::LEVEL0,
        }
    }

    /// The mode of a value written to sourcecfg. The reserved modes count as Inactive; in a leaf
    /// domain a value with D = 1 sets the register to zero.
    const fn of(value: u32, has_child: bool) -> Self {
        if value & SOURCECFG_D != 0 {
            return if has_child {
                Self::Delegated
            } else {
                Self::Inactive
            };
        }
        match value & SOURCECFG_SM {
            source_mode::DETACHED => Self::Detached,
            source_mode::EDGE1 => Self::Edge1,
            source_mode::EDGE0 => Self::Edge0,
            source_mode::LEVEL1 => Self::Level1,
            source_mode::LEVEL0 => Self::Level0,
            _ => Self::Inactive,
        }
    }

    const fn is_active(self) -> bool {
        !matches!(self, Self::Inactive | Self::Delegated)
    }

    const fn is_level(self) -> bool {
        matches!(self, Self::Level1 | Self::Level0)
    }

    /// The rectified input value for an incoming wire.
    const fn rectified(self, line: bool) -> bool {
        match self {
            Self::Edge1 | Self::Level1 => line,
            Self::Edge0 | Self::Level0 => !line,
            Self::Inactive | Self::Delegated | Self::Detached => false,
        }
    }
}

/// The state of one source in one domain.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Source {
    /// True if the source appears in this domain at all.
    implemented: bool,
    mode: Mode,
    pending: bool,
    enabled: bool,
    target: u32,
}

impl Source {
    fn become_inactive(&mut self) {
        (self.pending, self.enabled, self.target) = (false, false, 0);
    }
}

/// An interrupt delivery control structure, one a hart (§4.8.1).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Delivery {
    enabled: bool,
    force: bool,
    threshold: u32,
}

/// An interrupt domain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Domain {
    level: DomainLevel,
    guest_files: u8,
    direct_supported: bool,
    enabled: bool,
    messages: bool,
    /// By source number; number 0 is never implemented.
    sources: Vec<Source>,
    /// The last value of genmsi: its message leaves at once, so Busy is never seen set.
    genmsi: u32,
    /// A message from genmsi on its way: hart and identity.
    extempore: Option<(u32, u32)>,
    deliveries: Vec<Delivery>,
}

/// The source that a sourcecfg register at `offset` belongs to.
pub(super) fn source_of_config(offset: u64) -> Option<u32> {
    SOURCECFG.contains(&offset).then_some((offset / 4) as u32)
}

impl Domain {
    pub(super) fn new(
        level: DomainLevel,
        harts: u32,
        sources: u32,
        guest_files: u8,
        direct: bool,
    ) -> Self {
        let root = level == DomainLevel::Machine;
        let source = |number| Source {
            implemented: root && number != 0,
            ..Source::default()
        };
        let deliveries = if direct { harts as usize } else { 0 };
        Self {
            level,
            guest_files,
            direct_supported: direct,
            enabled: false,
            messages: !direct,
            sources: (0..=sources).map(source).collect(),
            genmsi: 0,
            extempore: None,
            deliveries: vec![Delivery::default(); deliveries],
        }
    }

    pub(super) const fn level(&self) -> DomainLevel {
        self.level
    }

    pub(super) fn is_delegated(&self, source: u32) -> bool {
        self.sources
            .get(source as usize)
            .is_some_and(|source| source.mode == Mode::Delegated)
    }

    /// The parent domain delegates a source, or takes it back.
    pub(super) fn set_implemented(&mut self, source: u32, implemented: bool) {
        if let Some(source) = self.sources.get_mut(source as usize)
            && source.implemented != implemented
        {
            *source = Source {
                implemented,
                ..Source::default()
            };
        }
    }

    /// The wire of a source has changed to `line` (§4.7).
    pub(super) fn input_changed(&mut self, source: u32, line: bool) {
        let Some(source) = self.sources.get_mut(source as usize) else {
            return;
        };
        if source.mode.rectified(line) {
            source.pending = true;
        } else if source.mode.is_level() {
            source.pending = false;
        }
    }

    /// An active source by number.
    fn active(&mut self, number: u32) -> Option<&mut Source> {
        self.sources
            .get_mut(number as usize)
            .filter(|source| source.mode.is_active())
    }

    /// A write to setip or setipnum: sets a pending bit if the mode lets it (§4.7).
    fn set_pending(&mut self, number: u32, lines: &[bool]) {
        let messages = self.messages;
        let line = lines.get(number as usize).copied().unwrap_or(false);
        if let Some(source) = self.active(number)
            && (!source.mode.is_level() || (messages && source.mode.rectified(line)))
        {
            source.pending = true;
        }
    }

    /// A write to in_clrip or clripnum: clears a pending bit if the mode lets it (§4.7).
    fn clear_pending(&mut self, number: u32) {
        let messages = self.messages;
        if let Some(source) = self.active(number)
            && (!source.mode.is_level() || messages)
        {
            source.pending = false;
        }
    }

    fn set_enabled(&mut self, number: u32, enabled: bool) {
        if let Some(source) = self.active(number) {
            source.enabled = enabled;
        }
    }

    /// A word with one bit for each of 32 sources from `array`'s word at `offset`.
    fn bits(&self, offset: u64, array: u64, bit: impl Fn(usize, &Source) -> bool) -> u32 {
        let first = ((offset - array) / 4 * 32) as usize;
        let sources = self.sources.iter().enumerate().skip(first).take(32);
        sources.fold(0, |bits, (number, source)| {
            bits | u32::from(bit(number, source)) << (number - first)
        })
    }

    fn for_each_bit(&mut self, offset: u64, array: u64, value: u32, act: impl Fn(&mut Self, u32)) {
        let first = ((offset - array) / 4 * 32) as u32;
        for bit in (0..32).filter(|bit| value >> bit & 1 != 0) {
            act(self, first + bit);
        }
    }

    pub(super) fn read(&mut self, offset: u64, lines: &[bool]) -> u32 {
        let words = |array| array..=array + 0x7c;
        let line = |number: usize| lines.get(number).copied().unwrap_or(false);
        match offset {
            offset::DOMAINCFG => {
                let enabled = if self.enabled { DOMAINCFG_IE } else { 0 };
                let messages = if self.messages { DOMAINCFG_DM } else { 0 };
                DOMAINCFG_FIXED | enabled | messages
            }
            offset if SOURCECFG.contains(&offset) => self
                .sources
                .get(offset as usize / 4)
                .map_or(0, |source| source.mode.encoding()),
            offset if words(offset::SETIP).contains(&offset) => {
                self.bits(offset, offset::SETIP, |_, source| source.pending)
            }
            offset if words(offset::IN_CLRIP).contains(&offset) => {
                self.bits(offset, offset::IN_CLRIP, |number, source| {
                    source.mode.rectified(line(number))
                })
            }
            offset if words(offset::SETIE).contains(&offset) => {
                self.bits(offset, offset::SETIE, |_, source| source.enabled)
            }
            offset::GENMSI if self.messages => self.genmsi,
            offset if TARGET.contains(&offset) => {
                let number = (offset - offset::GENMSI) as usize / 4;
                self.sources.get(number).map_or(0, |source| source.target)
            }
            offset if offset >= offset::IDC => self.read_delivery(offset - offset::IDC),
            _ => 0,
        }
    }

    pub(super) fn write(&mut self, offset: u64, value: u32, lines: &[bool], has_child: bool) {
        let words = |array| array..=array + 0x7c;
        match offset {
            offset::DOMAINCFG => self.configure(value, lines),
            offset if SOURCECFG.contains(&offset) => {
                let line = lines.get(offset as usize / 4).copied().unwrap_or(false);
                self.configure_source((offset / 4) as u32, Mode::of(value, has_child), line);
            }
            offset if words(offset::SETIP).contains(&offset) => {
                self.for_each_bit(offset, offset::SETIP, value, |domain, number| {
                    domain.set_pending(number, lines);
                });
            }
            offset if words(offset::IN_CLRIP).contains(&offset) => {
                self.for_each_bit(offset, offset::IN_CLRIP, value, Self::clear_pending);
            }
            offset if words(offset::SETIE).contains(&offset) => {
                self.for_each_bit(offset, offset::SETIE, value, |domain, number| {
                    domain.set_enabled(number, true);
                });
            }
            offset if words(offset::CLRIE).contains(&offset) => {
                self.for_each_bit(offset, offset::CLRIE, value, |domain, number| {
                    domain.set_enabled(number, false);
                });
            }
            offset::SETIPNUM | offset::SETIPNUM_LE => self.set_pending(value, lines),
            offset::CLRIPNUM => self.clear_pending(value),
            offset::SETIENUM => self.set_enabled(value, true),
            offset::CLRIENUM => self.set_enabled(value, false),
            offset::GENMSI if self.messages => {
                self.genmsi = value & (HART_INDEX | EIID);
                self.extempore = Some((self.genmsi >> HART_INDEX_SHIFT, self.genmsi & EIID));
            }
            offset if TARGET.contains(&offset) => {
                let target = self.legal_target(value);
                if let Some(source) = self.active(((offset - offset::GENMSI) / 4) as u32) {
                    source.target = target;
                }
            }
            offset if offset >= offset::IDC => self.write_delivery(offset - offset::IDC, value),
            _ => {}
        }
    }

    fn configure(&mut self, value: u32, lines: &[bool]) {
        self.enabled = value & DOMAINCFG_IE != 0;
        let messages = !self.direct_supported || value & DOMAINCFG_DM != 0;
        if messages == self.messages {
            return;
        }
        self.messages = messages;
        // The fields of target have a new meaning, and their values are open.
        let target = self.legal_target(0);
        for (number, source) in self.sources.iter_mut().enumerate() {
            if source.mode.is_active() {
                source.target = target;
            }
            if source.mode.is_level() {
                let line = lines.get(number).copied().unwrap_or(false);
                source.pending = source.mode.rectified(line);
            }
        }
    }

    /// A write to sourcecfg. It sets the pending bit if the input is asserted in the new mode, as
    /// it may (§4.5.2).
    fn configure_source(&mut self, number: u32, mode: Mode, line: bool) {
        let reset_target = self.legal_target(0);
        let Some(source) = self.sources.get_mut(number as usize) else {
            return;
        };
        if !source.implemented {
            return;
        }
        let was_active = source.mode.is_active();
        source.mode = mode;
        if !mode.is_active() {
            source.become_inactive();
            return;
        }
        if !was_active {
            source.target = reset_target;
        }
        if mode.rectified(line) {
            source.pending = true;
        } else if mode.is_level() {
            // A level-sensitive source is never pending while its input is low (§4.7).
            source.pending = false;
        }
    }

    /// Legal value of a target register for a value written.
    fn legal_target(&self, value: u32) -> u32 {
        if self.messages {
            let guest = (value & GUEST_INDEX) >> GUEST_INDEX_SHIFT;
            // Guest Index is WLRL, 0 to GEILEN, and read-only zero at machine level.
            let guest = if guest <= u32::from(self.guest_files) {
                guest
            } else {
                0
            };
            (value & (HART_INDEX | EIID)) | guest << GUEST_INDEX_SHIFT
        } else {
            (value & HART_INDEX) | (value & IPRIO).max(1)
        }
    }

    /// Takes what can be forwarded as messages: `send` gets hart, guest index and identity.
    pub(super) fn forward(&mut self, mut send: impl FnMut(u32, u32, u32)) {
        if !self.messages {
            return;
        }
        if self.enabled {
            for source in self
                .sources
                .iter_mut()
                .filter(|source| source.pending && source.enabled)
            {
                source.pending = false;
                let target = source.target;
                let guest = (target & GUEST_INDEX) >> GUEST_INDEX_SHIFT;
                send(target >> HART_INDEX_SHIFT, guest, target & EIID);
            }
        }
        // After the others, as messages sent before must arrive before; and whatever IE says.
        if let Some((hart, identity)) = self.extempore.take() {
            send(hart, 0, identity);
        }
    }

    /// The interrupt signal to each hart in direct delivery mode (§4.8.2).
    pub(super) fn signals(&self, mut signal: impl FnMut(u32, bool)) {
        for (hart, delivery) in (0..).zip(&self.deliveries) {
            let asserted = !self.messages
                && self.enabled
                && delivery.enabled
                && (delivery.force || self.top(hart, delivery) != 0);
            signal(hart, asserted);
        }
    }

    /// The value of a hart's topi.
    fn top(&self, hart: u32, delivery: &Delivery) -> u32 {
        if self.messages {
            return 0;
        }
        let best = (0_u32..)
            .zip(&self.sources)
            .filter(|(_, source)| {
                source.pending && source.enabled && source.target >> HART_INDEX_SHIFT == hart
            })
            .map(|(number, source)| (source.target & IPRIO, number))
            .min();
        match best {
            Some((priority, number))
                if delivery.threshold == 0 || priority < delivery.threshold =>
            {
                number << 16 | priority
            }
            _ => 0,
        }
    }

    fn read_delivery(&mut self, offset: u64) -> u32 {
        let hart = (offset / IDC_BYTES) as u32;
        let Some(&delivery) = self.deliveries.get(hart as usize) else {
            return 0;
        };
        match offset % IDC_BYTES {
            delivery::IDELIVERY => u32::from(delivery.enabled),
            delivery::IFORCE => u32::from(delivery.force),
            delivery::ITHRESHOLD => delivery.threshold,
            delivery::TOPI => self.top(hart, &delivery),
            delivery::CLAIMI => {
                let top = self.top(hart, &delivery);
                if top == 0 {
                    if let Some(delivery) = self.deliveries.get_mut(hart as usize) {
                        delivery.force = false;
                    }
                } else {
                    // A claim clears what clripnum would: not a level-sensitive source.
                    self.clear_pending(top >> 16);
                }
                top
            }
            _ => 0,
        }
    }

    fn write_delivery(&mut self, offset: u64, value: u32) {
        let Some(delivery) = self.deliveries.get_mut((offset / IDC_BYTES) as usize) else {
            return;
        };
        match offset % IDC_BYTES {
            delivery::IDELIVERY => delivery.enabled = value & 1 != 0,
            delivery::IFORCE => delivery.force = value & 1 != 0,
            delivery::ITHRESHOLD => delivery.threshold = value & IPRIO,
            _ => {}
        }
    }
}
