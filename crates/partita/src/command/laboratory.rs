//! What the commands that make many runs have in common: where results are kept, what runs them, how many at a time.

use super::{Failure, HypervisorArgument};
use clap::ValueEnum;
use machine::timing::Profile;
use partita::cache::Cache;
use partita::compare::{expand, with_phase};
use partita::images;
use partita::laboratory::{
    Bar, ChildRunner, Computer, Entry, Fingerprints, MadeBy, Point, Store, run_all,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Options of every command that makes many runs.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct LaboratoryArguments {
    /// The computer to run on
    #[arg(long, value_enum, default_value_t = Kind::Machine)]
    pub(super) on: Kind,
    /// On the machine, what instructions and devices cost: the name of a profile that ships, or a TOML file
    #[arg(long, value_name = "NAME|FILE")]
    pub(super) profile: Option<String>,
    /// How many runs at a time; without it, as many as this computer has cores
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub(super) jobs: Option<u16>,
    /// Where results are kept, and looked up; without it, a file in the cache
    #[arg(long, value_name = "FILE")]
    pub(super) results: Option<PathBuf>,
    /// Gives a run up after this time
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub(super) timeout: Option<u64>,
    #[command(flatten)]
    pub(super) hypervisor: HypervisorArgument,
}

/// Computers that runs are made on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// The machine: the same figures every time
    Machine,
    /// QEMU's virt board: real time, no two runs alike
    Qemu,
}

impl LaboratoryArguments {
    /// The computer that is asked for.
    pub(super) fn computer(&self) -> Result<Computer, Failure> {
        match (self.on, &self.profile) {
            (Kind::Qemu, Some(_)) => Err(Failure::Laboratory(String::from(
                "--profile is for the machine; leave it out, or run with --on machine",
            ))),
            (Kind::Qemu, None) => Ok(Computer::Qemu),
            (Kind::Machine, profile) => Ok(Computer::Machine {
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
}

impl Laboratory {
    /// Opens the file of results, by default the one called `name` in the cache.
    pub(super) fn new(arguments: &LaboratoryArguments, name: &str) -> Result<Self, Failure> {
        let cache = Cache::from_environment()?;
        let results = arguments.results.clone();
        let results =
            results.unwrap_or_else(|| cache.folder().join("results").join(format!("{name}.jsonl")));
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let command = std::env::current_exe()
            .map_err(|error| Failure::Laboratory(format!("this command's own file: {error}")))?;
        Ok(Self {
            cache,
            store: Mutex::new(Store::open(&results)?),
            command,
            hypervisor: arguments.hypervisor.path()?,
            timeout: arguments.timeout.map(Duration::from_secs),
            jobs: arguments.jobs.map_or(cores, usize::from),
        })
    }

    /// Makes every run that has no result yet, and returns all results in the order of the points.
    pub(super) fn run(&self, points: Vec<Point>) -> Result<Vec<Entry>, Failure> {
        let points = self.makers(points)?;
        let stop = Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            signal_hook::flag::register(signal, Arc::clone(&stop))
                .map_err(|error| Failure::Laboratory(format!("signals: {error}")))?;
        }
        let runner = ChildRunner {
            command: self.command.clone(),
            hypervisor: self.hypervisor.clone(),
            timeout: self.timeout,
            stop: &stop,
        };
        let bar = Bar::new();
        let series = run_all(&points, &runner, &self.store, self.jobs, &stop, &bar);
        drop(bar);
        if let Some(error) = &series.unsaved {
            eprintln!("partita: {error}; the figures below are not kept");
        }
        let path = match self.store.lock() {
            Ok(store) => store.path().to_owned(),
            Err(poisoned) => poisoned.into_inner().path().to_owned(),
        };
        Ok(series.complete(&path)?)
    }

    /// The points with their short keys written out, and with their phases.
    pub(super) fn expand(&self, points: Vec<Point>) -> Result<Vec<Point>, Failure> {
        let profiles = self.cache.folder().join("profiles");
        let full = |point| {
            let point = expand(point, &profiles)?;
            Ok::<_, Failure>(with_phase(point)?)
        };
        points.into_iter().map(full).collect()
    }

    /// The points with what makes their results.
    fn makers(&self, points: Vec<Point>) -> Result<Vec<(Point, MadeBy)>, Failure> {
        let mut known = Fingerprints::new();
        for point in &points {
            let system = point.read()?;
            let files = super::run::built_files(&system);
            images::ensure(&self.cache, &files, &images::Progress::new())?;
        }
        let programs = [
            ("partita", self.command.as_path()),
            ("hypervisor", self.hypervisor.as_path()),
        ];
        let with_maker = |point: Point| {
            let made_by = point.made_by(&programs, &self.cache, &mut known)?;
            Ok((point, made_by))
        };
        points.into_iter().map(with_maker).collect()
    }
}

/// The `experiments` folder of the tree that this command was built in, else of the present folder.
pub(super) fn experiments() -> PathBuf {
    let name = Path::new("experiments");
    let command = std::env::current_exe().unwrap_or_default();
    let built = command.ancestors().skip(1).map(|folder| folder.join(name));
    let mut built = built.take(4);
    built
        .find(|folder| folder.is_dir())
        .unwrap_or_else(|| name.to_owned())
}

/// A profile by its name or file.
pub(super) fn profile(name: &str) -> Result<Profile, Failure> {
    Profile::find(name).map_err(|error| Failure::Laboratory(format!("--profile {name}: {error}")))
}
