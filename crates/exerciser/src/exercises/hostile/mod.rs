//! `hostile`: a guest that tries everything that is not its own.
//!
//! Each sub-test ends in the exceptions that the specification names (a hypervisor may also stop this VM:
//! then there is no verdict line, and its log has the reason). `test=` chooses one; `all` runs them in turn.

use core::fmt;

use exerciser::arguments::Arguments;
use exerciser::csr::Host;
use exerciser::random::Random;

use super::{Exercise, Outcome, Verdict};
use crate::arch::sandbox::{Ending, Sandbox, Setting};
use crate::arch::{sbi, team};
use crate::board::board;
use crate::console::say;
use crate::harts;

mod addresses;
mod counters;
mod csrs;
mod files;
mod instructions;
mod interrupts;
mod monitor_calls;
mod storms;
mod suspend;
mod tables;
mod waits;

pub const EXERCISE: Exercise = Exercise {
    name: "hostile",
    parameters: &[
        "test",
        "harts",
        "seed",
        "calls",
        "storm-ms",
        "flood-kib",
        "rounds",
    ],
    run,
};

/// State that the sub-tests share.
#[derive(Debug)]
pub struct Siege {
    pub host: Host,
    pub harts: usize,
    pub seed: u64,
    /// Random SBI calls.
    pub calls: u64,
    /// How long each storm lasts.
    pub storm_ms: u64,
    pub flood_kib: u64,
    pub rounds: u64,
    /// Sixteen frames that anything may be written to.
    pub scrap: u64,
    report: Report,
}

/// Counts of checks, and of those that departed from the specification.
#[derive(Debug, Default)]
struct Report {
    checks: u64,
    mismatches: u64,
}

/// Mismatches that are printed; the rest are only counted.
const PRINTED: u64 = 40;

impl Siege {
    /// Counts a check; says what is wrong where it failed.
    pub fn check(&mut self, passed: bool, what: fmt::Arguments<'_>) {
        self.report.checks += 1;
        if !passed {
            self.report.mismatches += 1;
            if self.report.mismatches <= PRINTED {
                say!("mismatch: {what}");
            }
        }
    }

    /// A check of what lies below us and not of the computer: on the computer itself a firmware that is laxer
    /// than the SBI specification is named, and not held against the run.
    pub fn check_strictly(&mut self, passed: bool, what: fmt::Arguments<'_>) {
        if passed || self.is_virtual() {
            self.check(passed, what);
        } else {
            say!("firmware: {what}");
        }
    }

    /// Tests whether a hypervisor is below: then what is not ours must fault. On the computer itself it may do
    /// anything, and some of it would end the run, so less is tried.
    pub fn is_virtual(&self) -> bool {
        self.host == Host::VirtualMachine
    }

    /// The generator of a sub-test.
    pub fn random(&self, stream: u64) -> Random {
        Random::stream(self.seed, stream)
    }
}

/// A sub-test: its name, whether `all` runs it, and what it does.
type SubTest = (&'static str, fn(&mut Siege));

const SUB_TESTS: &[SubTest] = &[
    ("counters", counters::run),
    ("sbi", monitor_calls::run),
    ("csr", csrs::run),
    ("instructions", instructions::run),
    ("addresses", addresses::run),
    ("misaligned", addresses::run_misaligned),
    ("tables", tables::run),
    ("ipi", interrupts::run),
    ("files", files::run),
    ("suspend", suspend::run),
    ("waits", waits::run),
    ("storms", storms::run_interrupts),
    ("console", storms::run_console),
    ("fences", storms::run_fences),
    ("hsm", storms::run_harts),
    // Last: the harts that it sends away do not come back.
    ("wedge", tables::run_wedge),
];

fn run<'a>(arguments: &Arguments<'a>) -> Outcome<'a> {
    let chosen = arguments.get("test").unwrap_or("all");
    let mut siege = Siege {
        host: host(arguments)?,
        harts: super::harts(arguments)?,
        seed: arguments.number("seed", 1, 0, u64::MAX)?,
        calls: arguments.number("calls", 2000, 0, 1 << 40)?,
        storm_ms: arguments.number("storm-ms", 100, 1, 1 << 32)?,
        flood_kib: arguments.number("flood-kib", 4, 0, 1 << 20)?,
        rounds: arguments.number("rounds", 50, 1, 1 << 32)?,
        scrap: 0,
        report: Report::default(),
    };
    match crate::frames::take(16) {
        Some(scrap) => siege.scrap = scrap,
        None => crate::start::fail(format_args!("not enough memory for scrap")),
    }
    if harts::open_sandboxes(1).is_none() {
        crate::start::fail(format_args!("not enough memory for a sandbox"));
    }
    say!(
        "hostile test={chosen} host={:?} seed={}",
        siege.host,
        siege.seed
    );
    let mut found = false;
    for (name, test) in SUB_TESTS {
        if chosen == "all" || chosen == *name {
            found = true;
            let before = (siege.report.checks, siege.report.mismatches);
            say!("hostile {name}");
            test(&mut siege);
            say!(
                "hostile {name} checks={} mismatches={}",
                siege.report.checks - before.0,
                siege.report.mismatches - before.1
            );
        }
    }
    if !found {
        say!("there is no test `{chosen}`; there are:");
        for (name, _) in SUB_TESTS {
            say!("  {name}");
        }
        return Ok(Verdict::Fail);
    }
    say!(
        "hostile checks={} mismatches={}",
        siege.report.checks,
        siege.report.mismatches
    );
    Ok(Verdict::of(siege.report.mismatches == 0))
}

/// Host below the exerciser: `host=native|vm`, or found out: `hstatus` can be read in HS-mode only, and a firmware
/// that runs on the computer itself says so by its implementation number (SBI, table "SBI Implementation
/// IDs": 0 BBL, 1 OpenSBI, 4 RustSBI, 8 PolarFire HSS).
pub fn host<'a>(
    arguments: &Arguments<'a>,
) -> Result<Host, exerciser::arguments::ArgumentError<'a>> {
    let choice = arguments.choice("host", None, &[("native", Some(false)), ("vm", Some(true))])?;
    if harts::open_sandboxes(1).is_none() {
        crate::start::fail(format_args!("not enough memory for a sandbox"));
    }
    let mut setting = plain_setting();
    let reads_hstatus = run_word(
        exerciser::instruction::csr_read(riscv::csr::number::HSTATUS, exerciser::instruction::A1),
        &mut setting,
    ) == Ending::Completed;
    let implementation = sbi::call(
        riscv::sbi::BASE,
        riscv::sbi::base::IMPLEMENTATION_ID,
        [0; 6],
    )
    .value;
    Ok(match choice {
        Some(true) => Host::VirtualMachine,
        _ if reads_hstatus => Host::WithHypervisorExtension,
        Some(false) => Host::WithoutHypervisorExtension,
        None if [0, 1, 4, 8].contains(&implementation) => Host::WithoutHypervisorExtension,
        None => Host::VirtualMachine,
    })
}

/// Supervisor mode, no translation, registers 0, and a limit of 2 s: on a shared processor much time may pass
/// before an instruction runs.
pub fn plain_setting() -> Setting {
    Setting {
        registers: [0; 32],
        user: false,
        satp: 0,
        status: 0,
        limit: board().ticks(2_000_000),
    }
}

/// Runs one instruction in this hart's sandbox.
pub fn run_word(word: u32, setting: &mut Setting) -> Ending {
    let (parcels, count) = exerciser::instruction::parcels(word);
    Sandbox::of(team::current()).run(parcels.get(..count).unwrap_or(&parcels), setting)
}

pub use riscv::exception::{
    FETCH_ACCESS as FETCH_FAULT, ILLEGAL_INSTRUCTION as ILLEGAL, LOAD_ACCESS as LOAD_FAULT,
    LOAD_MISALIGNED, LOAD_PAGE as LOAD_PAGE_FAULT, STORE_ACCESS as STORE_FAULT,
};
