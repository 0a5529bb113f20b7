//! Cache-block operations as a bare program sees them.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::*;

const PLACE: Register = 5;
const LEFT: Register = 6;
const START: Register = 7;
const END: Register = 28;
/// Lines that a program goes through.
const LINES: i32 = 256;

/// Cycles of `LINES` rounds of a loop that operates on one line after the other, each line by the instructions of `body`.
fn cycles(profile: &Profile, body: &[u32]) -> u64 {
    let mut words = vec![
        auipc(PLACE, 1024),
        addi(LEFT, 0, LINES),
        csrrs(START, 0xb00, 0), // mcycle
    ];
    words.extend(body);
    words.extend([
        addi(PLACE, PLACE, 64),
        addi(LEFT, LEFT, -1),
        bne(LEFT, 0, -4 * (body.len() as i32 + 2)),
        csrrs(END, 0xb00, 0),
        sub(END, END, START),
        srli(END, END, 8),
    ]);
    words.extend(end_with(END, 30, 31));
    let mut machine = Machine::new(Config {
        quantum: profile.quantum,
        ..Config::default()
    })
    .expect("a machine");
    machine.set_profile(Some(profile));
    machine.load_bare(&elf(&words)).expect("loads");
    let limit = Limit {
        instructions: Some(1_000_000),
        cycles: None,
    };
    match machine.run(limit) {
        Stop::Exit(code) => code,
        other => panic!("the program ended with {other:?}"),
    }
}

const INVAL: i32 = 0;
const CLEAN: i32 = 1;
const FLUSH: i32 = 2;
const ZERO: i32 = 4;

#[test]
fn zeroing_costs_no_memory_access() {
    for name in ["k3-class", "rocket-h", "xeon-class"] {
        let profile = Profile::named(name).expect("ships");
        let zeroed = cycles(&profile, &[cbo(ZERO, PLACE)]);
        println!("{name}: {zeroed} cycles a line");
        // Four instructions, the right to store, and for each 64 lines a walk in some profiles.
        assert!(zeroed < profile.costs.memory / 2, "{name}: {zeroed}");
    }
}

#[test]
fn loads_after_a_flush_miss() {
    let profile = Profile::named("k3-class").expect("ships");
    let load = ld(END, PLACE, 0);
    let memory = profile.costs.memory;
    for (operation, misses) in [(FLUSH, true), (INVAL, true), (CLEAN, false)] {
        let once = cycles(&profile, &[load, cbo(operation, PLACE)]);
        let again = cycles(&profile, &[load, cbo(operation, PLACE), load]);
        let second = again - once;
        assert_eq!(second >= memory / 2, misses, "{operation}: {second}");
        assert!(misses || second <= 2, "{operation}: {second}");
    }
}
