//! Simulation of a design that is not built: one account of virtual time a VM, queues per hart, and gangs by need (`docs/why/scheduling.md`).
//!
//! There are no floating-point numbers, clocks or threads in it: a run is a function of its seed.

mod account;
mod computer;
mod guests;
mod rule;

use computer::{Computer, MAX_LAG, SLICE};
use guests::{Vm, Work, draw};
use std::ops::RangeInclusive;

/// Slices of a run.
const LENGTH: u64 = 600;

fn vm(vcpus: usize, share: u32, work: Work) -> Vm {
    Vm { vcpus, share, work }
}

/// Work without locks.
const fn computes(computes: u64, thinks: u64) -> Work {
    Work {
        computes,
        holds: 0,
        thinks,
    }
}

/// Ends of each VM over its share of what it ends alone, in thousandths.
fn floor_ratios(harts: usize, vms: &[Vm], gangs: bool, seed: u64) -> Vec<u64> {
    let run = |vms: &[Vm]| {
        let mut computer = Computer::new(harts, vms, gangs, seed);
        computer.run(LENGTH * SLICE);
        computer.ends()
    };
    let shares: u64 = vms.iter().map(|vm| u64::from(vm.share)).sum();
    let together = run(vms);
    let each = together.iter().zip(vms);
    let ratio = |(ends, vm): (&u64, &Vm)| {
        let alone = run(std::slice::from_ref(vm))[0];
        ends * shares * 1000 / (alone * u64::from(vm.share)).max(1)
    };
    each.map(ratio).collect()
}

/// Ratios of all VMs of drawn systems, from the least to the most.
fn drawn(seeds: RangeInclusive<u64>, gangs: bool) -> Vec<u64> {
    let mut all: Vec<u64> = Vec::new();
    for seed in seeds {
        let (harts, vms) = draw(seed);
        all.extend(floor_ratios(harts, &vms, gangs, seed));
    }
    all.sort_unstable();
    let mean = all.iter().sum::<u64>() / all.len() as u64;
    println!(
        "gangs {gangs}: {} VMs, mean {mean}, least {:?}",
        all.len(),
        &all[..6]
    );
    all
}

/// Ticks that each VM has in each of so many windows of this length.
fn windows(computer: &mut Computer, count: usize, length: u64) -> Vec<Vec<u64>> {
    let mut before = computer.used();
    let next = |_| {
        computer.run(length);
        let used = computer.used();
        let window = used.iter().zip(&before).map(|(now, then)| now - then);
        let window = window.collect();
        before = used;
        window
    };
    (0..count).map(next).collect()
}

/// The seeds were not used when the rule was chosen.
#[test]
fn gangs_by_need_keep_the_floor() {
    let single = drawn(1001..=1024, false);
    let gangs = drawn(1001..=1024, true);
    assert!(single[0] < 800, "there is nothing to win: {}", single[0]);
    assert!(gangs[0] >= 900, "{}", gangs[0]);
}

#[test]
fn shares_hold_in_short_windows() {
    for (harts, vcpus) in [(2, [3, 2]), (4, [4, 4]), (3, [3, 3])] {
        let vms = [
            vm(vcpus[0], 100, computes(300, 0)),
            vm(vcpus[1], 50, computes(300, 0)),
        ];
        let mut computer = Computer::new(harts, &vms, true, 1);
        let due = |slices: u64| {
            let all = slices * SLICE * harts as u64;
            [all * 2 / 3, all / 3]
        };
        for window in windows(&mut computer, 50, 10 * SLICE) {
            for (had, due) in window.iter().zip(due(10)) {
                assert!(had * 100 >= due * 85, "{harts} {vcpus:?}: {window:?}");
            }
        }
        for window in windows(&mut computer, 5, 100 * SLICE) {
            for (had, due) in window.iter().zip(due(100)) {
                assert!(had * 100 >= due * 98, "{harts} {vcpus:?}: {window:?}");
            }
        }
        // Far from the bound, which a VM that always wants harts never reaches.
        let lags = computer.lags();
        let most = SLICE * harts as u64;
        assert!(lags.iter().all(|lag| lag.unsigned_abs() < most), "{lags:?}");
    }
}

/// A VM that has slept for long has the others' time for as long as its lag lasts, and no longer.
#[test]
fn idle_vms_keep_bounded_lag() {
    let sleeper = vm(4, 100, computes(60 * SLICE, 200 * SLICE));
    let vms = [vm(4, 100, computes(300, 0)), sleeper];
    let harts = 4;
    let mut computer = Computer::new(harts, &vms, true, 1);
    let all = windows(&mut computer, 400, 10 * SLICE);
    let least = all.iter().map(|window| window[0]).min().unwrap();
    let due = 10 * SLICE * harts as u64 / 2;
    let lag = MAX_LAG * harts as u64;
    println!("{least} of {due}, lag {lag}");
    assert!(least + lag >= due);
    assert!(all.iter().any(|window| window[1] == 0), "it never sleeps");
}

/// A VM that fights over a lock for nothing may become a gang; its time is its share all the same.
#[test]
fn pretended_need_gains_no_time() {
    let fights = Work {
        computes: 20,
        holds: 12,
        thinks: 0,
    };
    for gangs in [false, true] {
        let vms = [vm(4, 100, fights), vm(4, 100, computes(300, 0))];
        let mut computer = Computer::new(4, &vms, gangs, 1);
        computer.run(LENGTH * SLICE);
        let used = computer.used();
        let half = LENGTH * SLICE * 4 / 2;
        assert_eq!(computer.gangs_now(), [gangs, false]);
        println!("{used:?} of {half}");
        assert!(used[0] <= half + MAX_LAG * 4, "{used:?}");
        let ratio = floor_ratios(4, &vms, gangs, 1)[1];
        assert!(ratio >= 950, "{ratio}");
    }
}
