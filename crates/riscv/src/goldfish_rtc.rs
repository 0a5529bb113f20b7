//! Goldfish real-time clock (Android, "Goldfish virtual hardware", section "Goldfish real-time clock"). Registers are words.

/// Lower half of the time, in nanoseconds; a read latches the upper half.
pub const TIME_LOW: u64 = 0x00;
/// Upper half of the time.
pub const TIME_HIGH: u64 = 0x04;
/// Lower half of the alarm; a write sets the alarm.
pub const ALARM_LOW: u64 = 0x08;
/// Upper half of the alarm.
pub const ALARM_HIGH: u64 = 0x0c;
/// The alarm interrupts.
pub const IRQ_ENABLED: u64 = 0x10;
/// A write takes the alarm away.
pub const CLEAR_ALARM: u64 = 0x14;
/// An alarm is set.
pub const ALARM_STATUS: u64 = 0x18;
/// A write takes the interrupt away.
pub const CLEAR_INTERRUPT: u64 = 0x1c;
