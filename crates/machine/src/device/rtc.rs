//! The Goldfish real-time clock.
//!
//! Registers as Linux's `rtc-goldfish` driver documents them: time and alarm in nanoseconds since
//! 1970. The time of day at reset is given by the configuration, and goes on with machine time:
//! no run looks at the host's clock.

use riscv::goldfish_rtc::{
    ALARM_HIGH, ALARM_LOW, ALARM_STATUS, CLEAR_ALARM, CLEAR_INTERRUPT, IRQ_ENABLED, TIME_HIGH,
    TIME_LOW,
};
use serde::{Deserialize, Serialize};

use super::{AccessFault, Context, Cycles, Device};

/// The clock.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rtc {
    source: u32,
    /// Lead of the time over machine time, in nanoseconds modulo 2^64.
    epoch: u64,
    /// The upper half of the time, latched by a read of the lower one.
    latched_high: u32,
    alarm_high: u32,
    alarm: Option<u64>,
    due: Cycles,
    pending: bool,
    enabled: bool,
}

impl Rtc {
    /// A clock on APLIC source `source` that shows `epoch` nanoseconds since 1970 at reset.
    #[must_use]
    pub const fn new(source: u32, epoch: u64) -> Self {
        Self {
            source,
            epoch,
            latched_high: 0,
            alarm_high: 0,
            alarm: None,
            due: Cycles::NEVER,
            pending: false,
            enabled: false,
        }
    }

    fn time(&self, context: &Context<'_>) -> u64 {
        context
            .clock
            .nanoseconds(context.now)
            .wrapping_add(self.epoch)
    }

    fn set_alarm(&mut self, alarm: u64, context: &mut Context<'_>) {
        self.alarm = Some(alarm);
        let ahead = alarm.saturating_sub(self.time(context));
        self.due = context
            .now
            .after(context.clock.cycles_in_nanoseconds(ahead));
        self.tick(context);
    }

    fn drive(&self, context: &mut Context<'_>) {
        context.set_line(self.source, self.pending && self.enabled);
    }
}

impl Device for Rtc {
    fn read(
        &mut self,
        offset: u64,
        size: u8,
        context: &mut Context<'_>,
    ) -> Result<u64, AccessFault> {
        if size != 4 {
            return Err(AccessFault);
        }
        let value = match offset {
            TIME_LOW => {
                let time = self.time(context);
                self.latched_high = (time >> 32) as u32;
                time & 0xffff_ffff
            }
            TIME_HIGH => u64::from(self.latched_high),
            ALARM_LOW => self.alarm.unwrap_or(0) & 0xffff_ffff,
            ALARM_HIGH => self.alarm.unwrap_or(0) >> 32,
            IRQ_ENABLED => u64::from(self.enabled),
            ALARM_STATUS => u64::from(self.alarm.is_some()),
            _ => 0,
        };
        Ok(value)
    }

    fn write(
        &mut self,
        offset: u64,
        size: u8,
        value: u64,
        context: &mut Context<'_>,
    ) -> Result<(), AccessFault> {
        if size != 4 {
            return Err(AccessFault);
        }
        let low = value & 0xffff_ffff;
        let nanoseconds = context.clock.nanoseconds(context.now);
        let time = self.time(context);
        match offset {
            TIME_LOW => self.epoch = (time & !0xffff_ffff | low).wrapping_sub(nanoseconds),
            TIME_HIGH => {
                self.epoch = (time & 0xffff_ffff | low << 32).wrapping_sub(nanoseconds);
            }
            // The driver writes the upper half first; the lower half sets the alarm.
            ALARM_HIGH => self.alarm_high = low as u32,
            ALARM_LOW => self.set_alarm(u64::from(self.alarm_high) << 32 | low, context),
            CLEAR_ALARM => (self.alarm, self.due) = (None, Cycles::NEVER),
            IRQ_ENABLED => self.enabled = value & 1 != 0,
            CLEAR_INTERRUPT => self.pending = false,
            _ => {}
        }
        self.drive(context);
        Ok(())
    }

    fn tick(&mut self, context: &mut Context<'_>) {
        if context.now >= self.due {
            (self.alarm, self.due, self.pending) = (None, Cycles::NEVER, true);
            self.drive(context);
        }
    }

    fn next_event(&self) -> Option<Cycles> {
        (self.due != Cycles::NEVER).then_some(self.due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::{Clock, Effects, FlatMemory};

    const EPOCH: u64 = 0x0123_4567_89ab_cdef;

    fn at<T>(
        rtc: &mut Rtc,
        effects: &mut Effects,
        now: u64,
        act: impl FnOnce(&mut Rtc, &mut Context<'_>) -> T,
    ) -> T {
        let clock = Clock::new(2_000_000_000, 10_000_000);
        let mut memory = FlatMemory::default();
        act(
            rtc,
            &mut Context {
                now: Cycles(now),
                clock,
                memory: &mut memory,
                effects,
            },
        )
    }

    fn time(rtc: &mut Rtc, effects: &mut Effects, now: u64) -> u64 {
        let mut read =
            |offset| at(rtc, effects, now, |rtc, c| rtc.read(offset, 4, c)).expect("word");
        read(TIME_LOW) | read(TIME_HIGH) << 32
    }

    #[test]
    fn time_runs_from_the_epoch() {
        let (mut rtc, mut effects) = (Rtc::new(11, EPOCH), Effects::default());
        assert_eq!(time(&mut rtc, &mut effects, 0), EPOCH);
        assert_eq!(time(&mut rtc, &mut effects, 2000), EPOCH + 1000);
        for (offset, value) in [(TIME_HIGH, 7), (TIME_LOW, 5)] {
            at(&mut rtc, &mut effects, 2000, |rtc, c| {
                rtc.write(offset, 4, value, c)
            })
            .expect("word");
        }
        assert_eq!(time(&mut rtc, &mut effects, 2000), 7 << 32 | 5);
        assert_eq!(time(&mut rtc, &mut effects, 2200), 7 << 32 | 105);
    }

    #[test]
    fn an_alarm_interrupts_once_and_on_time() {
        let (mut rtc, mut effects) = (Rtc::new(11, 1000), Effects::default());
        for (offset, value) in [(IRQ_ENABLED, 1), (ALARM_HIGH, 0), (ALARM_LOW, 1500)] {
            at(&mut rtc, &mut effects, 0, |rtc, c| {
                rtc.write(offset, 4, value, c)
            })
            .expect("word");
        }
        assert_eq!(rtc.next_event(), Some(Cycles(1000)));
        let line = |effects: &Effects| effects.lines.last().is_some_and(|change| change.level);
        at(&mut rtc, &mut effects, 999, |rtc, c| rtc.tick(c));
        assert!(!line(&effects));
        at(&mut rtc, &mut effects, 1000, |rtc, c| rtc.tick(c));
        assert!(line(&effects));
        assert_eq!(rtc.next_event(), None);
        at(&mut rtc, &mut effects, 1001, |rtc, c| {
            rtc.write(CLEAR_INTERRUPT, 4, 1, c)
        })
        .expect("word");
        assert!(!line(&effects));
    }
}
