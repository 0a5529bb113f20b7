//! Harts that have still to publish their CPU time before a report is printed.

use core::sync::atomic::{AtomicU64, Ordering};

use scheduler::{HartId, HartSet};

/// The harts that a report waits for, a bit each.
#[derive(Debug, Default)]
pub struct AwaitedHarts(AtomicU64);

impl AwaitedHarts {
    /// Adds `harts` to those that a report waits for.
    pub fn add(&self, harts: HartSet) {
        self.0.fetch_or(harts.bits(), Ordering::Relaxed);
    }

    /// Returns true if a report waits for a hart.
    #[inline]
    #[must_use]
    pub fn any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Returns true if a report waits for `hart`.
    #[must_use]
    pub fn awaits(&self, hart: HartId) -> bool {
        self.0.load(Ordering::Relaxed) & HartSet::only(hart).bits() != 0
    }

    /// Removes `hart`, which has published its CPU time. Returns true if it was the last: then the others' published time can be read.
    #[must_use]
    pub fn publish(&self, hart: HartId) -> bool {
        let own = HartSet::only(hart).bits();
        // The hart that comes last sees the time that this hart has published.
        self.0.fetch_and(!own, Ordering::AcqRel) == own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hart(number: u16) -> HartId {
        HartId::new(number).unwrap()
    }

    #[test]
    fn last_hart_to_publish_prints_once() {
        let awaited = AwaitedHarts::default();
        assert!(!awaited.publish(hart(0)), "nobody asked");
        let harts = HartSet::from_bits(0b111);
        awaited.add(harts);
        assert!(awaited.awaits(hart(1)));
        assert!(!awaited.publish(hart(1)));
        assert!(!awaited.awaits(hart(1)) && awaited.awaits(hart(2)));
        assert!(!awaited.publish(hart(1)), "a hart is awaited once");
        // A report is asked for again meanwhile: that report comes with the one that is under way.
        awaited.add(harts);
        assert!(!awaited.publish(hart(2)) && !awaited.publish(hart(0)));
        assert!(awaited.any());
        assert!(awaited.publish(hart(1)));
        assert!(!awaited.any() && !awaited.publish(hart(1)), "once");
    }
}
