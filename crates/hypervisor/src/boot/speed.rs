//! Speed of the boot hart, and the time slice that follows from it.

use crate::hart;
use scheduler::Config;

/// The steps of the loop that is timed. It takes 20 us on a computer of today, and less than a millisecond on one of 1994.
const STEPS: u64 = 1 << 14;
/// The instructions of a step: one adds, one branches.
const INSTRUCTIONS: u64 = 2;

/// The time slice in microseconds where the system does not give one, for a clock of `frequency` ticks a second.
pub fn usual_slice_us(frequency: u64) -> u32 {
    let ticks = count(STEPS).saturating_add(1);
    let microseconds = ticks.saturating_mul(1_000_000) / frequency.max(1);
    Config::usual_slice_us(STEPS * INSTRUCTIONS, microseconds)
}

/// Counts `steps` down and returns the ticks that it took. The first time brings the loop into the caches.
fn count(steps: u64) -> u64 {
    let mut ticks = 0;
    for _ in 0..2 {
        let begun = hart::time();
        hart::count_down(steps);
        ticks = hart::time().wrapping_sub(begun);
    }
    ticks
}
