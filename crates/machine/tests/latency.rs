//! The time from hart to hart does not depend on the length of turns.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::crossing::{ALL, Crossing, busy};
use program::elf;

/// A machine of `harts` harts in the timing mode, with a program.
fn machine(profile: &Profile, harts: u32, quantum: u64, words: &[u32]) -> Machine {
    let mut config = Config::with_profile(profile);
    config.board.harts = harts;
    config.board.memory = 32 << 20;
    config.quantum = quantum;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(Some(profile));
    machine.load_bare(&elf(words)).expect("loads");
    machine
}

/// The code with which a program ends.
fn end(machine: &mut Machine) -> u64 {
    let limit = Limit {
        instructions: Some(500_000_000),
        cycles: None,
    };
    match machine.run(limit) {
        Stop::Exit(code) => code,
        other => panic!("the program ended with {other:?}"),
    }
}

/// Cycles of a crossing by a profile with this quantum.
fn cycles(crossing: Crossing, profile: &Profile, quantum: u64) -> u64 {
    let words = crossing.program(400);
    end(&mut machine(profile, crossing.harts(), quantum, &words))
}

fn differ_by_a_fifth(one: u64, other: u64) -> bool {
    one.abs_diff(other) * 5 > other
}

#[test]
fn waits_do_not_depend_on_turns() {
    for name in ["rocket-h", "k3-class", "mainframe-1994"] {
        let profile = Profile::named(name).expect("ships");
        for crossing in ALL {
            let exact = cycles(crossing, &profile, 1);
            let shipped = cycles(crossing, &profile, profile.quantum);
            println!(
                "{name}, {}: {exact} cycles, {shipped} with a quantum of {}",
                crossing.name(),
                profile.quantum
            );
            assert!(
                !differ_by_a_fifth(shipped, exact),
                "{name}, {crossing:?}: {shipped} for {exact}"
            );
        }
    }
}

#[test]
fn ping_pong_costs_moved_lines() {
    // A crossing is a load that misses and takes the line back from the other hart. The store before it is
    // seen when it begins; what the right to store costs is the storing hart's own time.
    for name in ["rocket-h", "k3-class"] {
        let profile = Profile::named(name).expect("ships");
        let mut distant = profile.clone();
        distant.costs.transfer += 300;
        let near = cycles(Crossing::PingPong, &profile, profile.quantum);
        let far = cycles(Crossing::PingPong, &distant, profile.quantum);
        let costs = profile.costs;
        let charged = costs.l2_hit + costs.transfer;
        println!("{name}: {near} cycles, {charged} charged; {far} with a transfer dearer by 300");
        assert!(!differ_by_a_fifth(near, charged), "{name}: {near}");
        assert!(!differ_by_a_fifth(far - near, 300), "{name}: {near}, {far}");
    }
}

/// Seconds that the host's processor has spent on this thread.
fn processor_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    let nanoseconds: Option<f64> = first.and_then(|text| text.parse().ok());
    nanoseconds.unwrap_or(f64::NAN) / 1e9
}

/// Prints the tables of docs/why/machine.md, "Time and order".
#[test]
#[ignore = "measures the host"]
fn sweep() {
    for name in ["k3-class", "rocket-h", "mainframe-1994"] {
        let profile = Profile::named(name).expect("ships");
        print!("| {name}: quantum |");
        ALL.iter()
            .for_each(|crossing| print!(" {} |", crossing.name()));
        println!(" 4 busy harts, MIPS |");
        println!("|---|---|---|---|---|---|");
        for quantum in [1, 12, 24, 48, 96, 200, 480] {
            print!("| {quantum} |");
            for crossing in ALL {
                print!(" {} |", cycles(crossing, &profile, quantum));
            }
            let speed = |_| {
                let mut machine = machine(&profile, 4, quantum, &busy(1000));
                let before = processor_seconds();
                end(&mut machine);
                machine.retired() as f64 / 1e6 / (processor_seconds() - before)
            };
            println!(" {:.0} |", (0..3).map(speed).fold(0.0, f64::max));
        }
        println!();
    }
}
