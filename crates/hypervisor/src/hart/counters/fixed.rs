//! `cycle` and `instret` of a vCPU: counts of its hart while the vCPU is in its guest.
//!
//! A hart's own counters run whatever the hart does, so that a guest that read them would see its neighbours' work. hcounteren closes
//! them to guests, and a read is an exit. `time` stays open.
//!
//! A vCPU that has read neither pays a comparison at each exit: counting begins with the first read or start.

use super::set::{CYCLE, CounterSet, INSTRET};

/// Instructions of the world switch that retire while the vCPU counts: 46 on the way into the guest, 46 on the way out.
pub(super) const SWITCH_INSTRUCTIONS: u64 = 92;

/// One counter.
#[derive(Clone, Copy, Debug, Default)]
struct Fixed {
    /// Value when the vCPU last left its guest.
    value: u64,
    /// The hart's counter when the vCPU last entered its guest.
    entered: u64,
    /// Stopped by the guest (SBI PMU).
    stopped: bool,
}

impl Fixed {
    fn add(&mut self, count: u64) {
        if !self.stopped {
            self.value = self.value.wrapping_add(count);
        }
    }
}

/// Both counters of a vCPU.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FixedCounters {
    /// Set once the guest has used one of them.
    in_use: bool,
    cycle: Fixed,
    instret: Fixed,
}

impl FixedCounters {
    /// Notes the hart's counters, which `read` gives by number, on the way into the guest.
    #[inline]
    pub fn enter(&mut self, read: impl Fn(u8) -> u64) {
        if self.in_use {
            self.cycle.entered = read(CYCLE);
            self.instret.entered = read(INSTRET);
        }
    }

    /// Adds what the hart counted since [`Self::enter`].
    #[inline]
    pub fn leave(&mut self, read: impl Fn(u8) -> u64) {
        if self.in_use {
            self.add(read);
        }
    }

    #[cold]
    fn add(&mut self, read: impl Fn(u8) -> u64) {
        let since = |counter: u8, entered: u64| read(counter).wrapping_sub(entered);
        self.cycle.add(since(CYCLE, self.cycle.entered));
        let instructions = since(INSTRET, self.instret.entered);
        self.instret
            .add(instructions.saturating_sub(SWITCH_INSTRUCTIONS));
    }

    /// Value of a counter; `None` if `counter` is neither.
    pub fn read(&mut self, counter: u8) -> Option<u64> {
        self.counter(counter).map(|counter| counter.value)
    }

    /// Counts an instruction that was carried out for the guest.
    pub fn retire(&mut self) {
        self.instret.add(u64::from(self.in_use));
    }

    /// Sets a counter.
    pub fn set(&mut self, counter: u8, value: u64) {
        if let Some(counter) = self.counter(counter) {
            counter.value = value;
        }
    }

    /// Stops the fixed ones of `counters`, or lets them run.
    pub fn set_stopped(&mut self, counters: CounterSet, stopped: bool) {
        for number in [CYCLE, INSTRET] {
            if counters.has(number)
                && let Some(counter) = self.counter(number)
            {
                counter.stopped = stopped;
            }
        }
    }

    /// The counter `number`, which counts from now on.
    fn counter(&mut self, number: u8) -> Option<&mut Fixed> {
        let counter = match number {
            CYCLE => &mut self.cycle,
            INSTRET => &mut self.instret,
            _ => return None,
        };
        self.in_use = true;
        Some(counter)
    }
}
