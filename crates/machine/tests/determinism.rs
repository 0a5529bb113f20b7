//! The same run gives the same figures, in one piece or in many, in each mode.

mod program;

use std::path::PathBuf;
use std::process::{Command, Stdio};

use machine::monitor::Report;
use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};
use program::{BASE, addi, atomic, auipc, bne, elf, ld, power_off, with_predictor};

const HARTS: u32 = 4;
const ROUNDS: u32 = 1000;
/// Result of `auipc x5, 1` at the entry.
const COUNTER: u64 = BASE + 0x1000;

/// Every hart adds to one counter by LR and SC; hart 0 waits for all and switches off.
fn program() -> Vec<u32> {
    let (counter, rounds, value, failed, done, one) = (5, 6, 7, 28, 29, 30);
    let count = [
        auipc(counter, 1),
        addi(rounds, 0, ROUNDS.cast_signed()),
        atomic(0x02, value, counter, 0), // lr.d
        addi(value, value, 1),
        atomic(0x03, failed, counter, value), // sc.d
        bne(failed, 0, -12),
        addi(rounds, rounds, -1),
        bne(rounds, 0, -20),
        addi(done, counter, 64),
        addi(one, 0, 1),
        atomic(0x00, 31, done, one), // amoadd.d
        bne(10, 0, 32),              // a0 is mhartid
        ld(31, done, 0),
        addi(one, 0, HARTS.cast_signed()),
        bne(31, one, -8),
    ];
    [&count[..], &power_off(30, 31)].concat()
}

fn file() -> Vec<u8> {
    elf(&program())
}

/// Action between two pieces of a run.
#[derive(Clone, Copy)]
enum Between {
    Nothing,
    /// The machine is written to a checkpoint, and another one made from it goes on.
    Checkpoint,
}

fn started() -> Machine {
    let mut config = Config::default();
    config.board.harts = HARTS;
    config.board.memory = 16 << 20;
    config.quantum = 50;
    let mut machine = Machine::new(config).expect("a machine");
    machine.load_bare(&file()).expect("the program loads");
    machine
}

/// Runs to the end in pieces of at most `piece` cycles.
fn finish(mut machine: Machine, piece: u64, between: Between) -> Report {
    loop {
        let cycles = Some(machine.now() + piece);
        match machine.run(Limit {
            instructions: None,
            cycles,
        }) {
            Stop::Limit => assert!(machine.now() < 100_000_000, "the program does not end"),
            Stop::PowerOff => break,
            other => panic!("ended by {other:?}"),
        }
        if matches!(between, Between::Checkpoint) {
            machine = through_a_checkpoint(machine);
        }
    }
    let counter = machine.read_memory(COUNTER, COUNTER + 8).expect("RAM");
    let counter = u64::from_le_bytes(counter.try_into().expect("eight bytes"));
    assert_eq!(counter, u64::from(HARTS * ROUNDS));
    machine.report()
}

fn through_a_checkpoint(mut machine: Machine) -> Machine {
    let mut file = Vec::new();
    machine.checkpoint(&mut file).expect("written");
    Machine::restore(&file).expect("read")
}

fn run(profile: Option<&Profile>, piece: u64, between: Between) -> Report {
    let mut machine = started();
    machine.set_profile(profile);
    finish(machine, piece, between)
}

const WHOLE: u64 = 100_000_000;

#[test]
fn functional_mode_repeats_itself() {
    let whole = run(None, WHOLE, Between::Nothing);
    assert_eq!(whole, run(None, WHOLE, Between::Nothing));
    assert_eq!(whole, run(None, 777, Between::Nothing));
    assert_eq!(whole, run(None, 555, Between::Checkpoint));
}

#[test]
fn timing_mode_repeats_itself_and_is_slower() {
    let fast = run(None, WHOLE, Between::Nothing);
    let plain = Profile::default();
    for profile in [with_predictor(&plain), plain] {
        let whole = run(Some(&profile), WHOLE, Between::Nothing);
        assert_eq!(whole, run(Some(&profile), WHOLE, Between::Nothing));
        assert_eq!(whole, run(Some(&profile), 777, Between::Nothing));
        assert_eq!(whole, run(Some(&profile), 1555, Between::Checkpoint));
        assert!(whole.cycles > fast.cycles);
    }
}

/// Fast for a while, then measured: with a checkpoint in between or without.
#[test]
fn checkpoints_continue_in_the_other_mode() {
    let profile = Profile::default();
    let shifted = |between: Between, there_and_back: bool| {
        let mut machine = started();
        let first = Limit {
            instructions: None,
            cycles: Some(2_000),
        };
        assert_eq!(machine.run(first), Stop::Limit);
        if matches!(between, Between::Checkpoint) {
            machine = through_a_checkpoint(machine);
        }
        machine
            .continue_with_profile(&profile)
            .expect("the same board");
        if there_and_back {
            let second = Limit {
                instructions: None,
                cycles: Some(machine.now() + 2_000),
            };
            assert_eq!(machine.run(second), Stop::Limit);
            if matches!(between, Between::Checkpoint) {
                machine = through_a_checkpoint(machine);
            }
            machine.set_profile(None);
        }
        finish(machine, WHOLE, between)
    };
    for there_and_back in [false, true] {
        let straight = shifted(Between::Nothing, there_and_back);
        assert_eq!(straight, shifted(Between::Checkpoint, there_and_back));
    }
}

/// A directory of this test's own, removed when it goes.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("machine-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        std::fs::write(path.join("program"), file()).expect("a file");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).display().to_string()
    }

    /// The monitor's figures of a run of the command.
    fn figures(&self, arguments: &[&str]) -> String {
        let figures = self.file("figures");
        let output = Command::new(env!("CARGO_BIN_EXE_machine"))
            .args(arguments)
            .args(["--monitor", &figures])
            .stdin(Stdio::null())
            .output()
            .expect("runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let text = std::fs::read_to_string(&figures).expect("figures");
        std::fs::remove_file(figures).expect("removed");
        text
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What is left of it is harmless.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Runs in processes of their own, straight and through a checkpoint in a file.
fn processes_agree(name: &str, mode: &[&str]) {
    let scratch = Scratch::new(name);
    let (program, checkpoint) = (scratch.file("program"), scratch.file("checkpoint"));
    let start = ["--bare", &program, "--harts", "4", "--memory", "16"];
    let start: Vec<&str> = start.iter().chain(mode).copied().collect();
    let straight = scratch.figures(&start);
    assert_eq!(straight, scratch.figures(&start));
    let trace = scratch.file("trace");
    let traced = [&start[..], &["--trace", &trace]].concat();
    assert_eq!(straight, scratch.figures(&traced));
    assert!(std::fs::metadata(&trace).is_ok_and(|file| file.len() > 0));
    let write = [
        "--checkpoint-at",
        "instructions=9000",
        "--checkpoint",
        &checkpoint,
    ];
    scratch.figures(&[&start[..], &write].concat());
    assert_eq!(straight, scratch.figures(&["--restore", &checkpoint]));
}

#[test]
fn processes_agree_in_functional_mode() {
    processes_agree("fast", &[]);
}

#[test]
fn processes_agree_in_timing_mode() {
    processes_agree("measured", &["--profile", "k3-class"]);
}
