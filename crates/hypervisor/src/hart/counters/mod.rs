//! The performance counters of a vCPU (RISC-V SBI specification 3.0, "Performance Monitoring Unit Extension").
//!
//! Hardware counter n of a vCPU is counter n of whatever hart it runs on, so that the guest reads its value and its
//! overflow bit without an exit. The hart's counter belongs to the vCPU only while it is on the hart: [`Counters::unload`]
//! takes the values and frees what was occupied, [`Counters::load`] configures and starts again what was started. A vCPU
//! that has started none costs one comparison at each.
//!
//! Firmware counters count calls of the vCPU, and are nothing but numbers here. `cycle` and `instret` count what the hart does in the
//! guest (`fixed.rs`).
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod call;
mod event;
mod fixed;
pub mod hart_counters;
mod set;
#[cfg(test)]
mod tests;

pub use call::{CallError, Configuration};
pub use event::{EventKind, FirmwareEvent, Selection};
use fixed::FixedCounters;
pub use set::{CounterSet, FIRMWARE_COUNTERS, HARDWARE_COUNTERS};

use set::{FIRST_FIRMWARE, TOTAL};

/// The counters of the hart on which the vCPU is.
pub trait Hardware {
    /// Prepares one of the counters `among` for `selection` in the guest's modes, and returns its number.
    fn configure(&mut self, among: u32, selection: &Selection) -> Option<u8>;
    /// Starts a counter that has been configured, at `value`, with its overflow bit as it is given. Returns false if it could not
    /// be.
    fn start(&mut self, counter: u8, value: u64, overflowed: bool) -> bool;
    /// Stops counters, which keep their values.
    fn stop(&mut self, counters: u32);
    /// Stops counters and frees them.
    fn release(&mut self, counters: u32);
    /// Value of a counter, `cycle` and `instret` included.
    fn read(&self, counter: u8) -> u64;
    /// Lets the guest read these counters and no others.
    fn open(&mut self, counters: u32);
    /// Counters whose overflow bits are set. The interrupt of the overflow is ended.
    fn take_overflows(&mut self) -> u32;
    /// Gives the guest its interrupt.
    fn interrupt(&mut self);
}

/// One counter of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
struct Counter {
    selection: Selection,
    /// Saved value while off the hart.
    value: u64,
}

/// Progress of a call through a list of events, which is made again until all are done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventList {
    address: u64,
    done: u64,
}

impl EventList {
    /// Number of entries that are done of the list at `address`.
    #[must_use]
    pub const fn done(self, address: u64) -> u64 {
        if self.address == address {
            self.done
        } else {
            0
        }
    }

    /// Notes that so many entries of the list at `address` are done; none at the end.
    pub const fn note(&mut self, address: u64, done: u64) {
        *self = Self { address, done };
    }
}

/// All counters of a vCPU.
#[derive(Debug)]
// The sets first: every dispatch looks at them, and hardly ever at a counter.
#[repr(C)]
pub struct Counters {
    /// Counters that have an event.
    configured: CounterSet,
    /// Of these, those that count.
    started: CounterSet,
    /// Counters that have overflowed since they were last started.
    overflowed: CounterSet,
    /// Counters that are configured on the hart.
    held: CounterSet,
    /// Of these, those whose value is the hart's: the guest may read them there.
    open: CounterSet,
    /// Set if the guest is told of overflows by an event and not by its interrupt.
    tells_by_event: bool,
    /// Set if an event is due.
    event_is_due: bool,
    /// `cycle` and `instret`.
    fixed: FixedCounters,
    counters: [Counter; TOTAL],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            counters: [Counter::default(); TOTAL],
            configured: CounterSet::EMPTY,
            started: CounterSet::EMPTY,
            overflowed: CounterSet::EMPTY,
            held: CounterSet::EMPTY,
            open: CounterSet::EMPTY,
            tells_by_event: false,
            event_is_due: false,
            fixed: FixedCounters::default(),
        }
    }
}

impl Counters {
    fn counter(&self, counter: u8) -> Counter {
        let found = self.counters.get(usize::from(counter));
        found.copied().unwrap_or_default()
    }

    fn set_value(&mut self, counter: u8, value: u64) {
        self.fixed.set(counter, value);
        if let Some(counter) = self.counters.get_mut(usize::from(counter)) {
            counter.value = value;
        }
    }

    /// Loads the started counters into the hart, and those whose overflow bits the guest has not read yet.
    #[inline]
    pub fn load(&mut self, hardware: &mut impl Hardware) {
        let wanted = self.started.hardware().or(self.overflowed);
        if !wanted.is_empty() {
            self.come(wanted, hardware);
        }
    }

    #[cold]
    fn come(&mut self, wanted: CounterSet, hardware: &mut impl Hardware) {
        self.resume(wanted, hardware);
        let idle = self.overflowed.without(self.started).and(self.open);
        if !idle.is_empty() {
            hardware.stop(idle.bits_of_hardware());
        }
    }

    /// Saves the counters and frees them on the hart. Returns true if the guest is to be told of an overflow by an event.
    #[inline]
    #[must_use]
    pub fn unload(&mut self, hardware: &mut impl Hardware) -> bool {
        if self.held.is_empty() {
            return false;
        }
        self.free(self.held, hardware);
        self.take_event()
    }

    /// Notes the hart's overflows, and interrupts the guest for new ones. Returns true if the guest is to be told of them by an event.
    #[inline]
    #[must_use]
    pub fn note_overflows(&mut self, hardware: &mut impl Hardware) -> bool {
        if self.open.is_empty() {
            return false;
        }
        self.refresh(hardware);
        self.take_event()
    }

    /// Tells the guest of overflows by an event from now on, or by its interrupt.
    pub const fn tell_by_event(&mut self, by_event: bool) {
        self.tells_by_event = by_event;
        self.event_is_due = false;
    }

    /// Returns true if the guest is to be told of an overflow by an event, once.
    #[must_use]
    pub const fn take_event(&mut self) -> bool {
        core::mem::replace(&mut self.event_is_due, false)
    }

    /// Notes overflows as [`Counters::note_overflows`] does. The caller has others take the event.
    fn look(&mut self, hardware: &mut impl Hardware) {
        if !self.open.is_empty() {
            self.refresh(hardware);
        }
    }

    #[cold]
    fn refresh(&mut self, hardware: &mut impl Hardware) {
        let seen = CounterSet::of_hardware(hardware.take_overflows());
        let new = seen.and(self.open).without(self.overflowed);
        if !new.is_empty() {
            self.overflowed = self.overflowed.or(new);
            match self.tells_by_event {
                true => self.event_is_due = true,
                false => hardware.interrupt(),
            }
        }
    }

    /// Notes the hart's fixed counters just before the vCPU enters its guest.
    #[inline]
    pub fn enter_guest(&mut self, hardware: &impl Hardware) {
        self.fixed.enter(|counter| hardware.read(counter));
    }

    /// Counts the stay in the guest that has just ended.
    #[inline]
    pub fn leave_guest(&mut self, hardware: &impl Hardware) {
        self.fixed.leave(|counter| hardware.read(counter));
    }

    /// Counts an instruction of the guest that the hypervisor has carried out.
    pub fn retire(&mut self) {
        self.fixed.retire();
    }

    /// Value of a counter: `cycle` and `instret` always have one, others where they have an event.
    #[must_use]
    pub fn read(&mut self, counter: u8, hardware: &impl Hardware) -> Option<u64> {
        if CounterSet::FIXED.has(counter) {
            return self.fixed.read(counter);
        }
        if !self.configured.has(counter) {
            return None;
        }
        Some(if self.open.has(counter) {
            hardware.read(counter)
        } else {
            self.counter(counter).value
        })
    }

    /// Counters that have overflowed since they were last started, as far as the hart's bits have been noted.
    #[must_use]
    pub const fn overflowed(&self) -> CounterSet {
        self.overflowed
    }

    /// Counts a call, where a counter has been started for it.
    #[inline]
    pub fn count(&mut self, event: FirmwareEvent) {
        let started = self.started.firmware();
        if !started.is_empty() {
            self.count_in(started, event);
        }
    }

    #[cold]
    fn count_in(&mut self, started: CounterSet, event: FirmwareEvent) {
        for counter in started.iter() {
            if self.counter(counter).selection.kind == EventKind::Firmware(event) {
                let value = self.counter(counter).value;
                self.set_value(counter, value.wrapping_add(1));
            }
        }
    }

    /// Starts hardware counters on the hart at their values. One that the hart cannot count keeps its value.
    fn resume(&mut self, counters: CounterSet, hardware: &mut impl Hardware) {
        for number in counters.iter() {
            let counter = self.counter(number);
            let one = CounterSet::only(number);
            let held = self.held.has(number)
                || hardware.configure(one.bits_of_hardware(), &counter.selection) == Some(number);
            if !held {
                continue;
            }
            self.held = self.held.or(one);
            if hardware.start(number, counter.value, self.overflowed.has(number)) {
                self.open = self.open.or(one);
            }
        }
        hardware.open(self.open.bits_of_hardware());
    }

    /// Takes hardware counters off the hart, their values and overflows with them.
    #[cold]
    fn free(&mut self, counters: CounterSet, hardware: &mut impl Hardware) {
        self.look(hardware);
        self.settle(counters, hardware);
        hardware.release(counters.and(self.held).bits_of_hardware());
        self.held = self.held.without(counters);
        self.open = self.open.without(counters);
        hardware.open(self.open.bits_of_hardware());
    }

    /// Takes the values of those of the counters that the hart has.
    fn settle(&mut self, counters: CounterSet, hardware: &impl Hardware) {
        for counter in counters.and(self.open).iter() {
            self.set_value(counter, hardware.read(counter));
        }
    }

    /// A firmware counter of `among`, where there is one.
    fn firmware_counter(among: CounterSet) -> Option<u8> {
        among.iter().find(|counter| *counter >= FIRST_FIRMWARE)
    }
}
