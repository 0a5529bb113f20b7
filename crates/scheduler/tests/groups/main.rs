//! Groups of harts: they lose no vCPU, and shares hold over all of them.

mod computer;
#[path = "../simulation/guest.rs"]
#[allow(dead_code, reason = "only its numbers are used")]
mod guest;
mod words;

use std::collections::BTreeSet;

use computer::Computer;
use guest::Random;
use scheduler::groups::*;
use scheduler::*;

const FREQUENCY: u64 = 1_000_000;

fn harts(count: u32) -> HartSet {
    HartSet::from_bits(u64::MAX >> (64 - count))
}

#[test]
fn one_hart_makes_one_group() {
    let layout = Layout::sharded(harts(1), 64).unwrap();
    assert_eq!(layout.groups(), 1);
    assert_eq!(layout, Layout::single(harts(1), 64).unwrap());
}

#[test]
fn each_hart_has_its_own_group() {
    for count in 1..=64 {
        let layout = Layout::sharded(harts(count), 64).unwrap();
        let groups = (0..layout.groups()).map_while(GroupId::new);
        let mut seen = HartSet::EMPTY;
        for group in groups {
            let own = layout.harts_of(group);
            assert_eq!(own.count(), 1, "{count} harts: {own:?}");
            assert!(own.intersection(seen).is_empty());
            assert!(
                own.iter()
                    .all(|hart| layout.directory().group_of(hart) == group)
            );
            seen = seen.union(own);
        }
        assert_eq!(seen, harts(count));
    }
}

#[test]
fn vcpus_without_a_place_are_refused() {
    let groups = |count, vcpus| Layout::sharded(harts(count), vcpus).map(|all| all.groups());
    assert_eq!(groups(64, 512), Ok(64));
    assert_eq!(groups(4, 65), Ok(4));
    assert_eq!(groups(2, 128), Ok(2));
    assert_eq!(groups(2, 129), Err(ConfigError::TooManyVcpus));
    assert_eq!(groups(64, 513), Err(ConfigError::TooManyVcpus));
    assert!(Layout::single(harts(64), 65).is_err());
}

/// Every event, in an order that chance chooses.
fn walk(seed: u64, config: Config, count: u32, vms: &[u16], steps: u32) {
    let mut random = Random::new(seed);
    let computer = Computer::new(config, Layout::sharded(harts(count), 64).unwrap());
    let shared = |share| Allocation::Shared { share };
    let ids: Vec<VmId> = vms
        .iter()
        .zip(1..)
        .map(|(&vcpus, share)| computer.add_vm(vcpus, shared(share)).unwrap())
        .collect();
    let vcpus = computer.vcpus();
    let all: Vec<HartId> = computer.harts().collect();
    for &vcpu in &vcpus {
        let now = computer.now.get();
        computer.act_on(vcpu, |scheduler, vcpu| scheduler.start(vcpu, now));
    }
    let nothing = Left::new(Leave::Preempted, Ticks::ZERO);
    for &hart in &all {
        let _ = computer.decide(hart, &nothing);
    }
    for _ in 0..steps {
        computer
            .now
            .set(computer.now.get() + Ticks::new(random.below(2_000)));
        act(&computer, &mut random, &all, &vcpus, &ids);
        computer.check();
    }
    drain(&computer, &all, &vcpus);
}

fn act(
    computer: &Computer,
    random: &mut Random,
    all: &[HartId],
    vcpus: &[VcpuNumber],
    vms: &[VmId],
) {
    let now = computer.now.get();
    let hart = all[random.below(all.len() as u64) as usize];
    let vcpu = vcpus[random.below(vcpus.len() as u64) as usize];
    let flows = computer.flows.borrow().len() as u64;
    match random.below(40) {
        0..8 if flows > 0 => computer.follow(random.below(flows) as usize),
        8 => computer.act_on(vcpu, |scheduler, vcpu| scheduler.stop(vcpu)),
        9..12 => computer.act_on(vcpu, |scheduler, vcpu| scheduler.start(vcpu, now)),
        12 => computer.act_on(vcpu, |scheduler, vcpu| scheduler.pause(vcpu)),
        13..15 => computer.act_on(vcpu, |scheduler, vcpu| scheduler.resume(vcpu, now)),
        15..19 => computer.act_on(vcpu, |scheduler, vcpu| scheduler.wake(vcpu, now)),
        19 => {
            let slice = operator::config(computer).slice;
            let mut ledger = computer.ledger.borrow_mut();
            let kicks = balance::balance(&mut ledger, computer, slice, now);
            computer.deliver(kicks);
        }
        20 => {
            let vm = vms[random.below(vms.len() as u64) as usize];
            let count = vcpus
                .iter()
                .filter(|&&vcpu| computer.vm_of(vcpu) == vm)
                .count();
            let first = random.below(all.len() as u64) as usize;
            let harts = all
                .iter()
                .cycle()
                .skip(first)
                .take(count)
                .copied()
                .collect();
            let to = match random.below(2) {
                0 => Allocation::Dedicated { harts },
                _ => Allocation::Shared {
                    share: 1 + random.below(9) as u32,
                },
            };
            let mut ledger = computer.ledger.borrow_mut();
            if let Ok(kicks) = operator::set_allocation(&mut ledger, computer, (vm, to), now) {
                computer.deliver(kicks);
            }
        }
        21 => {
            let all = SpinPolicy::ALL;
            let policy = all[random.below(all.len() as u64) as usize];
            computer.deliver(operator::set_spin(computer, policy, now));
        }
        22 => {
            let to = computer.group_of(hart);
            computer.deliver(migration::pull(computer, vcpu, to, now));
        }
        23..26 => computer.pending.borrow_mut().push(vcpu),
        _ => hart_acts(computer, random, hart),
    }
}

/// A hart takes a kick, or its guest leaves.
fn hart_acts(computer: &Computer, random: &mut Random, hart: HartId) {
    let kicked = computer.kicked.get();
    let runs = computer.runs.borrow().get(&hart).copied();
    if kicked.contains(hart) {
        computer.kicked.set(kicked.without(HartSet::only(hart)));
    }
    let nothing = Left::new(Leave::Preempted, Ticks::ZERO);
    let Some(vcpu) = runs else {
        let _ = computer.decide(hart, &nothing);
        return;
    };
    let ran = Ticks::new(random.below(6_000));
    let group = computer.group_of(hart);
    let state = computer.state(vcpu);
    let answer = computer.with(group, |group| {
        assert!(matches!(
            state,
            VcpuState::Running(_) | VcpuState::Stopping(_) | VcpuState::Pausing(_)
        ));
        group.scheduler_mut().reconsider(hart, ran)
    });
    let reason = match answer {
        Continue::Leave(reason) => reason,
        Continue::Stay { .. } => [
            Leave::SelfWait,
            Leave::SelfWait,
            Leave::Spin,
            Leave::SpinOnWord,
            Leave::SpinForTurn,
            Leave::Yield,
            Leave::SliceEnd,
        ][random.below(7) as usize],
    };
    if reason == Leave::SelfWait {
        let in_place = computer.with(group, |group| {
            group
                .scheduler_mut()
                .wait_in_place(hart, ran, computer.now.get())
        });
        if !matches!(in_place, InPlace::No) {
            // The wait ends at the next kick or interrupt: the hart asks again when it acts next.
            return;
        }
    }
    let left = Left {
        in_supervisor: random.below(2) == 0,
        interrupts_enabled: random.below(2) == 0,
        ..Left::new(reason, ran)
    };
    let _ = computer.decide(hart, &left);
}

/// Runs the harts until nothing is left to do: every ready vCPU runs.
fn drain(computer: &Computer, all: &[HartId], vcpus: &[VcpuNumber]) {
    let ready = |vcpu: &&VcpuNumber| {
        matches!(
            computer.state(**vcpu),
            VcpuState::Ready | VcpuState::SpinWait
        )
    };
    let expected: BTreeSet<VcpuNumber> = vcpus.iter().filter(ready).copied().collect();
    let mut have_run = BTreeSet::new();
    let slice = operator::config(computer).slice;
    for turn in 0..200 {
        computer.now.set(computer.now.get() + slice);
        // Each run is longer than in the iteration before, so that slices end.
        let ran = Ticks::new(slice.get() * (turn + 1));
        while !computer.flows.borrow().is_empty() {
            computer.follow(0);
        }
        for &hart in all {
            let kicked = computer.kicked.get();
            computer.kicked.set(kicked.without(HartSet::only(hart)));
            let runs = computer.runs.borrow().contains_key(&hart);
            let group = computer.group_of(hart);
            if runs {
                let answer =
                    computer.with(group, |group| group.scheduler_mut().reconsider(hart, ran));
                let Continue::Leave(reason) = answer else {
                    continue;
                };
                let _ = computer.decide(hart, &Left::new(reason, ran));
            } else if kicked.contains(hart) || turn == 0 {
                let _ = computer.decide(hart, &Left::new(Leave::Preempted, Ticks::ZERO));
            }
            computer.check();
            have_run.extend(computer.runs.borrow().get(&hart).copied());
        }
        if expected.is_subset(&have_run) {
            return;
        }
    }
    let missing: Vec<_> = expected
        .difference(&have_run)
        .map(|&vcpu| (vcpu, computer.explain(vcpu)))
        .collect();
    panic!("{missing:#?} have not run");
}

#[test]
fn whatever_happens_nobody_is_lost_between_groups() {
    for seed in 0..240 {
        let spin = SpinPolicy::ALL[seed as usize % SpinPolicy::ALL.len()];
        let wait = WaitPolicy::ALL[seed as usize / SpinPolicy::ALL.len() % 5];
        let placement = match seed % 7 {
            6 => Placement::Fixed,
            _ => Placement::Floating,
        };
        let config = Config {
            spin,
            wait,
            placement,
            ..Config::new(FREQUENCY)
        };
        let (count, vms): (u32, &[u16]) = match seed % 4 {
            0 => (5, &[3, 2, 4, 1]),
            1 => (8, &[8, 6, 2, 1, 1, 3]),
            2 => (12, &[12, 12, 5, 1]),
            _ => (6, &[2, 2, 2, 2, 2]),
        };
        println!("seed {seed}: {spin:?}, {wait:?}, {placement:?}");
        walk(seed, config, count, vms, 3_000);
    }
}

/// Harts that each VM gets whose vCPUs only compute.
fn measure(count: u32, vms: &[(u16, u32)]) -> Vec<f64> {
    let config = Config::new(FREQUENCY);
    let computer = Computer::new(config, Layout::sharded(harts(count), 64).unwrap());
    let ids: Vec<VmId> = vms
        .iter()
        .map(|&(vcpus, share)| {
            computer
                .add_vm(vcpus, Allocation::Shared { share })
                .unwrap()
        })
        .collect();
    for vcpu in computer.vcpus() {
        computer.act_on(vcpu, |scheduler, vcpu| scheduler.start(vcpu, Ticks::ZERO));
    }
    let all: Vec<HartId> = computer.harts().collect();
    // Time at which each hart entered its guest, and at which it asks next.
    let mut entered = vec![0; all.len()];
    let mut next = vec![Some(0); all.len()];
    let slice = config.slice.get();
    let round = balance::interval(&config).get();
    let mut epoch = round;
    let end = slice * 20_000;
    loop {
        while !computer.flows.borrow().is_empty() {
            computer.follow(0);
        }
        for (place, &hart) in all.iter().enumerate() {
            if computer.kicked.get().contains(hart) {
                next[place] = Some(computer.now.get().get());
            }
        }
        computer.kicked.set(HartSet::EMPTY);
        let first = (0..all.len())
            .filter_map(|place| Some((next[place]?, place)))
            .min();
        let (at, place) = first.unwrap();
        if at >= end {
            break;
        }
        computer.now.set(Ticks::new(at));
        if at >= epoch {
            epoch += round;
            let mut ledger = computer.ledger.borrow_mut();
            let now = computer.now.get();
            let kicks = balance::balance(&mut ledger, &computer, config.slice, now);
            computer.deliver(kicks);
            continue;
        }
        let hart = all[place];
        let group = computer.group_of(hart);
        let ran = Ticks::new(at - entered[place]);
        let mut left = Left::new(Leave::Preempted, ran);
        if computer.runs.borrow().contains_key(&hart) {
            match computer.with(group, |group| group.scheduler_mut().reconsider(hart, ran)) {
                Continue::Stay { slice, .. } => {
                    next[place] = slice.map(|slice| at + slice.get());
                    continue;
                }
                Continue::Leave(reason) => left.cause = reason,
            }
        }
        entered[place] = at;
        next[place] = match computer.decide(hart, &left) {
            Dispatch::Run { slice, .. } => slice.map(|slice| at + slice.get()),
            Dispatch::Idle { .. } => None,
        };
    }
    // Running vCPUs have not been charged for their last run.
    let mut used: Vec<u64> = ids.iter().map(|&vm| computer.used(vm)).collect();
    for (place, hart) in all.iter().enumerate() {
        if let Some(&vcpu) = computer.runs.borrow().get(hart) {
            let vm = computer.vm_of(vcpu);
            let place_of_vm = ids.iter().position(|&other| other == vm);
            used[place_of_vm.unwrap()] += end.saturating_sub(entered[place]);
        }
    }
    used.into_iter()
        .map(|used| used as f64 / end as f64)
        .collect()
}

#[test]
fn shares_hold_over_all_groups() {
    let cases: &[(u32, &[(u16, u32)])] = &[
        (8, &[(8, 30), (8, 70)]),
        (8, &[(8, 50), (8, 50), (8, 50)]),
        (8, &[(4, 50), (4, 50), (4, 50)]),
        (6, &[(6, 10), (6, 20), (6, 70)]),
        (8, &[(4, 1), (4, 1), (4, 1), (4, 1), (4, 1)]),
        (5, &[(2, 1), (2, 1), (2, 1), (2, 1)]),
        (12, &[(12, 30), (12, 70), (4, 20)]),
        (16, &[(16, 1), (16, 1), (8, 1), (8, 1), (4, 1)]),
    ];
    let mut worst: f64 = 0.0;
    for &(count, vms) in cases {
        let got = measure(count, vms);
        let due = fair(f64::from(count), vms);
        for (got, due) in got.iter().zip(&due) {
            worst = worst.max((got - due).abs() / due);
        }
        println!("{vms:?} on {count}: {got:.3?}, due {due:.3?}");
    }
    assert!(worst <= 0.02, "{worst}");
}

/// Entitlement in proportion to the shares, at most a hart for each vCPU.
fn fair(harts: f64, vms: &[(u16, u32)]) -> Vec<f64> {
    let mut due = vec![0.0; vms.len()];
    let mut open: Vec<usize> = (0..vms.len()).collect();
    let mut left = harts;
    while !open.is_empty() {
        let shares: u32 = open.iter().map(|&vm| vms[vm].1).sum();
        let part = |vm: usize| left * f64::from(vms[vm].1) / f64::from(shares);
        let (whole, rest): (Vec<_>, Vec<_>) = open
            .iter()
            .partition(|&&vm| part(vm) >= f64::from(vms[vm].0));
        if whole.is_empty() {
            for vm in rest {
                due[vm] = part(vm);
            }
            break;
        }
        for &vm in &whole {
            due[vm] = f64::from(vms[vm].0);
            left -= due[vm];
        }
        open = rest;
    }
    due
}
