//! A guest's real-time clock: the registers that Linux's `rtc-goldfish` driver documents, as on QEMU's `virt` board.
//!
//! The hour is that of the board's own clock when the hypervisor began, and goes on with the board's timer. A guest that sets
//! its clock sets it for itself alone. Alarms are kept and never ring: a guest's timers are its harts'.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const TIME_LOW: u64 = 0x00;
const TIME_HIGH: u64 = 0x04;
const ALARM_LOW: u64 = 0x08;
const ALARM_HIGH: u64 = 0x0c;
const INTERRUPT_ENABLED: u64 = 0x10;
const CLEAR_ALARM: u64 = 0x14;
const ALARM_STATUS: u64 = 0x18;

const NANOSECONDS: u128 = 1_000_000_000;

/// Nanoseconds in so many ticks of a timer, modulo 2^64.
#[must_use]
pub fn nanoseconds(ticks: u64, hertz: u32) -> u64 {
    (u128::from(ticks) * NANOSECONDS / u128::from(hertz.max(1))) as u64
}

/// The hour of the board's own clock, whose registers are at `base`, in nanoseconds since 1970.
#[must_use]
pub fn of_board(base: u64) -> u64 {
    let read = |offset: u64| {
        // SAFETY: the address is that of the clock in the board's device tree, whose registers are words.
        u64::from(unsafe { ((base + offset) as *const u32).read_volatile() })
    };
    // A read of the lower half latches the upper one.
    let low = read(TIME_LOW);
    read(TIME_HIGH) << 32 | low
}

/// A guest's clock. Its vCPUs may use it at the same time; each access is whole.
#[derive(Debug)]
pub struct Clock {
    /// What the hour, in nanoseconds since 1970, is ahead of the board's timer, modulo 2^64.
    ahead: AtomicU64,
    /// The upper half of the hour, latched by a read of the lower one.
    latched: AtomicU32,
    alarm: AtomicU64,
    alarm_high: AtomicU32,
    alarm_set: AtomicU32,
    enabled: AtomicU32,
}

impl Clock {
    /// A clock that shows `hour` when the board's timer shows `now`, both in nanoseconds.
    #[must_use]
    pub const fn new(hour: u64, now: u64) -> Self {
        Self {
            ahead: AtomicU64::new(hour.wrapping_sub(now)),
            latched: AtomicU32::new(0),
            alarm: AtomicU64::new(0),
            alarm_high: AtomicU32::new(0),
            alarm_set: AtomicU32::new(0),
            enabled: AtomicU32::new(0),
        }
    }

    fn hour(&self, now: u64) -> u64 {
        self.ahead.load(Ordering::Relaxed).wrapping_add(now)
    }

    /// What the word at `offset` holds when the board's timer shows `now` nanoseconds.
    #[must_use]
    pub fn read(&self, offset: u64, now: u64) -> u32 {
        match offset {
            TIME_LOW => {
                let hour = self.hour(now);
                self.latched.store((hour >> 32) as u32, Ordering::Relaxed);
                hour as u32
            }
            TIME_HIGH => self.latched.load(Ordering::Relaxed),
            ALARM_LOW => self.alarm.load(Ordering::Relaxed) as u32,
            ALARM_HIGH => (self.alarm.load(Ordering::Relaxed) >> 32) as u32,
            INTERRUPT_ENABLED => self.enabled.load(Ordering::Relaxed),
            ALARM_STATUS => self.alarm_set.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Writes the word at `offset` when the board's timer shows `now` nanoseconds.
    pub fn write(&self, offset: u64, value: u32, now: u64) {
        const LOW: u64 = 0xffff_ffff;
        let set = |hour: u64| self.ahead.store(hour.wrapping_sub(now), Ordering::Relaxed);
        match offset {
            TIME_LOW => set(self.hour(now) & !LOW | u64::from(value)),
            TIME_HIGH => set(self.hour(now) & LOW | u64::from(value) << 32),
            // The driver writes the upper half first; the lower half sets the alarm.
            ALARM_HIGH => self.alarm_high.store(value, Ordering::Relaxed),
            ALARM_LOW => {
                let high = u64::from(self.alarm_high.load(Ordering::Relaxed));
                self.alarm
                    .store(high << 32 | u64::from(value), Ordering::Relaxed);
                self.alarm_set.store(1, Ordering::Relaxed);
            }
            CLEAR_ALARM => self.alarm_set.store(0, Ordering::Relaxed),
            INTERRUPT_ENABLED => self.enabled.store(value & 1, Ordering::Relaxed),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 0x1816_7bbf_0123_4567;

    fn hour(clock: &Clock, now: u64) -> u64 {
        let low = u64::from(clock.read(TIME_LOW, now));
        // Much later: what was latched counts.
        u64::from(clock.read(TIME_HIGH, now << 20)) << 32 | low
    }

    #[test]
    fn the_hour_goes_on_with_the_boards_timer_and_a_guest_sets_its_own() {
        let (clock, other) = (Clock::new(HOUR, 500), Clock::new(HOUR, 500));
        assert_eq!(hour(&clock, 500), HOUR);
        assert_eq!(hour(&clock, 1500), HOUR + 1000);
        clock.write(TIME_HIGH, 7, 1500);
        clock.write(TIME_LOW, 5, 1500);
        assert_eq!(hour(&clock, 1600), 7 << 32 | 105);
        assert_eq!(hour(&other, 1500), HOUR + 1000);
    }

    #[test]
    fn ticks_are_nanoseconds_at_any_frequency() {
        assert_eq!(nanoseconds(10_000_000, 10_000_000), 1_000_000_000);
        assert_eq!(nanoseconds(3, 4_000_000), 750);
        // 400 years of a fast timer do not overflow on the way; none divides by zero.
        assert_eq!(
            nanoseconds(12_622_780_800 * 4, 4),
            12_622_780_800_000_000_000
        );
        let _ = (nanoseconds(u64::MAX, 1), nanoseconds(1, 0));
    }

    #[test]
    fn alarms_are_kept() {
        let clock = Clock::new(HOUR, 0);
        assert_eq!(clock.read(ALARM_STATUS, 0), 0);
        for (offset, value) in [(INTERRUPT_ENABLED, 3), (ALARM_HIGH, 1), (ALARM_LOW, 2)] {
            clock.write(offset, value, 0);
        }
        let read =
            [ALARM_LOW, ALARM_HIGH, INTERRUPT_ENABLED, ALARM_STATUS].map(|at| clock.read(at, 9));
        assert_eq!(read, [2, 1, 1, 1]);
        clock.write(CLEAR_ALARM, 1, 0);
        assert_eq!(clock.read(ALARM_STATUS, 0), 0);
        for offset in [0x1c, 0x20, 0xffc, u64::MAX] {
            clock.write(offset, u32::MAX, 0);
            assert_eq!(clock.read(offset, 0), 0);
        }
    }
}
