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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Flights(Vec<Flight>);

impl Flights {
    /// Forgets what has arrived at `now`.
    pub fn settle(&mut self, now: u64) {
        self.0.retain(|flight| flight.arrives > now);
    }

    /// Cycles from `now` until a line is there; 0 if it is not on its way.
    pub fn wait(&self, line: u64, now: u64) -> u64 {
        let last = self.0.iter().rev().find(|flight| flight.line == line);
        last.map_or(0, |flight| flight.arrives.saturating_sub(now))
    }

    /// Puts a store whose line takes `latency` cycles into a buffer of so many places; gives the cycles until it has one. Call
    /// [`Self::settle`] before.
    pub fn buffer_store(&mut self, (line, latency): (u64, u64), now: u64, places: usize) -> u64 {
        let stores = self.0.iter().filter(|flight| flight.store);
        let mut wait = 0;
        if stores.clone().count() >= places
            && let Some(first) = stores.map(|flight| flight.arrives).min()
        {
            wait = first.saturating_sub(now);
            self.settle(first);
        }
        self.0.push(Flight {
            line,
            arrives: now + wait + latency,
            store: true,
        });
        wait
    }

    /// Notes a line that a prefetcher has asked for.
    pub fn prefetch(&mut self, line: u64, arrives: u64) {
        self.0.push(Flight {
            line,
            arrives,
            store: false,
        });
    }

    /// How many prefetched lines are on their way.
    pub fn prefetched(&self) -> usize {
        self.0.iter().filter(|flight| !flight.store).count()
    }

    /// Cycles from `now` until the store buffer is empty.
    pub fn drain(&self, now: u64) -> u64 {
        let stores = self.0.iter().filter(|flight| flight.store);
        let last = stores.map(|flight| flight.arrives).max();
        last.map_or(0, |last| last.saturating_sub(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
