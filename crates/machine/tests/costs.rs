//! Costs that a bare program can see.

mod program;

use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::*;

fn run(words: &[u32], profile: &Profile) -> u64 {
    let mut config = Config::with_profile(profile);
    config.board.memory = 16 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(Some(profile));
    machine.load_bare(&elf(words)).expect("loads");
    let limit = Limit {
        instructions: Some(1_000_000),
        cycles: None,
    };
    match machine.run(limit) {
        Stop::Exit(code) => code,
        other => panic!("the program ended with {other:?}"),
    }
}

/// Loads a doubleword 256 times from `offset` bytes behind a line's start; ends with the cycles, or, if a load
/// traps, with 1000 and the cause.
fn loads(offset: i32) -> Vec<u32> {
    let (place, left, start, end, handler) = (5, 6, 7, 28, 29);
    let mut words = vec![
        auipc(handler, 0),
        addi(handler, handler, 4 * 24),
        csrrw(0, 0x305, handler), // mtvec
        auipc(place, 1),
        addi(place, place, 52 + offset),
        ld(0, place, 0),
        ld(0, place, 8),
        addi(left, 0, 256),
        csrrs(start, 0xb00, 0), // mcycle
        ld(end, place, 0),
        addi(left, left, -1),
        bne(left, 0, -8),
        csrrs(end, 0xb00, 0),
        sub(end, end, start),
    ];
    words.extend(end_with(end, 30, 31));
    words.resize(24, addi(0, 0, 0));
    words.extend([csrrs(end, 0x342, 0), addi(end, end, 1000)]); // mcause
    words.extend(end_with(end, 30, 31));
    words
}

#[test]
fn a_load_in_two_lines_costs_more() {
    let mut profile = Profile::default();
    profile.costs.line_crossing = 3;
    let inside = run(&loads(4), &profile);
    let crossing = run(&loads(60), &profile);
    assert_eq!(crossing - inside, 3 * 256);
}

#[test]
fn misaligned_loads_trap_by_profile() {
    let profile = Profile {
        misaligned_traps: true,
        ..Profile::default()
    };
    assert_ne!(run(&loads(0), &profile), 1004);
    // Load address misaligned.
    assert_eq!(run(&loads(4), &profile), 1004);
    assert_eq!(run(&loads(60), &profile), 1004);
}
