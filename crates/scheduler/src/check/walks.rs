//! Random walks through systems that are too large to explore.

use std::vec::Vec;

use super::world::{Environment, World};
use super::{System, drains, strict};
use crate::config::{Config, Migration, Placement};
use crate::decision::VcpuState;
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

/// Walks through a system at random: `paths` walks of `steps` steps, each from its own seed.
fn walk(system: System, paths: u64, steps: u32) {
    let Config { spin, wait, .. } = system.config;
    for seed in 1..=paths {
        let mut random = seed.wrapping_mul(splitmix::GOLDEN_GAMMA);
        // Of four walks, one always migrates, one is fixed, and one tests the files of all harts.
        let migration = match seed % 4 {
            0 => Migration::Always,
            _ => Migration::AsNeeded,
        };
        let placement = match seed % 4 {
            1 => Placement::Fixed,
            _ => Placement::Floating,
        };
        let config = Config {
            migration,
            placement,
            affinity: 1,
            self_wait_budget: 2,
            ..system.config
        };
        let environment = Environment {
            tests_any_file: seed % 4 == 2,
            ..system.environment
        };
        let mut world = World::new(config, environment, system.harts, system.vms, u8::MAX);
        for hart in world.harts() {
            world.dispatch(hart);
        }
        let mut taken = Vec::new();
        let mut possible = Vec::new();
        for number in 0..steps {
            world.steps(&mut possible);
            // Marsaglia's xorshift.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let place = usize::try_from(random % possible.len() as u64).unwrap();
            let step = possible[place];
            possible.clear();
            taken.push(step);
            world.take(step);
            world.disturbances = u8::MAX;
            let context = || std::format!("{} {} seed {seed}: {taken:?}", spin.name(), wait.name());
            assert_eq!(world.scheduler.check(), Ok(()), "{}", context());
            let sleeps = |vcpu| world.scheduler.state(vcpu) == VcpuState::SelfWait;
            let missed = |vcpu| sleeps(vcpu) && !world.is_uninterruptible(vcpu);
            assert!(!world.wakes.iter().any(missed), "{}", context());
            assert!(number % 4 != 0 || drains(&world), "{}", context());
        }
    }
}

fn system(spin: SpinPolicy, wait: WaitPolicy, harts: u64, vms: &'static [u16]) -> System {
    System {
        config: strict(spin, wait),
        environment: Environment::default(),
        harts,
        vms,
        disturbances: u8::MAX,
        reduced: false,
        numbered: false,
    }
}

/// Walks go far beyond the first steps of the large systems, with a VM that gets a dedicated hart and gives it back.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn long_walks_lose_no_vcpu() {
    for spin in SpinPolicy::ALL {
        for wait in WaitPolicy::ALL {
            walk(system(spin, wait, 2, &[3, 3]), 8, 1500);
            walk(system(spin, wait, 2, &[3, 1]), 8, 1500);
            walk(system(spin, wait, 3, &[3, 1]), 8, 1500);
        }
    }
}

/// The operator changes everything that can be changed.
#[test]
#[ignore = "explores for up to minutes: scripts/test host-tests runs it"]
fn long_walks_survive_an_operator() {
    for (spin, wait) in SpinPolicy::ALL
        .into_iter()
        .zip(WaitPolicy::ALL.into_iter().cycle())
    {
        for (harts, vms) in [(2, &[3, 1][..]), (3, &[2, 2, 1])] {
            let environment = Environment {
                spins: &SpinPolicy::ALL,
                waits: &WaitPolicy::ALL,
                parameters: true,
                ..Environment::default()
            };
            let system = System {
                environment,
                ..system(spin, wait, harts, vms)
            };
            walk(system, 40, 1500);
        }
    }
}
