//! `partita run`.

use super::beside::Beside;
use super::{Computer, Failure, HypervisorArgument, SystemArguments, output, write_json};
use partita::cache::Cache;
use partita::computer::{Chosen, Kind};
use partita::images::{self, Progress};
use partita::laboratory::checkpoint::{self, Boot};
use partita::laboratory::{
    self, Computer as Place, Figures, Fingerprints, MadeBy, NativeFailure, Point, Shift, Span,
    Start, Window, shares, window,
};
use partita::measures::{self, Inputs};
use partita::report;
use partita::run::{self, Ending, Options};
use partita::storms::{Held, Storms};
use partita::system::{FileName, System};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

const RUN_EXAMPLES: &str = "Examples:
  partita run systems/two-debian.toml                      two Debian guests, to their end
  partita run systems/shell.toml --console debian          with a guest's console on this terminal
  partita run systems/terminals.toml --kvm                 the same guests and users under KVM, on the machine
  partita run experiments/paper-000/light.toml --profile mainframe-1994 --json report.json
                                                           figures that `partita rerun report.json` repeats";

#[derive(Debug, clap::Args)]
#[command(after_help = RUN_EXAMPLES)]
pub(super) struct RunArguments {
    #[command(flatten)]
    pub(super) system: SystemArguments,
    /// The computer to run on
    #[arg(long, value_enum, default_value_t = Computer::Machine)]
    pub(super) on: Computer,
    /// On the machine, what instructions and devices cost: the name of a profile that ships, or a TOML file. Without
    /// it, every instruction takes one cycle
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// On the machine, what everything random follows from
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// On the machine, looks for fences that the hypervisor or a guest leaves out: a use of a page whose translation
    /// has changed since the hart last used it, with no fence in between, fails the run. Slow
    #[arg(long)]
    pub(super) check_translations: bool,
    /// Seconds of machine time before the machine looks. Every instruction then takes a cycle, before and afterwards
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 0,
        requires = "check_translations"
    )]
    pub(super) check_after: u64,
    /// On the machine, writes what its hardware monitor counted, as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) monitor: Option<PathBuf>,
    /// Gives this VM's console to the terminal; `partita` stands for the operator's prompt.
    /// Ctrl-] is the escape key: then n for the next VM, 1 to 9 for a VM by number, m for the prompt,
    /// q to power everything off, Ctrl-] for itself
    #[arg(long, value_name = "VM")]
    pub(super) console: Option<String>,
    /// Writes the report as JSON
    #[arg(long, value_name = "FILE")]
    pub(super) json: Option<PathBuf>,
    /// On the machine, boots the first VM's kernel on the computer itself, with all of its harts and memory, its command
    /// line and its devices, and without the hypervisor
    #[arg(long, conflicts_with = "console")]
    pub(super) native: bool,
    /// On the machine, runs every VM by QEMU and KVM on a Debian host in the hypervisor's place: the same kernels, disks,
    /// command lines and terminals
    #[arg(long, conflicts_with_all = ["console", "native"])]
    pub(super) kvm: bool,
    /// Makes no native run beside this one. Otherwise, where the first VM's work is counted, er, cr and native-etr are
    /// computed from the same work by the first VM's kernel on the machine itself: a recorded run, else one that is made
    #[arg(long)]
    pub(super) without_native: bool,
    /// Says what a measure means, instead of running
    #[arg(long, value_name = "NAME")]
    pub(super) explain: Option<String>,
    /// Leaves out of the report what made it
    #[arg(long, hide = true)]
    pub(super) without_makers: bool,
    /// On the machine, goes on from this checkpoint, which a comparison made
    #[arg(long, hide = true, value_name = "FILE", conflicts_with_all = ["console", "check_translations", "monitor"])]
    pub(super) checkpoint: Option<PathBuf>,
    /// Measures the steady part of the run alone, from when all VMs work to when the first ends: for systems whose VMs are all
    /// exercisers that work for a time
    #[arg(long, conflicts_with_all = ["console", "native", "kvm", "check_translations", "monitor", "checkpoint", "logs", "control"])]
    pub(super) steady: bool,
    /// Counts the passages through the hypervisor in that part, by what the guest was left for: the measures `passage-cycles` and
    /// `passage-instructions`
    #[arg(long, requires = "steady")]
    pub(super) passages: bool,
    /// Measures besides what part of its share each VM had that always wanted it, in windows of 20 ms and of 200 ms: for systems
    /// whose VMs are all exercisers that work for a time
    #[arg(long, conflicts_with_all = ["console", "native", "kvm", "check_translations", "monitor", "checkpoint", "logs", "control", "steady"])]
    pub(super) shares: bool,
    /// What is shifted at the beginning, as JSON
    #[arg(long, hide = true, value_name = "JSON", value_parser = shift, conflicts_with_all = ["console", "native", "kvm", "checkpoint"])]
    pub(super) shift: Option<Shift>,
    /// What the operator's prompt is asked for before anything is measured from the checkpoint
    #[arg(
        long = "command",
        hide = true,
        value_name = "COMMAND",
        requires = "checkpoint"
    )]
    pub(super) commands: Vec<String>,
    /// The part of the run from the checkpoint that is measured, as JSON
    #[arg(long, hide = true, value_name = "JSON", value_parser = span, requires = "checkpoint")]
    pub(super) span: Option<Span>,
    /// The process without which this one is not wanted
    #[arg(long, hide = true, value_name = "ID")]
    pub(super) parent: Option<u32>,
    /// Gives the run up after this much of the host's time; without it, after the system's time-limit, which on the
    /// machine is machine time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout: Option<u64>,
    #[command(flatten)]
    pub(super) hypervisor: HypervisorArgument,
    /// Shows the firmware's lines too
    #[arg(long, short)]
    pub(super) verbose: bool,
    /// Keeps each VM's lines in a file of its own in this folder, and the hypervisor's in partita.log
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["native", "kvm"])]
    pub(super) logs: Option<PathBuf>,
    /// Makes a socket at which programs say what an operator says at the prompt, a command a line, and get a line of JSON for
    /// each. Where everybody waits, the run goes on then, as somebody may yet say something
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["console", "native", "kvm"])]
    pub(super) control: Option<PathBuf>,
    /// Shows neither the guests' lines nor tables, but a summary of five lines; with --native or --kvm the measures alone
    #[arg(long, short, conflicts_with = "verbose")]
    pub(super) quiet: bool,
}

pub(super) fn execute(arguments: &RunArguments) -> Result<(), Failure> {
    if let Some(name) = &arguments.explain {
        let text = measures::explain(name).map_err(Failure::Measure)?;
        let _ = writeln!(std::io::stdout(), "{text}");
        return Ok(());
    }
    if let Some(parent) = arguments.parent {
        end_with(parent)?;
    }
    let mut system = arguments.system.read()?;
    if arguments.shift.as_ref().is_some_and(|shift| shift.reversed) {
        system.vms.reverse();
    }
    output::check([arguments.json.as_ref(), arguments.monitor.as_ref()])?;
    let cache = Cache::from_environment()?;
    images::ensure(&cache, &built_files(&system), &Progress::new())?;
    if arguments.native || arguments.kvm {
        return native(arguments, &system, &cache);
    }
    let options = Options {
        console: arguments.console.clone(),
        time_limit: arguments.timeout.map(Duration::from_secs),
        hypervisor: arguments.hypervisor.path()?,
        verbose: arguments.verbose,
        quiet: arguments.quiet,
        logs: arguments.logs.clone(),
        control: arguments.control.clone(),
        on: computer(arguments)?,
    };
    let beside = Beside::start(arguments, &system, &cache)?;
    let outcome = match &arguments.checkpoint {
        Some(checkpoint) => alone(arguments, &system, &cache, Part::From(checkpoint)),
        None if arguments.steady || arguments.shares => {
            let window = Window::of(&system).ok_or_else(|| {
                Failure::Laboratory(String::from(
                    "--steady and --shares: not every VM is an exerciser that works for a time; each needs exercise=work \
                     duration-ms=... of more than 100",
                ))
            })?;
            let part = match arguments.steady {
                true => Part::Within(&window),
                false => Part::Shares(&window),
            };
            alone(arguments, &system, &cache, part)
        }
        None => run::run(&system, &cache, &options)
            .map(|outcome| (outcome, Figures::new()))
            .map_err(Failure::from),
    };
    let finished = matches!(&outcome, Ok((outcome, _)) if outcome.ending == Ending::Finished);
    let native = beside.and_then(|beside| beside.end(finished));
    let (outcome, of_shares) = outcome?;
    if let Some(report) = &outcome.report {
        let mut figures = measures::compute(&Inputs {
            report: Some(report),
            hardware: outcome.monitor.as_ref(),
            storms: outcome.storms.as_ref(),
            passages: &outcome.passages,
            guests: &outcome.guests,
        });
        figures.extend(of_shares);
        let against = native.map(|native| measures::relative(&figures, &native));
        let mut shown = figures.clone();
        shown.extend(
            against
                .iter()
                .flatten()
                .map(|(name, value)| (name.clone(), *value)),
        );
        let table = measures::show(&shown);
        let from_host = system.from_host();
        if !from_host.is_empty() {
            let what = from_host.join(" and ");
            eprintln!("partita: {what} came from the host: this run cannot be repeated");
        }
        let waits = report
            .waits(&figures)
            .map_or_else(String::new, |waits| waits + "\n\n");
        let mut wrong = outcome.failures.clone();
        match outcome.ending {
            Ending::TimeLimit => wrong.insert(0, limit_reached(arguments, &system, &outcome)),
            Ending::Interrupted => wrong.insert(0, String::from("it was broken off")),
            Ending::Waiting => wrong.insert(0, String::from("everybody waited")),
            Ending::Finished => {}
        }
        let summary = report::summary(report, &shown, &wrong);
        // A reader that has gone needs no table.
        let _ = if arguments.quiet {
            write!(std::io::stdout(), "{summary}")
        } else {
            write!(
                std::io::stdout(),
                "\n{summary}\n{report}\n{waits}{table}{EXPLAIN}"
            )
        };
        if let Some(path) = &arguments.json {
            let whole = to_json(path, report)?;
            let parts = [
                ("measures", to_json(path, &figures)?),
                ("guests", to_json(path, &outcome.guests)?),
                ("hardware", to_json(path, &outcome.monitor)?),
                ("pause-loops", to_json(path, &pause_loops(&outcome))?),
                ("locks", to_json(path, &locks(outcome.storms.as_ref()))?),
                ("passages", to_json(path, &outcome.passages)?),
                ("against-native", to_json(path, &against)?),
                ("from-host", to_json(path, &from_host)?),
            ];
            write_report(arguments, &cache, path, whole, &parts)?;
        }
    }
    if let (Some(monitor), Some(path)) = (&outcome.monitor, &arguments.monitor) {
        write_json(path, monitor)?;
    }
    match outcome.ending {
        Ending::Interrupted => Err(Failure::Interrupted),
        Ending::TimeLimit => Err(Failure::TimeLimit(limit_reached(
            arguments, &system, &outcome,
        ))),
        Ending::Waiting => Err(Failure::Waiting),
        Ending::Finished if outcome.failures.is_empty() => Ok(()),
        Ending::Finished => Err(Failure::Vm(outcome.failures)),
    }
}

/// The exits of each pause loop, by the address of its PAUSE.
fn pause_loops(outcome: &run::Outcome) -> BTreeMap<String, u64> {
    let loops = outcome.storms.iter().flat_map(|storms| &storms.loops);
    loops
        .map(|(pause, exits)| (format!("{pause:#x}"), *exits))
        .collect()
}

/// The locks that were held for the longest time in all, by the physical address of their word.
fn locks(storms: Option<&Storms>) -> BTreeMap<String, Held> {
    /// So many.
    const SHOWN: usize = 64;
    let locks = storms.map(|storms| storms.most_held(SHOWN));
    let locks = locks.into_iter().flatten();
    locks
        .map(|(word, held)| (format!("{word:#x}"), held))
        .collect()
}

/// The limit that a run has run into.
fn its_limit(arguments: &RunArguments, system: &System) -> String {
    match (arguments.timeout, system.time_limit, arguments.on) {
        (Some(seconds), ..) => {
            format!("--timeout {seconds}, in seconds of the host's time, was reached")
        }
        (None, Some(limit), Computer::Machine) => {
            format!("time-limit = \"{limit}\", of machine time, was reached")
        }
        (None, Some(limit), Computer::Qemu) => {
            format!("time-limit = \"{limit}\", of the host's time, was reached")
        }
        (None, None, _) => String::from("its limit was reached"),
    }
}

/// The same with who had not come to an end by then, and what else was wrong.
fn limit_reached(arguments: &RunArguments, system: &System, outcome: &run::Outcome) -> String {
    let limit = its_limit(arguments, system);
    let who = match &outcome.unfinished[..] {
        [] if outcome.report.is_some() => String::from("every VM had ended"),
        [] => String::from("the hypervisor did not answer any more"),
        [one] => format!("{one} had not come to an end"),
        several => format!("{} had not come to an end", several.join(" and ")),
    };
    let failures = outcome
        .failures
        .iter()
        .map(|failure| format!("\npartita: {failure}"));
    format!("{limit}; {who}{}", failures.collect::<String>())
}

/// Asks the host's system to end this process with its parent, which may have ended already.
fn end_with(parent: u32) -> Result<(), Failure> {
    use rustix::process::{Signal, getppid, set_parent_process_death_signal};
    set_parent_process_death_signal(Some(Signal::TERM))
        .map_err(|error| Failure::Laboratory(format!("--parent {parent}: {error}")))?;
    let present = getppid().map(|id| id.as_raw_nonzero().get());
    if present.and_then(|id| u32::try_from(id).ok()) == Some(parent) {
        return Ok(());
    }
    Err(Failure::Interrupted)
}

/// The part of a run that is measured.
enum Part<'a> {
    /// From a checkpoint on.
    From(&'a Path),
    /// In a window.
    Within(&'a Window),
    /// All of it, and its shares in a window.
    Shares(&'a Window),
}

/// Measures a part of a run, with nobody at the terminal.
fn alone(
    arguments: &RunArguments,
    system: &System,
    cache: &Cache,
    part: Part<'_>,
) -> Result<(run::Outcome, Figures), Failure> {
    let Kind::Machine(chosen) = computer(arguments)? else {
        let option = match part {
            Part::From(_) => "--checkpoint",
            Part::Within(_) => "--steady",
            Part::Shares(_) => "--shares",
        };
        return Err(Failure::MachineOnly(option));
    };
    let stop = AtomicBool::new(false);
    let boot = Boot {
        system,
        cache,
        hypervisor: &arguments.hypervisor.path()?,
        chosen: *chosen,
        text: "",
        limit: arguments.timeout.map(Duration::from_secs),
        stop: &stop,
    };
    let mut show = |line: &str| {
        // A reader that has gone needs no line.
        let _ = writeln!(std::io::stdout(), "{line}");
    };
    let outcome = match part {
        Part::From(path) => {
            let start = Start {
                text: String::new(),
                commands: arguments.commands.clone(),
                span: arguments.span,
            };
            checkpoint::measure(&boot, path, &start, &mut show)
                .map(|outcome| (outcome, Figures::new()))
        }
        Part::Within(window) => {
            window::measure(&boot, window, &mut show).map(|outcome| (outcome, Figures::new()))
        }
        Part::Shares(window) => shares::measure(&boot, window, &mut show),
    };
    outcome.map_err(|error| Failure::Laboratory(error.to_string()))
}

/// Stands below the measures.
const EXPLAIN: &str = "What a measure means: partita run SYSTEM.toml --explain NAME\n";

/// Writes a report, with these parts of it and with what made it.
fn write_report(
    arguments: &RunArguments,
    cache: &Cache,
    path: &Path,
    mut whole: serde_json::Value,
    parts: &[(&str, serde_json::Value)],
) -> Result<(), Failure> {
    if let Some(object) = whole.as_object_mut() {
        for (name, part) in parts {
            object.insert(String::from(*name), part.clone());
        }
        if !arguments.without_makers {
            let (point, made_by) = makers(arguments, cache)?;
            object.insert(String::from("point"), to_json(path, &point)?);
            object.insert(String::from("made-by"), to_json(path, &made_by)?);
        }
    }
    write_json(path, &whole)
}

/// The first VM's kernel on the computer itself, or all VMs under KVM on it.
fn native(arguments: &RunArguments, system: &System, cache: &Cache) -> Result<(), Failure> {
    let Kind::Machine(chosen) = computer(arguments)? else {
        let option = if arguments.kvm { "--kvm" } else { "--native" };
        return Err(Failure::MachineOnly(option));
    };
    let limit = arguments.timeout.map(Duration::from_secs);
    let mut out = std::io::stdout().lock();
    let mut show = |line: &str| {
        if !arguments.quiet {
            // A reader that has gone needs no line.
            let _ = writeln!(out, "{line}");
        }
    };
    let outcome = if let (Some(path), Some(span)) = (&arguments.checkpoint, &arguments.span) {
        let stop = AtomicBool::new(false);
        let boot = Boot {
            system,
            cache,
            // It is not below them.
            hypervisor: Path::new(""),
            chosen: *chosen,
            text: "",
            limit,
            stop: &stop,
        };
        let failure = |error: String| Failure::Laboratory(error);
        if arguments.kvm {
            laboratory::kvm_span(&boot, path, span, &mut show)
                .map_err(|error| failure(error.to_string()))?
        } else {
            laboratory::native_span(&boot, path, span, &mut show)
                .map_err(|error| failure(error.to_string()))?
        }
    } else if arguments.kvm {
        let outcome = laboratory::under_kvm(system, cache, &chosen, limit, &mut show);
        outcome.map_err(|error| Failure::Laboratory(error.to_string()))?
    } else {
        laboratory::native(system, cache, &chosen, limit, &mut show)?
    };
    let figures = measures::compute(&Inputs {
        report: None,
        hardware: Some(&outcome.hardware),
        storms: outcome.storms.as_ref(),
        passages: &[],
        guests: &outcome.guests,
    });
    let table = measures::show(&figures);
    let _ = write!(out, "\n{table}{EXPLAIN}");
    if let Some(path) = &arguments.json {
        let parts = [
            ("measures", to_json(path, &figures)?),
            ("guests", to_json(path, &outcome.guests)?),
            ("hardware", to_json(path, &outcome.hardware)?),
            ("locks", to_json(path, &locks(outcome.storms.as_ref()))?),
        ];
        write_report(arguments, cache, path, serde_json::json!({}), &parts)?;
    }
    match outcome.failure {
        None => Ok(()),
        Some(NativeFailure::TimeLimit) => Err(Failure::TimeLimit(its_limit(arguments, system))),
        Some(NativeFailure::Other(why)) => Err(Failure::Vm(vec![why])),
    }
}

fn to_json(path: &Path, value: &impl serde::Serialize) -> Result<serde_json::Value, Failure> {
    serde_json::to_value(value).map_err(|error| Failure::File {
        path: path.to_owned(),
        error: error.into(),
    })
}

/// A shift as a comparison says it.
fn shift(text: &str) -> Result<Shift, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// A span as a comparison says it.
fn span(text: &str) -> Result<Span, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

/// What is run.
pub(super) fn point(arguments: &RunArguments) -> Point {
    let steady = arguments.steady.then(|| arguments.system.read().ok());
    Point {
        system: arguments.system.file.clone(),
        changes: arguments.system.changes.clone(),
        computer: match arguments.on {
            Computer::Qemu => Place::Qemu,
            Computer::Machine => Place::Machine {
                profile: arguments.profile.clone(),
            },
        },
        seed: arguments.seed,
        native: arguments.native,
        kvm: arguments.kvm,
        hypervisor: None,
        start: None,
        window: steady.flatten().as_ref().and_then(Window::of),
        shares: arguments.shares,
        shift: arguments.shift.clone(),
        passages: arguments.passages,
    }
}

/// What makes this run's result, so that `partita rerun` can repeat it.
fn makers(arguments: &RunArguments, cache: &Cache) -> Result<(Point, MadeBy), Failure> {
    let point = point(arguments);
    let hypervisor = arguments.hypervisor.path()?;
    let command = std::env::current_exe().unwrap_or_default();
    let programs = point.programs(&command, &hypervisor);
    let made_by = point.made_by(&programs, cache, &mut Fingerprints::new())?;
    Ok((point, made_by))
}

/// Which computer, with what was chosen about it.
fn computer(arguments: &RunArguments) -> Result<Kind, Failure> {
    let only: [(&str, bool); 6] = [
        ("--profile", arguments.profile.is_some()),
        ("--seed", arguments.seed != 0),
        ("--monitor", arguments.monitor.is_some()),
        ("--check-translations", arguments.check_translations),
        ("--native", arguments.native),
        ("--kvm", arguments.kvm),
    ];
    match (arguments.on, only.iter().find(|(_, given)| *given)) {
        (Computer::Qemu, Some((option, _))) => Err(Failure::MachineOnly(option)),
        (Computer::Qemu, None) => Ok(Kind::Qemu),
        (Computer::Machine, _) => {
            let mut chosen = Chosen::named(arguments.profile.as_deref(), arguments.seed)?;
            chosen.check_translations = arguments.check_translations;
            chosen.check_after = Duration::from_secs(arguments.check_after);
            chosen.shift = arguments.shift.clone().unwrap_or_default();
            chosen.passages = arguments.passages;
            Ok(Kind::Machine(Box::new(chosen)))
        }
    }
}

/// The files that the system names as built.
pub(super) fn built_files(system: &System) -> Vec<&str> {
    let files = system
        .vms
        .iter()
        .flat_map(|vm| std::iter::once(&vm.kernel).chain(&vm.initrd));
    let disks = system.all_disks().map(|(_, disk)| &disk.file);
    let names = files.chain(disks).filter_map(|file| match &file.value {
        FileName::Built(name) => Some(name.as_str()),
        FileName::Path(_) => None,
    });
    names.collect()
}
