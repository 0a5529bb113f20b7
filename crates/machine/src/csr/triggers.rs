//! Debug triggers: RISC-V Debug Specification 1.0, "Sdtrig (ISA Extension)".
//!
//! All of them raise breakpoints before the instruction. Address matches have no chains and compare no data.

use riscv::csr::trigger as field;
use serde::{Deserialize, Serialize};

use crate::base::{Access, Mode, Privilege};

/// Triggers of a hart.
pub const TRIGGERS: usize = 4;

/// tdata1 of a trigger that does nothing.
const DISABLED: u64 = field::DISABLED << field::TYPE_SHIFT;
/// tinfo: version 1, and the types that each trigger can have.
pub const INFO: u64 =
    1 << 24 | 1 << field::DISABLED | 1 << field::MATCH6 | 1 << field::COUNT | 1 << field::MATCH;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Trigger {
    /// tdata1.
    control: u64,
    /// tdata2.
    data: u64,
}

/// Access, or instruction, that address matches are asked about.
#[derive(Debug, Clone, Copy)]
pub struct Matched {
    /// Kind of the access: [`Access::Fetch`] is execution.
    pub access: Access,
    /// First address of the access, or of the instruction.
    pub address: u64,
    /// Bytes of the access; 0 of what has no size for triggers: an instruction, or a cache block.
    pub size: u64,
}

/// The triggers of a hart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Triggers {
    /// tselect.
    selected: u8,
    all: [Trigger; TRIGGERS],
    /// True if one of them is not disabled.
    any: bool,
    /// True if the present instruction has written one of them: it is not counted.
    written: bool,
}

impl Default for Triggers {
    fn default() -> Self {
        let disabled = Trigger {
            control: DISABLED,
            data: 0,
        };
        Self {
            selected: 0,
            all: [disabled; TRIGGERS],
            any: false,
            written: false,
        }
    }
}

impl Triggers {
    /// tselect.
    #[must_use]
    pub fn selected(&self) -> u64 {
        self.selected.into()
    }

    /// Writes tselect, which keeps numbers of triggers alone.
    pub fn select(&mut self, value: u64) {
        if let Ok(number) = u8::try_from(value)
            && usize::from(number) < TRIGGERS
        {
            self.selected = number;
        }
    }

    fn present(&self) -> &Trigger {
        // `select` admits no other number, and neither does `is_possible`.
        &self.all[usize::from(self.selected) % TRIGGERS]
    }

    fn present_mut(&mut self) -> &mut Trigger {
        &mut self.all[usize::from(self.selected) % TRIGGERS]
    }

    /// tdata1 of the selected trigger.
    #[must_use]
    pub fn control(&self) -> u64 {
        self.present().control
    }

    /// tdata2 of the selected trigger.
    #[must_use]
    pub fn data(&self) -> u64 {
        self.present().data
    }

    /// Writes tdata1 of the selected trigger.
    pub fn set_control(&mut self, value: u64) {
        self.present_mut().control = legal(value);
        self.any = self.all.iter().any(|trigger| trigger.control != DISABLED);
        self.written = true;
    }

    /// Writes tdata2 of the selected trigger.
    pub fn set_data(&mut self, value: u64) {
        let trigger = self.present_mut();
        let napot = trigger.is(field::MATCH6) && trigger.matching() == field::NAPOT;
        // The largest range is half of all addresses.
        let ones = napot && value.trailing_ones() >= 63;
        trigger.data = if ones { value & !(1 << 62) } else { value };
    }

    /// Tests whether a trigger may fire, or counts, in a mode.
    #[must_use]
    pub fn are_armed(&self, mode: Mode) -> bool {
        self.any && self.all.iter().any(|trigger| trigger.is_armed(mode))
    }

    /// The first address match that an access or an instruction in a mode meets fires. Tells whether one did.
    pub fn fire(&mut self, mode: Mode, matched: Matched) -> bool {
        let mut triggers = self.all.iter_mut();
        let Some(trigger) = triggers.find(|trigger| trigger.matches(mode, matched)) else {
            return false;
        };
        trigger.control |= match trigger.control >> field::TYPE_SHIFT {
            field::MATCH => field::HIT,
            _ => field::HIT_BEFORE,
        };
        true
    }

    /// An instruction begins: a count that has run out fires. Tells whether one did.
    pub fn begin(&mut self, mode: Mode, may_fire: bool) -> bool {
        self.written = false;
        let mut triggers = self.all.iter_mut();
        let due = triggers.find(|trigger| {
            may_fire && trigger.counts(mode) && trigger.control & field::PENDING != 0
        });
        let Some(trigger) = due else {
            return false;
        };
        trigger.control = trigger.control & !field::PENDING | field::COUNT_HIT;
        true
    }

    /// The present instruction is not counted, whatever it has written: no trigger was armed.
    pub const fn forget_write(&mut self) {
        self.written = false;
    }

    /// An instruction has retired in a mode, or a trap is taken from it. Tells whether a count has changed to zero.
    pub fn count(&mut self, mode: Mode) -> bool {
        if !self.any || self.written {
            return false;
        }
        let mut over = false;
        for trigger in &mut self.all {
            if !trigger.counts(mode) || trigger.control & field::COUNTED == 0 {
                continue;
            }
            trigger.control -= 1 << field::COUNT_SHIFT;
            if trigger.control & field::COUNTED == 0 {
                trigger.control |= field::PENDING;
                over = true;
            }
        }
        over
    }
}

impl Trigger {
    const fn is(&self, kind: u64) -> bool {
        self.control >> field::TYPE_SHIFT == kind
    }

    const fn matching(&self) -> u64 {
        (self.control & field::MATCHING) >> field::MATCH_SHIFT
    }

    /// Tests whether this is an address match that is enabled in a mode.
    const fn looks(&self, mode: Mode) -> bool {
        let bit = match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => field::M,
            (Privilege::Supervisor, false) => field::S,
            (Privilege::User, false) => field::U,
            // The older form knows no virtualization.
            _ if self.is(field::MATCH) => 0,
            (Privilege::Supervisor, true) => field::VS,
            (Privilege::User, true) => field::VU,
        };
        (self.is(field::MATCH) || self.is(field::MATCH6)) && self.control & bit != 0
    }

    /// Tests whether this is an instruction count that is enabled in a mode.
    const fn counts(&self, mode: Mode) -> bool {
        let bit = match (mode.privilege, mode.virtualized) {
            (Privilege::Machine, _) => field::COUNT_M,
            (Privilege::Supervisor, false) => field::COUNT_S,
            (Privilege::User, false) => field::COUNT_U,
            (Privilege::Supervisor, true) => field::COUNT_VS,
            (Privilege::User, true) => field::COUNT_VU,
        };
        self.is(field::COUNT) && self.control & bit != 0
    }

    const fn is_armed(&self, mode: Mode) -> bool {
        let accesses = field::LOAD | field::STORE | field::EXECUTE;
        self.looks(mode) && self.control & accesses != 0
            || self.counts(mode) && self.control & (field::COUNTED | field::PENDING) != 0
    }

    fn matches(&self, mode: Mode, matched: Matched) -> bool {
        let access = match matched.access {
            Access::Fetch => field::EXECUTE,
            Access::Load => field::LOAD,
            Access::Store => field::STORE,
        };
        if !self.looks(mode) || self.control & access == 0 {
            return false;
        }
        let size = match (self.control & field::SIZE) >> field::SIZE_SHIFT {
            _ if self.is(field::MATCH) => 0,
            5 => 8,
            0 => 0,
            code => 1 << (code - 1),
        };
        if size != 0 && size != matched.size {
            return false;
        }
        // Each byte's address is a compare value. An access ends with the last address at the latest.
        let first = matched.address;
        let last = first.saturating_add(matched.size.saturating_sub(1));
        match self.matching() {
            field::NAPOT => {
                let range = self.data ^ self.data.wrapping_add(1);
                first <= (self.data | range) && last >= (self.data & !range)
            }
            field::GREATER_OR_EQUAL => last >= self.data,
            field::LESS => first < self.data,
            _ => (first..=last).contains(&self.data),
        }
    }
}

/// Legal part of a value for tdata1. All breakpoints are exceptions, and belong to M-mode as well as to a debugger.
fn legal(value: u64) -> u64 {
    let kind = value >> field::TYPE_SHIFT;
    let matching = (value & field::MATCHING) >> field::MATCH_SHIFT;
    let common = field::M
        | field::S
        | field::U
        | field::EXECUTE
        | field::STORE
        | field::LOAD
        | choose(matching <= field::LESS, field::MATCHING);
    let kept = match kind {
        // maskmax is zero: no ranges.
        field::MATCH => (common & !choose(matching == field::NAPOT, field::MATCHING)) | field::HIT,
        field::MATCH6 => {
            let size = (value & field::SIZE) >> field::SIZE_SHIFT;
            // Instructions have no size here.
            let sized = matches!(size, 1..=3 | 5) && value & field::EXECUTE == 0;
            common | field::VS | field::VU | field::HIT_BEFORE | choose(sized, field::SIZE)
        }
        field::COUNT => {
            let modes = field::COUNT_M | field::COUNT_S | field::COUNT_U;
            let virtual_modes = field::COUNT_VS | field::COUNT_VU;
            modes | virtual_modes | field::COUNTED | field::PENDING | field::COUNT_HIT
        }
        _ => return DISABLED,
    };
    kind << field::TYPE_SHIFT | value & kept
}

const fn choose(condition: bool, bits: u64) -> u64 {
    if condition { bits } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE6: u64 = field::MATCH6 << field::TYPE_SHIFT;

    fn one(control: u64, data: u64) -> Triggers {
        let mut triggers = Triggers::default();
        triggers.set_control(control);
        triggers.set_data(data);
        triggers
    }

    fn load(address: u64, size: u64) -> Matched {
        Matched {
            access: Access::Load,
            address,
            size,
        }
    }

    #[test]
    fn modes_and_kinds_arm_triggers() {
        let triggers = one(TYPE6 | field::S | field::VU | field::LOAD, 0x1000);
        let armed = [
            Mode::MACHINE,
            Mode::HYPERVISOR,
            Mode::VIRTUAL_SUPERVISOR,
            Mode::new(Privilege::User, true),
        ]
        .map(|mode| triggers.are_armed(mode));
        assert_eq!(armed, [false, true, false, true]);
        // Without an access, or of the older form in a guest, nothing is armed.
        assert!(!one(TYPE6 | field::S, 0).are_armed(Mode::HYPERVISOR));
        let older = field::MATCH << field::TYPE_SHIFT | field::S | field::VS | field::LOAD;
        assert!(!one(older, 0).are_armed(Mode::VIRTUAL_SUPERVISOR));
        assert!(one(older, 0).are_armed(Mode::HYPERVISOR));
    }

    #[test]
    fn every_byte_of_an_access_is_compared() {
        let control = TYPE6 | field::S | field::LOAD;
        let mode = Mode::HYPERVISOR;
        for (address, size, expected) in [
            (0x1000, 1, true),
            (0xff9, 8, true),
            (0xff8, 8, false),
            (0x1001, 8, false),
        ] {
            let fired = one(control, 0x1000).fire(mode, load(address, size));
            assert_eq!(fired, expected, "{address:#x} {size}");
        }
        let store = Matched {
            access: Access::Store,
            ..load(0x1000, 8)
        };
        assert!(!one(control, 0x1000).fire(mode, store));
    }

    #[test]
    fn ranges_are_compared_as_match_says() {
        let control =
            |matching: u64| TYPE6 | field::S | field::LOAD | matching << field::MATCH_SHIFT;
        let mode = Mode::HYPERVISOR;
        // A range of 16 bytes at 0x1000.
        for (matching, data, address, expected) in [
            (field::NAPOT, 0x1007, 0x0fff, false),
            (field::NAPOT, 0x1007, 0x1000, true),
            (field::NAPOT, 0x1007, 0x100f, true),
            (field::NAPOT, 0x1007, 0x1010, false),
            (field::GREATER_OR_EQUAL, 0x1000, 0x0fff, false),
            (field::GREATER_OR_EQUAL, 0x1000, 0x1000, true),
            (field::LESS, 0x1000, 0x0fff, true),
            (field::LESS, 0x1000, 0x1000, false),
        ] {
            let fired = one(control(matching), data).fire(mode, load(address, 1));
            assert_eq!(fired, expected, "{matching} {address:#x}");
        }
    }

    #[test]
    fn sizes_restrict_and_hits_are_noted() {
        let control = TYPE6 | field::S | field::LOAD | 3 << field::SIZE_SHIFT;
        let mut triggers = one(control, 0x1000);
        assert!(!triggers.fire(Mode::HYPERVISOR, load(0x1000, 8)));
        assert_eq!(triggers.control(), control);
        assert!(triggers.fire(Mode::HYPERVISOR, load(0x1000, 4)));
        assert_eq!(triggers.control(), control | field::HIT_BEFORE);
    }

    #[test]
    fn counts_fire_before_the_next_instruction() {
        let control = field::COUNT << field::TYPE_SHIFT | field::COUNT_S;
        let mut triggers = one(control | 2 << field::COUNT_SHIFT, 0);
        let mode = Mode::HYPERVISOR;
        assert!(!triggers.begin(mode, true));
        assert!(!triggers.count(mode));
        // What M-mode executes is not counted.
        assert!(!triggers.count(Mode::MACHINE));
        assert!(!triggers.begin(mode, true));
        assert!(triggers.count(mode));
        assert!(!triggers.begin(Mode::MACHINE, true));
        assert!(!triggers.begin(mode, false), "interrupts are off");
        assert!(triggers.begin(mode, true));
        assert_eq!(triggers.control(), control | field::COUNT_HIT);
        assert!(!triggers.are_armed(mode));
    }

    #[test]
    fn illegal_settings_are_not_kept() {
        for value in [0, 1 << 60, 4 << 60 | 0xff, 0xe << 60] {
            assert_eq!(one(value, 0).control(), DISABLED, "{value:#x}");
        }
        // dmode, chain, select, an action and a reserved match.
        let bits = 1 << 59 | 1 << 21 | 1 << 12 | 1 << 11 | 5 << field::MATCH_SHIFT;
        let kept = TYPE6 | field::M | field::EXECUTE;
        assert_eq!(one(kept | bits, 0).control(), kept);
        // tselect keeps what it holds.
        let mut triggers = Triggers::default();
        triggers.select(3);
        triggers.select(TRIGGERS as u64);
        assert_eq!(triggers.selected(), 3);
    }
}
