//! Shares, over long runs of vCPUs that only compute.

mod simulation;

use proptest::prelude::*;
use scheduler::*;
use simulation::{FREQUENCY, Habit, Simulation};

/// What each virtual machine should get of `harts` harts, in harts.
fn fair(harts: u16, vms: &[(u16, u32)]) -> Vec<f64> {
    let shares: u32 = vms.iter().map(|&(_, share)| share).sum();
    let part = |share: u32| f64::from(harts) * f64::from(share) / f64::from(shares);
    vms.iter().map(|&(_, share)| part(share)).collect()
}

/// Whether each virtual machine has vCPUs enough to consume its share, with some to spare: at the
/// very limit none of them could ever wait.
fn is_feasible(harts: u16, vms: &[(u16, u32)]) -> bool {
    let spare = |(fair, &(vcpus, _)): (f64, &(u16, u32))| fair <= 0.75 * f64::from(vcpus);
    fair(harts, vms).into_iter().zip(vms).all(spare)
}

fn measure(config: Config, harts: u16, vms: &[(u16, u32)]) -> Vec<f64> {
    let mut simulation = Simulation::new(config, harts, 1);
    simulation.checked = false;
    let add = |&(vcpus, share): &(u16, u32)| {
        simulation.add_vm(vcpus, Allocation::Shared { share }, Habit::CpuBound)
    };
    let ids: Vec<VmId> = vms.iter().map(add).collect();
    simulation.start_all();
    simulation.run(config.slice.get() * 20_000);
    let now = simulation.now as f64;
    let used = |vm| simulation.scheduler.used(vm).get() as f64 / now;
    ids.into_iter().map(used).collect()
}

fn assert_fair(config: Config, harts: u16, vms: &[(u16, u32)]) {
    let measured = measure(config, harts, vms);
    for (vm, (measured, fair)) in measured.iter().zip(fair(harts, vms)).enumerate() {
        let error = (measured - fair).abs() / fair;
        assert!(
            error <= 0.01,
            "vm{vm} of {vms:?} got {measured:.4} of {fair:.4} harts"
        );
    }
}

#[test]
fn shares_hold_whatever_the_number_of_vcpus() {
    for affinity in [0, 3] {
        let config = Config {
            affinity,
            ..Config::new(FREQUENCY)
        };
        assert_fair(config, 1, &[(1, 50), (1, 50)]);
        assert_fair(config, 1, &[(4, 50), (1, 50)]);
        assert_fair(config, 2, &[(4, 30), (4, 70)]);
        assert_fair(config, 2, &[(6, 30), (2, 70)]);
        assert_fair(config, 3, &[(3, 10), (2, 20), (5, 70)]);
        assert_fair(config, 4, &[(4, 10), (4, 20), (4, 70)]);
        assert_fair(config, 4, &[(8, 50), (4, 50)]);
        assert_fair(config, 4, &[(8, 1), (6, 99)]);
    }
}

#[test]
fn shares_hold_on_each_hart_under_fixed_scheduling() {
    let config = Config {
        placement: Placement::Fixed,
        ..Config::new(FREQUENCY)
    };
    assert_fair(config, 2, &[(2, 30), (2, 70)]);
    assert_fair(config, 2, &[(4, 30), (2, 70)]);
    assert_fair(config, 3, &[(3, 10), (3, 20), (3, 70)]);
}

#[test]
fn what_one_cannot_use_goes_to_the_others() {
    for vms in [&[(1, 90), (4, 10)][..], &[(1, 70), (2, 20), (8, 10)]] {
        let measured = measure(Config::new(FREQUENCY), 2, vms);
        let all: f64 = measured.iter().sum();
        assert!((all - 2.0).abs() <= 0.01, "{all:.4} of 2 harts are used");
        // One vCPU cannot have more than a hart; it gets more than one of several with equal shares.
        let equal = 2.0 / vms.iter().map(|&(vcpus, _)| f64::from(vcpus)).sum::<f64>();
        assert!(
            measured[0] > 1.5 * equal && measured[0] <= 1.0,
            "{:.4} harts",
            measured[0]
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_feasible_shares_hold(
        (harts, vms) in (1u16..=4, prop::collection::vec((1u16..=6, 1u32..=20), 2..=4))
            .prop_filter("feasible", |(harts, vms)| is_feasible(*harts, vms)),
        round in 4u32..=32,
        affinity in 0u8..=8,
    ) {
        assert_fair(Config { round, affinity, ..Config::new(FREQUENCY) }, harts, &vms);
    }
}
