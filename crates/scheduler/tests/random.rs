//! Random systems under random events, by every policy, compared with the reference at each step.

mod simulation;

use proptest::prelude::*;
use scheduler::*;
use simulation::{Act, FREQUENCY, Habit, Random, Simulation};

#[derive(Clone, Debug)]
struct System {
    harts: u16,
    vms: Vec<(u16, u32)>,
    dedicated: bool,
    config: Config,
    seed: u64,
}

fn system() -> impl Strategy<Value = System> {
    let spin = prop::sample::select(&SpinPolicy::ALL[..]);
    let wait = prop::sample::select(&WaitPolicy::ALL[..]);
    let placement = prop::sample::select(&[Placement::Floating, Placement::Fixed][..]);
    let always = any::<bool>();
    let vms = prop::collection::vec((1u16..=4, 1u32..=20), 1..=4);
    let limits = (2u32..=16, 5_000u64..=200_000);
    let choices = (spin, wait, placement, always, 0u8..=4, 1u16..=4, limits);
    (1u16..=4, vms, any::<bool>(), choices, any::<u64>()).prop_map(
        |(harts, vms, dedicated, choices, seed)| {
            let (spin, wait, placement, always, affinity, self_wait_budget, limits) = choices;
            let (round, reservation_limit) = limits;
            let usual = Config::new(FREQUENCY);
            let migration = match always && harts > 1 && placement == Placement::Floating {
                true => Migration::Always,
                false => Migration::AsNeeded,
            };
            let config = Config {
                spin,
                wait,
                placement,
                migration,
                affinity,
                self_wait_budget,
                round,
                reservation_limit: Ticks::new(reservation_limit),
                ..usual
            };
            System {
                harts,
                vms,
                dedicated,
                config,
                seed,
            }
        },
    )
}

fn build(system: &System) -> Simulation {
    let mut simulation = Simulation::new(system.config, system.harts, system.seed);
    let habit = Habit::Bursts {
        longest: 3000,
        acts: Act::EVERY,
    };
    for &(vcpus, share) in &system.vms {
        simulation.add_vm(vcpus, Allocation::Shared { share }, habit);
    }
    if system.dedicated && system.harts > 1 {
        let harts = HartSet::only(HartId::new(system.harts - 1).unwrap());
        simulation.add_vm(1, Allocation::Dedicated { harts }, habit);
    }
    simulation
}

/// An event from outside.
fn disturb(simulation: &mut Simulation, operator: &mut Random) {
    let place = operator.below(simulation.vcpus.len() as u64) as usize;
    let vcpu = simulation.vcpus[place].id;
    match operator.below(40) {
        0..=9 => simulation.interrupt(place),
        10..=13 => simulation.report(place),
        14..=17 => simulation.change_word(place),
        18..=23 => simulation.start(vcpu),
        24 => simulation.stop(vcpu),
        25 => simulation.pause(vcpu),
        26..=29 => simulation.resume(vcpu),
        30 => {
            let all = SpinPolicy::ALL;
            simulation.set_spin(all[operator.below(all.len() as u64) as usize]);
        }
        31 => {
            let all = WaitPolicy::ALL;
            simulation.set_wait(all[operator.below(all.len() as u64) as usize]);
        }
        32 => {
            let vm = simulation.scheduler.vm_of(vcpu).unwrap();
            let share = 1 + operator.below(20) as u32;
            simulation.scheduler.set_share(vm, share).unwrap();
        }
        33 => {
            let vm = simulation.scheduler.vm_of(vcpu).unwrap();
            let harts = HartSet::from_bits(operator.below(16));
            simulation.set_allocation(vm, Allocation::Dedicated { harts });
        }
        34 => {
            let vm = simulation.scheduler.vm_of(vcpu).unwrap();
            simulation.set_allocation(vm, Allocation::Shared { share: 10 });
        }
        _ => {}
    }
    if simulation.checked {
        simulation.check();
    }
}

/// Disturbs a system, and then checks that every vCPU runs.
fn disturb_and_go_on(system: &System) -> Result<(), TestCaseError> {
    let mut simulation = build(system);
    let mut operator = Random::new(system.seed ^ 1);
    simulation.start_all();
    for _ in 0..300 {
        let length = operator.below(800);
        simulation.run(length);
        disturb(&mut simulation, &mut operator);
    }
    for place in 0..simulation.vcpus.len() {
        let vcpu = simulation.vcpus[place].id;
        simulation.vcpus[place].habit = Habit::CpuBound;
        simulation.resume(vcpu);
        simulation.start(vcpu);
        simulation.change_word(place);
    }
    // Pending stops end; then all vCPUs have work, and an interrupt that wakes them.
    simulation.run(20_000);
    let before: Vec<u64> = simulation.vcpus.iter().map(|vcpu| vcpu.ran).collect();
    for place in 0..simulation.vcpus.len() {
        let vcpu = simulation.vcpus[place].id;
        simulation.start(vcpu);
        simulation.interrupt(place);
    }
    let slice = system.config.slice.get();
    simulation.run(slice * u64::from(system.config.round) * 60);
    for (vcpu, before) in simulation.vcpus.iter().zip(before) {
        let runs = simulation.scheduler.running_on(vcpu.id).is_some();
        prop_assert!(
            vcpu.ran > before || runs,
            "{} starves: {}",
            vcpu.id,
            simulation.describe()
        );
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every state is as in the reference, the tables are sound, no hart is idle while there is work for it; and when the disturbances end, every
    /// vCPU runs.
    #[test]
    fn nothing_is_lost(system in system()) {
        disturb_and_go_on(&system)?;
    }

    /// In an undisturbed system, no vCPU that is ready, or has an interrupt pending, waits longer than it takes to serve all others.
    #[test]
    fn waits_are_bounded(mut system in system()) {
        // A debt of up to two slices of each hart is many of a short round's quantities.
        system.config.round = system.config.round.max(8);
        let mut simulation = build(&system);
        let mut operator = Random::new(system.seed ^ 2);
        simulation.start_all();
        for _ in 0..200 {
            let length = operator.below(400);
            simulation.run(length);
            let place = operator.below(simulation.vcpus.len() as u64) as usize;
            simulation.interrupt(place);
            let place = operator.below(simulation.vcpus.len() as u64) as usize;
            simulation.change_word(place);
        }
        let config = system.config;
        // A service round of the whole computer, and one more for debts from the round before.
        let round = config.slice.get() * u64::from(config.round) * u64::from(system.harts);
        for vcpu in &simulation.vcpus {
            prop_assert!(vcpu.longest_wait <= 3 * round, "{} waited {}", vcpu.id, vcpu.longest_wait);
        }
    }

    /// A storm of interrupts in one VM does not keep another from running.
    #[test]
    fn storms_do_not_starve(seed: u64, budget in 1u16..=16, every in prop::sample::select(&WaitPolicy::ALL[..])) {
        let config =
            Config { wait: every, self_wait_budget: budget, ..Config::new(FREQUENCY) };
        let mut simulation = Simulation::new(config, 1, seed);
        let storm = Habit::Bursts { longest: 5, acts: &[Act::Wait] };
        simulation.add_vm(4, Allocation::Shared { share: 50 }, storm);
        simulation.add_vm(1, Allocation::Shared { share: 50 }, Habit::CpuBound);
        simulation.checked = false;
        simulation.start_all();
        for _ in 0..20_000 {
            simulation.run(10);
            for place in 0..4 {
                simulation.interrupt(place);
            }
        }
        let victim = simulation.scheduler.vm_of(simulation.vcpus[4].id).unwrap();
        let used = simulation.scheduler.used(victim).get();
        prop_assert!(used * 10 >= simulation.now * 4, "only {used} of {}", simulation.now);
    }
}

/// A vCPU whose slice has ended waits for the end of its hart's round. If no vCPU runs twice in a row on the same hart, another hart may always be
/// the first to begin the next round.
#[test]
fn rounds_of_other_harts_starve_none() {
    let config = Config {
        slice: Ticks::new(5000),
        round: 4,
        affinity: 0,
        self_wait_budget: 1,
        reservation_limit: Ticks::new(5000),
        spin: SpinPolicy::None,
        wait: WaitPolicy::HostInterrupt,
        migration: Migration::Always,
        ..Config::new(FREQUENCY)
    };
    let system = System {
        harts: 2,
        vms: vec![(4, 14), (1, 8), (4, 10), (2, 6)],
        dedicated: false,
        config,
        seed: 8_382_523_005_702_605_763,
    };
    disturb_and_go_on(&system).unwrap();
}
