//! Back-off of a VM that restarts repeatedly, so that its lines leave room for others' on the console.

/// A time or a duration, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Milliseconds(pub u64);

impl Milliseconds {
    /// The time of `ticks`, of which there are `hertz` a second.
    #[must_use]
    pub fn from_ticks(ticks: u64, hertz: u32) -> Self {
        let hertz = u64::from(hertz.max(1));
        let part = ticks % hertz * 1000 / hertz;
        Self((ticks / hertz).saturating_mul(1000).saturating_add(part))
    }

    /// First tick of the time.
    #[must_use]
    pub fn ticks(self, hertz: u32) -> u64 {
        let hertz = u64::from(hertz);
        let part = (self.0 % 1000 * hertz).div_ceil(1000);
        (self.0 / 1000).saturating_mul(hertz).saturating_add(part)
    }
}

/// Length of a run that ends a row of short runs.
const LONG_RUN: u64 = 5_000;
/// Short runs in a row after which the next run begins at once.
const FREE_RUNS: u32 = 4;
/// First wait; each short run doubles it.
const FIRST_WAIT: u64 = 10;
/// Longest wait.
const MAX_WAIT: u64 = 1_000;

/// The row of short runs that a VM is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Backoff {
    short_runs: u32,
    /// Beginning of the run, past or to come.
    begins: Milliseconds,
}

impl Backoff {
    /// Begins a run at `now` by the operator's command: the row of short runs is forgotten.
    pub fn forget(&mut self, now: Milliseconds) {
        *self = Self {
            short_runs: 0,
            begins: now,
        };
    }

    /// Notes the end of a run at `now` that another run follows. Returns the wait before that one.
    pub fn restart(&mut self, now: Milliseconds) -> Milliseconds {
        let lasted = now.0.saturating_sub(self.begins.0);
        self.short_runs = match lasted {
            LONG_RUN.. => 0,
            _ => self.short_runs.saturating_add(1),
        };
        let wait = match self.short_runs.checked_sub(FREE_RUNS + 1) {
            None => 0,
            Some(doublings) => (FIRST_WAIT << doublings.min(16)).min(MAX_WAIT),
        };
        self.begins = Milliseconds(now.0.saturating_add(wait));
        Milliseconds(wait)
    }

    /// Short runs in a row until now.
    #[must_use]
    pub fn short_runs(&self) -> u32 {
        self.short_runs
    }

    /// Time at which the run may begin; `None` if it is past.
    #[must_use]
    pub fn waits_until(&self, now: Milliseconds) -> Option<Milliseconds> {
        (now < self.begins).then_some(self.begins)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hart that waits until the first tick of a millisecond finds it begun.
    #[test]
    fn first_tick_is_in_its_millisecond() {
        for hertz in [1, 3, 999, 32_768, 24_000_000, 1_000_000_007] {
            for time in [0, 1, 7, 999, 1000, 12_345_678].map(Milliseconds) {
                let tick = time.ticks(hertz);
                assert!(Milliseconds::from_ticks(tick, hertz) >= time);
                let before = tick.saturating_sub(1);
                assert!(tick == 0 || Milliseconds::from_ticks(before, hertz) < time);
            }
        }
    }

    #[test]
    fn short_runs_are_slowed_down() {
        let mut backoff = Backoff::default();
        let mut now = Milliseconds(1_000_000);
        backoff.forget(now);
        let mut waits = std::vec::Vec::new();
        for _ in 0..14 {
            let wait = backoff.restart(now);
            waits.push(wait.0);
            assert_eq!(backoff.waits_until(now).is_some(), wait.0 > 0);
            now.0 += wait.0;
            assert_eq!(backoff.waits_until(now), None);
        }
        let expected = [0, 0, 0, 0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000, 1000];
        assert_eq!(waits, expected);
        assert_eq!(backoff.short_runs(), 14);
    }

    #[test]
    fn long_run_or_operator_ends_the_row() {
        let mut backoff = Backoff::default();
        let row = |backoff: &mut Backoff| {
            for _ in 0..10 {
                backoff.restart(Milliseconds(7));
            }
        };
        row(&mut backoff);
        let later = Milliseconds(7 + 1000 + LONG_RUN);
        assert_eq!(backoff.restart(later), Milliseconds(0));
        assert_eq!(backoff.short_runs(), 0);
        row(&mut backoff);
        backoff.forget(Milliseconds(8));
        assert_eq!(backoff.waits_until(Milliseconds(8)), None);
        assert_eq!(backoff.restart(Milliseconds(9)), Milliseconds(0));
    }
}
