//! Common parts of the commands that make many runs: where results are kept, what runs them, how many at a time.

use super::failure::Failure;
use super::input::HypervisorArgument;
use super::output;
use clap::ValueEnum;
use guest_images::kvm_host;
use machine::timing::Profile;
use runner::checkpoint::Span;
use runner::checkpoint::{self, Boot, CheckpointFailure};
use runner::computer::Chosen;
use runner::kvm::KvmError;
use runner::kvm::kvm_checkpoint;
use runner::native::native_checkpoint;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use study::compare::expand;
use study::laboratory::from_checkpoint;
use study::laboratory::shard::Shard;
use study::laboratory::usual_start;
use study::laboratory::with_phase;
use study::laboratory::with_window;
use study::laboratory::within;
use study::laboratory::{
    Bar, ChildRunner, Computer, Durations, Entry, Forecast, MadeBy, Outcome, Point, Store, Timed,
    run_all,
};
use system::cache::Cache;
use system::fingerprint::Fingerprints;

/// Options of every command that makes many runs.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LaboratoryArguments {
    /// The computer to run on
    #[arg(long, value_enum, default_value_t = ComputerChoice::Machine)]
    pub(super) on: ComputerChoice,
    /// On the machine, what instructions and devices cost: the name of a profile that ships, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// How many runs at a time; without it, as many as this computer has cores
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) jobs: Option<u16>,
    /// Makes the runs of one shard of several alone, such as 2/4, and shows no table: `partita results merge` puts the shards'
    /// files of results together, and the same command without this shows the table
    #[arg(long, value_name = "NUMBER/ALL")]
    pub(super) shard: Option<Shard>,
    /// Where results are kept, and looked up; without it, a file in the cache
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,
    /// Gives a run up after this time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout: Option<u64>,
    #[command(flatten)]
    pub(super) hypervisor: HypervisorArgument,
}

/// How long a run settles before a span of it is counted.
const SETTLE_US: u64 = 20_000;

/// Computers that runs are made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ComputerChoice {
    /// The machine: the same figures every time
    Machine,
    /// QEMU's virt board: real time, no two runs alike
    Qemu,
}

/// Where the measured part of the runs begins.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct StartArguments {
    /// Boots each system once, until the consoles of all VMs have said this, and measures every run from there on. Without
    /// it, Debian guests are measured from where their work begins, and exercisers from their boot
    #[arg(long, value_name = "TEXT", conflicts_with = "boot")]
    start_at: Option<String>,
    /// Boots for every run
    #[arg(long)]
    boot: bool,
    /// With --start-at, measures so many milliseconds of each run alone, 20 ms after that
    #[arg(long, value_name = "MILLISECONDS", requires = "start_at", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    span: Option<u64>,
    /// Measures the steady part of each run alone, from when all VMs work to when the first ends, where all VMs are exercisers that
    /// work for a time
    #[arg(long)]
    steady_state: bool,
}

/// Smallest difference that counts as an effect.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct EffectArguments {
    /// The smallest effect that counts, in per cent: what is surely smaller is called equal. Without it, any effect counts, and
    /// nothing can be equal
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0, value_parser = per_cent)]
    smallest_effect: f64,
}

impl EffectArguments {
    /// As a part.
    pub(super) fn smallest(&self) -> f64 {
        self.smallest_effect / 100.0
    }
}

/// A part in per cent that is none or more, and below the whole.
fn per_cent(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    number
        .filter(|number| (0.0..100.0).contains(number))
        .ok_or_else(|| String::from("give a number from 0 to 100, such as 1.85"))
}

impl StartArguments {
    /// The same, with a boot for every run where one is needed.
    pub(super) fn booting(&self, needed: bool) -> Self {
        Self {
            boot: self.boot || needed,
            ..self.clone()
        }
    }

    /// Where runs usually begin, unless each is to boot, and their steady part alone.
    pub(super) const fn usual(boot: bool) -> Self {
        Self {
            start_at: None,
            span: None,
            boot,
            steady_state: true,
        }
    }
}

impl LaboratoryArguments {
    /// The computer that is asked for.
    pub(super) fn computer(&self) -> Result<Computer, Failure> {
        match (self.on, &self.profile) {
            (ComputerChoice::Qemu, Some(_)) => Err(Failure::Usage(String::from(
                "--profile is for the machine; leave it out, or run with --on machine",
            ))),
            (ComputerChoice::Qemu, None) => Ok(Computer::Qemu),
            (ComputerChoice::Machine, profile) => Ok(Computer::Machine {
                profile: profile.clone(),
            }),
        }
    }
}

/// A place to make runs.
pub(super) struct Laboratory {
    cache: Cache,
    store: Mutex<Store>,
    command: PathBuf,
    hypervisor: PathBuf,
    timeout: Option<Duration>,
    jobs: usize,
    shard: Option<Shard>,
}

impl Laboratory {
    /// Opens the file of results, by default the one called `name` in the cache.
    pub(super) fn new(arguments: &LaboratoryArguments, name: &str) -> Result<Self, Failure> {
        let cache = Cache::made()?;
        let results = arguments.results.clone();
        let results =
            results.unwrap_or_else(|| cache.folder().join("results").join(format!("{name}.jsonl")));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let command = std::env::current_exe()
            .map_err(|error| Failure::Host("this command's own file", error))?;
        Ok(Self {
            cache,
            store: Mutex::new(Store::open(&results)?),
            command,
            hypervisor: arguments.hypervisor.path()?,
            timeout: arguments.timeout.map(Duration::from_secs),
            jobs: arguments.jobs.map_or(cores, usize::from),
            shard: arguments.shard,
        })
    }

    /// A folder in the cache.
    pub(super) fn folder(&self, name: &str) -> PathBuf {
        self.cache.folder().join(name)
    }

    /// Makes every run that has no result yet, and returns all results in the order of the points.
    ///
    /// # Errors
    /// With a shard it makes the shard's runs alone, and there is nothing to show: [`Failure::Shard`].
    pub(super) fn run(&self, points: Vec<Point>) -> Result<Vec<Entry>, Failure> {
        let all = points.len();
        let Some(shard) = self.shard else {
            return self.run_all(points);
        };
        let entries = self.run_all(shard.of(points))?;
        let failures = entries.iter().filter_map(|entry| match &entry.outcome {
            Outcome::Failed(why) => Some(format!("seed {}: {why}", entry.point.seed)),
            Outcome::Finished { .. } => None,
        });
        let failures: Vec<String> = failures.collect();
        if !failures.is_empty() {
            return Err(Failure::Vm(failures));
        }
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Err(Failure::Shard {
            shard,
            runs: entries.len(),
            all,
            path: store.path().to_owned(),
        })
    }

    fn run_all(&self, points: Vec<Point>) -> Result<Vec<Entry>, Failure> {
        let points = self.makers(points)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|error| Failure::Host("signals", error))?;
        }
        let took = self.took();
        let ahead = self.count(&points, &took);
        if ahead.missing > 0 {
            output::note(format_args!("{}", ahead.words(self.jobs)));
        }
        let runner = ChildRunner {
            command: self.command.clone(),
            hypervisor: self.hypervisor.clone(),
            timeout: self.timeout,
            stop: &stop,
            checkpoints: self.checkpoints(&points, &stop)?,
        };
        let runner = Timed {
            runner,
            took: &took,
        };
        let bar = Bar::new();
        let series = run_all(&points, &runner, &self.store, self.jobs, &stop, &bar);
        drop(bar);
        if let Some(error) = &series.unsaved {
            output::note(format_args!("{error}; the figures below are not kept"));
        }
        let path = match self.store.lock() {
            Ok(store) => store.path().to_owned(),
            Err(poisoned) => poisoned.into_inner().path().to_owned(),
        };
        Ok(series.complete(&path)?)
    }

    /// Forecast of a series of these points, or of its shard.
    pub(super) fn ahead(&self, points: Vec<Point>) -> Result<Forecast, Failure> {
        let points = match self.shard {
            Some(shard) => shard.of(points),
            None => points,
        };
        Ok(self.count(&self.makers(points)?, &self.took()))
    }

    /// How many runs are made at a time.
    pub(super) fn jobs(&self) -> usize {
        self.jobs
    }

    fn took(&self) -> Durations {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        Durations::beside(store.path())
    }

    fn count(&self, points: &[(Point, MadeBy)], took: &Durations) -> Forecast {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let mut seen = BTreeSet::new();
        let missing = points.iter().filter(|(point, made_by)| {
            let id = point.identity(made_by);
            let known = store.get(&id);
            let is_known = known.is_some_and(|entry| entry.outcome.figures().is_some());
            !is_known && seen.insert(id)
        });
        let missing: Vec<&Point> = missing.map(|(point, _)| point).collect();
        took.ahead(points.len(), missing.into_iter())
    }

    /// The points with their short keys written out.
    pub(super) fn expand(&self, points: Vec<Point>) -> Result<Vec<Point>, Failure> {
        let profiles = self.cache.folder().join("profiles");
        let full = |point| Ok::<_, Failure>(expand(point, &profiles)?);
        points.into_iter().map(full).collect()
    }

    /// The points with their short keys written out, and with seeds for their guests.
    pub(super) fn with_phases(&self, points: Vec<Point>) -> Result<Vec<Point>, Failure> {
        let points = self.expand(points)?.into_iter();
        points.map(|point| Ok(with_phase(point)?)).collect()
    }

    /// The points with their start phases: as ones that go on from checkpoints, where that is wanted and can be, else with
    /// seeds for their guests.
    pub(super) fn start(
        &self,
        points: Vec<Point>,
        arguments: &StartArguments,
    ) -> Result<Vec<Point>, Failure> {
        let start = |point: Point| {
            let system = point.read()?;
            let text = arguments.start_at.as_deref();
            let point = match text.or_else(|| usual_start(&system)) {
                Some(text) if !arguments.boot => match arguments.span {
                    None => from_checkpoint(point, text)?,
                    Some(milliseconds) => {
                        let span = Span {
                            settle_us: SETTLE_US,
                            count_us: milliseconds * 1000,
                        };
                        within(point, text, span)?
                    }
                },
                _ => point,
            };
            if point.start.is_some() {
                return Ok(point);
            }
            let point = with_phase(point)?;
            Ok(match arguments.steady_state {
                true => with_window(point)?,
                false => point,
            })
        };
        points.into_iter().map(start).collect()
    }

    /// Boots every system that points go on from and that has no checkpoint yet, as many at a time as runs.
    fn checkpoints(
        &self,
        points: &[(Point, MadeBy)],
        stop: &AtomicBool,
    ) -> Result<Vec<(Point, PathBuf)>, Failure> {
        let folder = self.cache.folder().join("checkpoints");
        let mut all: Vec<(Point, PathBuf)> = Vec::new();
        for (point, made_by) in points {
            let Some(boot) = point.boot() else { continue };
            if all.iter().all(|(known, _)| *known != boot) {
                let identity = boot.identity(made_by);
                let name = format!("{}.checkpoint", identity.short());
                all.push((boot, folder.join(name)));
            }
        }
        let missing: Vec<_> = all.iter().filter(|(_, path)| !path.is_file()).collect();
        if missing.is_empty() {
            return Ok(all);
        }
        output::note(format_args!(
            "booting to {} checkpoint(s) first",
            missing.len()
        ));
        let queue = Mutex::new(missing.iter());
        let failed = Mutex::new(None);
        std::thread::scope(|scope| {
            for _ in 0..self.jobs.min(missing.len()) {
                scope.spawn(|| {
                    loop {
                        let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
                        let Some((point, path)) = next else { return };
                        if let Err(error) = self.boot(point, path, stop) {
                            *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                            return;
                        }
                    }
                });
            }
        });
        match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(all),
        }
    }

    /// Boots a system to its checkpoint.
    fn boot(&self, point: &Point, path: &Path, stop: &AtomicBool) -> Result<(), Failure> {
        let system = point.read()?;
        let (Some(start), Computer::Machine { profile }) = (&point.start, &point.computer) else {
            return Ok(());
        };
        let boot = Boot {
            system: &system,
            cache: &self.cache,
            hypervisor: point.hypervisor.as_ref().unwrap_or(&self.hypervisor),
            chosen: Chosen::named(profile.as_deref(), point.seed)?,
            text: &start.text,
            limit: self.timeout,
            stop,
        };
        let made = if point.native {
            native_checkpoint(&boot, path)
        } else if point.kvm {
            kvm_checkpoint(&boot, path).map_err(|error| match error {
                KvmError::Checkpoint(error) => error,
                other => CheckpointFailure::Host(Box::new(other)),
            })
        } else {
            checkpoint::make(&boot, path)
        };
        made.map_err(|error| match error {
            CheckpointFailure::TimeLimit => {
                Failure::TimeLimit(String::from("it did not come to its checkpoint in time"))
            }
            other => other.into(),
        })
    }

    /// The points with what makes their results.
    fn makers(&self, points: Vec<Point>) -> Result<Vec<(Point, MadeBy)>, Failure> {
        let mut known = Fingerprints::new();
        let mut profiles = BTreeSet::new();
        for point in &points {
            if let Computer::Machine {
                profile: Some(name),
            } = &point.computer
                && profiles.insert(name)
            {
                profile(name)?;
            }
            let system = point.read()?;
            super::input::ensure_images(&system, &self.cache)?;
            if point.kvm {
                kvm_host::ensure(&self.cache, &guest_images::Progress::new())?;
            }
        }
        let with_maker = |point: Point| {
            let hypervisor = point.hypervisor.as_ref().unwrap_or(&self.hypervisor);
            let programs = point.programs(&self.command, hypervisor);
            let made_by = point.made_by(&programs, &self.cache, &mut known)?;
            Ok((point, made_by))
        };
        points.into_iter().map(with_maker).collect()
    }
}

/// The folder `experiments` that came with this command, else that of the present folder.
pub(super) fn experiments() -> PathBuf {
    system::installed::folder(&system::installed::command(), "experiments")
}

/// A profile by its name or file.
pub(super) fn profile(name: &str) -> Result<Profile, Failure> {
    Ok(Profile::find(name)?)
}
