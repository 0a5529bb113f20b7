//! Costs that a bare program can see.

mod program;

use machine::timing::{Profile, VectorCosts, VectorProfile};
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

/// Iterations of a loop of vector instructions.
const ROUNDS: u64 = 32;
/// vtype: elements of a byte and of a word, in a register or in eight.
const E8_M8: u32 = 3;
const E32_M1: u32 = 2 << 3;
const E32_M8: u32 = 2 << 3 | 3;
/// Where a loop's loads and stores go, and their stride.
const PLACE: Register = 7;
const STRIDE: Register = 28;

/// A pass takes a cycle unless something else is said.
const COSTS: VectorCosts = VectorCosts {
    datapath: 128,
    chaining: true,
    latency: 4,
    integer: 1,
    multiply: 3,
    divide: 5,
    float: 2,
    float_divide: 6,
    slide: 7,
    gather: 2,
    reduction: 8,
    mask: 9,
    crypto: 10,
    memory: 64,
    element: 11,
};

fn with_vectors(profile: Profile, costs: Option<VectorCosts>) -> Profile {
    let vector = Some(VectorProfile { vlen: 128, costs });
    Profile { vector, ..profile }
}

/// Cycles of a loop around some instructions, with as many elements as fit in what a vtype describes.
fn cycles_of(vtype: u32, body: &[u32], profile: &Profile) -> u64 {
    let (left, start, end) = (5, 6, 29);
    let mut words = vec![
        lui(left, 6),
        addi(left, left, 0x600),
        csrrs(0, 0x300, left), // mstatus.FS and VS
        vtype << 20 | 7 << 12 | left << 7 | 0x57,
        auipc(PLACE, 1),
        addi(STRIDE, 0, 64),
        addi(left, 0, ROUNDS as i32),
        jal(0, 4),
        csrrs(start, 0xb00, 0), // mcycle
    ];
    words.extend(body);
    words.push(addi(left, left, -1));
    words.push(bne(left, 0, -4 * (body.len() as i32 + 1)));
    words.extend([csrrs(end, 0xb00, 0), sub(end, end, start)]);
    words.extend(end_with(end, 30, 31));
    run(&words, profile)
}

/// Cycles that the costs of vectors add to each round.
fn added(costs: VectorCosts, vtype: u32, instruction: u32) -> u64 {
    let [without, with] = [None, Some(costs)].map(|costs| {
        let profile = with_vectors(Profile::default(), costs);
        cycles_of(vtype, &[instruction], &profile)
    });
    let sum = with - without;
    assert!(sum.is_multiple_of(ROUNDS), "{sum} in {ROUNDS} rounds");
    sum / ROUNDS
}

const VADD: u32 = 0x0288_0457; // vadd.vv v8, v8, v16

#[test]
fn vector_instructions_cost_what_profiles_say() {
    // Eight registers of 128 bits with 32 words.
    for (instruction, expected) in [
        (VADD, 8),
        (0x9688_2457, 8 * 3),   // vmul.vv v8, v8, v16
        (0x8688_2457, 32 * 5),  // vdiv.vv v8, v8, v16
        (0x0288_1457, 8 * 2),   // vfadd.vv v8, v8, v16
        (0x8288_1457, 32 * 6),  // vfdiv.vv v8, v8, v16
        (0x3e80_b857, 8 * 7),   // vslidedown.vi v16, v8, 1
        (0x328c_0857, 64 * 2),  // vrgather.vv v16, v8, v24
        (0x0288_2457, 8 * 8),   // vredsum.vs v8, v8, v16
        (0x6288_0057, 8 * 9),   // vmseq.vv v0, v8, v16
        (0x0203_e407, 128 / 8), // vle32.v v8, (x7)
        (0x0203_e427, 128 / 8), // vse32.v v8, (x7)
        (0x0bc3_e407, 32 * 11), // vlse32.v v8, (x7), x28
        (0x0e83_ec07, 32 * 11), // vloxei32.v v24, (x7), v8
    ] {
        let cycles = added(COSTS, E32_M8, instruction) + 1;
        assert_eq!(cycles, expected, "{instruction:#010x}");
    }
}

#[test]
fn registers_take_passes_of_the_datapath() {
    let with_datapath = |datapath| VectorCosts { datapath, ..COSTS };
    // One of a register's width: what every instruction takes, and eight times that.
    assert_eq!(added(with_datapath(128), E32_M1, VADD), 0);
    assert_eq!(added(with_datapath(128), E32_M8, VADD), 7);
    assert_eq!(added(with_datapath(64), E32_M8, VADD), 15);
    assert_eq!(added(with_datapath(1024), E32_M8, VADD), 0);
}

#[test]
fn unchained_instructions_wait_for_results() {
    let waits = VectorCosts {
        chaining: false,
        ..COSTS
    };
    assert_eq!(added(waits, E32_M8, VADD), 7 + 4);
}

#[test]
fn vectors_without_costs_take_a_cycle() {
    let profile = with_vectors(Profile::default(), None);
    let [one, eight] = [E32_M1, E32_M8].map(|vtype| cycles_of(vtype, &[VADD], &profile));
    assert_eq!(one, eight);
}

/// Elements that are moved together cost what they cost one by one, which a mask of all of them makes of them.
#[test]
fn contiguous_accesses_cost_what_their_elements_do() {
    let shipped = Profile::named("k3-class").expect("ships");
    for profile in [shipped, Profile::default()] {
        let profile = with_vectors(profile, None);
        let [together, single] = [1 << 25, 0].map(|unmasked| {
            let body = [
                0x5e0f_b057,            // vmv.v.i v0, -1
                0x0003_8407 | unmasked, // vle8.v v8, (x7)
                0x0003_8827 | unmasked, // vse8.v v16, (x7)
                addi(PLACE, PLACE, 512 + 128),
                0x0003_8427 | unmasked, // vse8.v v8, (x7)
            ];
            cycles_of(E8_M8, &body, &profile)
        });
        assert_eq!(together, single);
        assert!(together > ROUNDS * 6, "no line was missed");
    }
}
