//! Figures of the guests' workloads: from their lines on their consoles, and from when these come.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;

/// Beginning of a line of the exerciser's `work`.
const EXERCISER: &str = "exerciser: work ";
/// Beginning of a line of a Debian guest's first process (guests/init).
const DEBIAN: &str = "partita-guest ";
/// Most jobs of a VM that are followed at a time, and most whose times are kept: a guest may write what it likes.
const MAX_OPEN: usize = 1 << 16;
const MAX_KEPT: usize = 1 << 20;
/// So many jobs of a VM, the first ones, may have names.
const MAX_NAMED: usize = 64;

/// Figures of one VM's workload. Figures that it did not report are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct GuestFigures {
    /// Numbers by name; those of a distribution as `response-ns.p50`.
    pub numbers: BTreeMap<String, f64>,
}

impl GuestFigures {
    /// A number.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.numbers.get(name).copied()
    }
}

/// A Debian guest's jobs, by when its lines arrived.
#[derive(Debug, Clone, Default, PartialEq)]
struct Jobs {
    /// When the work began.
    started: Option<Duration>,
    /// When jobs that go on began, by their numbers.
    open: BTreeMap<u64, Duration>,
    /// How long those took that are done, in nanoseconds.
    took: Vec<u64>,
    done: u64,
    last: Duration,
}

/// Figures of the workloads of all VMs, gathered line by line.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Guests {
    vms: BTreeMap<String, GuestFigures>,
    #[serde(skip)]
    jobs: BTreeMap<String, Jobs>,
}

impl Guests {
    /// Takes a line that a VM wrote, and when it ended, since the computer was switched on. Lines that are no figures are
    /// none of this one's business; what a guest writes cannot do more than be a wrong figure of its own VM.
    pub fn line(&mut self, vm: &str, line: &str, at: Duration) {
        let line = line.trim();
        if let Some(rest) = line.strip_prefix(EXERCISER) {
            self.numbers(vm, rest);
        } else if let Some(rest) = line.strip_prefix(DEBIAN) {
            self.job(vm, rest, at);
        }
    }

    fn numbers(&mut self, vm: &str, rest: &str) {
        let mut words = rest.split_whitespace().peekable();
        // A word without = is the name of a distribution.
        let prefix = words
            .next_if(|word| !word.contains('='))
            .map_or_else(String::new, |name| format!("{name}."));
        let figures = words.filter_map(|word| word.split_once('='));
        for (name, value) in figures {
            let Ok(value) = value.parse::<f64>() else {
                continue;
            };
            if value.is_finite() {
                self.set(vm, &format!("{prefix}{name}"), value);
            }
        }
    }

    /// Counts the ends of a VM's jobs from this time on. Jobs that go on are among them when they end.
    pub fn begin(&mut self, vm: &str, at: Duration) {
        let jobs = self.jobs.entry(String::from(vm)).or_default();
        *jobs = Jobs {
            started: Some(at),
            open: std::mem::take(&mut jobs.open),
            ..Jobs::default()
        };
    }

    /// Counts the ends of a VM's jobs to this time, in the midst of its work.
    pub fn end(&mut self, vm: &str, at: Duration) {
        if let Some(jobs) = self.jobs.get_mut(vm) {
            jobs.last = at;
        }
        self.close(vm);
    }

    /// Counts the ends of jobs, and how long each took from its begin to its end, by the times of the lines. A job with a
    /// name gives the figure `job-ns.NAME`, in nanoseconds.
    fn job(&mut self, vm: &str, rest: &str, at: Duration) {
        let mut words = rest.split_whitespace();
        let what = words.next().unwrap_or_default();
        let number = words.clone().find_map(|word| {
            let number = word.strip_prefix("number=");
            number.or((what == "next").then_some(word))?.parse().ok()
        });
        let name = words.clone().find_map(|word| word.strip_prefix("name="));
        let ok = what == "next" || words.any(|word| word == "ok=yes");
        if what == "start" {
            self.jobs.remove(vm);
            return self.begin(vm, at);
        }
        let jobs = self.jobs.entry(String::from(vm)).or_default();
        match (what, number) {
            ("begin", Some(number)) if jobs.open.len() < MAX_OPEN => {
                jobs.open.insert(number, at);
            }
            ("job" | "next", Some(number)) => {
                let begun = match what {
                    "next" if jobs.open.len() < MAX_OPEN => jobs.open.insert(number, at),
                    _ => jobs.open.remove(&number),
                };
                if ok {
                    jobs.done += 1;
                    jobs.last = at;
                    let took = begun.map(|begun| at.saturating_sub(begun).as_nanos());
                    let took = took.and_then(|took| u64::try_from(took).ok());
                    let room = jobs.took.len() < MAX_KEPT;
                    jobs.took.extend(took.filter(|_| room));
                    let name = name.filter(|_| jobs.took.len() <= MAX_NAMED);
                    if let (Some(name), Some(took)) = (name, took) {
                        self.set(vm, &format!("job-ns.{name}"), took as f64);
                    }
                }
            }
            // The workload is over.
            ("result", _) => self.close(vm),
            _ => {}
        }
    }

    /// Makes figures of a VM's jobs.
    fn close(&mut self, vm: &str) {
        let Some(jobs) = self.jobs.remove(vm) else {
            return;
        };
        let Some(started) = jobs.started.filter(|_| jobs.done > 0) else {
            return;
        };
        let elapsed = jobs.last.saturating_sub(started);
        self.set(vm, "completions", jobs.done as f64);
        self.set(vm, "elapsed-us", elapsed.as_nanos() as f64 / 1e3);
        let mut took = jobs.took;
        took.sort_unstable();
        self.set_responses(vm, &took);
    }

    /// Keeps a number of a VM's.
    pub fn set(&mut self, vm: &str, name: &str, value: f64) {
        let numbers = &mut self.vms.entry(String::from(vm)).or_default().numbers;
        numbers.insert(String::from(name), value);
    }

    /// Keeps quantiles of a VM's response times, which are sorted and in nanoseconds.
    pub fn set_responses(&mut self, vm: &str, sorted: &[u64]) {
        // Tenths of per cent: the smallest value that so many do not exceed.
        for (name, part) in [("p50", 500), ("p99", 990), ("p99.9", 999)] {
            let rank = (sorted.len() * part).div_ceil(1000);
            if let Some(value) = rank.checked_sub(1).and_then(|rank| sorted.get(rank)) {
                self.set(vm, &format!("response-ns.{name}"), *value as f64);
            }
        }
    }

    /// A VM's figures.
    pub fn vm(&self, name: &str) -> Option<&GuestFigures> {
        self.vms.get(name)
    }

    /// The sum of a number over the VMs that have it.
    pub fn sum(&self, name: &str) -> Option<f64> {
        self.values(name).reduce(|a, b| a + b)
    }

    /// The ends of each VM that counts them and how long they took in microseconds, where there are several such VMs.
    pub fn throughputs(&self) -> impl Iterator<Item = (&str, f64, f64)> {
        let several = self.values("completions").nth(1).is_some();
        let vms = self.vms.iter().filter(move |_| several);
        vms.filter_map(|(name, vm)| {
            Some((name.as_str(), vm.get("completions")?, vm.get("elapsed-us")?))
        })
    }

    /// The largest of a number among the VMs that have it.
    pub fn largest(&self, name: &str) -> Option<f64> {
        self.values(name).reduce(f64::max)
    }

    fn values(&self, name: &str) -> impl Iterator<Item = f64> {
        self.vms.values().filter_map(move |vm| vm.get(name))
    }
}
