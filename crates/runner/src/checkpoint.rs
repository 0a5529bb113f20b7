//! Boots once, measures many times: a system is booted in the functional mode to the point where its guests say that they are
//! up, and goes on from there with other policies, costs and start phases.

use crate::computer::{Chosen, ComputerError, Setup};
use crate::headless::{Limits, Run};
use crate::run::{Line, Outcome, RunError, check_memory};
use crate::storms::Storms;
use abi::keys;
use machine::checkpoint::{CheckpointError, ProfileMismatch};
use machine::monitor::Report;
use machine::{Machine, Stop};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use system::cache::Cache;
use system::image::{self, ImageError, slots::Assignment};
use system::{System, Vm};

/// Parts of a second of machine time between two looks at what was said.
const POLLS_PER_SECOND: u64 = 1000;
/// Longest machine time that the operator's prompt may take for its answers, in seconds.
const PATIENCE: u64 = 30;
/// The keys that open the operator's prompt, what ends a line there, and what is asked at last.
const PROMPT: &str = "\u{1d}m";
const ENTER: &str = "\r";
const REPORT: &str = "stats";

/// A start from a checkpoint: the system boots once for many points, in the functional mode.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Start {
    /// Text that every VM's console has shown when the checkpoint is taken.
    pub text: String,
    /// Commands for the operator's prompt before anything is measured.
    pub commands: Vec<String>,
    /// The part of the run that is measured from there on; without it, all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub span: Option<Span>,
}

/// A part of a run from a checkpoint, in microseconds of machine time. The run ends with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Span {
    /// How long nothing is counted, from when the operator's prompt has answered.
    pub settle_us: u64,
    /// How long all is counted afterwards.
    pub count_us: u64,
}

/// Why a system cannot be booted to its checkpoint, or measured from it.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointFailure {
    /// The computer.
    #[error(transparent)]
    Computer(#[from] ComputerError),
    /// The system image.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// The memory.
    #[error(transparent)]
    Memory(#[from] RunError),
    /// A guest never said it.
    #[error(
        "{} never said `{text}`: {why}; name with --start-at what the consoles of all VMs say, or boot each run with --boot", .missing.join(" and ")
    )]
    NeverSaid {
        /// VMs that never said the text.
        missing: Vec<String>,
        /// The text.
        text: String,
        /// Why no more is to come.
        why: String,
    },
    /// The prompt did not do what it was asked to.
    #[error("the operator's prompt did not take `{command}`; it said: {said}")]
    Refused {
        /// The request.
        command: String,
        /// Its answer.
        said: String,
    },
    /// The checkpoint.
    #[error("{path}: {error}", path = path.display())]
    Checkpoint {
        /// Its file.
        path: PathBuf,
        /// The problem.
        error: CheckpointError,
    },
    /// A file.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// The profile is another than software has seen.
    #[error("{path}: {error}", path = path.display())]
    Profile {
        /// The checkpoint's file.
        path: PathBuf,
        /// The problem.
        error: ProfileMismatch,
    },
    /// KVM's host cannot be booted.
    #[error(transparent)]
    Host(Box<dyn std::error::Error + Send + Sync>),
    /// The work ended first.
    #[error(
        "the run ended, or took longer than it may, before the part of it that is measured was over"
    )]
    SpanTooLong,
    /// The run took longer than it may.
    #[error("booting to the checkpoint took longer than it may")]
    TimeLimit,
    /// No more is wanted.
    #[error("booting to the checkpoint was broken off")]
    BrokenOff,
}

/// A system to be booted.
#[derive(Debug)]
pub struct Boot<'a> {
    /// The system.
    pub system: &'a System,
    /// Where built files are.
    pub cache: &'a Cache,
    /// The hypervisor's ELF file.
    pub hypervisor: &'a Path,
    /// The machine.
    pub chosen: Chosen,
    /// Text by which every VM that starts by itself says that it is up.
    pub text: &'a str,
    /// When it is given up.
    pub limit: Option<Duration>,
    /// Set when no more is wanted.
    pub stop: &'a AtomicBool,
}

/// Boots, and writes the checkpoint to `path`, where nothing is until it is whole.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn make(boot: &Boot<'_>, path: &Path) -> Result<(), CheckpointFailure> {
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
    let chosen = Chosen {
        fast: true,
        ..boot.chosen.clone()
    };
    make_of(Run::boot(&setup, &chosen)?, boot, false, path)
}

/// Follows a run to where the guests are up, and writes the checkpoint. Where a VM runs alone, natively, lines have no name before them.
pub(crate) fn make_of(
    mut run: Run,
    boot: &Boot<'_>,
    alone: bool,
    path: &Path,
) -> Result<(), CheckpointFailure> {
    let vms = boot.system.vms.iter().filter(|vm| vm.get(keys::AUTOSTART));
    let mut missing: BTreeSet<String> = vms.map(|vm| vm.name.to_string()).collect();
    let begun = Instant::now();
    while !missing.is_empty() {
        let limits = Limits {
            cycles: Some(run.machine.now() + poll_interval(&run.machine)),
            ..Limits::default()
        };
        let stop = run.follow(&limits, &mut |line| match Line::of(line) {
            Line::Guest { vm, text } if text.contains(boot.text) => {
                missing.remove(vm);
            }
            Line::Bare(text) if alone && text.contains(boot.text) => missing.clear(),
            _ => {}
        });
        if boot.stop.load(Ordering::Relaxed) {
            return Err(CheckpointFailure::BrokenOff);
        }
        if boot.limit.is_some_and(|limit| begun.elapsed() > limit) {
            return Err(CheckpointFailure::TimeLimit);
        }
        if stop != Stop::Limit && !missing.is_empty() {
            return Err(CheckpointFailure::NeverSaid {
                missing: missing.into_iter().collect(),
                text: String::from(boot.text),
                why: format!("the machine stopped by {stop:?}"),
            });
        }
    }
    write(&mut run.machine, path)
}

fn write(machine: &mut Machine, path: &Path) -> Result<(), CheckpointFailure> {
    let file = |error| CheckpointFailure::File {
        path: path.to_owned(),
        error,
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(file)?;
    let mut new = tempfile::NamedTempFile::new_in(folder).map_err(file)?;
    let written = machine.checkpoint(std::io::BufWriter::new(new.as_file_mut()));
    written.map_err(|error| CheckpointFailure::Checkpoint {
        path: path.to_owned(),
        error,
    })?;
    new.persist(path).map_err(|error| file(error.error))?;
    Ok(())
}

/// The machine of the checkpoint at `path`, with the profile and the seed of `boot`.
pub(crate) fn restore(boot: &Boot<'_>, path: &Path) -> Result<Machine, CheckpointFailure> {
    let file = std::fs::File::open(path).map_err(|error| CheckpointFailure::File {
        path: path.to_owned(),
        error,
    })?;
    // Runs side by side share the file's pages; it is never written again under its name.
    let restored = Machine::restore_file(&file);
    let mut machine = restored.map_err(|error| CheckpointFailure::Checkpoint {
        path: path.to_owned(),
        error,
    })?;
    if let Some(profile) = &boot.chosen.profile {
        let refused = |error| CheckpointFailure::Profile {
            path: path.to_owned(),
            error,
        };
        machine.continue_with_profile(profile).map_err(refused)?;
    }
    machine.reseed(boot.chosen.seed);
    Ok(machine)
}

/// Goes on from the checkpoint at `path`: with the machine's own profile and seed, after what `start` asks of the operator's
/// prompt. All figures count from the report that the prompt gives last, or are of the span. Lines for people go to `show`.
///
/// # Errors
/// [`CheckpointFailure`].
pub fn measure(
    boot: &Boot<'_>,
    path: &Path,
    start: &Start,
    show: &mut dyn FnMut(&str),
) -> Result<Outcome, CheckpointFailure> {
    let machine = restore(boot, path)?;
    let slots = Assignment::of(boot.system);
    let setup = Setup {
        system: boot.system,
        slots: &slots,
        image: &[],
        hypervisor: boot.hypervisor,
        cache: boot.cache,
    };
    let (mut run, first) = ask(machine, boot, &setup, &start.commands, show)?;
    let counted = match &start.span {
        Some(span) => Some(count(&mut run, boot, span, &boot.system.vms, show)?),
        None => None,
    };
    let before = run.machine.snapshot();
    match counted {
        Some(_) => run.power_off(),
        None => run.begin(&boot.system.vms),
    }
    let limits = Limits {
        stop: Some(boot.stop),
        ..Limits::of(boot.system, boot.limit, run.machine.clock())
    };
    let stop = run.follow(&limits, show);
    let mut finished = run.finish(stop);
    let outcome = &mut finished.outcome;
    outcome.report = outcome.report.as_ref().map(|last| last.since(&first));
    outcome.monitor = Some(finished.machine.report_since(&before));
    if let Some((monitor, storms)) = counted {
        (outcome.monitor, outcome.storms) = (Some(monitor), storms);
    }
    Ok(finished.outcome)
}

/// Lets a run settle, and counts a span of it. What the hypervisor counts itself is not in the answer: its reports are asked for with
/// keys, which take time.
pub(crate) fn count(
    run: &mut Run,
    boot: &Boot<'_>,
    span: &Span,
    vms: &[Vm],
    show: &mut dyn FnMut(&str),
) -> Result<(Report, Option<Storms>), CheckpointFailure> {
    let mut go_on = |run: &mut Run, microseconds: u64| {
        let clock = run.machine.clock();
        let cycles = clock.cycles_in_nanoseconds(microseconds.saturating_mul(1000));
        let end = run.machine.now().saturating_add(cycles.0);
        let limits = Limits {
            cycles: Some(end),
            time: boot.limit,
            stop: Some(boot.stop),
            ..Limits::default()
        };
        let stop = run.follow(&limits, show);
        if boot.stop.load(Ordering::Relaxed) {
            return Err(CheckpointFailure::BrokenOff);
        }
        match stop == Stop::Limit && run.machine.now() >= end {
            true => Ok(()),
            false => Err(CheckpointFailure::SpanTooLong),
        }
    };
    go_on(run, span.settle_us)?;
    let before = run.machine.snapshot();
    run.begin(vms);
    go_on(run, span.count_us)?;
    let monitor = run.machine.report_since(&before);
    Ok((monitor, run.end(vms)))
}

/// Goes on with a machine while these commands and then a report are asked of the operator's prompt, until it has answered.
pub(crate) fn ask(
    machine: Machine,
    boot: &Boot<'_>,
    setup: &Setup<'_>,
    commands: &[String],
    show: &mut dyn FnMut(&str),
) -> Result<(Run, crate::report::Report), CheckpointFailure> {
    let lines = commands.iter().map(String::as_str).chain([REPORT, ""]);
    let lines: String = lines.flat_map(|line| [line, ENTER]).collect();
    let mut run = Run::resume_typing(machine, setup, format!("{PROMPT}{lines}").as_bytes())?;
    let report = operate(&mut run, boot, commands, show)?;
    Ok((run, report))
}

/// Waits until the prompt has answered, and gives its report.
fn operate(
    run: &mut Run,
    boot: &Boot<'_>,
    commands: &[String],
    show: &mut dyn FnMut(&str),
) -> Result<crate::report::Report, CheckpointFailure> {
    let begun = std::time::Instant::now();
    let mut said = Vec::new();
    for _ in 0..PATIENCE * POLLS_PER_SECOND {
        let limits = Limits {
            cycles: Some(run.machine.now() + poll_interval(&run.machine)),
            time: boot.limit,
            stop: Some(boot.stop),
            ..Limits::default()
        };
        let stop = run.follow(&limits, &mut |line| {
            if let Line::Hypervisor(line) = Line::of(line) {
                said.push(String::from(line));
            }
            show(line);
        });
        if let Some(report) = run.report() {
            let answered =
                |command: &String| said.iter().any(|line| line.contains(&answer(command)));
            return match commands.iter().find(|command| !answered(command)) {
                None => Ok(report),
                Some(command) => Err(CheckpointFailure::Refused {
                    command: command.clone(),
                    said: said.join("; "),
                }),
            };
        }
        if boot.stop.load(Ordering::Relaxed) {
            return Err(CheckpointFailure::BrokenOff);
        }
        if boot.limit.is_some_and(|limit| begun.elapsed() > limit) {
            return Err(CheckpointFailure::TimeLimit);
        }
        if stop != Stop::Limit {
            break;
        }
    }
    Err(CheckpointFailure::Refused {
        command: String::from(REPORT),
        said: said.join("; "),
    })
}

/// Answer of the prompt to a command that was carried out: `share web 30` becomes `web: share 30`.
fn answer(command: &str) -> String {
    let words: Vec<&str> = command.split_whitespace().collect();
    match &words[..] {
        ["share", vm, share] => format!("{vm}: share {share}"),
        _ => format!("] {command}"),
    }
}

/// Machine time between two looks, in cycles.
pub(crate) fn poll_interval(machine: &Machine) -> u64 {
    (machine.clock().cycles_per_second() / POLLS_PER_SECOND).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::Config;
    use machine::timing::Profile;
    use system::Document;

    #[test]
    fn checkpoint_of_another_length_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("wide.checkpoint");
        let mut profile = Profile::find("k3-class").unwrap();
        let mut config = Config::default();
        config.use_profile(&profile);
        write(&mut Machine::new(config).unwrap(), &path).unwrap();
        let text = "harts = 1\nmemory = \"2 GiB\"\n[vm.a]\nvcpus = 1\nmemory = \"64 MiB\"\nshare = 1\n\
                    kernel = \"image:debian/kernel\"\n";
        let document = Document::new(Path::new("a.toml"), String::from(text), &[]).unwrap();
        let system = System::read(&document).unwrap();
        let refusal = |profile: &Profile| {
            let boot = Boot {
                system: &system,
                cache: &Cache::new(folder.path()),
                hypervisor: Path::new(""),
                chosen: Chosen {
                    profile: Some(profile.clone()),
                    ..Chosen::default()
                },
                text: "",
                limit: None,
                stop: &AtomicBool::new(false),
            };
            restore(&boot, &path).err().map(|error| error.to_string())
        };
        assert_eq!(refusal(&profile), None);
        profile.vector.as_mut().unwrap().vlen = 128;
        let said = refusal(&profile).unwrap();
        for part in [
            "wide.checkpoint: ",
            "was started with a number of vector register bits of 256 and the profile has 128",
            "start the machine with this profile",
        ] {
            assert!(said.contains(part), "{said}");
        }
    }
}
