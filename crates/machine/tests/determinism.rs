//! The same run gives the same figures, in one piece or in many, in each gear.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use machine::monitor::Report;
use machine::timing::Profile;
use machine::{Config, Limit, Machine, Stop};

const HARTS: u32 = 4;
const ROUNDS: u32 = 1000;
const BASE: u64 = 0x8000_0000;
/// What `auipc x5, 1` at the entry gives.
const COUNTER: u64 = BASE + 0x1000;

fn i_type(immediate: i32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
    (immediate.cast_unsigned() << 20) | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
}

fn addi(rd: u32, rs1: u32, immediate: i32) -> u32 {
    i_type(immediate, rs1, 0, rd, 0x13)
}

fn bne(rs1: u32, rs2: u32, offset: i32) -> u32 {
    let bits = offset.cast_unsigned();
    let high = (bits >> 12 & 1) << 31 | (bits >> 5 & 0x3f) << 25;
    let low = (bits >> 1 & 15) << 8 | (bits >> 11 & 1) << 7;
    high | rs2 << 20 | rs1 << 15 | 1 << 12 | low | 0x63
}

fn atomic(funct5: u32, rd: u32, rs1: u32, rs2: u32) -> u32 {
    funct5 << 27 | rs2 << 20 | rs1 << 15 | 3 << 12 | rd << 7 | 0x2f
}

/// Every hart adds to one counter by LR and SC; hart 0 waits for all and switches off.
fn program() -> Vec<u32> {
    let (counter, rounds, value, failed, done, one) = (5, 6, 7, 28, 29, 30);
    vec![
        1 << 12 | counter << 7 | 0x17, // auipc counter, 1
        addi(rounds, 0, ROUNDS.cast_signed()),
        atomic(0x02, value, counter, 0), // lr.d
        addi(value, value, 1),
        atomic(0x03, failed, counter, value), // sc.d
        bne(failed, 0, -12),
        addi(rounds, rounds, -1),
        bne(rounds, 0, -20),
        addi(done, counter, 64),
        addi(one, 0, 1),
        atomic(0x00, 31, done, one),  // amoadd.d
        bne(10, 0, 32),               // a0 is mhartid
        i_type(0, done, 3, 31, 0x03), // ld
        addi(one, 0, HARTS.cast_signed()),
        bne(31, one, -8),
        5 << 12 | 30 << 7 | 0x37,             // lui x30, 5
        addi(30, 30, 0x555),                  // power off: 0x5555
        0x100 << 12 | 31 << 7 | 0x37,         // lui x31, the test finisher
        30 << 20 | 31 << 15 | 2 << 12 | 0x23, // sw x30, 0(x31)
        0x1050_0073,                          // wfi
        0xffdf_f06f,                          // jal x0, -4
    ]
}

/// The program as an ELF file with one segment.
fn elf() -> Vec<u8> {
    let code: Vec<u8> = program()
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    file.extend([2, 0, 243, 0, 1, 0, 0, 0]); // executable, RISC-V, version 1
    for word in [BASE, 64, 0] {
        file.extend(word.to_le_bytes()); // entry, program headers, section headers
    }
    file.extend([0; 4]);
    for half in [64_u16, 56, 1, 64, 0, 0] {
        file.extend(half.to_le_bytes());
    }
    file.extend([1, 0, 0, 0, 7, 0, 0, 0]); // load, rwx
    for word in [120, BASE, BASE, code.len() as u64, code.len() as u64, 4096] {
        file.extend(word.to_le_bytes());
    }
    file.extend(code);
    file
}

/// What happens between two pieces of a run.
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
    machine.load_bare(&elf()).expect("the program loads");
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
fn the_fast_gear_repeats_itself() {
    let whole = run(None, WHOLE, Between::Nothing);
    assert_eq!(whole, run(None, WHOLE, Between::Nothing));
    assert_eq!(whole, run(None, 777, Between::Nothing));
    assert_eq!(whole, run(None, 555, Between::Checkpoint));
}

#[test]
fn the_measured_gear_repeats_itself_and_is_slower() {
    let profile = Profile::default();
    let whole = run(Some(&profile), WHOLE, Between::Nothing);
    assert_eq!(whole, run(Some(&profile), WHOLE, Between::Nothing));
    assert_eq!(whole, run(Some(&profile), 777, Between::Nothing));
    assert_eq!(whole, run(Some(&profile), 1555, Between::Checkpoint));
    assert!(whole.cycles > run(None, WHOLE, Between::Nothing).cycles);
}

/// Fast for a while, then measured: with a checkpoint in between or without.
#[test]
fn a_checkpoint_is_continued_in_the_other_gear() {
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
        machine.shift_to_measured(&profile).expect("the same board");
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
        std::fs::write(path.join("program"), elf()).expect("a file");
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
fn processes_agree(name: &str, gear: &[&str]) {
    let scratch = Scratch::new(name);
    let (program, checkpoint) = (scratch.file("program"), scratch.file("checkpoint"));
    let start = ["--bare", &program, "--harts", "4", "--memory", "16"];
    let start: Vec<&str> = start.iter().chain(gear).copied().collect();
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
fn processes_agree_in_the_fast_gear() {
    processes_agree("fast", &[]);
}

#[test]
fn processes_agree_in_the_measured_gear() {
    processes_agree("measured", &["--profile", "k3-class"]);
}
