//! Measures of pause-loop exits, and of how long locks are held and waited for (paper 004).

use super::inputs::{Inputs, ratio};
use super::{Figures, Measure};
use crate::storms::{PauseExitClass, Storms};

/// Numbers of exits at which the distribution of a wait's exits is given.
pub const EXIT_LIMITS: [u64; 12] = [1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000, 5000];

/// Numbers of cycles at which the distributions of how long locks are held and waited for are given.
pub const CYCLE_LIMITS: [u64; 10] = [
    128, 256, 512, 1024, 2048, 4096, 8192, 32_768, 262_144, 4_194_304,
];

/// Exits from which on a wait is a storm.
const STORM: u64 = 10;

/// Adds the measures of a run whose pause loops were watched.
pub(super) fn pause_loops(inputs: &Inputs<'_>, figures: &mut Figures) {
    let Some(watched) = inputs.storms else { return };
    // No loop exits where there is no hypervisor.
    if inputs.report.is_some() {
        exits(watched, figures);
    }
    times(watched, figures);
    if let Some(report) = inputs.hardware {
        distributions(watched, report.hertz, figures);
    }
}

/// Adds the measures of exits.
fn exits(storms: &Storms, figures: &mut Figures) {
    let all = storms.all_exits() as f64;
    figures.put(Measure::PauseExits, Some(all));
    for (class, exits) in PauseExitClass::ALL.iter().zip(storms.exits) {
        let part = ratio(Some(exits as f64 * 100.0), Some(all));
        figures.put_member(Measure::PauseExitClasses, class.name(), part);
    }
    let lost: u64 = storms.lost.iter().sum();
    for (class, time) in PauseExitClass::ALL.iter().zip(storms.lost) {
        let part = ratio(Some(time as f64 * 100.0), Some(lost as f64));
        figures.put_member(Measure::PauseWaitShares, class.name(), part);
    }
    let together = ratio(Some(storms.together as f64), Some(all));
    figures.put(Measure::VcpusExiting, together);
    let max_together = (all > 0.0).then_some(storms.max_together as f64);
    figures.put(Measure::MaxVcpusExiting, max_together);
    let of_waits = sorted(&storms.exits_of_waits);
    for limit in EXIT_LIMITS {
        let within = of_waits.partition_point(|exits| *exits <= limit) as f64;
        let part = ratio(Some(within * 100.0), Some(of_waits.len() as f64));
        figures.put_member(Measure::ExitsPerWaitCdf, &limit.to_string(), part);
    }
    let on_words: u64 = of_waits.iter().sum();
    let number = of_waits.len() as f64;
    let mean = ratio(Some(on_words as f64), Some(number));
    figures.put(Measure::ExitsPerWait, mean);
    figures.put(Measure::ExitsPerWaitP99, at_part(&of_waits, 990));
    figures.put(Measure::MaxExitsPerWait, at_part(&of_waits, 1000));
    let storm = of_waits.iter().filter(|&&exits| exits >= STORM).count();
    figures.put(Measure::PauseExitStorms, Some(storm as f64));
    let [holder, waiter, false_exits, unknown, ..] = storms.exits;
    let at_locks = holder + waiter + false_exits + unknown;
    let contended = storms.contended as f64;
    let each = ratio(Some(at_locks as f64), Some(contended));
    figures.put(Measure::ExitsPerContendedAcquisition, each);
}

/// Adds how long waits take and how long locks are held.
fn times(storms: &Storms, figures: &mut Figures) {
    let microseconds = |time: f64| time / 1e3;
    let waits = sorted(&storms.waits);
    let holds = sorted(&storms.holds);
    for (measure, times, thousandths) in [
        (Measure::PauseWaitP50, &waits, 500),
        (Measure::PauseWaitP99, &waits, 990),
        (Measure::MaxPauseWait, &waits, 1000),
        (Measure::LockHoldP50, &holds, 500),
        (Measure::LockHoldP995, &holds, 995),
    ] {
        let time = at_part(times, thousandths).map(microseconds);
        figures.put(measure, time);
    }
}

/// Adds the distributions of how long locks are held, and of how long waits take.
fn distributions(storms: &Storms, hertz: u64, figures: &mut Figures) {
    let times = [
        (Measure::LockHoldCdf, &storms.holds),
        (Measure::PauseWaitCdf, &storms.waits),
    ];
    for (family, times) in times {
        let times = sorted(times);
        for limit in CYCLE_LIMITS {
            let nanoseconds = u128::from(limit) * 1_000_000_000 / u128::from(hertz.max(1));
            let within = times.partition_point(|time| u128::from(*time) <= nanoseconds) as f64;
            let part = ratio(Some(within * 100.0), Some(times.len() as f64));
            figures.put_member(family, &limit.to_string(), part);
        }
    }
}

fn sorted(values: &[u64]) -> Vec<u64> {
    let mut values = values.to_vec();
    values.sort_unstable();
    values
}

/// The value that so many of a thousand of the sorted `values` do not exceed.
fn at_part(values: &[u64], thousandths: usize) -> Option<f64> {
    let rank = (values.len() * thousandths).div_ceil(1000);
    values.get(rank.checked_sub(1)?).map(|value| *value as f64)
}
