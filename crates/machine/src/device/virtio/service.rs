//! How long a device takes, and how it fails when it is told to.

use serde::{Deserialize, Serialize};

use crate::base::Random;
use crate::device::{Clock, Cycles};
pub use crate::profile::{Chance, Faults, Service};

/// Outcome of a request, decided when the device took it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fate {
    /// The request fails.
    pub fails: bool,
    /// Half of the data is transferred, and the request fails.
    pub short: bool,
    /// Delivery of its interrupt.
    pub interrupt: Interrupt,
}

/// Delivery of a request's interrupt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Interrupt {
    /// It is raised with the completion.
    Prompt,
    /// It is raised that much later.
    Late(Cycles),
    /// It is not raised.
    Lost,
}

/// Statistics of a device, for the hardware monitor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// Requests taken.
    pub requests: u64,
    /// Requests that failed, on purpose or not.
    pub errors: u64,
    /// Bytes of data moved.
    pub bytes: u64,
    /// Service time, summed over requests.
    pub busy: Cycles,
    /// Time that requests waited before their service began, summed.
    pub waited: Cycles,
}

impl Statistics {
    /// Statistics since an earlier sample.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            requests: self.requests.wrapping_sub(earlier.requests),
            errors: self.errors.wrapping_sub(earlier.errors),
            bytes: self.bytes.wrapping_sub(earlier.bytes),
            busy: Cycles(self.busy.0.wrapping_sub(earlier.busy.0)),
            waited: Cycles(self.waited.0.wrapping_sub(earlier.waited.0)),
        }
    }
}

/// The servers of a device and the requests in them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Station<T> {
    service: Service,
    faults: Faults,
    random: Random,
    /// When each server is free again.
    free: Vec<Cycles>,
    /// In the order of completion.
    in_service: Vec<(Cycles, u64, T)>,
    /// The position at which the last request ended.
    position: Option<u64>,
    /// More time that the next request takes.
    delay: Cycles,
    statistics: Statistics,
}

impl<T> Station<T> {
    /// An idle station; `seed` determines what is drawn.
    #[must_use]
    pub fn new(service: Service, faults: Faults, seed: u64) -> Self {
        let servers = service.queue_depth.clamp(1, 1024) as usize;
        Self {
            service,
            faults,
            random: Random::new(seed),
            free: vec![Cycles(0); servers],
            in_service: Vec::new(),
            position: None,
            delay: Cycles(0),
            statistics: Statistics::default(),
        }
    }

    /// Draws from another sequence from now on.
    pub fn reseed(&mut self, seed: u64) {
        self.random = Random::new(seed);
    }

    /// Drops the requests in service: a device reset.
    pub fn clear(&mut self) {
        self.in_service.clear();
        self.free.fill(Cycles(0));
    }

    /// Draws the fate of the next request.
    pub fn fate(&mut self, clock: &Clock) -> Fate {
        let (request, faults) = (self.statistics.requests, &self.faults);
        let mut strikes = |chance: &Chance| chance.strikes(request, &mut self.random);
        // Each is drawn whatever the others are, so that one setting does not shift another.
        let (fails, short) = (strikes(&faults.errors), strikes(&faults.short));
        let (lost, late) = (
            strikes(&faults.lost_interrupts),
            strikes(&faults.late_interrupts),
        );
        let interrupt = if lost {
            Interrupt::Lost
        } else if late {
            Interrupt::Late(clock.cycles_in_nanoseconds(faults.late_nanoseconds))
        } else {
            Interrupt::Prompt
        };
        Fate {
            fails,
            short,
            interrupt,
        }
    }

    /// Makes the service of the next request longer.
    pub fn delay(&mut self, by: Cycles) {
        self.delay = self.delay.after(by);
    }

    /// Puts a request of `bytes` in service. `place` is where on the medium it begins and ends;
    /// a device without one has no seeks.
    pub fn begin(
        &mut self,
        now: Cycles,
        clock: &Clock,
        bytes: u64,
        place: Option<(u64, u64)>,
        request: T,
    ) {
        let service = self.service;
        let mut nanoseconds = service.fixed_nanoseconds;
        let transfer = u128::from(bytes) * u128::from(service.picoseconds_per_byte) / 1000;
        nanoseconds = nanoseconds.saturating_add(u64::try_from(transfer).unwrap_or(u64::MAX));
        if let Some((start, end)) = place {
            if self.position != Some(start) {
                let shortest = service.shortest_seek_nanoseconds;
                let range = service.longest_seek_nanoseconds.saturating_sub(shortest);
                let seek = shortest + self.random.below(range.saturating_add(1));
                nanoseconds = nanoseconds.saturating_add(seek);
            }
            self.position = Some(end);
        }
        let delay = std::mem::take(&mut self.delay);
        let length = clock.cycles_in_nanoseconds(nanoseconds).after(delay);
        let start = match self.free.iter_mut().min() {
            Some(free) => {
                let start = now.max(*free);
                *free = start.after(length);
                start
            }
            None => now,
        };
        let number = self.statistics.requests;
        self.statistics.requests += 1;
        self.statistics.bytes = self.statistics.bytes.saturating_add(bytes);
        self.statistics.busy = self.statistics.busy.after(length);
        self.statistics.waited = self.statistics.waited.after(Cycles(start.0 - now.0));
        let done = start.after(length);
        let at = self
            .in_service
            .partition_point(|&(other, _, _)| other <= done);
        self.in_service.insert(at, (done, number, request));
    }

    /// Takes a request whose service is over by `now`, the earliest first.
    pub fn end(&mut self, now: Cycles) -> Option<T> {
        let &(done, _, _) = self.in_service.first()?;
        (done <= now).then(|| self.in_service.remove(0).2)
    }

    /// When the next request's service is over.
    #[must_use]
    pub fn next_event(&self) -> Option<Cycles> {
        self.in_service.first().map(|&(done, _, _)| done)
    }

    /// Counts a failed request.
    pub fn count_error(&mut self) {
        self.statistics.errors += 1;
    }

    /// Statistics of the device.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLOCK: fn() -> Clock = || Clock::new(1_000_000_000, 1_000_000);

    fn completions(service: Service, requests: &[(u64, u64, u64)]) -> Vec<u64> {
        let mut station = Station::new(service, Faults::default(), 1);
        for &(now, bytes, sector) in requests {
            station.begin(
                Cycles(now),
                &CLOCK(),
                bytes,
                Some((sector, sector + bytes)),
                (),
            );
        }
        let mut times = Vec::new();
        while let Some(at) = station.next_event() {
            times.push(at.0);
            station.end(at);
        }
        times
    }

    #[test]
    fn requests_wait_for_a_free_server() {
        let service = Service {
            fixed_nanoseconds: 100,
            queue_depth: 1,
            ..Service::default()
        };
        let requests = [(0, 0, 0), (10, 0, 0), (500, 0, 0)];
        assert_eq!(completions(service, &requests), [100, 200, 600]);
        let two = Service {
            queue_depth: 2,
            ..service
        };
        assert_eq!(completions(two, &requests), [100, 110, 600]);
    }

    #[test]
    fn bytes_and_seeks_take_their_time() {
        let service = Service {
            picoseconds_per_byte: 500,
            shortest_seek_nanoseconds: 1000,
            longest_seek_nanoseconds: 2000,
            ..Service::default()
        };
        let [first, second] = completions(service, &[(0, 64, 0), (0, 64, 64)])[..] else {
            panic!("two requests complete");
        };
        assert!(
            (1032..=2032).contains(&first),
            "a seek and 64 bytes: {first}"
        );
        assert_eq!(second - first, 32, "a request that goes on has no seek");
    }

    #[test]
    fn faults_strike_the_requests_that_they_name() {
        let errors = Chance {
            per_million: 0,
            at: vec![1],
        };
        let mut station = Station::new(
            Service::default(),
            Faults {
                errors,
                ..Faults::default()
            },
            1,
        );
        let fates: Vec<bool> = (0..3)
            .map(|_| {
                let fate = station.fate(&CLOCK());
                station.begin(Cycles(0), &CLOCK(), 0, None, ());
                fate.fails
            })
            .collect();
        assert_eq!(fates, [false, true, false]);
    }

    #[test]
    fn a_rate_is_met_on_the_average() {
        let errors = Chance {
            per_million: 250_000,
            at: Vec::new(),
        };
        let mut station: Station<()> = Station::new(
            Service::default(),
            Faults {
                errors,
                ..Faults::default()
            },
            1,
        );
        let failed = (0..40_000).filter(|_| station.fate(&CLOCK()).fails).count();
        // Four standard deviations of a binomial distribution are 347.
        assert!(failed.abs_diff(10_000) < 347, "{failed} of 40000");
    }
}
