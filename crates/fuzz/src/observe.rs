//! Runs a case on the machine, and gathers what shows from outside.

use crate::case::{Case, Command, DiskFaults, WITNESS};
use crate::code::{Code, Covered};
use crate::disk;
use machine::Stop;
use machine::profile::{Chance, Faults};
use machine::timing::Profile;
use machine::translation::Stage;
use runner::computer::{Chosen, ComputerError, Setup};
use runner::headless::{Limits, Run};
use runner::report::Report;
use runner::run::Line;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use system::cache::Cache;
use system::fingerprint::{Digester, Fingerprint};
use system::image::slots::Assignment;
use system::image::{self, ImageError};
use system::{Document, Mistakes, System};

/// Longest machine time in which the operator must have been answered, and in which everything must be off, in microseconds.
const PATIENCE_US: u64 = 300_000;
/// Lines of the console's end that are kept.
const MAX_LINES: usize = 400;
/// Defects, and failures of guests, that are kept of a run: a guest may print as many as it likes.
const MAX_KEPT: usize = 100;
/// Profile of the machine where disks fail and instructions cost nothing but themselves: it says what the devices are like.
const FAULTY: &str = "k3-class";
/// The escape key and the one that opens the operator's prompt; what ends a line there.
const PROMPT: &str = "\u{1d}m";
const ENTER: &str = "\r";

/// Why a case could not be run. It says nothing about the hypervisor.
#[derive(Debug, thiserror::Error)]
pub enum CaseError {
    /// The system file has mistakes.
    #[error(transparent)]
    Mistakes(#[from] Mistakes),
    /// The image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The computer.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// A file.
    #[error("{0}")]
    File(#[from] std::io::Error),
    /// The hypervisor does not take the system, as one of another version may not.
    #[error(
        "the hypervisor refuses system {case}: {refusal}; build it anew with this command, or leave the system out with --first"
    )]
    Refused {
        /// Seed and number of the case.
        case: String,
        /// Reason, in the hypervisor's words.
        refusal: String,
    },
    /// No more is wanted.
    #[error("broken off")]
    BrokenOff,
}

/// Observations of a run.
#[derive(Debug, Clone)]
pub struct Observed {
    /// End of the console.
    pub lines: Vec<String>,
    /// Lines of the hypervisor that report a defect.
    pub defects: Vec<String>,
    /// Lines of guests that end an exercise badly, with the VM's name.
    pub failures: Vec<(String, String)>,
    /// The witness's last line before its verdict, and whether the verdict is a pass.
    pub witness: Option<String>,
    /// The witness passed.
    pub witness_passed: bool,
    /// Harts that the witness had in the same system without neighbours, where that was measured.
    pub share_without_neighbours: Option<f64>,
    /// VMs whose guests have not ended where nothing will happen any more: their programs do so much and no more, and the operator left them alone.
    pub waiting_for_ever: Vec<String>,
    /// The report that the operator asked for at the end.
    pub report: Option<Report>,
    /// How the machine stopped.
    pub stop: Stop,
    /// Uses of G-stage translations that a fence should have removed.
    pub stale: Vec<String>,
    /// Sectors that nobody may have written.
    pub disk_changes: Vec<String>,
    /// Longest stretch in the hypervisor: microseconds, and where it ended.
    pub longest_stretch: Option<(f64, String)>,
    /// Exits of the hostile VMs.
    pub exits: u64,
    /// Places of the hypervisor's code that were reached, if they were asked for.
    pub covered: Option<Covered>,
    /// Fingerprint of the machine's memory and time at the end and of all that the console said.
    pub fingerprint: Fingerprint,
}

impl Observed {
    /// A number that the witness says at its end.
    pub fn witness_number(&self, name: &str) -> Option<u64> {
        let mut words = self.witness.as_ref()?.split_whitespace();
        words.find_map(|word| word.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    /// Harts that the witness had while it worked.
    pub fn witness_share(&self) -> Option<f64> {
        Some(self.witness_number("share-per-mille")? as f64 / 1000.0)
    }

    /// Part of a hart's time that the witness turns into work where it has the hart to itself: the rest goes into its checks and its own exits,
    /// whatever its neighbours do. 1 where it was not measured.
    pub fn yield_of_hart(&self, case: &Case) -> f64 {
        let vcpus = case.witness().map_or(1, |vm| vm.vcpus);
        let harts = vcpus.min(case.harts).max(1) as f64;
        let part = self.share_without_neighbours.map(|share| share / harts);
        part.unwrap_or(1.0).min(1.0)
    }

    /// Part of its promised share that the witness had, where one is promised.
    pub fn part_of_share(&self, case: &Case) -> Option<f64> {
        Some(self.witness_share()? / (case.promised_harts()? * self.yield_of_hart(case)))
    }
}

/// Programs that a case runs with.
#[derive(Debug, Clone, Copy)]
pub struct Programs<'a> {
    /// The hypervisor's ELF file.
    pub hypervisor: &'a Path,
    /// Where built files are.
    pub cache: &'a Cache,
    /// Breaks a run off.
    pub stop: &'a AtomicBool,
    /// The hypervisor's code, if it is asked which places of it are reached.
    pub code: Option<&'a Code>,
}

/// Runs a case in a folder of its own, which is gone afterwards.
///
/// # Errors
/// [`CaseError`].
pub fn observe(case: &Case, programs: Programs<'_>) -> Result<Observed, CaseError> {
    let folder = tempfile::tempdir()?;
    disk::make(case, folder.path())?;
    let path = folder.path().join("system.toml");
    let document = Document::new(&path, case.system_file(), &[])?;
    let system = System::read(&document)?;
    let slots = Assignment::of(&system);
    let image = image::compose(&system, &slots, programs.cache, None)?;
    let setup = Setup {
        system: &system,
        slots: &slots,
        image: &image,
        hypervisor: programs.hypervisor,
        cache: programs.cache,
    };
    let chosen = chosen(case)?;
    let mut run = Run::boot(&setup, &chosen)?;
    run.machine.watch_stretches();
    let mut watch = Watch {
        run,
        stop: programs.stop,
        told: Told::default(),
        waiting_for_ever: Vec::new(),
    };
    let stop = watch.play(case)?;
    if let Some(refusal) = watch.told.refusal.take() {
        let case = format!("{}-{}", case.seed, case.number);
        return Err(CaseError::Refused { case, refusal });
    }
    let mut observed = watch.end(case, stop, programs.code);
    observed.disk_changes = disk::changes(case, folder.path())?;
    Ok(observed)
}

/// The machine of a case.
fn chosen(case: &Case) -> Result<Chosen, ComputerError> {
    let mut chosen = Chosen::named(case.profile.as_deref(), case.machine_seed)?;
    chosen.check_translations = case.check_translations;
    if let Some(faults) = case.faults {
        chosen.fast = chosen.profile.is_none();
        let mut profile = match chosen.profile.take() {
            Some(profile) => profile,
            None => Profile::find(FAULTY)?,
        };
        profile.disk.faults = injected(faults);
        chosen.profile = Some(profile);
    }
    Ok(chosen)
}

fn injected(faults: DiskFaults) -> Faults {
    let chance = |per_million| Chance {
        per_million,
        at: Vec::new(),
    };
    Faults {
        errors: chance(faults.errors),
        short: chance(faults.short),
        lost_interrupts: chance(faults.lost),
        late_interrupts: chance(faults.late),
        late_nanoseconds: faults.late_us.saturating_mul(1000),
    }
}

/// Lines of the console so far.
#[derive(Debug, Default)]
struct Told {
    lines: Vec<String>,
    all: Digester,
    defects: Vec<String>,
    refusal: Option<String>,
    failures: Vec<(String, String)>,
    witness: Option<String>,
    witness_passed: bool,
    /// VMs whose guests have come to a verdict.
    ended: BTreeSet<String>,
}

impl Told {
    fn line(&mut self, line: &str) {
        self.all.update(line.as_bytes());
        self.all.update(b"\n");
        if self.lines.len() >= 2 * MAX_LINES {
            self.lines.drain(..MAX_LINES);
        }
        self.lines.push(String::from(line));
        match Line::of(line) {
            Line::Hypervisor(text) if text.contains("] defect:") => {
                keep(&mut self.defects, String::from(text));
            }
            Line::Hypervisor(text) if text.contains("] cannot start:") => {
                self.refusal = Some(String::from(text));
            }
            Line::Guest { vm, text } => self.guest(vm, text),
            _ => {}
        }
    }

    fn guest(&mut self, vm: &str, text: &str) {
        let Some(said) = text.strip_prefix("exerciser: ") else {
            return;
        };
        if said.starts_with("FAIL") || said.starts_with("PASS") {
            self.ended.insert(String::from(vm));
        }
        if said.starts_with("FAIL") {
            // The witness's own is looked for among them.
            if vm == WITNESS && self.failures.len() >= MAX_KEPT {
                self.failures.pop();
            }
            keep(&mut self.failures, (String::from(vm), String::from(said)));
        }
        if vm == WITNESS {
            self.witness_passed |= said.starts_with("PASS");
            if said.starts_with("witness harts=") {
                self.witness = Some(String::from(said));
            }
        }
    }
}

/// Keeps one more, unless there are many already.
fn keep<T>(kept: &mut Vec<T>, one: T) {
    if kept.len() < MAX_KEPT {
        kept.push(one);
    }
}

/// A run that is watched.
struct Watch<'a> {
    run: Run,
    stop: &'a AtomicBool,
    told: Told,
    waiting_for_ever: Vec<String>,
}

impl Watch<'_> {
    /// Lets it run to this machine time in cycles.
    fn follow(&mut self, cycles: u64) -> Result<Stop, CaseError> {
        let limits = Limits {
            cycles: Some(cycles),
            stop: Some(self.stop),
            ..Limits::default()
        };
        let told = &mut self.told;
        let stop = self.run.follow(&limits, &mut |line| told.line(line));
        match self.stop.load(Ordering::Relaxed) {
            true => Err(CaseError::BrokenOff),
            false => Ok(stop),
        }
    }

    fn cycles(&self, microseconds: u64) -> u64 {
        let clock = self.run.machine.clock();
        clock
            .cycles_in_nanoseconds(microseconds.saturating_mul(1000))
            .0
    }

    /// Plays the case to its end.
    fn play(&mut self, case: &Case) -> Result<Stop, CaseError> {
        for Command { at_us, line } in &case.commands {
            let stop = self.follow(self.cycles(*at_us))?;
            if is_over(stop) {
                return Ok(stop);
            }
            self.say(std::slice::from_ref(line));
        }
        let stop = self.follow(self.cycles(case.end_us))?;
        if is_over(stop) {
            return Ok(stop);
        }
        let stop = self.await_guests(case)?;
        if is_over(stop) {
            return Ok(stop);
        }
        let stops = case.vms.iter().map(|vm| format!("vm stop {}", vm.name));
        let lines: Vec<String> = stops.chain([String::from("stats")]).collect();
        let reports = self.run.reports();
        self.say(&lines);
        let stop = self.until(|run| run.reports() > reports)?;
        if is_over(stop) {
            return Ok(stop);
        }
        self.run.power_off();
        self.until(|_| false)
    }

    /// Waits for guests that must come to an end, and notes those that wait for ever: nothing is due on the whole computer. A guest that is
    /// merely slow is not waited for beyond the operator's patience.
    fn await_guests(&mut self, case: &Case) -> Result<Stop, CaseError> {
        let must_end: Vec<&str> = case.must_end().collect();
        let end = self.run.machine.now() + self.cycles(PATIENCE_US);
        loop {
            let unended = must_end
                .iter()
                .filter(|name| !self.told.ended.contains(**name));
            let unended: Vec<String> = unended.map(|name| String::from(*name)).collect();
            let now = self.run.machine.now();
            if unended.is_empty() || now >= end {
                return Ok(Stop::Limit);
            }
            let stop = self.follow((now + self.cycles(1000)).min(end))?;
            if is_over(stop) {
                return Ok(stop);
            }
            if stop == Stop::Idle {
                let has_ended = |name: &String| self.told.ended.contains(name);
                self.waiting_for_ever = unended
                    .into_iter()
                    .filter(|name| !has_ended(name))
                    .collect();
                return Ok(stop);
            }
        }
    }

    /// Says these lines at the operator's prompt, which an empty line leaves.
    fn say(&mut self, lines: &[String]) {
        let mut keys = String::from(PROMPT);
        for line in lines.iter().map(String::as_str).chain([""]) {
            keys += line;
            keys += ENTER;
        }
        self.run.type_keys(keys.as_bytes());
    }

    /// Follows until this is so, the machine is off, or patience has ended.
    fn until(&mut self, is_so: impl Fn(&Run) -> bool) -> Result<Stop, CaseError> {
        let end = self.run.machine.now() + self.cycles(PATIENCE_US);
        loop {
            let next = self.run.machine.now() + self.cycles(1000);
            let stop = self.follow(next.min(end))?;
            let has_waited_in_vain = stop == Stop::Idle && !self.run.has_keys();
            let is_late = self.run.machine.now() >= end;
            if is_over(stop) || is_so(&self.run) || has_waited_in_vain || is_late {
                return Ok(stop);
            }
        }
    }

    fn end(mut self, case: &Case, stop: Stop, code: Option<&Code>) -> Observed {
        let covered = code.map(|code| code.covered(&self.run.machine));
        let (stale, _) = self.run.machine.stale_uses();
        let stale = stale.iter().filter(|stale| stale.stage == Stage::Guest);
        let stale = stale.map(ToString::to_string).collect();
        let finished = self.run.finish(stop);
        let monitor = finished.machine.report();
        let longest = monitor.longest_hypervisor_stretch.as_ref();
        let end = format!("\n{}\n{}", monitor.memory_hash, monitor.cycles);
        self.told.all.update(end.as_bytes());
        let keep = self.told.lines.len().saturating_sub(MAX_LINES);
        let report = finished.outcome.report;
        Observed {
            lines: self.told.lines.split_off(keep),
            defects: self.told.defects,
            failures: self.told.failures,
            witness: self.told.witness,
            witness_passed: self.told.witness_passed,
            share_without_neighbours: None,
            waiting_for_ever: self.waiting_for_ever,
            exits: report
                .as_ref()
                .map_or(0, |report| hostile_exits(case, report)),
            report,
            stop,
            stale,
            covered,
            disk_changes: Vec::new(),
            longest_stretch: longest.map(|longest| {
                let microseconds = longest.nanoseconds as f64 / 1000.0;
                (microseconds, longest.end_pc.clone())
            }),
            fingerprint: self.told.all.finish(),
        }
    }
}

fn hostile_exits(case: &Case, report: &Report) -> u64 {
    let hostile = |name: &str| case.hostile().any(|vm| vm.name == name);
    let vms = report.vms.iter().filter(|vm| hostile(&vm.name));
    let work = vms.flat_map(|vm| &vm.work);
    work.flat_map(|work| work.exits.values())
        .map(|exits| exits.count)
        .sum()
}

/// Returns whether the machine will not go on.
fn is_over(stop: Stop) -> bool {
    !matches!(stop, Stop::Limit | Stop::Idle)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn console_without_end_takes_bounded_memory() {
        let mut told = Told::default();
        for number in 0..100 * MAX_LINES {
            told.line(&format!("[a] exerciser: FAIL {number}"));
            told.line("[partita] defect: hart 0");
        }
        told.line("[witness] exerciser: FAIL at last");
        assert!(told.lines.len() <= 2 * MAX_LINES);
        assert!(told.failures.len() <= MAX_KEPT && told.defects.len() <= MAX_KEPT);
        let last = told.failures.iter().find(|(vm, _)| vm == WITNESS);
        assert_eq!(last.unwrap().1, "FAIL at last");
    }
}
