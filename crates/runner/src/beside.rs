//! The same work on the computer itself, under Partita and under KVM, from where the guests are up: the time that it takes, and what the
//! guests' programs had of a span of time.
//!
//! The host under the guests boots in the functional mode, once for each way, and is measured from there.

use crate::checkpoint::{self, Boot, CheckpointFailure, Span, poll_interval, restore};
use crate::computer::Setup;
use crate::exit_latency::{ExitLatencies, Row};
use crate::headless::{Limits, Run};
use crate::kvm::{KvmError, kvm_checkpoint};
use crate::native::native_checkpoint;
use machine::Stop;
use machine::monitor::{Event, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use system::image::slots::Assignment;

/// Parts of a millisecond of machine time between two looks at what was said.
const LOOKS: u64 = 100;

/// Layer that the guests run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Below {
    /// The computer itself, which the first VM has alone.
    Nothing,
    /// Partita.
    Partita,
    /// KVM and QEMU, on Debian.
    Kvm,
}

/// Time and events between two lines.
#[derive(Debug, Clone)]
pub struct Timed {
    /// Machine time, to a hundredth of a millisecond.
    pub nanoseconds: u64,
    /// The hardware monitor's report of that time.
    pub hardware: Report,
}

/// Counts of a span of time.
#[derive(Debug, Clone)]
pub struct Counted {
    /// The hardware monitor's report.
    pub hardware: Report,
    /// Round trips from guests to guests.
    pub exit_latency: Vec<Row>,
}

impl Counted {
    /// Instructions in VU-mode by VMID, on all harts.
    pub fn of_programs(&self) -> BTreeMap<u16, u64> {
        let mut all = BTreeMap::new();
        for hart in &self.hardware.harts {
            for (vmid, counts) in &hart.virtual_machines {
                let instructions = counts
                    .user
                    .get(Event::Instructions.name())
                    .copied()
                    .unwrap_or(0);
                *all.entry(*vmid).or_default() += instructions;
            }
        }
        all
    }
}

/// Boots a system to where each guest says the text of `boot`, and writes the checkpoint to `path`.
///
/// # Errors
/// [`KvmError`].
pub fn boot(below: Below, boot: &Boot<'_>, path: &Path) -> Result<(), KvmError> {
    match below {
        Below::Nothing => Ok(native_checkpoint(boot, path)?),
        Below::Partita => Ok(checkpoint::make(boot, path)?),
        Below::Kvm => kvm_checkpoint(boot, path),
    }
}

/// Goes on from such a checkpoint, and measures from where a line has `work.start` in it to where one has `work.end`. The checkpoint is
/// made some time after the line that it waited for, another one on each way, so the work must begin later.
///
/// # Errors
/// [`CheckpointFailure`]; `NeverSaid` if the run ended first.
pub fn time(
    below: Below,
    boot: &Boot<'_>,
    path: &Path,
    work: &Range<&str>,
    show: &mut dyn FnMut(&str),
) -> Result<Timed, CheckpointFailure> {
    let mut run = resume(below, boot, path)?;
    pass_line(&mut run, boot, work.start, show)?;
    let begun = run.machine.now();
    let before = run.machine.snapshot();
    pass_line(&mut run, boot, work.end, show)?;
    let cycles = machine::device::Cycles(run.machine.now() - begun);
    Ok(Timed {
        nanoseconds: run.machine.clock().nanoseconds(cycles),
        hardware: run.machine.report_since(&before),
    })
}

/// Goes on until a line has `text` in it.
fn pass_line(
    run: &mut Run,
    boot: &Boot<'_>,
    text: &str,
    show: &mut dyn FnMut(&str),
) -> Result<(), CheckpointFailure> {
    let mut said = false;
    while !said {
        let look = (poll_interval(&run.machine) / LOOKS).max(1);
        let limits = limits(boot, run.machine.now() + look);
        let stop = run.follow(&limits, &mut |line| {
            said |= line.contains(text);
            show(line);
        });
        if !said && stop != Stop::Limit {
            return Err(CheckpointFailure::NeverSaid {
                missing: vec![String::from("the guest")],
                text: String::from(text),
                why: format!("the machine stopped by {stop:?}"),
            });
        }
    }
    Ok(())
}

/// Goes on from such a checkpoint, lets the guests settle, and counts a span.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn count(
    below: Below,
    boot: &Boot<'_>,
    path: &Path,
    span: &Span,
    show: &mut dyn FnMut(&str),
) -> Result<Counted, CheckpointFailure> {
    let mut run = resume(below, boot, path)?;
    let mut pass = |run: &mut Run, microseconds: u64| {
        let clock = run.machine.clock();
        let cycles = clock.cycles_in_nanoseconds(microseconds.saturating_mul(1000));
        let end = run.machine.now().saturating_add(cycles.0);
        let stop = run.follow(&limits(boot, end), show);
        match stop == Stop::Limit && run.machine.now() >= end {
            true => Ok(()),
            false => Err(CheckpointFailure::SpanTooLong),
        }
    };
    pass(&mut run, span.settle_us)?;
    let before = run.machine.snapshot();
    let exit_latency = ExitLatencies::default();
    run.machine.listen(Box::new(exit_latency.clone()));
    pass(&mut run, span.count_us)?;
    Ok(Counted {
        hardware: run.machine.report_since(&before),
        exit_latency: exit_latency.rows(),
    })
}

fn limits<'a>(boot: &Boot<'a>, cycles: u64) -> Limits<'a> {
    Limits {
        cycles: Some(cycles),
        time: boot.limit,
        stop: Some(boot.stop),
        ..Limits::default()
    }
}

fn resume(below: Below, boot: &Boot<'_>, path: &Path) -> Result<Run, CheckpointFailure> {
    let machine = restore(boot, path)?;
    let mut system = boot.system.clone();
    if below == Below::Nothing {
        system.vms.truncate(1);
    }
    let slots = Assignment::of(&system);
    let setup = Setup {
        system: &system,
        slots: &slots,
        image: &[],
        hypervisor: boot.hypervisor,
        cache: boot.cache,
    };
    let alone = system.vms.first().filter(|_| below == Below::Nothing);
    let run = match below {
        Below::Partita => Run::resume(machine, &setup)?,
        _ => Run::resume_below(machine, &setup, alone.map(|vm| &vm.name))?,
    };
    Ok(run)
}
