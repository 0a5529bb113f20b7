//! Debug triggers of this hart, which the firmware sets (RISC-V SBI specification 3.0, "Debug Triggers Extension").

use core::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use riscv::csr::trigger::{MATCH6, TYPE_SHIFT};
use riscv::sbi::debug_triggers::ENTRY_WORDS;

use super::firmware;

/// The largest number of triggers of a hart that are used.
pub const MAX_TRIGGERS: usize = 8;

const WORDS: usize = ENTRY_WORDS as usize;
/// Word where the firmware has written no number of a trigger.
const NO_NUMBER: u64 = u64::MAX;

/// Triggers of the hart that runs this.
pub trait Hardware {
    /// Takes off all triggers that were put here before. Returns false if some may be left.
    fn clear(&mut self) -> bool;
    /// Puts triggers here, of tdata1 and tdata2 each; none are here. Returns false, with none here, if there is not room for all.
    fn put(&mut self, triggers: impl Iterator<Item = [u64; 2]>) -> bool;
}

/// Triggers of a hart as the firmware has them. Used by the hart itself alone, but for their number.
#[derive(Debug)]
pub struct FirmwareTriggers {
    /// Number of address matches of type 6 that can be set; all before the hart has started.
    available: AtomicU8,
    /// Numbers of those that are set, a bit each.
    installed: AtomicU64,
    /// Memory that is shared with the firmware.
    shared: [AtomicU64; MAX_TRIGGERS * WORDS],
}

impl Default for FirmwareTriggers {
    fn default() -> Self {
        Self {
            available: AtomicU8::new(MAX_TRIGGERS as u8),
            installed: AtomicU64::new(0),
            shared: [const { AtomicU64::new(0) }; MAX_TRIGGERS * WORDS],
        }
    }
}

impl FirmwareTriggers {
    /// Finds the triggers that the firmware of this hart can set, and shares memory with it.
    pub fn find(&self) {
        self.available.store(self.usable(), Ordering::Relaxed);
    }

    fn usable(&self) -> u8 {
        if !firmware::has_extension(riscv::sbi::DBTR) {
            return 0;
        }
        let of = |control| firmware::trigger_count(control).unwrap_or(0);
        // OpenSBI takes any trigger that is free, so all must be able to have the type.
        let count = of(MATCH6 << TYPE_SHIFT);
        if of(0) != count || firmware::share_for_triggers(self.shared.as_ptr() as u64).is_err() {
            return 0;
        }
        count.min(MAX_TRIGGERS as u64) as u8
    }

    /// Installs one trigger, behind `count` others, and returns its number. One at a time: OpenSBI up to 1.6 has entries of five words, the last
    /// of which is the number that the specification has in place of the first.
    fn install(&self, [control, data]: [u64; 2], count: u64) -> Option<u64> {
        let entry = [NO_NUMBER, control, data, 0, NO_NUMBER];
        for (word, value) in self.shared.iter().zip(entry) {
            word.store(value, Ordering::Relaxed);
        }
        firmware::install_triggers(1).ok()?;
        let [first, _, _, _, fifth, ..] = &self.shared;
        let mut places = [first, fifth]
            .into_iter()
            .map(|word| word.load(Ordering::Relaxed));
        // The lowest that is free, if the firmware does not say.
        Some(places.find(|number| *number != NO_NUMBER).unwrap_or(count))
    }

    /// Number of triggers that can be set; all before the hart has started.
    #[must_use]
    pub fn available(&self) -> usize {
        self.available.load(Ordering::Relaxed).into()
    }
}

impl Hardware for &FirmwareTriggers {
    fn clear(&mut self) -> bool {
        let installed = self.installed.load(Ordering::Relaxed);
        let is_clear = installed == 0 || firmware::uninstall_triggers(installed).is_ok();
        if is_clear {
            self.installed.store(0, Ordering::Relaxed);
        }
        is_clear
    }

    fn put(&mut self, triggers: impl Iterator<Item = [u64; 2]>) -> bool {
        for (count, trigger) in (0..).zip(triggers) {
            let Some(number) = self.install(trigger, count) else {
                // Those that were put here already are taken off again.
                self.clear();
                return false;
            };
            let installed = self.installed.load(Ordering::Relaxed) | 1 << (number % 64);
            self.installed.store(installed, Ordering::Relaxed);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The stand-in for a hart has no firmware.
    #[test]
    fn hart_without_firmware_has_no_triggers() {
        let triggers = FirmwareTriggers::default();
        assert_eq!(triggers.available(), MAX_TRIGGERS);
        triggers.find();
        assert_eq!(triggers.available(), 0);
        let mut hardware = &triggers;
        assert!(hardware.clear());
        assert!(!hardware.put([[MATCH6 << TYPE_SHIFT, 0]].into_iter()));
    }
}
