//! Devices that a hart looks at when a time has come, though nobody has told of them.
//!
//! A hart keeps one time for all of them, the earliest, and its timer is set to that at the latest. A device that was looked at meanwhile, for
//! another reason or by another hart, knows itself that its time has not come.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::devices::simulated::pace::PATIENCE;
use crate::devices::wires::SourceNumber;
use crate::hart::csr::{self, number};

/// There is a bit for each source below this one.
const SOURCES: u32 = u64::BITS;
const MICROSECONDS: u64 = 1_000_000;

/// The longest time between two looks at a device with this source, in ticks. Those that there is no bit for are never looked at so.
#[must_use]
pub const fn patience(source: u32, timebase_hertz: u64) -> u64 {
    match source < SOURCES {
        true => timebase_hertz * PATIENCE / MICROSECONDS,
        false => 0,
    }
}

/// The devices that a hart looks at when a time has come. Only the hart itself uses it.
#[derive(Debug)]
pub struct Due {
    at: AtomicU64,
    /// A bit for each source.
    devices: AtomicU64,
}

impl Default for Due {
    fn default() -> Self {
        Self {
            at: AtomicU64::new(u64::MAX),
            devices: AtomicU64::new(0),
        }
    }
}

impl Due {
    /// The time, in ticks of the board's timebase.
    #[inline]
    #[must_use]
    pub fn at(&self) -> u64 {
        self.at.load(Ordering::Relaxed)
    }

    /// The device with this source is looked at by then, in place of any other time of its own, and the hart's timer is set so.
    pub fn look_by(&self, source: SourceNumber, at: u64) {
        if source.0 >= SOURCES {
            return;
        }
        let own = 1 << source.0;
        let others = self.devices.load(Ordering::Relaxed) & !own;
        self.devices.store(others | own, Ordering::Relaxed);
        let at = match others {
            0 => at,
            _ => at.min(self.at()),
        };
        self.at.store(at, Ordering::Relaxed);
        if at < csr::read::<{ number::STIMECMP }>() {
            // SAFETY: the timer interrupt is taken in guests only, or ends a WFI; `attend` handles it.
            unsafe { csr::write::<{ number::STIMECMP }>(at) };
        }
    }

    /// Takes the devices whose time has come, if it has.
    #[must_use]
    pub fn take(&self, time: u64) -> Option<impl Iterator<Item = u32> + use<>> {
        if self.at() > time {
            return None;
        }
        self.at.store(u64::MAX, Ordering::Relaxed);
        let devices = self.devices.load(Ordering::Relaxed);
        self.devices.store(0, Ordering::Relaxed);
        Some((0..SOURCES).filter(move |source| devices >> source & 1 != 0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(due: &Due, time: u64) -> Option<Vec<u32>> {
        due.take(time).map(Iterator::collect)
    }

    fn set_timer(at: u64) {
        // SAFETY: the register is the stand-in's.
        unsafe { csr::write::<{ number::STIMECMP }>(at) };
    }

    #[test]
    fn devices_are_looked_at_by_the_earliest_of_their_times() {
        let due = Due::default();
        set_timer(500);
        assert_eq!(taken(&due, u64::MAX - 1), None);
        due.look_by(SourceNumber(3), 400);
        assert_eq!(csr::read::<{ number::STIMECMP }>(), 400);
        due.look_by(SourceNumber(5), 450);
        due.look_by(SourceNumber(63), 470);
        due.look_by(SourceNumber(64), 10);
        assert_eq!(csr::read::<{ number::STIMECMP }>(), 400);
        assert_eq!(taken(&due, 399), None);
        assert_eq!(taken(&due, 400), Some(vec![3, 5, 63]));
        assert_eq!(taken(&due, 400), None);
    }

    #[test]
    fn a_device_alone_puts_its_time_off() {
        let due = Due::default();
        set_timer(u64::MAX);
        due.look_by(SourceNumber(3), 400);
        due.look_by(SourceNumber(3), 600);
        assert_eq!(taken(&due, 599), None);
        assert_eq!(taken(&due, 600), Some(vec![3]));
    }

    #[test]
    fn patience_is_of_the_timebase_and_for_devices_with_a_bit() {
        assert_eq!(patience(63, 24_000_000), 480);
        assert_eq!(patience(64, 24_000_000), 0);
    }
}
