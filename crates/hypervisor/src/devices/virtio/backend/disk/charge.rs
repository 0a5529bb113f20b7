//! Accounting of a disk's time to slices.

use super::fair::{Fair, Work};
use super::{Disk, JustEnded};

impl Disk {
    /// Charges operations that have just completed with the time since the last completion: the device's time for them, while it was as busy.
    /// The time of simultaneous completions is divided by their estimates. A flush is also charged its part of its whole time, as others may complete meanwhile.
    pub(super) fn charge(&mut self, now: u64, in_flight: usize) {
        let took = now.saturating_sub(self.busy_since);
        if self.just_ended.is_empty() || took == 0 {
            return;
        }
        self.busy_since = now;
        let estimates = self.just_ended.iter().map(|one| one.charged.estimate);
        let all = estimates.fold(0_u64, u64::saturating_add).max(1);
        let mut units: u64 = 0;
        for JustEnded { slice, charged } in self.just_ended.drain(..) {
            let part = u128::from(took) * u128::from(charged.estimate) / u128::from(all);
            let mut part = part as u64;
            if charged.work == Work::Flush {
                let whole = now.saturating_sub(charged.began);
                part = part.max(whole / in_flight.max(1) as u64);
                self.fair.learn_flush(part);
            }
            units = units.saturating_add(Fair::units(charged.work));
            self.fair.ends(slice, charged.estimate, part);
        }
        self.fair.learn(units, took);
    }
}
