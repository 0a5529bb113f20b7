//! Fairness over short times: the part of its due that each VM got ([`crate::entitlement`]) in windows of 20 ms and of 200 ms.
//!
//! Who listens to the machine's events changes nothing.

use crate::checkpoint::{Boot, CheckpointFailure};
use crate::entitlement::{Demand, Entitled, Had};
use crate::headless::Limits;
use crate::measures::{Figures, Measure};
use crate::run::Outcome;
use crate::window::{Window, begin, boot_and};
use abi::system::Allocation;
use machine::Stop;
use system::System;

/// The short window in milliseconds of machine time, and how many of them make a long one.
const SHORT: u64 = 20;
const SHORTS_IN_A_LONG: usize = 10;

/// Runs a system whose VMs work for the time of `window`, and measures what part of what it was due each had that could use a hart all the
/// time: `min-share-20ms` and `min-share-200ms` in per cent.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn measure(
    boot: &Boot<'_>,
    window: &Window,
    show: &mut dyn FnMut(&str),
) -> Result<(Outcome, Figures), CheckpointFailure> {
    boot_and(boot, |_, mut run| {
        let demand = demand(boot.system);
        run.machine.listen(Box::new(demand.clone()));
        let begun = begin(&mut run, boot, window, show)?;
        let to_end = Limits {
            stop: Some(boot.stop),
            ..Limits::of(boot.system, boot.limit, run.machine.clock())
        };
        let a_millisecond = run.machine.clock().cycles_per_second() / 1000;
        let end = begun.saturating_add(a_millisecond.saturating_mul(window.milliseconds));
        let _ = demand.take(run.machine.now());
        let mut windows = Vec::new();
        let mut stop = Stop::Limit;
        while stop == Stop::Limit {
            let next = run.machine.now() + a_millisecond * SHORT;
            if next > end {
                break;
            }
            let limits = Limits {
                cycles: Some(next),
                ..to_end
            };
            stop = run.follow(&limits, show);
            let had = demand.take(run.machine.now());
            if stop == Stop::Limit {
                windows.push(had);
            }
        }
        if stop == Stop::Limit {
            stop = run.follow(&to_end, show);
        }
        let figures = figures(&windows);
        Ok((run.finish(stop).outcome, figures))
    })
}

/// For the VMs of a system, which float.
fn demand(system: &System) -> Demand {
    let vms = system.vms.iter().map(|vm| Entitled {
        vcpus: vm.vcpus.value,
        share: match vm.allocation.value {
            Allocation::Shared { share } => f64::from(share),
            Allocation::Dedicated { .. } => 0.0,
        },
    });
    let vms: Vec<Entitled> = vms.collect();
    let alone = vms.iter().filter(|vm| vm.share == 0.0);
    let alone: u32 = alone.map(|vm| vm.vcpus).sum();
    Demand::new(system.harts.value.saturating_sub(alone), vms)
}

/// The least part of what it was due that a VM had which could use a hart all the time, in short and in long windows.
fn figures(windows: &[Vec<Had>]) -> Figures {
    let least = |length: usize| {
        let parts = windows.windows(length).flat_map(|some| {
            let vms = 0..some.first().map_or(0, Vec::len);
            let of_vm = |vm| {
                let had = some.iter().filter_map(|window| window.get(vm).copied());
                had.fold(Had::default(), Had::and)
            };
            let sums: Vec<Had> = vms.map(of_vm).collect();
            let always = sums
                .into_iter()
                .filter(|had| had.wanted_none == 0.0 && had.due > 0.0);
            always.map(|had| had.got / had.due)
        });
        parts.min_by(f64::total_cmp)
    };
    let mut figures = Figures::new();
    for (measure, length) in [
        (Measure::MinShare20, 1),
        (Measure::MinShare200, SHORTS_IN_A_LONG),
    ] {
        figures.put(measure, least(length).map(|part| part * 100.0));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn had(got: f64, due: f64, wanted_none: f64) -> Had {
        Had {
            got,
            due,
            wanted_none,
        }
    }

    #[test]
    fn only_always_runnable_vms_are_judged() {
        let mut windows = vec![vec![had(50.0, 50.0, 0.0), had(1.0, 50.0, 1.0)]; 10];
        windows[3] = vec![had(20.0, 50.0, 0.0), had(80.0, 50.0, 1.0)];
        let all = figures(&windows);
        assert!((all.get(Measure::MinShare20).unwrap() - 40.0).abs() < 1e-9);
        assert!((all.get(Measure::MinShare200).unwrap() - 94.0).abs() < 1e-9);
        windows.pop();
        let all = figures(&windows);
        assert_eq!(all.get(Measure::MinShare200), None, "too short");
    }
}
