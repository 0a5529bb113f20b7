//! Locks that a hart holds, and locks that the hart may wait for.

use thiserror::Error;

/// The locks as `LOCKS.md` calls them, by their places.
const NAMES: [&str; 22] = [
    "Vcpu::state",
    "Vm::loading",
    "Vm::trapped_devices",
    "Vm::reclaim",
    "Vm::reported_allocation",
    "Vm::software_events",
    "Hypervisor::report_space",
    "Vm::life_cycle",
    "Hypervisor::disks",
    "Groups::ledger",
    "Groups::groups",
    "Vcpu::word",
    "Vcpu::conditions",
    "Vcpu::interrupts",
    "Vm::table",
    "Hypervisor::pages",
    "Hart::files",
    "AplicDriver::change",
    "Vm::typed",
    "TERMINAL",
    "EARLY",
    "Vcpu::fences",
];

fn name(place: u8) -> &'static str {
    NAMES.get(usize::from(place)).copied().unwrap_or("?")
}

/// A hart waits for a lock out of turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("waits for {} and has {}", name(*.wanted), name(*.held))]
pub struct OutOfTurn {
    wanted: u8,
    held: u8,
}

/// Locks that a hart holds, a bit for each place.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Held(pub u32);

impl Held {
    /// Tests whether the hart may wait for the lock at `place`.
    ///
    /// # Errors
    /// The hart holds a lock at the same place, or a later one.
    pub fn may_wait(self, place: u8) -> Result<(), OutOfTurn> {
        match self.0 >> place {
            0 => Ok(()),
            later => Err(OutOfTurn {
                wanted: place,
                held: place.saturating_add(later.ilog2() as u8),
            }),
        }
    }

    /// With the lock at `place`.
    #[must_use]
    pub const fn with(self, place: u8) -> Self {
        Self(self.0 | 1 << place)
    }

    /// Without it.
    #[must_use]
    pub const fn without(self, place: u8) -> Self {
        Self(self.0 & !(1 << place))
    }
}

#[cfg(test)]
mod tests {
    use super::super::place;
    use super::*;

    #[test]
    fn locks_are_awaited_only_in_order() {
        let held = Held::default()
            .with(place::TRAPPED_DEVICES)
            .with(place::SCHEDULER);
        for place in 0..=place::SCHEDULER {
            let defect = held.may_wait(place).unwrap_err();
            assert_eq!(defect.held, place::SCHEDULER);
        }
        for place in place::SCHEDULER + 1..=place::EARLY {
            assert_eq!(held.may_wait(place), Ok(()));
        }
        let after = held.without(place::SCHEDULER);
        assert_eq!(after.may_wait(place::REPORTED_ALLOCATION), Ok(()));
        let text = after.may_wait(place::VCPU_STATE).unwrap_err().to_string();
        assert_eq!(text, "waits for Vcpu::state and has Vm::trapped_devices");
    }

    #[test]
    fn the_page_has_the_same_order() {
        let rows = include_str!("../../LOCKS.md")
            .lines()
            .filter(|line| line.starts_with("| ") && line.as_bytes()[2].is_ascii_digit());
        let rows: Vec<&str> = rows.collect();
        assert_eq!(rows.len(), NAMES.len());
        for (row, name) in rows.iter().zip(NAMES) {
            let named = row.contains(&std::format!("`{name}`"));
            assert!(named, "{name} is not what this row has: {row}");
        }
    }

    #[test]
    fn every_place_has_name_and_number() {
        let code = include_str!("../order.rs").lines();
        let places = code.filter_map(|line| {
            let (_, number) = line
                .trim()
                .strip_prefix("pub const ")?
                .split_once(": u8 = ")?;
            number.strip_suffix(';')?.parse().ok()
        });
        let places: Vec<usize> = places.collect();
        let named: Vec<usize> = (0..NAMES.len()).collect();
        assert_eq!(places, named);
    }
}
