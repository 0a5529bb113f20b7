//! Lines on their way to a hart that nothing waits for: those of buffered stores and of prefetches.

use serde::{Deserialize, Serialize};

/// A line on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Flight {
    line: u64,
    arrives: u64,
    store: bool,
}

/// Lines on their way to a hart.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Flight>", into = "Vec<Flight>")]
pub(super) struct Flights {
    lines: Vec<Flight>,
    /// When the last of all stores so far is done, in cycles.
    stores_done: u64,
}

impl From<Vec<Flight>> for Flights {
    fn from(lines: Vec<Flight>) -> Self {
        let stores = lines.iter().filter(|flight| flight.store);
        let stores_done = stores.map(|flight| flight.arrives).max().unwrap_or(0);
        Self { lines, stores_done }
    }
}

impl From<Flights> for Vec<Flight> {
    fn from(flights: Flights) -> Self {
        flights.lines
    }
}

impl Flights {
    /// Forgets what has arrived at `now`.
    pub fn settle(&mut self, now: u64) {
        self.lines.retain(|flight| flight.arrives > now);
    }

    /// Cycles from `now` until a line is there; 0 if it is not on its way.
    pub fn wait(&self, line: u64, now: u64) -> u64 {
        let last = self.lines.iter().rev().find(|flight| flight.line == line);
        last.map_or(0, |flight| flight.arrives.saturating_sub(now))
    }

    /// Puts a store whose line takes `latency` cycles into a buffer of so many places; gives the cycles until it has one. Call
    /// [`Self::settle`] before.
    pub fn buffer_store(&mut self, (line, latency): (u64, u64), now: u64, places: usize) -> u64 {
        let stores = self.lines.iter().filter(|flight| flight.store);
        let mut wait = 0;
        if stores.clone().count() >= places
            && let Some(first) = stores.map(|flight| flight.arrives).min()
        {
            wait = first.saturating_sub(now);
            self.settle(first);
        }
        let arrives = now + wait + latency;
        self.lines.push(Flight {
            line,
            arrives,
            store: true,
        });
        self.stores_done = self.stores_done.max(arrives);
        wait
    }

    /// Notes a line that a prefetcher has asked for.
    pub fn prefetch(&mut self, line: u64, arrives: u64) {
        self.lines.push(Flight {
            line,
            arrives,
            store: false,
        });
    }

    /// How many prefetched lines are on their way.
    pub fn prefetched(&self) -> usize {
        self.lines.iter().filter(|flight| !flight.store).count()
    }

    /// Cycles from `now` until the store buffer is empty.
    pub const fn drain(&self, now: u64) -> u64 {
        self.stores_done.saturating_sub(now)
    }

    /// Place of the time at which the store buffer is empty, for translated code.
    pub const fn stores_done(&self) -> *const u64 {
        &raw const self.stores_done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saved_flights_drain_as_before() {
        let mut flights = Flights::default();
        flights.buffer_store((1, 100), 0, 2);
        flights.prefetch(2, 500);
        let saved: Vec<Flight> = flights.clone().into();
        assert_eq!(Flights::from(saved).drain(30), 70);
        flights.settle(200);
        let saved: Vec<Flight> = flights.into();
        assert_eq!(Flights::from(saved).drain(200), 0);
    }

    #[test]
    fn stores_wait_for_a_place() {
        let mut flights = Flights::default();
        assert_eq!(flights.buffer_store((1, 100), 0, 2), 0);
        assert_eq!(flights.buffer_store((2, 100), 10, 2), 0);
        assert_eq!((flights.wait(1, 20), flights.wait(3, 20)), (80, 0));
        assert_eq!(flights.buffer_store((3, 100), 20, 2), 80);
        // The third got the first one's place, when that had arrived.
        assert_eq!(flights.drain(100), 100);
        flights.settle(110);
        assert_eq!(flights.buffer_store((4, 100), 110, 2), 0);
        assert_eq!(flights.prefetched(), 0);
    }
}
