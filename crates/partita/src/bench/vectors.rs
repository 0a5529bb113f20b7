//! Vector code natively, under Partita and under KVM: one guest alone, and two with weights 2:1.

use super::BenchError;
use guest_images::{Progress, kvm_host};
use machine::monitor::{Counts, Event};
use runner::beside::{self, Below, Timed};
use runner::checkpoint::{Boot, Span};
use runner::computer::Chosen;
use runner::exit_latency::{LatencyKind, Row};
use runner::kvm::KvmError;
use runner::table::Table;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use system::cache::Cache;
use system::{Document, System};

/// The profile of the machine.
const PROFILE: &str = "k3-class";
/// The guest's files, among the built ones.
const KERNEL: &str = "debian/kernel";
const INITRD: &str = "vectors/initrd";
/// Line of a guest that is about to begin its jobs (guests/vectors).
const START: &str = "partita-guest start workload=vectors";
/// Lines between which a guest does its jobs.
const JOBS_OF_ONE: Range<&str> = "partita-guest begin workload=vectors".."partita-guest end ok=yes";
/// Jobs of each process of the guest that is alone.
const JOBS: u32 = 3;
/// Jobs of those that never end while they are counted.
const ENDLESS: u32 = 1_000_000;
/// The part of the run of two guests that is counted: the jobs begin 200 ms after the line that the checkpoints wait for.
const SPAN: Span = Span {
    settle_us: 300_000,
    count_us: 100_000,
};
/// Seconds after which each guest begins its jobs: all are up by then, so that none works while another one boots.
const BEGIN: u32 = 3;
/// Weights of the two guests.
const WEIGHTS: [u32; 2] = [200, 100];
/// vCPUs of each guest, and harts.
const HARTS: u32 = 2;
/// Per cent of native that a guest alone should have at least.
const OF_NATIVE: f64 = 99.5;
/// Times of KVM's throughput that two guests should have at least.
const OF_KVM: f64 = 1.2;

/// One guest's jobs alone.
#[derive(Debug, Serialize)]
pub struct Alone {
    below: Below,
    /// Machine time of the jobs.
    nanoseconds: u64,
    /// Throughput in per cent of native.
    of_native: f64,
    /// Millions of cycles of all harts by mode, waits left out.
    cycles: BTreeMap<String, f64>,
    /// Millions of instructions of all harts by mode.
    instructions: BTreeMap<String, f64>,
}

/// Two guests with weights 2:1.
#[derive(Debug, Serialize)]
pub struct Pair {
    below: Below,
    /// Instructions of the guests' programs in a second of machine time.
    instructions_per_second: f64,
    /// Part of the programs of the guest that had more of them, in per cent. KVM hands out VMIDs in the order in which its guests happen to
    /// begin, so they do not say which guest it was.
    larger_part: f64,
    /// Round trips that end in another guest.
    dispatches: Option<Row>,
}

/// Everything that was measured.
#[derive(Debug, Serialize)]
pub struct VectorReport {
    jobs: u32,
    span: Span,
    weights: [u32; 2],
    alone: Vec<Alone>,
    pair: Vec<Pair>,
}

/// Measures everything.
///
/// # Errors
/// What could not be done and, where that helps, what to do about it.
pub fn measure_vectors(
    cache: &Cache,
    hypervisor: &Path,
    progress: &Progress,
) -> Result<VectorReport, BenchError> {
    // The system is taken to stand elsewhere.
    let hypervisor = &std::path::absolute(hypervisor).map_err(super::at(hypervisor))?;
    runner::images::ensure(cache, &[KERNEL, INITRD], progress)?;
    kvm_host::ensure(cache, progress)?;
    let folder = tempfile::tempdir().map_err(super::at(&std::env::temp_dir()))?;
    let bench = Bench {
        cache,
        hypervisor,
        folder: folder.path(),
        progress,
    };
    let (single, pair) = (system(&[100], JOBS)?, system(&WEIGHTS, ENDLESS)?);
    // Each is a function of its system alone, so that they may go side by side.
    let parts = std::thread::scope(|scope| {
        let bench = &bench;
        let parts = [
            (Below::Nothing, &single),
            (Below::Partita, &single),
            (Below::Kvm, &single),
            (Below::Partita, &pair),
            (Below::Kvm, &pair),
        ];
        let begin = |(below, system)| (below, scope.spawn(move || bench.measure(below, system)));
        let begun = parts.map(begin);
        begun.map(|(below, part)| (below, part.join()))
    });
    let mut report = VectorReport {
        jobs: JOBS,
        span: SPAN,
        weights: WEIGHTS,
        alone: Vec::new(),
        pair: Vec::new(),
    };
    for (below, part) in parts {
        let part = part.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match part? {
            Part::Alone(timed) => report.add(below, &timed),
            Part::Pair(pair) => report.pair.push(pair),
        }
    }
    Ok(report)
}

/// Common parts of all measurements.
#[derive(Clone, Copy)]
struct Bench<'a> {
    cache: &'a Cache,
    hypervisor: &'a Path,
    /// Folder of checkpoints.
    folder: &'a Path,
    progress: &'a Progress,
}

impl Bench<'_> {
    fn measure(&self, below: Below, system: &System) -> Result<Part, BenchError> {
        let stop = AtomicBool::new(false);
        let boot = Boot {
            system,
            cache: self.cache,
            hypervisor: self.hypervisor,
            chosen: Chosen::named(Some(PROFILE), 0)?,
            text: START,
            limit: None,
            stop: &stop,
        };
        let guests = system.vms.len();
        let what = format!("guests: {guests}, {}", name(below));
        let path = self.folder.join(format!("{}-{guests}", name(below)));
        self.progress.step(&format!("{what}: booting"));
        beside::boot(below, &boot, &path)?;
        self.progress.step(&format!("{what}: measuring"));
        let measured = match guests {
            1 => beside::time(below, &boot, &path, &JOBS_OF_ONE, &mut keep).map(Part::Alone),
            _ => beside::count(below, &boot, &path, &SPAN, &mut keep)
                .map(|counted| Part::Pair(Pair::of(below, counted))),
        };
        self.progress.step(&format!("{what}: done"));
        Ok(measured.map_err(KvmError::from)?)
    }
}

/// Result of one system on one way.
enum Part {
    /// One guest's jobs.
    Alone(Timed),
    /// Throughput of two guests.
    Pair(Pair),
}

/// Leaves out what the guests say.
fn keep(_line: &str) {}

/// Guests with these weights, which do so many jobs by each of their processes, one a vCPU.
fn system(weights: &[u32], jobs: u32) -> Result<System, BenchError> {
    let vm = |(number, weight): (usize, &u32)| {
        format!(
            "[vm.guest{number}]\nvcpus = {HARTS}\nmemory = \"256 MiB\"\nshare = {weight}\n\
             kernel = \"image:{KERNEL}\"\ninitrd = \"image:{INITRD}\"\n\
             command-line = \"console=ttyS0 quiet partita.processes={HARTS} partita.jobs={jobs} partita.start={BEGIN}\"\n"
        )
    };
    let vms: String = (1..).zip(weights).map(vm).collect();
    let text = format!("harts = {HARTS}\nmemory = \"2 GiB\"\n{vms}");
    let document = Document::new(&std::env::temp_dir().join("vectors.toml"), text, &[])?;
    Ok(System::read(&document)?)
}

impl Pair {
    fn of(below: Below, counted: beside::Counted) -> Self {
        let programs = counted.of_programs();
        let all: u64 = programs.values().sum();
        let mut of_vms = BTreeMap::<u16, u64>::new();
        for (vmid, instructions) in &programs {
            let vm = match below {
                // A VMID each vCPU, from 1.
                Below::Partita | Below::Nothing => vmid.saturating_sub(1) / HARTS as u16,
                Below::Kvm => *vmid,
            };
            *of_vms.entry(vm).or_default() += instructions;
        }
        let larger = of_vms.into_values().max().unwrap_or(0);
        let dispatches = |row: &Row| row.kind == LatencyKind::Dispatch && row.cause == "all";
        Self {
            below,
            instructions_per_second: all as f64 / (SPAN.count_us as f64 / 1e6),
            larger_part: larger as f64 / all as f64 * 100.0,
            dispatches: counted.exit_latency.into_iter().find(dispatches),
        }
    }
}

/// Millions of one count by mode, on all harts; modes without any are left out.
fn by_mode(timed: &Timed, count: impl Fn(&Counts) -> u64) -> BTreeMap<String, f64> {
    let mut all = BTreeMap::new();
    for hart in &timed.hardware.harts {
        for (mode, counts) in &hart.modes {
            let millions = count(counts) as f64 / 1e6;
            if millions > 0.0 {
                *all.entry(mode.to_string()).or_default() += millions;
            }
        }
    }
    all
}

fn name(below: Below) -> &'static str {
    match below {
        Below::Nothing => "native",
        Below::Partita => "Partita",
        Below::Kvm => "KVM",
    }
}

impl VectorReport {
    /// Adds the time of one guest's jobs; the native one comes first.
    fn add(&mut self, below: Below, timed: &Timed) {
        let nanoseconds = timed.nanoseconds;
        let native = self
            .alone
            .first()
            .map_or(nanoseconds, |row| row.nanoseconds);
        self.alone.push(Alone {
            below,
            nanoseconds,
            of_native: native as f64 / nanoseconds as f64 * 100.0,
            cycles: by_mode(timed, |counts| {
                let of = |event: Event| counts.get(event.name()).copied().unwrap_or(0);
                of(Event::Cycles) - of(Event::Waited)
            }),
            instructions: by_mode(timed, |counts| {
                counts.get(Event::Instructions.name()).copied().unwrap_or(0)
            }),
        });
    }

    fn throughput(&self, below: Below) -> Option<f64> {
        let pair = self.pair.iter().find(|pair| pair.below == below)?;
        Some(pair.instructions_per_second)
    }
}

impl VectorReport {
    /// Where the cycles of one guest's jobs went.
    fn modes(&self) -> Table {
        let mut table = Table::new(["millions, all harts", "mode", "cycles", "instructions"]);
        for alone in &self.alone {
            for (mode, cycles) in &alone.cycles {
                let instructions = alone.instructions.get(mode).copied().unwrap_or(0.0);
                table.row([
                    String::from(name(alone.below)),
                    mode.clone(),
                    format!("{cycles:.3}"),
                    format!("{instructions:.3}"),
                ]);
            }
        }
        table
    }
}

impl fmt::Display for VectorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let jobs = self.jobs * HARTS;
        let mut table = Table::new([
            format!("one guest, {jobs} jobs"),
            String::from("ms"),
            String::from("of native"),
        ]);
        for alone in &self.alone {
            let milliseconds = alone.nanoseconds as f64 / 1e6;
            table.row([
                String::from(name(alone.below)),
                format!("{milliseconds:.2}"),
                format!("{:.2} %", alone.of_native),
            ]);
        }
        writeln!(f, "{table}")?;
        writeln!(f, "{}", self.modes())?;
        let [one, two] = self.weights;
        let mut table = Table::new([
            format!("two guests, weights {one} and {two}"),
            String::from("million instructions a second"),
            String::from("the larger part"),
        ]);
        for pair in &self.pair {
            table.row([
                String::from(name(pair.below)),
                format!("{:.1}", pair.instructions_per_second / 1e6),
                format!("{:.1} %", pair.larger_part),
            ]);
        }
        writeln!(f, "{table}")?;
        let mut table = Table::new([
            "dispatch between them",
            "count",
            "instructions",
            "mean",
            "most",
            "cycles",
            "mean",
            "most",
        ]);
        for pair in &self.pair {
            let Some(row) = &pair.dispatches else {
                continue;
            };
            let figures = row.instructions.iter().chain(&row.cycles);
            table.row(
                [String::from(name(pair.below)), row.count.to_string()]
                    .into_iter()
                    .chain(figures.map(ToString::to_string)),
            );
        }
        writeln!(f, "{table}")?;
        let kept = |kept: bool| if kept { "kept" } else { "MISSED" };
        let mut table = Table::new(["", "measured", "bound", ""]);
        let partita = self.alone.iter().find(|row| row.below == Below::Partita);
        if let Some(partita) = partita {
            table.row([
                String::from("one guest: of native"),
                format!("{:.2} %", partita.of_native),
                format!("at least {OF_NATIVE} %"),
                String::from(kept(partita.of_native >= OF_NATIVE)),
            ]);
        }
        let of = [Below::Partita, Below::Kvm].map(|below| self.throughput(below));
        if let [Some(ours), Some(kvm)] = of {
            let times = ours / kvm;
            table.row([
                String::from("two guests: beside KVM"),
                format!("{times:.3} times"),
                format!("at least {OF_KVM} times"),
                String::from(kept(times >= OF_KVM)),
            ]);
        }
        write!(f, "{table}")
    }
}

impl From<KvmError> for BenchError {
    fn from(error: KvmError) -> Self {
        Self::Beside(Box::new(error))
    }
}
