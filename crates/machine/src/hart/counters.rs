//! Counters: Zicntr, Zihpm, Sscofpmf and Smcntrpmf.
//!
//! A hart counts every event in every mode anyway, for the hardware monitor. A counter is an offset
//! from such counts, so it costs nothing to let it run and it can start and stop at any instruction.

use super::Hart;
use crate::base::{Mode, Privilege};
use crate::count::Event;
use crate::csr::field::{event, interrupt};
use crate::csr::{Csrs, HPM_COUNTERS};

/// Counters 3 to 31: those that can be given an event.
const PROGRAMMABLE: std::ops::Range<u16> = 3..3 + HPM_COUNTERS as u16;

/// The bit of mhpmevent that keeps a counter from counting in a mode.
const fn inhibiting(mode: Mode) -> u64 {
    match (mode.privilege, mode.virtualized) {
        (Privilege::Machine, _) => event::MINH,
        (Privilege::Supervisor, false) => event::SINH,
        (Privilege::User, false) => event::UINH,
        (Privilege::Supervisor, true) => event::VSINH,
        (Privilege::User, true) => event::VUINH,
    }
}

const MODES: [Mode; Mode::COUNT] = [
    Mode::new(Privilege::User, false),
    Mode::HYPERVISOR,
    Mode::MACHINE,
    Mode::new(Privilege::User, true),
    Mode::VIRTUAL_SUPERVISOR,
];

impl Csrs {
    /// mhpmevent of a counter.
    fn event_of(&self, counter: u16) -> u64 {
        let index = usize::from(counter).checked_sub(3);
        let event = index.and_then(|index| self.mhpmevent.get(index));
        event.copied().unwrap_or(0)
    }
}

impl Hart {
    /// A counter as mcycle, minstret and mhpmcounter show it.
    #[must_use]
    pub fn counter(&self, counter: u16) -> u64 {
        let base = self.csrs.counter_bases.get(usize::from(counter));
        let base = base.copied().unwrap_or(0);
        if self.csrs.mcountinhibit >> counter & 1 != 0 {
            base
        } else {
            base.wrapping_add(self.raw_count(counter))
        }
    }

    /// mcyclecfg, minstretcfg or mhpmevent of a counter.
    pub(crate) fn selection_of(&self, counter: u16) -> u64 {
        match counter {
            0 => self.csrs.mcyclecfg,
            2 => self.csrs.minstretcfg,
            _ => self.csrs.event_of(counter),
        }
    }

    /// Raw count of a counter's event by the hart.
    fn raw_count(&self, counter: u16) -> u64 {
        match counter {
            0 => self.filtered(self.csrs.mcyclecfg, Event::Cycles, self.cycles),
            2 => self.filtered(self.csrs.minstretcfg, Event::Instructions, self.retired),
            3.. => self.event_count(self.csrs.event_of(counter)),
            _ => 0,
        }
    }

    /// Cycles or instructions in the modes that mcyclecfg or minstretcfg does not inhibit.
    fn filtered(&self, selection: u64, event: Event, all: u64) -> u64 {
        if selection == 0 {
            all
        } else {
            self.count_of(event, selection)
        }
    }

    /// The count of mhpmevent's event in the modes that it does not inhibit.
    fn event_count(&self, selection: u64) -> u64 {
        let what = Event::numbered(selection & event::NUMBER);
        what.map_or(0, |what| self.count_of(what, selection))
    }

    /// The count of an event in the modes that a selection does not inhibit.
    fn count_of(&self, what: Event, selection: u64) -> u64 {
        let present = self.mode();
        let unsettled = match what {
            Event::Cycles => self.counts.unsettled(self.cycles, self.retired).0,
            Event::Instructions => self.counts.unsettled(self.cycles, self.retired).1,
            _ => 0,
        };
        let counted = MODES.into_iter().zip(&self.counts.modes);
        let counted = counted.filter(|(mode, _)| selection & inhibiting(*mode) == 0);
        counted.fold(0_u64, |sum, (mode, counts)| {
            let more = if mode == present { unsettled } else { 0 };
            sum.wrapping_add(counts.get(what)).wrapping_add(more)
        })
    }

    /// Makes a counter show a value from now on, however it now counts.
    fn set_counter(&mut self, counter: u16, value: u64) {
        let counted = if self.csrs.mcountinhibit >> counter & 1 != 0 {
            0
        } else {
            self.raw_count(counter)
        };
        if let Some(base) = self.csrs.counter_bases.get_mut(usize::from(counter)) {
            *base = value.wrapping_sub(counted);
        }
        if let Some(seen) = self.csrs.counters_seen.get_mut(usize::from(counter)) {
            *seen = value;
        }
    }

    /// Writes mcycle, minstret or mhpmcounter.
    pub(crate) fn write_counter(&mut self, counter: u16, value: u64) {
        // The write takes the place of the instruction's own increment.
        let counts = self.csrs.mcountinhibit >> counter & 1 == 0;
        let own = u64::from(counter == 2 && counts);
        self.set_counter(counter, value.wrapping_sub(own));
        self.refresh_overflow();
    }

    /// Writes mcountinhibit.
    pub(crate) fn write_inhibit(&mut self, value: u64) {
        // Bit 1 belongs to time, which is not a counter of the hart.
        let shown: [u64; 32] = std::array::from_fn(|counter| self.counter(counter as u16));
        self.csrs.mcountinhibit = value & 0xffff_fffd;
        for (counter, value) in (0_u16..).zip(shown) {
            self.set_counter(counter, value);
        }
        self.refresh_overflow();
    }

    /// Writes mhpmevent. An event that does not exist is not kept: zero counts nothing.
    pub(crate) fn write_event(&mut self, index: usize, value: u64) {
        let counter = index as u16 + 3;
        let shown = self.counter(counter);
        let number = value & event::NUMBER;
        let number = Event::numbered(number).map_or(0, |_| number);
        if let Some(selection) = self.csrs.mhpmevent.get_mut(index) {
            *selection = value & event::CONTROL | number;
        }
        self.set_counter(counter, shown);
        self.refresh_overflow();
    }

    /// Writes mcyclecfg or minstretcfg, of counter 0 or 2.
    pub(crate) fn write_filter(&mut self, counter: u16, value: u64) {
        let shown = self.counter(counter);
        let filter = match counter {
            0 => &mut self.csrs.mcyclecfg,
            _ => &mut self.csrs.minstretcfg,
        };
        *filter = value & event::FILTER;
        self.set_counter(counter, shown);
    }

    /// scountovf: the overflow bits that the present mode may see.
    pub(crate) fn visible_overflows(&self) -> u64 {
        let mut visible = self.csrs.mcounteren;
        match self.mode() {
            Mode::MACHINE => visible = u64::MAX,
            mode if mode.virtualized => visible &= self.csrs.hcounteren,
            _ => {}
        }
        let overflowed = PROGRAMMABLE.filter(|&n| self.csrs.event_of(n) & event::OF != 0);
        overflowed.fold(0, |bits, counter| bits | 1 << counter) & visible
    }

    /// Tests whether a counter can overflow: it runs, and its OF is zero.
    fn may_overflow(&self, counter: u16) -> bool {
        let selection = self.csrs.event_of(counter);
        selection & event::OF == 0
            && selection & event::NUMBER != 0
            && self.csrs.mcountinhibit >> counter & 1 == 0
    }

    /// Recomputes when a counter can overflow at the earliest: no event happens more than once a
    /// cycle, save some that a single access can cause several of.
    pub(crate) fn refresh_overflow(&mut self) {
        let least = PROGRAMMABLE
            .filter(|&counter| self.may_overflow(counter))
            .map(|counter| self.counter(counter).wrapping_neg().wrapping_sub(1))
            .min();
        self.deadlines.set_overflow(least.map_or(u64::MAX, |least| {
            self.cycles.saturating_add(least.saturating_add(1))
        }));
    }

    /// Notices counters that have overflowed: sets their OF and makes the interrupt pending.
    pub(crate) fn check_overflow(&mut self) {
        for counter in PROGRAMMABLE {
            if !self.may_overflow(counter) {
                continue;
            }
            let shown = self.counter(counter);
            let seen = self.csrs.counters_seen.get_mut(usize::from(counter));
            let before = seen.map_or(0, |seen| std::mem::replace(seen, shown));
            if shown < before {
                if let Some(selection) = self.csrs.mhpmevent.get_mut(usize::from(counter) - 3) {
                    *selection |= event::OF;
                }
                self.csrs.mip |= interrupt::LCOFI;
                self.look_at_interrupts = true;
            }
        }
        self.refresh_overflow();
    }
}
