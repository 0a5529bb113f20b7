//! Measures over a steady window: from when all VMs work to when the first of them ends.
//!
//! Accounts are read without touching the run. At each end of the window the machine is written to a checkpoint and continued in a
//! copy, in which the operator's prompt is asked for a report; the run itself goes on as if nothing had been. A report closes
//! to the cycle, and so does the difference of two.

use crate::checkpoint::{Boot, CheckpointFailure, ask, poll_interval};
use crate::computer::Setup;
use crate::exit_latency::{ExitLatencies, Row};
use crate::headless::{Limits, Run};
use crate::report::{Name, Report, Work};
use crate::run::{Line, Outcome, check_memory};
use abi::keys;
use machine::checkpoint::CheckpointError;
use machine::{Machine, Stop};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use system::System;
use system::image::{self, slots::Assignment};

/// Line of an exerciser before it works.
const BEGINS: &str = "exerciser: harts=";
/// The exercise that works for a time, and the word that says how long, in milliseconds.
const WORK: &str = "exercise=work";
const LENGTH: &str = "duration-ms=";
/// How long before the first end the window ends, in milliseconds of machine time: the prompt takes a key in each, and none of
/// what ends a VM may lie in the report. A prompt that waits for busy harts may need longer, so the report is asked for
/// at each of these times, and the last that came while all VMs worked counts.
const MARGINS: [u64; 4] = [200, 100, 50, MARGIN];
/// The last of them.
pub(crate) const MARGIN: u64 = 25;
/// A hart's booked time and its true time may differ by so small a part, as the prompt that asks for the report takes time.
const SHARE_OF_THE_PROMPT: u64 = 50;

/// A window of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// Line of each VM that begins its work.
    pub text: String,
    /// How long the work of each takes at least, in milliseconds of machine time.
    pub milliseconds: u64,
}

impl Window {
    /// The window in which all VMs of a system work: there is one where each is an exerciser that works for a time. It is as long as
    /// the shortest work.
    pub fn of(system: &System) -> Option<Self> {
        let length = |line: &str| -> Option<u64> {
            let mut words = line.split_whitespace();
            words.clone().find(|word| *word == WORK)?;
            words.find_map(|word| word.strip_prefix(LENGTH)?.parse().ok())
        };
        let vms = system.vms.iter().filter(|vm| vm.get(keys::AUTOSTART));
        let lengths: Option<Vec<u64>> = vms.map(|vm| length(&vm.command_line)).collect();
        let milliseconds = lengths?.into_iter().min()?;
        // A window that is mostly margin says nothing.
        (milliseconds > 4 * MARGIN).then(|| Self {
            text: String::from(BEGINS),
            milliseconds,
        })
    }
}

/// Runs a system from its boot to its end, with the reports of the window. Lines for people go to `show`.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn measure(
    boot: &Boot<'_>,
    window: &Window,
    show: &mut dyn FnMut(&str),
) -> Result<Outcome, CheckpointFailure> {
    boot_and(boot, |setup, run| {
        measure_run(boot, window, setup, run, show)
    })
}

/// Builds the machine for a system, and does something with it.
pub(crate) fn boot_and<T>(
    boot: &Boot<'_>,
    what: impl FnOnce(&Setup<'_>, Run) -> Result<T, CheckpointFailure>,
) -> Result<T, CheckpointFailure> {
    let slots = Assignment::of(boot.system);
    let image = image::compose(boot.system, &slots, boot.cache, None)?;
    check_memory(boot.system, image.len() as u64)?;
    let setup = Setup {
        system: boot.system,
        slots: &slots,
        image: &image,
        hypervisor: boot.hypervisor,
        cache: boot.cache,
    };
    let run = Run::boot(&setup, &boot.chosen)?;
    what(&setup, run)
}

fn measure_run(
    boot: &Boot<'_>,
    window: &Window,
    setup: &Setup<'_>,
    mut run: Run,
    show: &mut dyn FnMut(&str),
) -> Result<Outcome, CheckpointFailure> {
    let begun = begin(&mut run, boot, window, show)?;
    shift_slices(&mut run, boot, show);
    // Counts are the run's own: the copy's have the prompt in them, and so the first copy's may exceed the run's later ones.
    let before = run.machine.snapshot();
    let exit_latency = boot.chosen.exit_latency.then(ExitLatencies::default);
    if let Some(exit_latency) = &exit_latency {
        run.machine.listen(Box::new(exit_latency.clone()));
    }
    let from = report_of(resume(&copy(&mut run.machine)?)?, boot, setup)?;
    let to_end = Limits {
        stop: Some(boot.stop),
        ..Limits::of(boot.system, boot.limit, run.machine.clock())
    };
    let a_millisecond = run.machine.clock().cycles_per_second() / 1000;
    let mut ends = Vec::new();
    let mut stop = Stop::Limit;
    for margin in margins(window.milliseconds) {
        let length = window.milliseconds.saturating_sub(margin);
        let end = begun.saturating_add(a_millisecond.saturating_mul(length));
        let limits = Limits {
            cycles: Some(end),
            ..to_end
        };
        stop = run.follow(&limits, show);
        // It was given up, or a VM took everything with it: the end says so.
        if stop != Stop::Limit || run.machine.now() < end {
            break;
        }
        ends.push(End {
            copy: copy(&mut run.machine)?,
            exit_latency: exit_latency
                .as_ref()
                .map(ExitLatencies::rows)
                .unwrap_or_default(),
        });
    }
    let closed = last_that_closes(ends, &from, |copy| {
        let machine = resume(copy)?;
        // The copy counts as the run had counted there, until it is asked.
        let counted = machine.report_since(&before);
        Ok((report_of(machine, boot, setup)?, counted))
    })?;
    let stop = match stop {
        Stop::Limit if closed.is_some() => run.follow(&to_end, show),
        other => other,
    };
    let mut outcome = run.finish(stop).outcome;
    match closed {
        Some(Closed {
            to,
            counted,
            exit_latency,
        }) => {
            let mut report = between(&from, &to);
            let harts = counted.harts.iter();
            let passed = harts.map(|hart| (hart.hart, hart.cycles)).collect();
            leave_out_what_was_before(&mut report, &passed);
            // The copies have not heard the hypervisor's first line.
            report.own_memory = outcome.report.and_then(|own| own.own_memory);
            outcome.report = Some(report);
            outcome.monitor = Some(counted);
            outcome.exit_latency = exit_latency;
        }
        None => outcome.failures.push(String::from(
            "it came to no steady window: the work ended before its time",
        )),
    }
    Ok(outcome)
}

/// Where a window may end.
struct End {
    /// The machine there.
    copy: Vec<u8>,
    exit_latency: Vec<Row>,
}

/// Where a window ends.
struct Closed {
    /// The hypervisor's report there.
    to: Report,
    /// Counts of the machine.
    counted: machine::monitor::Report,
    exit_latency: Vec<Row>,
}

/// The last of `ends` at which all VMs still worked when the prompt had answered, and what it answered. The last is asked first: it nearly
/// always closes the window, and a copy costs more to be asked than to be made.
fn last_that_closes(
    ends: Vec<End>,
    from: &Report,
    ask: impl Fn(&[u8]) -> Result<(Report, machine::monitor::Report), CheckpointFailure>,
) -> Result<Option<Closed>, CheckpointFailure> {
    for End { copy, exit_latency } in ends.into_iter().rev() {
        match ask(&copy) {
            Ok((to, counted)) if same_vms_run(from, &to) => {
                return Ok(Some(Closed {
                    to,
                    counted,
                    exit_latency,
                }));
            }
            // The work ended before the prompt had answered.
            Ok(_) | Err(CheckpointFailure::Refused { .. }) => {}
            Err(other) => return Err(other),
        }
    }
    Ok(None)
}

/// The margins that leave a window at least half of its work, the longest first.
fn margins(milliseconds: u64) -> impl Iterator<Item = u64> {
    MARGINS
        .into_iter()
        .filter(move |margin| 2 * margin <= milliseconds)
}

/// Returns whether each VM is in the state in which it was.
fn same_vms_run(before: &Report, after: &Report) -> bool {
    let states = |report: &Report| -> BTreeMap<String, Name> {
        let vms = report.vms.iter();
        vms.map(|vm| (vm.name.clone(), vm.state.clone())).collect()
    };
    states(before) == states(after)
}

/// Holds each hart up for its time, and lets the run go on until the last is free again: slices end at other times from then on.
fn shift_slices(run: &mut Run, boot: &Boot<'_>, show: &mut dyn FnMut(&str)) {
    let clock = run.machine.clock();
    let mut longest = 0;
    for (hart, nanoseconds) in boot.chosen.shift.harts.iter().enumerate() {
        let cycles = clock.cycles_in_nanoseconds(*nanoseconds).0;
        run.machine.hold_up(hart, cycles);
        longest = longest.max(cycles);
    }
    if longest > 0 {
        let limits = Limits {
            cycles: Some(run.machine.now() + longest),
            stop: Some(boot.stop),
            ..Limits::default()
        };
        run.follow(&limits, show);
    }
}

/// Follows a run until all VMs work, and says at which machine time the first of them began.
pub(crate) fn begin(
    run: &mut Run,
    boot: &Boot<'_>,
    window: &Window,
    show: &mut dyn FnMut(&str),
) -> Result<u64, CheckpointFailure> {
    let vms = boot.system.vms.iter().filter(|vm| vm.get(keys::AUTOSTART));
    let mut missing: BTreeMap<String, ()> = vms.map(|vm| (vm.name.to_string(), ())).collect();
    let all = missing.len();
    let mut first = None;
    let limit = Limits::of(boot.system, boot.limit, run.machine.clock());
    let begun = std::time::Instant::now();
    while !missing.is_empty() {
        let limits = Limits {
            cycles: Some(run.machine.now() + poll_interval(&run.machine)),
            stop: Some(boot.stop),
            ..Limits::default()
        };
        let before = run.machine.now();
        let stop = run.follow(&limits, &mut |line| {
            if let Line::Guest { vm, text } = Line::of(line)
                && text.contains(&window.text)
            {
                missing.remove(vm);
            }
            show(line);
        });
        if missing.len() < all {
            first.get_or_insert(before);
        }
        if boot.stop.load(std::sync::atomic::Ordering::Relaxed) {
            return Err(CheckpointFailure::BrokenOff);
        }
        let is_over = stop != Stop::Limit || limit.reached(run.machine.now(), begun);
        if is_over && !missing.is_empty() {
            return Err(CheckpointFailure::NeverSaid {
                missing: missing.into_keys().collect(),
                text: window.text.clone(),
                why: format!("the machine stopped by {stop:?}"),
            });
        }
    }
    Ok(first.unwrap_or(0))
}

/// Difference of the reports of two copies. What the prompt took in the first copy, some ten thousand cycles, is in
/// no history of the second. Where the first booked it on a hart on which the second booked less, a difference below zero counts as
/// zero, and the hart's parts come to more than its time. The prompt's cycles are missing from what the hart did otherwise, so
/// they are taken off the largest part, and the accounts close again.
fn between(from: &Report, to: &Report) -> Report {
    let mut report = to.since(from);
    for hart in &mut report.harts {
        let own = |work: &&mut Work| work.hart == hart.hart;
        let mut work: Vec<&mut Work> = report
            .vms
            .iter_mut()
            .flat_map(|vm| &mut vm.work)
            .filter(own)
            .collect();
        let of_vms: u64 = work
            .iter()
            .map(|work| work.guest + work.scheduling + work.simulation)
            .sum();
        let sum = of_vms + hart.idle + hart.scheduling;
        let excess = sum.saturating_sub(hart.elapsed);
        let largest = work.iter_mut().map(|work| &mut work.guest).max();
        let part = match largest {
            Some(guest) if *guest > hart.idle => guest,
            _ => &mut hart.idle,
        };
        *part = part.saturating_sub(excess);
    }
    report
}

/// A hart books its time when it changes what it does. One that did nothing else for long before the window, as a hart that is
/// idle while VMs boot on another, books all of that time within it. `passed` are the cycles of each hart in the window: what
/// it booked beyond them is taken off what it did at the beginning, which was to idle, or else to be with one guest. The few
/// thousand cycles by which the prompt moves the ends of the window are left as they are.
fn leave_out_what_was_before(report: &mut Report, passed: &BTreeMap<u32, u64>) {
    for hart in &mut report.harts {
        let most = passed.get(&hart.hart).map_or(u64::MAX, |cycles| {
            cycles.saturating_add(cycles / SHARE_OF_THE_PROMPT)
        });
        let excess = hart.elapsed.saturating_sub(most);
        let idle = excess.min(hart.idle);
        hart.idle -= idle;
        hart.elapsed -= idle;
        let works = report.vms.iter_mut().flat_map(|vm| &mut vm.work);
        let own = works.filter(|work| work.hart == hart.hart);
        if let Some(guest) = own.map(|work| &mut work.guest).max() {
            let rest = (excess - idle).min(*guest);
            *guest -= rest;
            hart.elapsed -= rest;
        }
    }
}

/// The machine as it is, as a checkpoint.
fn copy(machine: &mut Machine) -> Result<Vec<u8>, CheckpointFailure> {
    let mut bytes = Vec::new();
    machine.checkpoint(&mut bytes).map_err(copying)?;
    Ok(bytes)
}

/// The machine that a copy holds.
fn resume(copy: &[u8]) -> Result<Machine, CheckpointFailure> {
    Machine::restore(copy).map_err(copying)
}

/// Asks a copy of the machine for its report.
fn report_of(
    copy: Machine,
    boot: &Boot<'_>,
    setup: &Setup<'_>,
) -> Result<Report, CheckpointFailure> {
    let (_, report) = ask(copy, boot, setup, &[], &mut |_| {})?;
    Ok(report)
}

fn copying(error: CheckpointError) -> CheckpointFailure {
    CheckpointFailure::Checkpoint {
        path: std::path::PathBuf::from("a copy of the machine"),
        error,
    }
}

#[cfg(test)]
mod tests;
