//! Calls of the PMU extension, carried out on a vCPU's counters.

use riscv::sbi::performance;

use super::{CounterSet, Counters, EventKind, Hardware, Selection, set};

/// All flags of a configuration that the specification has.
const FLAGS: u64 = performance::SKIP_MATCH
    | performance::CLEAR_VALUE
    | performance::AUTO_START
    | performance::INHIBIT_VU
    | performance::INHIBIT_VS
    | performance::INHIBIT_U
    | performance::INHIBIT_S
    | performance::INHIBIT_M;

/// Reason why a call is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallError {
    /// An argument is not allowed by the specification.
    Invalid,
    /// No counter can count the event.
    NoCounter,
    /// One of the counters counts already; the others have been started.
    Started,
}

/// Configuration of a counter besides its event (SBI, table "PMU Counter Config Match Flags").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Set if the first counter of the set is meant, with or without an event.
    pub exactly: bool,
    pub clear: bool,
    pub start: bool,
    pub no_user: bool,
    pub no_supervisor: bool,
}

impl Configuration {
    /// The flags of a call. Flags of modes that a guest does not have are hints, and ignored.
    #[must_use]
    pub const fn from_flags(flags: u64) -> Option<Self> {
        if flags & !FLAGS != 0 {
            return None;
        }
        Some(Self {
            exactly: flags & performance::SKIP_MATCH != 0,
            clear: flags & performance::CLEAR_VALUE != 0,
            start: flags & performance::AUTO_START != 0,
            no_user: flags & performance::INHIBIT_U != 0,
            no_supervisor: flags & performance::INHIBIT_S != 0,
        })
    }
}

/// A programmable counter of `among`, configured for the event.
fn programmable_counter(
    among: CounterSet,
    selection: &Selection,
    hardware: &mut impl Hardware,
) -> Option<u8> {
    let counters = among.bits_of_hardware();
    (counters != 0)
        .then(|| hardware.configure(counters, selection))
        .flatten()
}

/// The fixed counter that counts nothing but the event, if it is one of `among`. Modes that are not to count are hints.
fn fixed_counter(among: CounterSet, selection: &Selection) -> Option<u8> {
    let counter = match u64::from(selection.event) {
        performance::CYCLES => set::CYCLE,
        performance::INSTRUCTIONS => set::INSTRET,
        _ => return None,
    };
    among.has(counter).then_some(counter)
}

impl Counters {
    /// Finds a counter of `set` for the event, and configures it.
    ///
    /// # Errors
    /// [`CallError::NoCounter`], and [`CallError::Invalid`] if the one counter that is meant counts.
    pub fn configure(
        &mut self,
        set: CounterSet,
        selection: Selection,
        configuration: Configuration,
        hardware: &mut impl Hardware,
    ) -> Result<u8, CallError> {
        let selection = Selection {
            no_user: configuration.no_user,
            no_supervisor: configuration.no_supervisor,
            ..selection
        };
        let among = if configuration.exactly {
            let first = set.iter().next().ok_or(CallError::Invalid)?;
            if self.started.has(first) {
                return Err(CallError::Invalid);
            }
            let only = CounterSet::only(first);
            self.forget(only, hardware);
            only
        } else {
            set.without(self.configured)
        };
        let found = match selection.kind {
            // A programmable counter first, which alone reports overflows.
            EventKind::Hardware => programmable_counter(among, &selection, hardware)
                .or_else(|| fixed_counter(among, &selection)),
            EventKind::Firmware(_) => Self::firmware_counter(among),
            EventKind::Unknown => None,
        };
        // Firmware may answer with a counter that was not asked for.
        let number = found
            .filter(|number| among.has(*number))
            .ok_or(CallError::NoCounter)?;
        let only = CounterSet::only(number);
        if selection.kind == EventKind::Hardware {
            self.held = self.held.or(only.hardware());
        }
        self.configured = self.configured.or(only);
        if let Some(counter) = self.counters.get_mut(usize::from(number)) {
            counter.selection = selection;
        }
        if configuration.clear {
            self.set_value(number, 0);
        }
        // It counts when it is started.
        self.fixed.set_stopped(only, true);
        if configuration.start {
            self.start(only, None, hardware)?;
        }
        Ok(number)
    }

    /// Tests whether a counter of `present` can count the event. No counter in use changes. `None` if all that might are in use.
    pub fn can_count(
        &self,
        selection: &Selection,
        present: CounterSet,
        hardware: &mut impl Hardware,
    ) -> Option<bool> {
        match selection.kind {
            EventKind::Unknown => Some(false),
            EventKind::Firmware(_) => Some(true),
            EventKind::Hardware if fixed_counter(CounterSet::FIXED, selection).is_some() => {
                Some(true)
            }
            EventKind::Hardware => {
                let free = present.hardware().without(self.held);
                if free.is_empty() {
                    return None;
                }
                let found = programmable_counter(free, selection, hardware);
                if let Some(counter) = found {
                    hardware.release(CounterSet::only(counter).bits_of_hardware());
                }
                Some(found.is_some())
            }
        }
    }

    /// Starts counters, at `value` where there is one.
    ///
    /// # Errors
    /// [`CallError::Invalid`], with nothing done, if one has no event; [`CallError::Started`].
    pub fn start(
        &mut self,
        set: CounterSet,
        value: Option<u64>,
        hardware: &mut impl Hardware,
    ) -> Result<(), CallError> {
        self.start_from(set, &|_| value, hardware)
    }

    /// Starts counters, each at its value in `values` where it has one.
    ///
    /// # Errors
    /// As for [`Counters::start`].
    pub fn start_from(
        &mut self,
        set: CounterSet,
        values: &dyn Fn(u8) -> Option<u64>,
        hardware: &mut impl Hardware,
    ) -> Result<(), CallError> {
        if !set.without(self.configured).is_empty() {
            return Err(CallError::Invalid);
        }
        self.look(hardware);
        let already = !set.and(self.started).is_empty();
        let new = set.without(self.started);
        self.settle(new, hardware);
        for counter in new.iter() {
            if let Some(value) = values(counter) {
                self.set_value(counter, value);
            }
        }
        self.overflowed = self.overflowed.without(new);
        self.started = self.started.or(new);
        self.fixed.set_stopped(new, false);
        if !new.hardware().is_empty() {
            self.resume(new.hardware(), hardware);
        }
        if already {
            Err(CallError::Started)
        } else {
            Ok(())
        }
    }

    /// Stops counters; with `reset` they lose their events too. Returns false if one did not count.
    pub fn stop(&mut self, set: CounterSet, reset: bool, hardware: &mut impl Hardware) -> bool {
        self.look(hardware);
        let running = set.and(self.started);
        self.started = self.started.without(running);
        self.fixed.set_stopped(running, true);
        let on_hart = running.and(self.open);
        if reset {
            self.forget(set, hardware);
        } else if !on_hart.is_empty() {
            hardware.stop(on_hart.bits_of_hardware());
        }
        running == set
    }

    /// Takes the events away from counters that do not count.
    fn forget(&mut self, set: CounterSet, hardware: &mut impl Hardware) {
        if !set.and(self.held).is_empty() {
            self.free(set.and(self.held), hardware);
        }
        // Without an event, the counter runs as for a guest that does not use SBI.
        self.fixed.set_stopped(set.and(self.configured), false);
        self.configured = self.configured.without(set);
        self.overflowed = self.overflowed.without(set);
    }
}
