//! Times at which a hart polls devices that send no interrupt.
//!
//! The hart's timer is set to the earliest of these times and the hart's other deadlines. A device that another hart has polled meanwhile knows
//! itself that its time has not come.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::devices::irq::SourceNumber;
use crate::devices::virtio::queue::polling::PATIENCE;
use crate::hart::csr::{self, number};
use crate::hart::{self, common, firmware};

/// Number of sources that have a bit: those below this one.
const SOURCES: u32 = u64::BITS;
const MICROSECONDS: u64 = 1_000_000;

/// Longest time between two polls of a device with this source, in ticks; 0 for sources without a bit, which are never polled so.
#[must_use]
pub const fn patience(source: u32, timebase_hertz: u64) -> u64 {
    match source < SOURCES {
        true => timebase_hertz * PATIENCE / MICROSECONDS,
        false => 0,
    }
}

/// Times at which a hart polls devices. Used by the hart itself alone.
#[derive(Debug)]
pub struct PollSchedule {
    /// The earliest of the times.
    at: AtomicU64,
    /// A bit for each source whose device has a time.
    devices: AtomicU64,
    /// Earliest of the hart's other deadlines.
    others: AtomicU64,
    /// Deadline of the guest that has the hart, on harts without Sstc.
    guest: AtomicU64,
    /// Time that the hart's timer is set to.
    armed: AtomicU64,
    times: [AtomicU64; SOURCES as usize],
}

impl Default for PollSchedule {
    fn default() -> Self {
        Self {
            at: AtomicU64::new(u64::MAX),
            devices: AtomicU64::new(0),
            others: AtomicU64::new(u64::MAX),
            guest: AtomicU64::new(u64::MAX),
            armed: AtomicU64::new(u64::MAX),
            times: [const { AtomicU64::new(u64::MAX) }; SOURCES as usize],
        }
    }
}

impl PollSchedule {
    /// Sets the hart's timer to this time, or to the time of a device, if one is earlier.
    pub fn set_timer(&self, others: u64) {
        self.others.store(others, Ordering::Relaxed);
        self.arm();
    }

    /// Sets the time at which the device with this source is polled, in place of its former one, and the hart's timer.
    #[inline]
    pub fn poll_by(&self, source: SourceNumber, at: u64) {
        let Some(place) = self.times.get(source.0 as usize) else {
            return;
        };
        place.store(at, Ordering::Relaxed);
        let own = 1 << source.0;
        let devices = self.devices.load(Ordering::Relaxed) | own;
        self.devices.store(devices, Ordering::Relaxed);
        let earliest = match devices == own {
            true => at,
            false => self.earliest(devices),
        };
        self.at.store(earliest, Ordering::Relaxed);
        self.arm();
    }

    /// Takes the devices whose time has come, if there are any. Sets the hart's timer to the next time.
    #[must_use]
    #[inline]
    pub fn take(&self, time: u64) -> Option<impl Iterator<Item = u32> + use<>> {
        if self.at.load(Ordering::Relaxed) > time {
            return None;
        }
        let devices = self.devices.load(Ordering::Relaxed);
        let come = sources(devices).filter(|source| self.time_of(*source) <= time);
        let come = come.fold(0, |all, source| all | 1 << source);
        let left = devices & !come;
        self.devices.store(left, Ordering::Relaxed);
        self.at.store(self.earliest(left), Ordering::Relaxed);
        self.arm();
        Some(sources(come))
    }

    fn time_of(&self, source: u32) -> u64 {
        let place = self.times.get(source as usize);
        place.map_or(u64::MAX, |time| time.load(Ordering::Relaxed))
    }

    fn earliest(&self, devices: u64) -> u64 {
        let times = sources(devices).map(|source| self.time_of(source));
        times.min().unwrap_or(u64::MAX)
    }

    /// Sets the hart's timer to the earliest time.
    #[inline(never)]
    pub fn arm(&self) {
        let [at, others, guest] =
            [&self.at, &self.others, &self.guest].map(|time| time.load(Ordering::Relaxed));
        self.set(at.min(others).min(guest));
    }

    /// Sets the hart's timer itself.
    #[inline]
    fn set(&self, at: u64) {
        if common::has_supervisor_timer() {
            // SAFETY: the timer interrupt is taken in guests only, or ends a WFI; `handle_host_interrupts` handles it.
            unsafe { csr::write::<{ number::STIMECMP }>(at) };
            return;
        }
        self.set_by_firmware(at);
    }

    /// Sets the timer of a hart without Sstc. Out of line, so that the many places that set the timer stay small.
    #[inline(never)]
    fn set_by_firmware(&self, at: u64) {
        // A timer that has not expired need not be set to the same time again. One that has expired interrupts until it is set.
        let before = self.armed.load(Ordering::Relaxed);
        if at != before || before <= hart::time() {
            self.armed.store(at, Ordering::Relaxed);
            firmware::set_timer(at);
        }
    }

    /// Time at which the hart's timer interrupts.
    #[must_use]
    #[inline]
    pub fn next(&self) -> u64 {
        match common::has_supervisor_timer() {
            true => csr::read::<{ number::STIMECMP }>(),
            false => self.armed.load(Ordering::Relaxed),
        }
    }

    /// Waits for an interrupt, at most until `at`; the hart's timer is set as before then.
    pub fn wait_until(&self, at: u64) {
        let before = self.next();
        self.set(before.min(at));
        hart::wait_for_interrupt();
        self.set(before);
    }

    /// Keeps the deadline of the guest that has the hart. The caller sets the timer.
    pub fn keep_guest(&self, at: u64) {
        self.guest.store(at, Ordering::Relaxed);
    }

    /// Takes the deadline of the guest, which leaves the hart; the end of time if its interrupt was injected.
    #[must_use]
    pub fn take_guest(&self) -> u64 {
        let at = self.guest.load(Ordering::Relaxed);
        self.guest.store(u64::MAX, Ordering::Relaxed);
        at
    }

    /// Ends the deadline of the guest if it has come, and sets the timer to the next time. Returns true then.
    #[must_use]
    #[inline(never)]
    pub fn expire_guest(&self, time: u64) -> bool {
        let expired = self.guest.load(Ordering::Relaxed) <= time;
        if expired {
            self.guest.store(u64::MAX, Ordering::Relaxed);
            self.arm();
        }
        expired
    }
}

/// The sources in a set.
fn sources(mut bits: u64) -> impl Iterator<Item = u32> {
    core::iter::from_fn(move || {
        let source = bits.trailing_zeros();
        bits &= bits.checked_sub(1)?;
        Some(source)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(schedule: &PollSchedule, time: u64) -> Option<Vec<u32>> {
        schedule.take(time).map(Iterator::collect)
    }

    fn timer() -> u64 {
        csr::read::<{ number::STIMECMP }>()
    }

    #[test]
    fn devices_are_polled_at_their_time() {
        let schedule = PollSchedule::default();
        schedule.set_timer(500);
        assert_eq!((timer(), taken(&schedule, u64::MAX - 1)), (500, None));
        schedule.poll_by(SourceNumber(3), 400);
        assert_eq!(timer(), 400);
        schedule.poll_by(SourceNumber(5), 400);
        schedule.poll_by(SourceNumber(63), 470);
        schedule.poll_by(SourceNumber(64), 10);
        assert_eq!(timer(), 400);
        assert_eq!(taken(&schedule, 399), None);
        assert_eq!(taken(&schedule, 400), Some(vec![3, 5]));
        assert_eq!(timer(), 470, "one is left");
        assert_eq!(taken(&schedule, 469), None);
        assert_eq!(taken(&schedule, 480), Some(vec![63]));
        assert_eq!(timer(), 500);
        assert_eq!(taken(&schedule, u64::MAX - 1), None);
    }

    #[test]
    fn devices_postpone_their_time() {
        let schedule = PollSchedule::default();
        schedule.set_timer(1000);
        schedule.poll_by(SourceNumber(3), 400);
        schedule.poll_by(SourceNumber(3), 600);
        assert_eq!(timer(), 600);
        schedule.poll_by(SourceNumber(5), 700);
        schedule.poll_by(SourceNumber(3), 800);
        assert_eq!(timer(), 700, "the other's");
        schedule.poll_by(SourceNumber(5), 1200);
        schedule.poll_by(SourceNumber(3), 1200);
        assert_eq!(timer(), 1000, "what else the timer is for");
        assert_eq!(taken(&schedule, 1199), None);
        assert_eq!(taken(&schedule, 1200), Some(vec![3, 5]));
    }

    #[test]
    fn guests_deadline_shares_the_timer() {
        let schedule = PollSchedule::default();
        schedule.keep_guest(300);
        schedule.set_timer(500);
        assert_eq!(timer(), 300);
        assert!(!schedule.expire_guest(299));
        assert!(schedule.expire_guest(300));
        assert_eq!(timer(), 500);
        assert_eq!(schedule.take_guest(), u64::MAX, "it has expired");
        schedule.keep_guest(400);
        assert_eq!(schedule.take_guest(), 400);
        schedule.arm();
        assert_eq!(timer(), 500, "the guest has left");
    }

    #[test]
    fn patience_follows_the_timebase() {
        assert_eq!(patience(63, 24_000_000), 480);
        assert_eq!(patience(64, 24_000_000), 0);
    }
}
