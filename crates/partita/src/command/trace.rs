//! `partita trace`: a system on the machine, watched.

use super::failure::Failure;
use super::input::{HypervisorArgument, SystemArguments};
use super::laboratory::profile;
use super::output;
use machine::device::Cycles;
use machine::trace::{Event, Sink};
use runner::computer::{Chosen, Setup};
use runner::headless::{Limits, Run};
use runner::storms::{Runs, Watcher};
use runner::trace::{Recorder, SliceKind, Timeline, Window, perfetto};
use std::path::PathBuf;
use std::time::Duration;
use study::drawing::{self, Page, lanes};
use study::laboratory::{Computer, Point};
use system::System;
use system::cache::Cache;
use system::image::{self, slots::Assignment};

#[derive(Debug, clap::Args)]
pub(super) struct Watched {
    #[command(flatten)]
    system: SystemArguments,
    /// Costs of instructions and devices: the name of a profile that ships, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    profile: Option<String>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Gives the run up after this much of the host's time; without it, after the system's time-limit, which is machine time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    #[command(flatten)]
    hypervisor: HypervisorArgument,
}

const EXAMPLES: &str = "Examples:
  partita trace systems/two-debian.toml -o out.pftrace           the first 100 ms after a vCPU got a hart
  partita trace systems/two-debian.toml --from 3000 --length 20 --report out.html
                                                                 20 ms from the third second on, as a page
  partita trace experiments/paper-004/two-per-hart.toml --profile PROFILE.toml --worst-wait --report out.html
                                                                 the wait with the most pause-loop exits

out.pftrace opens at ui.perfetto.dev.";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct TraceArguments {
    #[command(flatten)]
    watched: Watched,
    /// Writes the timeline for Perfetto (ui.perfetto.dev)
    #[arg(
        short,
        long,
        value_name = "FILE.pftrace",
        required_unless_present = "report"
    )]
    output: Option<PathBuf>,
    /// Draws the essential: one HTML file that needs no other
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Begins so much machine time after a vCPU first had a hart
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 0)]
    from: u64,
    /// Records so much machine time
    #[arg(long, value_name = "MILLISECONDS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    length: u64,
    /// Finds the wait with the most pause-loop exits, in a run of its own, and records that wait with a quarter of its length before
    /// and after: on a profile with pause-loop exiting, `extensions.pause_loop_exit = true`
    #[arg(long, conflicts_with_all = ["from", "length"])]
    worst_wait: bool,
}

/// Most slices and marks of a timeline.
const MAX_EVENTS: usize = 2_000_000;

/// A system that stands on the machine, ready to run.
pub(super) struct Bench {
    pub(super) run: Run,
    pub(super) vms: Vec<(String, u32)>,
    /// Where it is given up.
    pub(super) limits: Limits<'static>,
    pub(super) hertz: u64,
}

pub(super) fn boot(arguments: &Watched) -> Result<Bench, Failure> {
    let system = arguments.system.read()?;
    let cache = Cache::made()?;
    super::input::ensure_images(&system, &cache)?;
    let profile = arguments.profile.as_deref().map(profile).transpose()?;
    let chosen = Chosen {
        profile,
        seed: arguments.seed,
        ..Chosen::default()
    };
    let slots = Assignment::of(&system);
    let image =
        image::compose(&system, &slots, &cache, None).map_err(runner::run::RunError::from)?;
    let hypervisor = arguments.hypervisor.path()?;
    let setup = Setup {
        system: &system,
        slots: &slots,
        image: &image,
        hypervisor: &hypervisor,
        cache: &cache,
    };
    let run = Run::boot(&setup, &chosen)?;
    let clock = run.machine.clock();
    let hertz = clock.cycles_per_second();
    let timeout = arguments.timeout.map(Duration::from_secs);
    Ok(Bench {
        run,
        vms: vcpus(&system),
        limits: Limits::of(&system, timeout, clock),
        hertz,
    })
}

fn vcpus(system: &System) -> Vec<(String, u32)> {
    let vms = system.vms.iter();
    vms.map(|vm| (vm.name.to_string(), vm.vcpus.value))
        .collect()
}

/// Two that listen to one machine.
#[derive(Debug)]
struct Both(Recorder, Watcher);

impl Sink for Both {
    fn event(&mut self, event: &Event) {
        self.0.event(event);
        self.1.event(event);
    }
}

/// A stretch of a run as lanes over time.
pub(super) struct Drawn {
    /// Description of the picture.
    pub(super) words: String,
    /// The picture.
    pub(super) svg: String,
    /// Meaning of each colour.
    pub(super) colours: Vec<(String, String)>,
}

/// The wait with the most pause-loop exits of a run from its boot.
pub(super) fn draw_worst_wait(
    point: &Point,
    hypervisor: &HypervisorArgument,
) -> Result<Drawn, Failure> {
    let Computer::Machine { profile } = &point.computer else {
        return Err(Failure::MachineOnly("--report"));
    };
    let watched = Watched {
        system: SystemArguments {
            file: point.system.clone(),
            changes: point.changes.clone(),
        },
        profile: profile.clone(),
        seed: point.seed,
        timeout: None,
        hypervisor: hypervisor.clone(),
    };
    let (words, window) = worst_wait(&watched)?;
    let timeline = record(&watched, window, &mut |_| {})?;
    let (from, to) = timeline.span().unwrap_or_default();
    Ok(Drawn {
        words,
        svg: lanes::lanes(&timeline, from, to),
        colours: lanes::legend(&timeline),
    })
}

/// The stretch around the wait with the most pause-loop exits, found in a run of the system; the same system runs the same again.
fn worst_wait(watched: &Watched) -> Result<(String, Window), Failure> {
    let mut bench = boot(watched)?;
    let no_exits = || {
        Failure::Usage(String::from(
            "no pause loop exited; --worst-wait needs a profile with pause-loop exiting, and a guest whose pause loops wait for a word",
        ))
    };
    let watcher = Watcher::attach(&mut bench.run.machine, Runs::Hypervisor).ok_or_else(no_exits)?;
    let nothing = Window {
        start: 0,
        end: 0,
        most: 0,
    };
    let clock = bench.run.machine.clock();
    let recorder = Recorder::new(nothing, clock, &bench.vms);
    let both = Both(recorder.clone(), watcher.clone());
    bench.run.machine.listen(Box::new(both));
    follow(&mut bench, |_| false, &mut |_| {});
    let worst = watcher.storms().worst.ok_or_else(no_exits)?;
    let begun = recorder.begun().ok_or_else(no_exits)?;
    let length = worst.end.saturating_sub(worst.start);
    let vcpu = usize::from(worst.vmid).checked_sub(1);
    let mut vcpus = bench
        .vms
        .iter()
        .flat_map(|(vm, count)| (0..*count).map(move |number| format!("{vm}.{number}")));
    let vcpu = vcpu.and_then(|place| vcpus.nth(place));
    let words = format!(
        "the worst wait: {} exits of {} in {:.3} ms, for the word at {:#x}",
        worst.exits,
        vcpu.unwrap_or_else(|| String::from("a vCPU that is not known")),
        length as f64 / 1e6,
        worst.word
    );
    let around = length / 4 + 1000;
    let window = Window {
        start: worst.start.saturating_sub(begun).saturating_sub(around),
        end: worst.end.saturating_sub(begun).saturating_add(around),
        most: MAX_EVENTS,
    };
    Ok((words, window))
}

/// Records a stretch of a run from its boot.
fn record(
    watched: &Watched,
    window: Window,
    line: &mut dyn FnMut(&str),
) -> Result<Timeline, Failure> {
    let mut bench = boot(watched)?;
    let clock = bench.run.machine.clock();
    let recorder = Recorder::new(window, clock, &bench.vms);
    bench.run.machine.listen(Box::new(recorder.clone()));
    let over = |now| (recorder.begun()).is_some_and(|begun| now >= begun + window.end);
    follow(&mut bench, over, line);
    let ended = |error| Failure::Host("the timeline", error);
    bench.run.machine.stop_listening().map_err(ended)?;
    Ok(recorder.timeline())
}

/// Runs until the system has come to its end, or is late, or it is `enough`.
fn follow(bench: &mut Bench, enough: impl Fn(u64) -> bool, line: &mut dyn FnMut(&str)) {
    let clock = bench.run.machine.clock();
    let step = bench.hertz / 100;
    let begun = std::time::Instant::now();
    loop {
        let limits = Limits {
            cycles: Some(bench.run.machine.now().saturating_add(step)),
            ..Limits::default()
        };
        let stop = bench.run.follow(&limits, line);
        let now = clock.nanoseconds(Cycles(bench.run.machine.now()));
        let late = bench.limits.reached(bench.run.machine.now(), begun);
        if enough(now) || late || stop != machine::Stop::Limit {
            break;
        }
    }
}

/// Traces a system.
pub(super) fn trace(arguments: &TraceArguments) -> Result<(), Failure> {
    output::check([arguments.output.as_ref(), arguments.report.as_ref()])?;
    let window = if arguments.worst_wait {
        let (words, window) = worst_wait(&arguments.watched)?;
        output::say_line(format_args!("{words}"));
        window
    } else {
        Window {
            start: arguments.from * 1_000_000,
            end: (arguments.from + arguments.length) * 1_000_000,
            most: MAX_EVENTS,
        }
    };
    let timeline = record(&arguments.watched, window, &mut |line| {
        output::say_line(format_args!("{line}"));
    })?;
    let Some((from, to)) = timeline.span() else {
        return Err(Failure::Usage(format!(
            "nothing happened from {} ms to {} ms after the first vCPU had a hart; choose another stretch with --from and --length",
            arguments.from,
            arguments.from + arguments.length
        )));
    };
    if timeline.lost > 0 {
        output::note(format_args!(
            "{} events are left out; choose a shorter stretch with --length",
            timeline.lost
        ));
    }
    if let Some(path) = &arguments.output {
        output::write(path, &perfetto::encode(&timeline))?;
    }
    if let Some(path) = &arguments.report {
        let title = format!("Timeline of {}", arguments.watched.system.file.display());
        output::write(path, page(&title, &timeline, from, to).as_bytes())?;
    }
    let slices: usize = timeline.lanes.iter().map(|lane| lane.slices.len()).sum();
    output::say_line(format_args!(
        "{} lanes with {slices} slices, {:.3} ms to {:.3} ms of machine time",
        timeline.lanes.len(),
        from as f64 / 1e6,
        to as f64 / 1e6
    ));
    Ok(())
}

fn page(title: &str, timeline: &Timeline, from: u64, to: u64) -> String {
    let mut page = Page::new(title);
    page.heading("Which vCPU had which hart, and when it spun");
    page.paragraph(
        "A lane is a vCPU. Its upper bar says which hart it has, the middle one that it spins, with a hart or without, the \
         lower one that it has a lock for which others have waited. Point at a bar for its word.",
    );
    page.colours(&lanes::legend(timeline));
    page.figure(&lanes::lanes(timeline, from, to), "vCPUs over time");
    // A closer look at the middle: a twentieth of the whole.
    let (middle, half) = (u64::midpoint(from, to), (to - from) / 40);
    page.heading("A twentieth of it from the middle");
    page.figure(
        &lanes::lanes(timeline, middle - half, middle + half + 1),
        "vCPUs over a shorter time",
    );
    let shares = drawing::service(timeline);
    if !shares.is_empty() {
        page.heading("Service: who had how much of the harts");
        let names: Vec<&str> = shares[0].1.iter().map(|(name, _)| name.as_str()).collect();
        let rows: Vec<(String, Vec<f64>)> = shares
            .iter()
            .map(|(row, parts)| (row.clone(), parts.iter().map(|(_, part)| *part).collect()))
            .collect();
        page.figure(&drawing::shares(&names, &rows), "Shares of service");
    }
    for (kind, heading) in [
        (
            SliceKind::SpinWait,
            "How long spin waits without a hart lasted",
        ),
        (SliceKind::Spins, "How long spins on a hart lasted"),
        (
            SliceKind::Holds,
            "How long locks were held that others had waited for",
        ),
        (
            SliceKind::Delivery,
            "How long interrupts took from their device to their handler",
        ),
        (SliceKind::Runs, "How long vCPUs kept their harts"),
    ] {
        let lengths = timeline.lengths(kind);
        if lengths.is_empty() {
            continue;
        }
        page.heading(heading);
        page.figure(&drawing::distribution(&lengths), heading);
        page.table(&drawing::quantiles(&lengths));
    }
    study::provenance::made_by_this(&mut page);
    page.finish()
}
