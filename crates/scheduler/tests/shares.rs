//! Shares, over long runs of vCPUs that only compute.

mod simulation;

use proptest::prelude::*;
use scheduler::*;
use simulation::{FREQUENCY, Habit, Simulation};

/// Entitlement of each VM to `harts` harts, in harts: in proportion to the shares, but no more than a hart for each vCPU; the excess goes to the
/// others.
fn fair(harts: u16, vms: &[(u16, u32)]) -> Vec<f64> {
    let mut fair: Vec<f64> = vms.iter().map(|&(vcpus, _)| f64::from(vcpus)).collect();
    let mut open: Vec<usize> = (0..vms.len()).collect();
    let mut left = f64::from(harts);
    while !open.is_empty() {
        let shares: u32 = open.iter().map(|&vm| vms[vm].1).sum();
        let part = left / f64::from(shares);
        let fits = |&vm: &usize| part * f64::from(vms[vm].1) < fair[vm];
        let (limited, full): (Vec<usize>, Vec<usize>) = open.iter().copied().partition(fits);
        if full.is_empty() {
            limited
                .into_iter()
                .for_each(|vm| fair[vm] = part * f64::from(vms[vm].1));
            break;
        }
        left -= full.into_iter().map(|vm| fair[vm]).sum::<f64>();
        open = limited;
    }
    fair
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
fn fixed_scheduling_keeps_shares_per_hart() {
    let config = Config {
        placement: Placement::Fixed,
        ..Config::new(FREQUENCY)
    };
    assert_fair(config, 2, &[(2, 30), (2, 70)]);
    assert_fair(config, 2, &[(4, 30), (2, 70)]);
    assert_fair(config, 3, &[(3, 10), (3, 20), (3, 70)]);
}

/// The first VM has another placement than the system.
#[test]
fn mixed_placement_keeps_shares() {
    for placements in [
        [Placement::Fixed, Placement::Floating],
        [Placement::Floating, Placement::Fixed],
    ] {
        let config = Config {
            placement: placements[1],
            ..Config::new(FREQUENCY)
        };
        for vms in [[(2, 30), (2, 70)], [(2, 70), (2, 30)], [(2, 50), (4, 50)]] {
            let mut simulation = Simulation::new(config, 2, 1);
            simulation.checked = false;
            let mut ids = Vec::new();
            for (placement, (vcpus, share)) in placements.into_iter().zip(vms) {
                let shared = Allocation::Shared { share };
                let habit = Habit::CpuBound;
                ids.push(simulation.add_placed_vm(placement, vcpus, shared, habit));
            }
            let scheduler = &simulation.scheduler;
            for (placement, id) in placements.into_iter().zip(&ids) {
                let vcpus = || scheduler.vcpus(*id).iter();
                let each = if placement == Placement::Fixed { 1 } else { 2 };
                assert!(vcpus().all(|vcpu| scheduler.allowed(vcpu).count() == each));
                // Two fixed vCPUs have a hart each.
                let all = vcpus().fold(HartSet::EMPTY, |all, vcpu| {
                    all.union(scheduler.allowed(vcpu))
                });
                assert_eq!(all.count(), 2);
            }
            simulation.start_all();
            simulation.run(config.slice.get() * 20_000);
            let now = simulation.now as f64;
            for ((vm, (_, share)), id) in (1..).zip(vms).zip(ids) {
                let got = simulation.scheduler.used(id).get() as f64 / now;
                let due = f64::from(share) * 2.0 / 100.0;
                let error = (got - due).abs() / due;
                assert!(error <= 0.02, "vm{vm} of {vms:?}, {placements:?}: {got:.4}");
            }
        }
    }
}

#[test]
fn unused_share_goes_to_others() {
    assert_fair(Config::new(FREQUENCY), 2, &[(1, 90), (4, 10)]);
    assert_fair(Config::new(FREQUENCY), 4, &[(1, 70), (2, 20), (8, 10)]);
    assert_fair(Config::new(FREQUENCY), 2, &[(1, 50), (4, 50)]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_shares_hold(
        harts in 1u16..=4,
        vms in prop::collection::vec((1u16..=6, 1u32..=20), 2..=4),
        round in 4u32..=32,
        affinity in 0u8..=8,
    ) {
        let vcpus: u16 = vms.iter().map(|&(vcpus, _)| vcpus).sum();
        prop_assume!(vcpus > harts);
        assert_fair(Config { round, affinity, ..Config::new(FREQUENCY) }, harts, &vms);
    }
}
