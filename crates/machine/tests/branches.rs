//! Branches and jumps by a profile with a predictor.

mod program;

use machine::timing::{PredictorProfile, Profile, ReplacementPolicy};
use machine::{Config, Limit, Machine, Stop};
use program::*;

const LEFT: Register = 5;
const INNER: Register = 6;
/// Rounds of each program.
const ROUNDS: u64 = 200;

/// Figures of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Figures {
    cycles: u64,
    mispredictions: u64,
    target_misses: u64,
}

fn run(profile: &Profile, body: &[u32]) -> Figures {
    let mut config = Config::with_profile(profile);
    config.board.memory = 16 << 20;
    let mut machine = Machine::new(config).expect("a machine");
    machine.set_profile(Some(profile));
    let start = [addi(LEFT, 0, ROUNDS as i32)];
    let words = [&start, body, &power_off(30, 31)].concat();
    machine.load_bare(&elf(&words)).expect("loads");
    let limit = Limit {
        instructions: Some(1_000_000),
        cycles: None,
    };
    assert_eq!(machine.run(limit), Stop::PowerOff);
    let report = machine.report();
    let hart = report.harts.first().expect("one");
    let count = |name: &str| hart.total.get(name).copied().unwrap_or(0);
    Figures {
        cycles: hart.cycles,
        mispredictions: count("mispredictions"),
        target_misses: count("btb-misses"),
    }
}

/// A loop of ten turns within a loop.
fn loops() -> [u32; 5] {
    [
        addi(INNER, 0, 10),
        addi(INNER, INNER, -1),
        bne(INNER, 0, -4),
        addi(LEFT, LEFT, -1),
        bne(LEFT, 0, -16),
    ]
}

/// A routine that is called from two places in turn.
fn calls() -> [u32; 6] {
    [
        jal(1, 20),
        jal(1, 16),
        addi(LEFT, LEFT, -1),
        bne(LEFT, 0, -12),
        jal(0, 8),
        jalr(0, 1),
    ]
}

fn predicting(history: u8, returns: u16) -> Profile {
    Profile {
        predictor: Some(PredictorProfile {
            counters: 4096,
            history,
            targets: 32,
            target_ways: 4,
            replacement: ReplacementPolicy::Fifo,
            returns,
        }),
        ..Profile::default()
    }
}

#[test]
fn history_foresees_the_end_of_loops() {
    // One at the end of each inner loop, and few until both loops are known.
    let bimodal = run(&predicting(0, 0), &loops());
    let few = ROUNDS..ROUNDS + 8;
    assert!(few.contains(&bimodal.mispredictions), "{bimodal:?}");
    let gshare = run(&predicting(12, 0), &loops());
    assert!(gshare.mispredictions < ROUNDS / 3, "{gshare:?}");
}

#[test]
fn return_stacks_foresee_all_returns() {
    let without = run(&predicting(0, 0), &calls());
    let with = run(&predicting(0, 2), &calls());
    let saved = without.mispredictions - with.mispredictions;
    assert_eq!(saved, 2 * ROUNDS, "{without:?}, {with:?}");
}

#[test]
fn predictions_cost_what_profiles_say() {
    // A loop's branch is mispredicted at first, and its target known from then on.
    for (body, misses) in [(&loops()[..], false), (&calls(), true)] {
        let free = predicting(0, 0);
        let mut dear = free.clone();
        (dear.costs.mispredict, dear.costs.redirect) = (50, 7);
        let (cheap, paid) = (run(&free, body), run(&dear, body));
        assert!(cheap.mispredictions > 100, "{cheap:?}");
        assert_eq!(cheap.target_misses > 0, misses, "{cheap:?}");
        let charged = 50 * cheap.mispredictions + 7 * cheap.target_misses;
        let expected = Figures {
            cycles: cheap.cycles + charged,
            ..cheap
        };
        assert_eq!(paid, expected);
    }
}

#[test]
fn cores_without_predictors_pay_nothing() {
    let plain = Profile::default();
    let mut dear = plain.clone();
    (dear.costs.mispredict, dear.costs.redirect) = (50, 7);
    assert_eq!(run(&dear, &loops()), run(&plain, &loops()));
}
