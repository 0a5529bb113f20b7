//! The benchmark's figures, as tables and beside the bounds that they should keep.

use super::guest::Amount;
use super::machine::Count;
use super::mark::Mark;
use runner::table::Table;
use serde::Serialize;
use std::fmt;

/// A way to run the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Way {
    /// By itself.
    Native,
    /// Under Partita.
    Partita,
    /// Under KVM, with QEMU.
    Kvm,
}

impl Way {
    /// All, the one that the others are compared with first.
    pub const ALL: [Self; 3] = [Self::Native, Self::Partita, Self::Kvm];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Partita => "Partita",
            Self::Kvm => "KVM",
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Work of the guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Job {
    /// From the kernel's first instruction to its first process, and from there to its last.
    BootAndPowerOff,
    /// The boot, then hackbench, then a checksum.
    Work,
    /// hackbench and the checksum without the boot.
    WorkAlone,
    /// fio: random reads at depth 1, verified, with fio's own start and end.
    Reads,
    /// The same without fio's start and end.
    ReadsAlone,
}

impl Job {
    /// All, in the order of the table.
    pub const ALL: [Self; 5] = [
        Self::BootAndPowerOff,
        Self::Work,
        Self::WorkAlone,
        Self::Reads,
        Self::ReadsAlone,
    ];

    fn title(self) -> &'static str {
        match self {
            Self::BootAndPowerOff => "boot to init and power-off",
            Self::Work => "boot + hackbench + SHA-256",
            Self::WorkAlone => "  hackbench + SHA-256 alone",
            Self::Reads => "fio random reads, depth 1",
            Self::ReadsAlone => "  the reads alone",
        }
    }

    /// Per cent over native that Partita may take at most; without one, it must still be below KVM.
    fn bound(self) -> Option<u64> {
        match self {
            Self::Work => Some(2),
            Self::Reads => Some(3),
            _ => None,
        }
    }

    fn instructions(self, count: &Count) -> u64 {
        match self {
            Self::BootAndPowerOff => count.boot_and_power_off(),
            Self::Work => count.until(Mark::Worked),
            Self::WorkAlone => count.between(Mark::Booted, Mark::Worked),
            Self::Reads => count.reading(),
            Self::ReadsAlone => count.reads_alone(),
        }
    }
}

/// Everything that was measured.
#[derive(Debug, Clone)]
pub(super) struct Figures {
    pub amount: Amount,
    pub counts: Vec<(Way, Vec<Count>)>,
    /// Bytes of the hypervisor's file that are loaded.
    pub loaded: u64,
    /// KiB of memory that it takes.
    pub memory: u64,
}

/// A job on one way.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Line {
    job: Job,
    way: Way,
    /// Instructions, the median of all runs.
    instructions: u64,
    /// The smallest and the largest count of the runs.
    range: (u64, u64),
    /// How much more than native, in per cent.
    over_native: Option<f64>,
}

/// A bound, and whether it was kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    what: String,
    measured: String,
    bound: String,
    kept: bool,
}

/// The benchmark's report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Report {
    amount: Amount,
    runs: usize,
    lines: Vec<Line>,
    verdicts: Vec<Verdict>,
}

/// Bounds of the hypervisor's own size and start.
const IMAGE_BOUND: u64 = 512 << 10;
const MEMORY_BOUND_KIB: u64 = 8 << 10;
const START_BOUND: u64 = 50_000_000;

impl Report {
    pub(super) fn new(figures: Figures) -> Self {
        let runs = figures.counts.iter().map(|(_, runs)| runs.len()).max();
        let mut lines = Vec::new();
        for job in Job::ALL {
            let counted = |way: Way| {
                let (_, runs) = figures.counts.iter().find(|(other, _)| *other == way)?;
                let mut all: Vec<u64> = runs.iter().map(|count| job.instructions(count)).collect();
                all.sort_unstable();
                let range = (*all.first()?, *all.last()?);
                Some((*all.get(all.len() / 2)?, range))
            };
            let native = counted(Way::Native).map(|(median, _)| median);
            for way in Way::ALL {
                if let Some((instructions, range)) = counted(way) {
                    let over_native = native.and_then(|native| over(instructions, native));
                    lines.push(Line {
                        job,
                        way,
                        instructions,
                        range,
                        over_native,
                    });
                }
            }
        }
        let mut report = Self {
            amount: figures.amount,
            runs: runs.unwrap_or(0),
            lines,
            verdicts: Vec::new(),
        };
        report.judge(&figures);
        report
    }

    fn line(&self, job: Job, way: Way) -> Option<&Line> {
        self.lines
            .iter()
            .find(|line| line.job == job && line.way == way)
    }

    fn judge(&mut self, figures: &Figures) {
        let mut verdicts = Vec::new();
        let mut verdict = |what: String, measured: String, bound: String, kept: bool| {
            verdicts.push(Verdict {
                what,
                measured,
                bound,
                kept,
            });
        };
        for job in Job::ALL {
            let title = job.title().trim();
            let Some(ours) = self.line(job, Way::Partita) else {
                continue;
            };
            if let (Some(bound), Some(over)) = (job.bound(), ours.over_native) {
                let what = format!("{title}: over native");
                verdict(
                    what,
                    percent(over),
                    format!("at most {bound} %"),
                    over <= bound as f64,
                );
            }
            if let Some(kvm) = self.line(job, Way::Kvm)
                && let Some(ratio) = ratio(ours.instructions, kvm.instructions)
            {
                let what = format!("{title}: beside KVM");
                verdict(
                    what,
                    format!("{ratio:.3}"),
                    String::from("below 1"),
                    ratio < 1.0,
                );
            }
        }
        let kib = |bytes: u64| format!("{} KiB", bytes.div_ceil(1 << 10));
        verdict(
            String::from("hypervisor: code, constants and data loaded"),
            kib(figures.loaded),
            format!("below {}", kib(IMAGE_BOUND)),
            figures.loaded < IMAGE_BOUND,
        );
        verdict(
            String::from("hypervisor: memory with two guests of four vCPUs"),
            format!("{} KiB", figures.memory),
            format!("below {MEMORY_BOUND_KIB} KiB"),
            figures.memory < MEMORY_BOUND_KIB,
        );
        let partita = figures.counts.iter().find(|(way, _)| *way == Way::Partita);
        let starts = partita.into_iter().flat_map(|(_, runs)| runs);
        if let Some(start) = starts
            .map(|run| run.first.saturating_sub(run.firmware_done))
            .max()
        {
            verdict(
                String::from("hypervisor: entry to the first guest instruction"),
                format!("{} ms", decimal(start, 1_000_000)),
                format!("below {} ms", START_BOUND / 1_000_000),
                start < START_BOUND,
            );
        }
        self.verdicts = verdicts;
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole != 0).then(|| part as f64 / whole as f64)
}

fn over(part: u64, whole: u64) -> Option<f64> {
    ratio(part, whole).map(|ratio| (ratio - 1.0) * 100.0)
}

fn percent(value: f64) -> String {
    format!("{value:+.2} %")
}

/// `value / unit` with two digits behind the point.
fn decimal(value: u64, unit: u64) -> String {
    format!("{:.2}", value as f64 / unit as f64)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Amount {
            loops,
            blocks,
            reads,
        } = self.amount;
        writeln!(
            f,
            "Millions of instructions, {} runs each; hackbench with {loops} loops, SHA-256 of {blocks} blocks of\n\
             64 KiB, {reads} random reads of 4 KiB:\n",
            self.runs
        )?;
        let mut table = Table::new(["", "", "instructions", "over native", "spread"]);
        let mut last = None;
        for line in &self.lines {
            let title = match last == Some(line.job) {
                false => line.job.title(),
                true => "",
            };
            last = Some(line.job);
            let over = match (line.way, line.over_native) {
                (Way::Native, _) | (_, None) => String::new(),
                (_, Some(over)) => percent(over),
            };
            let (least, most) = line.range;
            let spread = over_or_none(most, least);
            let millions = decimal(line.instructions, 1_000_000);
            table.row([title, line.way.name(), &millions, &over, &spread]);
        }
        writeln!(f, "{table}")?;
        let mut table = Table::new(["", "measured", "bound", ""]);
        for verdict in &self.verdicts {
            let kept = if verdict.kept { "kept" } else { "MISSED" };
            table.row([&verdict.what, &verdict.measured, &verdict.bound, kept]);
        }
        write!(f, "{table}")
    }
}

/// The spread of the runs in per cent of the smallest.
fn over_or_none(most: u64, least: u64) -> String {
    over(most, least).map_or(String::new(), |spread| format!("{spread:.3} %"))
}
