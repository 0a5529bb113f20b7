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

use abi::monitor::ExitCause;
use riscv::goldfish_rtc::{
    ALARM_HIGH, ALARM_LOW, ALARM_STATUS, CLEAR_ALARM, IRQ_ENABLED, TIME_HIGH, TIME_LOW,
};

use crate::devices::trapped::{Access, DeviceContext, TrappedDevice, WouldBlock};
use crate::hart::decode::Width;
use crate::hart::device;

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
        unsafe { device::load(base + offset, Width::Word) }.unwrap_or(0)
    };
    // A read of the lower half latches the upper one.
    let low = read(TIME_LOW);
    read(TIME_HIGH) << 32 | low
}

/// A guest's clock.
#[derive(Debug)]
pub struct Clock {
    /// Offset of the board's time of day, in nanoseconds since 1970, from the board's timer, modulo 2^64.
    board: u64,
    /// Difference of the guest's hour from the board's.
    ahead: u64,
    /// The upper half of the hour, latched by a read of the lower one.
    latched: u32,
    alarm: u64,
    alarm_high: u32,
    alarm_set: bool,
    enabled: bool,
}

impl Clock {
    /// A clock that shows `hour` when the board's timer shows `now`, both in nanoseconds.
    #[must_use]
    pub const fn new(hour: u64, now: u64) -> Self {
        let ahead = hour.wrapping_sub(now);
        Self {
            board: ahead,
            ahead,
            latched: 0,
            alarm: 0,
            alarm_high: 0,
            alarm_set: false,
            enabled: false,
        }
    }

    /// Value of the word at `offset` when the board's timer shows `now` nanoseconds.
    #[must_use]
    pub const fn read(&mut self, offset: u64, now: u64) -> u32 {
        match offset {
            TIME_LOW => {
                let hour = self.ahead.wrapping_add(now);
                self.latched = (hour >> 32) as u32;
                hour as u32
            }
            TIME_HIGH => self.latched,
            ALARM_LOW => self.alarm as u32,
            ALARM_HIGH => (self.alarm >> 32) as u32,
            IRQ_ENABLED => self.enabled as u32,
            ALARM_STATUS => self.alarm_set as u32,
            _ => 0,
        }
    }

    /// Writes the word at `offset` when the board's timer shows `now` nanoseconds.
    pub const fn write(&mut self, offset: u64, value: u32, now: u64) {
        const LOW: u64 = 0xffff_ffff;
        let hour = self.ahead.wrapping_add(now);
        match offset {
            TIME_LOW => self.ahead = (hour & !LOW | value as u64).wrapping_sub(now),
            TIME_HIGH => self.ahead = (hour & LOW | (value as u64) << 32).wrapping_sub(now),
            // The driver writes the upper half first; the lower half sets the alarm.
            ALARM_HIGH => self.alarm_high = value,
            ALARM_LOW => {
                self.alarm = (self.alarm_high as u64) << 32 | value as u64;
                self.alarm_set = true;
            }
            CLEAR_ALARM => self.alarm_set = false,
            IRQ_ENABLED => self.enabled = value & 1 != 0,
            _ => {}
        }
    }
}

impl TrappedDevice for Clock {
    fn cause(&self) -> ExitCause {
        ExitCause::MmioRtc
    }

    fn load(&mut self, access: Access, context: &dyn DeviceContext) -> u64 {
        match access.width {
            // Its registers are words.
            Width::Word => self.read(access.offset, context.timer()).into(),
            _ => 0,
        }
    }

    fn store(
        &mut self,
        access: Access,
        value: u64,
        context: &dyn DeviceContext,
    ) -> Result<(), WouldBlock> {
        if access.width == Width::Word {
            self.write(access.offset, value as u32, context.timer());
        }
        Ok(())
    }

    fn poll(&mut self, _: &dyn DeviceContext) {}

    fn irq_level(&self) -> bool {
        false
    }

    fn reset(&mut self, _: &dyn DeviceContext) {
        *self = Self::new(self.board, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 0x1816_7bbf_0123_4567;

    fn hour(clock: &mut Clock, now: u64) -> u64 {
        let low = u64::from(clock.read(TIME_LOW, now));
        // Much later: what was latched counts.
        u64::from(clock.read(TIME_HIGH, now << 20)) << 32 | low
    }

    #[test]
    fn guests_set_their_own_hour() {
        let (mut clock, mut other) = (Clock::new(HOUR, 500), Clock::new(HOUR, 500));
        assert_eq!(hour(&mut clock, 500), HOUR);
        assert_eq!(hour(&mut clock, 1500), HOUR + 1000);
        clock.write(TIME_HIGH, 7, 1500);
        clock.write(TIME_LOW, 5, 1500);
        assert_eq!(hour(&mut clock, 1600), 7 << 32 | 105);
        assert_eq!(hour(&mut other, 1500), HOUR + 1000);
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
        let mut clock = Clock::new(HOUR, 0);
        assert_eq!(clock.read(ALARM_STATUS, 0), 0);
        for (offset, value) in [(IRQ_ENABLED, 3), (ALARM_HIGH, 1), (ALARM_LOW, 2)] {
            clock.write(offset, value, 0);
        }
        let read = [ALARM_LOW, ALARM_HIGH, IRQ_ENABLED, ALARM_STATUS].map(|at| clock.read(at, 9));
        assert_eq!(read, [2, 1, 1, 1]);
        clock.write(CLEAR_ALARM, 1, 0);
        assert_eq!(clock.read(ALARM_STATUS, 0), 0);
        for offset in [0x1c, 0x20, 0xffc, u64::MAX] {
            clock.write(offset, u32::MAX, 0);
            assert_eq!(clock.read(offset, 0), 0);
        }
    }
}
