//! Blocks translated to the host's instructions do what the interpreter does, to the last figure.

mod program;

use machine::timing::{CacheProfile, Profile, ReplacementPolicy};
use machine::{Config, Limit, Machine, Stop};
use program::{BASE, add, addi, auipc, bne, elf, i_type, jal, jalr, power_off, with_predictor};
use proptest::prelude::*;

/// Rounds of each program: translations begin after some.
const ROUNDS: i32 = 200;
/// Registers with a part of their own: the data's address, rounds to go, the address of aligned data, and
/// what calls and the program's end need.
const DATA: u32 = 8;
const LEFT: u32 = 9;
const ALIGNED: u32 = 31;
const END: u32 = 30;
/// Bytes from the program to the data, which crosses pages.
const DATA_PAGES: u32 = 2;

/// A register that random instructions may write.
fn free() -> impl Strategy<Value = u32> {
    prop_oneof![1..8_u32, 10..30_u32, Just(0)]
}

/// A register that they may read.
fn any_register() -> impl Strategy<Value = u32> {
    0..32_u32
}

/// `funct7`, `funct3` of instructions between registers, of opcodes OP and OP-32.
const OP: &[(u32, u32)] = &[
    (0, 0),
    (0, 1),
    (0, 2),
    (0, 3),
    (0, 4),
    (0, 5),
    (0, 6),
    (0, 7),
    (0x20, 0),
    (0x20, 5),
    (1, 0),
    (1, 1),
    (1, 2),
    (1, 3),
    (1, 4),
    (1, 5),
    (1, 6),
    (1, 7),
    (0x20, 4),
    (0x20, 6),
    (0x20, 7),
    (0x10, 2),
    (0x10, 4),
    (0x10, 6),
    (5, 4),
    (5, 5),
    (5, 6),
    (5, 7),
    (5, 1),
    (5, 2),
    (5, 3),
    (0x30, 1),
    (0x30, 5),
    (0x24, 1),
    (0x24, 5),
    (0x34, 1),
    (0x14, 1),
    (7, 5),
    (7, 7),
    (4, 4),
    (4, 7),
    (0x14, 2),
    (0x14, 4),
];
const OP_32: &[(u32, u32)] = &[
    (0, 0),
    (0, 1),
    (0, 5),
    (0x20, 0),
    (0x20, 5),
    (1, 0),
    (1, 4),
    (1, 5),
    (1, 6),
    (1, 7),
    (4, 0),
    (0x10, 2),
    (0x10, 4),
    (0x10, 6),
    (0x30, 1),
    (0x30, 5),
    (4, 4),
];
/// `funct3` and bits 31:26 of shifts and the like by a constant, of opcodes OP-IMM and OP-IMM-32.
const SHIFTS: &[(u32, u32)] = &[
    (1, 0),
    (5, 0),
    (5, 0x10),
    (5, 0x18),
    (1, 0x0a),
    (1, 0x12),
    (5, 0x12),
    (1, 0x1a),
];
const SHIFTS_32: &[(u32, u32)] = &[(1, 0), (5, 0), (5, 0x20), (5, 0x30)];
/// Whole immediates of instructions with one source: of `funct3` 1 and 5.
const UNARY: &[(u32, u32)] = &[
    (1, 0x600),
    (1, 0x601),
    (1, 0x602),
    (1, 0x604),
    (1, 0x605),
    (5, 0x287),
    (5, 0x6b8),
    (5, 0x687),
];

/// One instruction that neither traps nor jumps.
fn plain() -> impl Strategy<Value = u32> {
    let registers = |table: &'static [(u32, u32)], opcode: u32| {
        (
            prop::sample::select(table),
            free(),
            any_register(),
            any_register(),
        )
            .prop_map(move |((funct7, funct3), rd, rs1, rs2)| {
                funct7 << 25 | rs2 << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
            })
    };
    let constant = (
        prop::sample::select(&[0_u32, 2, 3, 4, 6, 7][..]),
        free(),
        any_register(),
        -2048..2048_i32,
    )
        .prop_map(|(funct3, rd, rs1, value)| i_type(value, rs1, funct3, rd, 0x13));
    let word = (free(), any_register(), -2048..2048_i32)
        .prop_map(|(rd, rs1, value)| i_type(value, rs1, 0, rd, 0x1b));
    let shift = (
        prop::sample::select(SHIFTS),
        free(),
        any_register(),
        0..64_u32,
    )
        .prop_map(|((funct3, high), rd, rs1, by)| {
            i_type((high << 6 | by).cast_signed(), rs1, funct3, rd, 0x13)
        });
    let shift_word = (
        prop::sample::select(SHIFTS_32),
        free(),
        any_register(),
        0..32_u32,
    )
        .prop_map(|((funct3, high), rd, rs1, by)| {
            i_type((high << 5 | by).cast_signed(), rs1, funct3, rd, 0x1b)
        });
    let unary = (
        prop::sample::select(UNARY),
        free(),
        any_register(),
        any::<bool>(),
    )
        .prop_map(|((funct3, immediate), rd, rs1, word)| {
            let opcode = if word && funct3 == 1 && immediate < 0x603 {
                0x1b
            } else {
                0x13
            };
            i_type(immediate.cast_signed(), rs1, funct3, rd, opcode)
        });
    let upper = (
        free(),
        0..1_u32 << 20,
        prop::sample::select(&[0x37_u32, 0x17][..]),
    )
        .prop_map(|(rd, page, opcode)| page << 12 | rd << 7 | opcode);
    let load = (
        prop::sample::select(&[0_u32, 1, 2, 3, 4, 5, 6][..]),
        free(),
        -2048..2048_i32,
    )
        .prop_map(|(funct3, rd, offset)| i_type(offset, DATA, funct3, rd, 0x03));
    let store = (0..4_u32, any_register(), -2048..2048_i32).prop_map(|(funct3, rs2, offset)| {
        let bits = offset.cast_unsigned();
        (bits >> 5 & 0x7f) << 25 | rs2 << 20 | DATA << 15 | funct3 << 12 | (bits & 31) << 7 | 0x23
    });
    // AMOs, of which those for minima and maxima are the interpreter's.
    let amo = (
        prop::sample::select(&[0_u32, 1, 4, 8, 0xc, 0x10, 0x1c][..]),
        2..4_u32,
        free(),
        any_register(),
    )
        .prop_map(|(funct5, width, rd, rs2)| {
            funct5 << 27 | rs2 << 20 | ALIGNED << 15 | width << 12 | rd << 7 | 0x2f
        });
    // And FENCE.
    let other = prop_oneof![1 => Just(0x0ff0_000f), 3 => amo];
    prop_oneof![
        4 => registers(OP, 0x33),
        2 => registers(OP_32, 0x3b),
        2 => constant,
        1 => word,
        1 => shift,
        1 => shift_word,
        1 => unary,
        1 => upper,
        3 => load,
        3 => store,
        1 => other,
    ]
}

/// A branch over the next instruction.
fn skip() -> impl Strategy<Value = u32> {
    let funct3 = prop::sample::select(&[0_u32, 1, 4, 5, 6, 7][..]);
    (funct3, any_register(), any_register())
        .prop_map(|(funct3, rs1, rs2)| rs2 << 20 | rs1 << 15 | funct3 << 12 | 8 << 7 | 0x63)
}

/// A program whose rounds execute some random instructions.
fn programs() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(prop_oneof![5 => plain(), 1 => skip()], 1..60).prop_map(|body| {
        let start = [
            auipc(DATA, DATA_PAGES),
            addi(LEFT, 0, ROUNDS),
            auipc(ALIGNED, DATA_PAGES + 1),
        ];
        let mut round = body;
        // What a last branch skips.
        round.push(addi(29, 29, 1));
        // A call and its return.
        round.extend([jal(END, 8), jal(0, 8), jalr(0, END)]);
        round.push(add(28, 28, 29));
        // Aligned or not, and across pages.
        round.push(addi(DATA, DATA, 3));
        round.push(addi(LEFT, LEFT, -1));
        let back = -4 * i32::try_from(round.len()).expect("few");
        round.push(bne(LEFT, 0, back));
        [&start[..], &round, &power_off(END, ALIGNED)].concat()
    })
}

fn run(program: &[u32], profile: Option<&Profile>, translate: bool) -> Machine {
    let mut config = Config::default();
    config.board.memory = 4 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine.load_bare(&elf(program)).expect("the program loads");
    machine.set_profile(profile);
    if !translate {
        machine.interpret_all();
    }
    let limit = Limit {
        instructions: Some(1_000_000),
        cycles: None,
    };
    assert_eq!(machine.run(limit), Stop::PowerOff);
    machine
}

fn compare(program: &[u32], profile: Option<&Profile>) {
    let mut translated = run(program, profile, true);
    let mut interpreted = run(program, profile, false);
    assert_eq!(
        translated.harts()[0].x[..32],
        interpreted.harts()[0].x[..32]
    );
    let (from, to) = (BASE, BASE + 0x8000);
    assert_eq!(
        translated.read_memory(from, to),
        interpreted.read_memory(from, to)
    );
    let report = |machine: &Machine| serde_json::to_value(machine.report()).expect("JSON");
    assert_eq!(report(&translated), report(&interpreted));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn random_programs_agree_in_functional_mode(program in programs()) {
        compare(&program, None);
    }

    #[test]
    fn random_programs_agree_in_timing_mode(program in programs()) {
        let profile = Profile::named("rocket-h").expect("it ships");
        compare(&program, Some(&profile));
    }

    #[test]
    fn random_programs_agree_with_predictors(program in programs()) {
        let profile = with_predictor(&Profile::named("k3-class").expect("it ships"));
        compare(&program, Some(&profile));
    }

    #[test]
    fn random_programs_agree_whatever_overlaps(program in programs(), lru in any::<bool>()) {
        let mut profile = Profile::named("k3-class").expect("it ships");
        // So small that lines and pages have to go.
        profile.l1d = CacheProfile::new(1024, 4);
        profile.prefetcher.iter_mut().for_each(|prefetcher| prefetcher.distance = 3);
        if lru {
            profile.l1d.replacement = ReplacementPolicy::Lru;
            profile.dtlb.replacement = ReplacementPolicy::Lru;
        }
        compare(&program, Some(&profile));
    }
}
