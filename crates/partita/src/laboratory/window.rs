//! Measures over a steady window: from when all VMs work to when the first of them ends.
//!
//! Accounts are read without touching the run. At each end of the window the machine is written to a checkpoint and continued in a
//! copy, in which somebody asks the operator's prompt for a report; the run itself goes on as if nothing had been. A report closes
//! to the cycle, and so does the difference of two.

use super::checkpoint::{Boot, CheckpointFailure, ask, look};
use crate::computer::Setup;
use crate::computer::headless::{Limits, Run};
use crate::image::{self, slots::Assignment};
use crate::passages::{Passages, Row};
use crate::report::{Report, Work};
use crate::run::{Line, Outcome, check_memory};
use crate::system::System;
use machine::checkpoint::CheckpointError;
use machine::{Machine, Stop};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an exerciser says before it works.
const BEGINS: &str = "exerciser: harts=";
/// The exercise that works for a time, and the word that says how long, in milliseconds.
const WORK: &str = "exercise=work";
const LENGTH: &str = "duration-ms=";
/// How long before the first end the window ends, in milliseconds of machine time: the prompt takes a key in each, and none of
/// what ends a VM may lie in the report. A prompt that waits for busy harts may need longer, so the report is asked for
/// at each of these times, and the last that came while all VMs worked counts.
const MARGINS: [u64; 4] = [200, 100, 50, MARGIN];
/// The last of them.
pub(super) const MARGIN: u64 = 25;
/// A hart's booked time and its true time may differ by so small a part, as the prompt that asks for the report takes time.
const SHARE_OF_THE_PROMPT: u64 = 50;

/// A window of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Window {
    /// What each VM says when it begins its work.
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
        let vms = system.vms.iter().filter(|vm| vm.autostart);
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
pub(super) fn boot_and<T>(
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
    let passages = boot.chosen.passages.then(Passages::default);
    if let Some(passages) = &passages {
        run.machine.listen(Box::new(passages.clone()));
    }
    let from = report_of(&copy(&mut run.machine)?, setup)?;
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
            counted: run.machine.report_since(&before),
            passages: passages.as_ref().map(Passages::rows).unwrap_or_default(),
        });
    }
    let closed = last_that_closes(ends, &from, |copy| report_of(copy, setup))?;
    let stop = match stop {
        Stop::Limit if closed.is_some() => run.follow(&to_end, show),
        other => other,
    };
    let mut outcome = run.finish(stop).outcome;
    match closed {
        Some((to, end)) => {
            let mut report = between(&from, &to);
            let harts = end.counted.harts.iter();
            let passed = harts.map(|hart| (hart.hart, hart.cycles)).collect();
            leave_out_what_was_before(&mut report, &passed);
            // The copies have not heard the hypervisor's first line.
            report.own_memory = outcome.report.and_then(|own| own.own_memory);
            outcome.report = Some(report);
            outcome.monitor = Some(end.counted);
            outcome.passages = end.passages;
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
    counted: machine::monitor::Report,
    passages: Vec<Row>,
}

/// The last of `ends` at which all VMs still worked when the prompt had answered, and what it answered. The last is asked first: it nearly
/// always closes the window, and a copy costs more to be asked than to be made.
fn last_that_closes(
    ends: Vec<End>,
    from: &Report,
    ask: impl Fn(&[u8]) -> Result<Report, CheckpointFailure>,
) -> Result<Option<(Report, End)>, CheckpointFailure> {
    for end in ends.into_iter().rev() {
        match ask(&end.copy) {
            Ok(to) if same_vms_run(from, &to) => return Ok(Some((to, end))),
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

/// Whether each VM is in the state in which it was.
fn same_vms_run(before: &Report, after: &Report) -> bool {
    let states = |report: &Report| -> BTreeMap<String, &'static str> {
        let vms = report.vms.iter();
        vms.map(|vm| (vm.name.clone(), vm.state)).collect()
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
pub(super) fn begin(
    run: &mut Run,
    boot: &Boot<'_>,
    window: &Window,
    show: &mut dyn FnMut(&str),
) -> Result<u64, CheckpointFailure> {
    let vms = boot.system.vms.iter().filter(|vm| vm.autostart);
    let mut missing: BTreeMap<String, ()> = vms.map(|vm| (vm.name.to_string(), ())).collect();
    let all = missing.len();
    let mut first = None;
    let limit = Limits::of(boot.system, boot.limit, run.machine.clock());
    let begun = std::time::Instant::now();
    while !missing.is_empty() {
        let limits = Limits {
            cycles: Some(run.machine.now() + look(&run.machine)),
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

/// What was counted between the reports of two copies. What the prompt took in the first copy, some ten thousand cycles, is in
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

/// Asks a copy of the machine for its report.
fn report_of(copy: &[u8], setup: &Setup<'_>) -> Result<Report, CheckpointFailure> {
    let copy = Machine::restore(copy).map_err(copying)?;
    let (_, report) = ask(copy, setup, &[], &mut |_| {})?;
    Ok(report)
}

fn copying(error: CheckpointError) -> CheckpointFailure {
    CheckpointFailure::Checkpoint {
        path: std::path::PathBuf::from("a copy of the machine"),
        error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{HartReport, VmReport};
    use crate::system::Document;
    use std::path::Path;

    /// A report of one VM on two harts: the time and the VM's, the idle and the scheduler's part of it, hart by hart.
    fn report(harts: [(u64, u64, u64, u64); 2]) -> Report {
        let of_hart =
            |(number, (elapsed, _, idle, scheduling)): (usize, &(u64, u64, u64, u64))| HartReport {
                hart: number as u32,
                elapsed: *elapsed,
                idle: *idle,
                scheduling: *scheduling,
            };
        let work = |(number, (_, guest, ..)): (usize, &(u64, u64, u64, u64))| Work {
            hart: number as u32,
            guest: *guest,
            scheduling: 0,
            simulation: 0,
            dispatches: 0,
            calls: 0,
            injected: 0,
            exits: BTreeMap::new(),
            events: BTreeMap::new(),
        };
        let vm = VmReport {
            name: String::from("a"),
            state: "running",
            reason: "none",
            restarts: 0,
            guest_interrupts: None,
            work: harts.iter().enumerate().map(work).collect(),
        };
        Report {
            seconds: 1.0,
            vms: vec![vm],
            harts: harts.iter().enumerate().map(of_hart).collect(),
            own_memory: None,
        }
    }

    #[test]
    fn accounts_close_where_the_prompt_was_on_another_hart() {
        // The first copy's prompt took 30 cycles of hart 1, which its guest missed, and the scheduler took 15 there since.
        let from = report([(100, 80, 10, 10), (100, 60, 5, 35)]);
        let to = report([(300, 245, 10, 45), (300, 275, 5, 20)]);
        let window = between(&from, &to);
        for (hart, expected) in window.harts.iter().zip([(165, 0, 35), (200, 0, 0)]) {
            let own = window.vms[0]
                .work
                .iter()
                .find(|work| work.hart == hart.hart);
            let guest = own.unwrap().guest;
            assert_eq!((guest, hart.idle, hart.scheduling), expected, "{hart:?}");
            assert_eq!(guest + hart.idle + hart.scheduling, hart.elapsed);
        }
    }

    #[test]
    fn what_a_hart_did_before_the_window_is_left_out() {
        // Hart 0 worked all the time. Hart 1 idled before and booked it within; below, it was with its guest.
        let from = report([(100_000, 90_000, 0, 10_000), (10, 0, 0, 10)]);
        let to = report([
            (300_000, 280_000, 0, 20_000),
            (300_010, 150_000, 130_000, 20_010),
        ]);
        let passed = BTreeMap::from([(0, 200_000), (1, 200_000)]);
        let mut window = between(&from, &to);
        leave_out_what_was_before(&mut window, &passed);
        let [first, second] = &window.harts[..] else {
            panic!("{window:?}")
        };
        assert_eq!(first.elapsed, 200_000);
        // Its 2 % are the prompt's.
        assert_eq!((second.elapsed, second.idle), (204_000, 34_000));
        let from = report([(100, 90, 0, 10), (10, 0, 0, 10)]);
        let to = report([(300, 280, 0, 20), (400, 380, 0, 20)]);
        let mut window = between(&from, &to);
        leave_out_what_was_before(&mut window, &BTreeMap::from([(1, 200)]));
        let guests: Vec<u64> = window.vms[0].work.iter().map(|work| work.guest).collect();
        assert_eq!(guests, [190, 194]);
        assert_eq!(window.harts[1].elapsed, 204);
    }

    #[test]
    fn a_window_is_tried_to_be_closed_ever_nearer_to_the_end() {
        assert_eq!(margins(8000).collect::<Vec<_>>(), [200, 100, 50, 25]);
        assert_eq!(margins(300).collect::<Vec<_>>(), [100, 50, 25]);
        assert_eq!(margins(101).collect::<Vec<_>>(), [50, 25]);
    }

    #[test]
    fn a_report_that_came_after_a_vm_had_ended_closes_no_window() {
        let accounts = [(100, 80, 10, 10), (100, 60, 5, 35)];
        let (before, mut after) = (report(accounts), report(accounts));
        assert!(same_vms_run(&before, &after));
        after.vms[0].state = "stopped";
        assert!(!same_vms_run(&before, &after));
    }

    #[test]
    fn the_last_end_at_which_all_vms_worked_closes_the_window() {
        let accounts = [(100, 80, 10, 10), (100, 60, 5, 35)];
        let from = report(accounts);
        let machine = Machine::new(machine::Config::default()).unwrap();
        let ends = || -> Vec<End> {
            let each = [b"1", b"2", b"3", b"4"].into_iter();
            each.map(|name| End {
                copy: name.to_vec(),
                counted: machine.report(),
                passages: Vec::new(),
            })
            .collect()
        };
        // The third is refused, and in the last a VM has stopped; the first is never asked.
        let asked = std::cell::RefCell::new(Vec::new());
        let closed = last_that_closes(ends(), &from, |copy| {
            asked.borrow_mut().push(copy.to_vec());
            let mut answer = report(accounts);
            match copy {
                b"4" => answer.vms[0].state = "stopped",
                b"3" => {
                    return Err(CheckpointFailure::Refused {
                        command: String::from("stats"),
                        said: String::new(),
                    });
                }
                _ => {}
            }
            Ok(answer)
        });
        assert_eq!(closed.unwrap().unwrap().1.copy, b"2");
        assert_eq!(asked.take(), [b"4", b"3", b"2"]);
        let never = last_that_closes(ends(), &from, |_| Err(CheckpointFailure::TimeLimit));
        assert!(never.is_err());
        assert!(
            last_that_closes(Vec::new(), &from, |_| Ok(report(accounts)))
                .unwrap()
                .is_none()
        );
    }

    fn window(lines: &[&str]) -> Option<Window> {
        let mut text = String::from("harts = 1\nmemory = \"2 GiB\"\n");
        for (line, name) in lines.iter().zip(["a", "b", "c"]) {
            text += &format!(
                "[vm.{name}]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\nkernel = \"image:debian/kernel\"\n\
                 command-line = \"{line}\"\n"
            );
        }
        let document = Document::new(Path::new("a.toml"), text, &[]).unwrap();
        Window::of(&System::read(&document).unwrap())
    }

    #[test]
    fn a_window_is_as_long_as_the_shortest_work_of_all_vms() {
        let long = "exercise=work duration-ms=2000 jobs=1";
        let found = window(&[long, "exercise=work duration-ms=500"]).unwrap();
        assert_eq!(found.milliseconds, 500);
        assert_eq!(window(&[long, "exercise=boot duration-ms=500"]), None);
        assert_eq!(window(&[long, "exercise=work"]), None);
        // Nothing is left of it beside its margin.
        assert_eq!(window(&[long, "exercise=work duration-ms=80"]), None);
    }
}
