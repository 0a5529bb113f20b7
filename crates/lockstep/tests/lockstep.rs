//! Random programs on this machine and on others, where they are installed.
//!
//! PARTITA_SEED chooses other programs.

use lockstep::lockstep::run;
use lockstep::oracle::{Oracle, Pair};
use lockstep::team;

/// Programs of one hart beside each implementation.
const PROGRAMS: u64 = 2000;

/// The seed, printed, if the implementation is here.
fn seed(oracle: Oracle) -> Option<u64> {
    if !oracle.is_installed() {
        eprintln!("{} is not here: nothing to compare with", oracle.name());
        return None;
    }
    let seed = std::env::var("PARTITA_SEED").ok();
    let seed = seed.map_or(1, |seed| seed.parse().expect("PARTITA_SEED is a number"));
    println!("PARTITA_SEED={seed}");
    Some(seed)
}

/// An implementation, without landing pads and shadow stacks.
const fn pair(oracle: Oracle, vectors: u16) -> Pair {
    Pair {
        oracle,
        vectors,
        control_flow: false,
    }
}

fn beside(pair: Pair, programs: u64) {
    let oracle = pair.oracle;
    let Some(seed) = seed(oracle) else { return };
    let summary = run(seed, 0, programs, pair).expect("both implementations run");
    println!("{:#?}", summary.departures);
    assert_eq!(summary.programs, programs);
    // Programs that do nothing would agree as well.
    assert!(summary.traps > 10 * programs, "{} traps", summary.traps);
    assert!(
        summary.failures.is_empty(),
        "PARTITA_SEED={seed}: {} of {programs} programs differ beside {}:\n{}",
        summary.failures.len(),
        oracle.name(),
        summary.failures.join("")
    );
    // Differences are consequences of others' departures in few programs.
    assert!(summary.consequences * 200 < programs, "{summary:?}");
}

/// Programs for several harts.
fn beside_team(oracle: Oracle, programs: u64) {
    let Some(seed) = seed(oracle) else { return };
    let summary = team::run(seed, 0, programs, oracle).expect("both implementations run");
    assert_eq!(summary.programs, programs);
    assert!(
        summary.failures.is_empty(),
        "PARTITA_SEED={seed}: beside {}:\n{}",
        oracle.name(),
        summary.failures.join("")
    );
}

#[test]
fn random_programs_do_the_same_on_qemu() {
    beside(pair(Oracle::Qemu, 0), PROGRAMS);
}

#[test]
fn vector_programs_agree_with_qemu() {
    beside(pair(Oracle::Qemu, 256), 250);
}

#[test]
#[ignore = "takes minutes: 10,000 programs"]
fn soak_vector_programs_agree_with_qemu() {
    for vectors in [128, 256, 512, 1024] {
        beside(pair(Oracle::Qemu, vectors), 2500);
    }
}

/// Landing pads, shadow stacks and double traps.
const CONTROL_FLOW: Pair = Pair {
    control_flow: true,
    ..pair(Oracle::Qemu, 0)
};

#[test]
fn control_flow_programs_agree_with_qemu() {
    beside(CONTROL_FLOW, 250);
}

#[test]
#[ignore = "takes minutes: 2,000 programs"]
fn soak_control_flow_programs_agree_with_qemu() {
    beside(CONTROL_FLOW, 2000);
}

#[test]
fn vector_programs_agree_with_spike() {
    beside(pair(Oracle::Spike, 256), 250);
}

#[test]
#[ignore = "takes minutes: 1,000 programs"]
fn soak_vector_programs_agree_with_spike() {
    for vectors in [128, 256, 512, 1024] {
        beside(pair(Oracle::Spike, vectors), 250);
    }
}

#[test]
fn random_programs_do_the_same_on_spike() {
    beside(pair(Oracle::Spike, 0), PROGRAMS);
}

#[test]
fn cooperating_harts_agree_with_qemu() {
    beside_team(Oracle::Qemu, 20);
}

#[test]
fn cooperating_harts_agree_with_spike() {
    beside_team(Oracle::Spike, 200);
}
