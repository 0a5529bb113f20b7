//! A guest on the computer itself: what "per cent of native" is measured against.

use crate::checkpoint::Span;
use crate::checkpoint::{Boot, CheckpointFailure, count, make_of, poll_interval, restore};
use crate::computer::{Chosen, ComputerError, Setup};
use crate::headless::{Limits, Run};
use crate::storms::Storms;
use crate::window::{MARGIN, Window};
use crate::workloads::Guests;
use abi::system::VmName;
use machine::Stop;
use machine::monitor::Report;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, Instant};
use system::cache::Cache;
use system::image::slots::Assignment;
use system::kernel;
use system::{BootForm, System};
use tempfile::NamedTempFile;

/// Beginning of the guest's last line if its work is done as it should be.
const PASS: &str = "exerciser: PASS";
/// Beginning of the guest's last line if its work failed.
const FAIL: &str = "exerciser: FAIL";

/// Result of a native run.
#[derive(Debug)]
pub struct Native {
    /// Report of the hardware monitor: in the steady window, where there is one.
    pub hardware: Report,
    /// Figures of the workload itself.
    pub guests: Guests,
    /// Accounts of a kernel's waits for locks on the machine itself, on harts that have pause-loop exiting. Under KVM they are not watched.
    pub storms: Option<Storms>,
    /// The failure, if there was one.
    pub failure: Option<NativeFailure>,
}

/// Failure of a native run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NativeFailure {
    /// The run took longer than it may.
    TimeLimit,
    /// Anything else, for people.
    Other(String),
}

/// Boots the first VM's kernel on the machine itself: with all harts and all memory of the system, the VM's command
/// line, and its devices in the slots that they would have. Every line of its console goes to `show`.
///
/// # Errors
/// The run cannot be started.
pub fn native(
    system: &System,
    cache: &Cache,
    chosen: &Chosen,
    limit: Option<Duration>,
    show: &mut dyn FnMut(&str),
) -> Result<Native, ComputerError> {
    let alone = alone(system);
    let mut run = boot_alone(&alone, cache, chosen)?;
    let mut verdict = None;
    let mut hear = |line: &str| {
        let failed = line.starts_with(FAIL);
        if failed || line.starts_with(PASS) {
            verdict = failed.then(|| String::from(line));
        }
        show(line);
    };
    let limits = Limits::of(system, limit, run.machine.clock());
    let counted = match Window::of(&alone) {
        Some(window) => steady(&mut run, &window, &limits, &mut hear),
        None => None,
    };
    let stop = run.follow(&limits, &mut hear);
    let waits = run.waits();
    let mut native = Native::of(run, stop, verdict, "guest");
    (native.hardware, native.storms) = counted.unwrap_or((native.hardware, waits));
    Ok(native)
}

/// The system with its first VM alone.
fn alone(system: &System) -> System {
    let mut alone = system.clone();
    alone.vms.truncate(1);
    alone
}

/// Boots the kernel of a system's only VM on the machine itself.
fn boot_alone(alone: &System, cache: &Cache, chosen: &Chosen) -> Result<Run, ComputerError> {
    let slots = Assignment::of(alone);
    let mut chosen = chosen.clone();
    let (mut kernel, mut unpacked, mut initrd) = (None, None, Vec::new());
    if let Some(vm) = alone.vms.first() {
        chosen.command_line.clone_from(&vm.command_line);
        let path = vm.kernel.value.path(cache);
        unpacked = unpack(&path, vm.boot).map_err(|error| ComputerError::File {
            path: path.clone(),
            error,
        })?;
        let flat = unpacked.as_ref().map(|file| file.path().to_owned());
        kernel = Some(flat.unwrap_or(path));
        if let Some(file) = &vm.initrd {
            let path = file.value.path(cache);
            initrd = std::fs::read(&path).map_err(|error| ComputerError::File { path, error })?;
        }
    }
    let setup = Setup {
        system: alone,
        slots: &slots,
        image: &initrd,
        // What is booted in the place of the hypervisor. A system has a VM, so there is a kernel.
        hypervisor: &kernel.unwrap_or_default(),
        cache,
    };
    let run = match alone.vms.first() {
        Some(vm) => Run::boot_alone(&setup, &chosen, &vm.name),
        None => Run::boot(&setup, &chosen),
    };
    // The machine has read the kernel.
    drop(unpacked);
    run
}

/// A file with the kernel in `path` unpacked, if it has to be.
fn unpack(path: &Path, boot: BootForm) -> std::io::Result<Option<NamedTempFile>> {
    if !kernel::is_packed(path, boot)? {
        return Ok(None);
    }
    let mut file = NamedTempFile::new()?;
    file.write_all(&kernel::read(path, boot)?)?;
    Ok(Some(file))
}

/// Boots the first VM's kernel on the machine itself to where it says that it is up, in the functional mode, and writes the checkpoint to
/// `path`.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn native_checkpoint(boot: &Boot<'_>, path: &Path) -> Result<(), CheckpointFailure> {
    let alone = alone(boot.system);
    let chosen = Chosen {
        fast: true,
        ..boot.chosen.clone()
    };
    let run = boot_alone(&alone, boot.cache, &chosen)?;
    let boot = Boot {
        system: &alone,
        chosen,
        ..*boot
    };
    make_of(run, &boot, true, path)
}

/// Goes on from such a checkpoint, and counts a span.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn native_span(
    boot: &Boot<'_>,
    path: &Path,
    span: &Span,
    show: &mut dyn FnMut(&str),
) -> Result<Native, CheckpointFailure> {
    let alone = alone(boot.system);
    let name = alone.vms.first().map(|vm| vm.name);
    Native::of_span(boot, &alone, path, name.as_ref(), span, show)
}

/// Follows a run to the end of its steady window, and gives what was counted in it: neither the boot of the firmware and the kernel
/// nor the end of the work. Nothing where the run came to no window; its end says why.
fn steady(
    run: &mut Run,
    window: &Window,
    limits: &Limits<'_>,
    show: &mut dyn FnMut(&str),
) -> Option<(Report, Option<Storms>)> {
    let mut works = false;
    let begun = Instant::now();
    while !works {
        if limits.reached(run.machine.now(), begun) {
            return None;
        }
        let look = Limits {
            cycles: Some(run.machine.now() + poll_interval(&run.machine)),
            ..Limits::default()
        };
        let stop = run.follow(&look, &mut |line| {
            works |= line.contains(&window.text);
            show(line);
        });
        if stop != Stop::Limit {
            return None;
        }
    }
    let before = run.machine.snapshot();
    run.begin_waits();
    // A guest's command line says how long: a length that no run reaches has no end that is counted.
    let length = window
        .milliseconds
        .saturating_sub(MARGIN)
        .saturating_mul(1_000_000);
    let clock = run.machine.clock();
    let end = (run.machine.now()).saturating_add(clock.cycles_in_nanoseconds(length).0);
    if limits.cycles.is_some_and(|limit| end >= limit) {
        return None;
    }
    let limits = Limits {
        cycles: Some(end),
        ..*limits
    };
    let stop = run.follow(&limits, show);
    let over = stop == Stop::Limit && run.machine.now() >= end;
    over.then(|| (run.machine.report_since(&before), run.waits()))
}

impl Native {
    /// Result of a span of a run without our hypervisor, from a checkpoint on: of this VM's on the machine itself, or under KVM.
    pub(crate) fn of_span(
        boot: &Boot<'_>,
        system: &System,
        path: &Path,
        vm: Option<&VmName>,
        span: &Span,
        show: &mut dyn FnMut(&str),
    ) -> Result<Self, CheckpointFailure> {
        let machine = restore(boot, path)?;
        let slots = Assignment::of(system);
        let setup = Setup {
            system,
            slots: &slots,
            image: &[],
            hypervisor: boot.hypervisor,
            cache: boot.cache,
        };
        let mut run = Run::resume_below(machine, &setup, vm)?;
        let (hardware, storms) = count(&mut run, boot, span, &system.vms, show)?;
        let (guests, failures) = run.finish_alone(Stop::Limit);
        Ok(Self {
            hardware,
            guests,
            storms: storms.filter(|_| vm.is_some()),
            failure: failures.into_iter().next().map(NativeFailure::Other),
        })
    }

    /// Result of a run that ended by `stop`, with the line of `who` runs on the machine itself that says that it failed, if
    /// there was one.
    pub(crate) fn of(run: Run, stop: Stop, verdict: Option<String>, who: &str) -> Self {
        let hardware = run.machine.report();
        let (guests, failures) = run.finish_alone(stop);
        let failure = match (stop, verdict.or_else(|| failures.first().cloned())) {
            (Stop::PowerOff, None) => None,
            (Stop::Limit, _) => Some(NativeFailure::TimeLimit),
            (_, Some(line)) => Some(NativeFailure::Other(line)),
            (stop, None) => Some(NativeFailure::Other(format!(
                "the {who} did not power off: the machine stopped by {stop:?}"
            ))),
        };
        Self {
            hardware,
            guests,
            storms: None,
            failure,
        }
    }
}
