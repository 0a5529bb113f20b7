//! Regret: how far a policy stays behind the best one of each system.

use super::draw::{Drawn, VM_NAMES};
use crate::compare::Combination;
use crate::laboratory::{Entry, Outcome};
use runner::measures::{FigureName, Measure};
use runner::table::Table;
use serde::Serialize;

/// Result of a series of drawn systems.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Regret {
    /// The systems' names.
    pub systems: Vec<String>,
    /// A row for each combination.
    pub rows: Vec<Row>,
}

/// A combination, such as one policy, over all systems.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Its name in tables.
    pub name: String,
    /// Its throughput on each system ([`throughput`]); `None` where a run failed.
    pub throughputs: Vec<Option<f64>>,
    /// Its regret on each system.
    pub regrets: Vec<Option<f64>>,
    /// The least part of its share that a VM which always wanted it had over a window of 20 ms and of 200 ms, on each system.
    pub least_of_share: [Vec<Option<f64>>; 2],
    /// Why runs failed.
    pub failures: Vec<String>,
}

/// The measures of [`Row::least_of_share`].
const SHARES: [Measure; 2] = [Measure::MinShare20, Measure::MinShare200];

impl Regret {
    /// Regret from entries, which are in the order of systems, combinations and start phases.
    pub fn new(
        systems: &[Drawn],
        combinations: &[Combination],
        phases: usize,
        entries: &[Entry],
    ) -> Self {
        let rows = combinations.iter().map(|combination| Row {
            name: combination.label(),
            throughputs: Vec::new(),
            regrets: Vec::new(),
            least_of_share: [Vec::new(), Vec::new()],
            failures: Vec::new(),
        });
        let mut rows: Vec<Row> = rows.collect();
        let cells = entries.chunks(phases.max(1));
        let of_systems: Vec<&[Entry]> = cells.collect();
        for (system, cells) in systems.iter().zip(of_systems.chunks(rows.len().max(1))) {
            for (row, cell) in rows.iter_mut().zip(cells) {
                row.add(system, cell);
            }
            let last = |row: &Row| row.throughputs.last().copied().flatten();
            let best = rows.iter().filter_map(last).fold(0.0, f64::max);
            for row in &mut rows {
                let regret = last(row).filter(|_| best > 0.0);
                row.regrets.push(regret.map(|own| 1.0 - own / best));
            }
        }
        Self {
            systems: systems.iter().map(|system| system.name.clone()).collect(),
            rows,
        }
    }

    /// A line for each combination.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "policy",
            "systems",
            "regret, mean",
            "worst",
            "worst system",
            "least of a share, 20 ms",
            "200 ms",
        ]);
        for row in &self.rows {
            let known: Vec<f64> = row.regrets.iter().copied().flatten().collect();
            let mean = known.iter().sum::<f64>() / known.len().max(1) as f64;
            let worst = row.worst();
            let system = worst.and_then(|(place, _)| self.systems.get(place));
            let least = |shares: &[Option<f64>]| {
                let least = shares.iter().copied().flatten().min_by(f64::total_cmp);
                least.map_or_else(|| String::from("-"), per_cent)
            };
            let [short, long] = &row.least_of_share;
            table.row([
                row.name.clone(),
                known.len().to_string(),
                per_cent(mean),
                worst.map_or_else(|| String::from("-"), |(_, worst)| per_cent(worst)),
                system.cloned().unwrap_or_default(),
                least(short),
                least(long),
            ]);
        }
        table
    }

    /// The regret of each combination, system by system.
    pub fn systems(&self) -> Table {
        let names = self.rows.iter().map(|row| row.name.clone());
        let mut table = Table::new(std::iter::once(String::from("system")).chain(names));
        for (place, system) in self.systems.iter().enumerate() {
            let cells = self.rows.iter().map(|row| {
                let regret = row.regrets.get(place).copied().flatten();
                regret.map_or_else(|| String::from("-"), per_cent)
            });
            table.row(std::iter::once(system.clone()).chain(cells));
        }
        table
    }

    /// The systems on which a combination has its worst regret, without repetition.
    pub fn worst_systems(&self) -> Vec<usize> {
        let mut places: Vec<usize> = self
            .rows
            .iter()
            .filter_map(|row| Some(row.worst()?.0))
            .collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}

impl Row {
    fn add(&mut self, system: &Drawn, cell: &[Entry]) {
        let mut throughputs = Vec::new();
        let mut least: [Option<f64>; 2] = [None; 2];
        for entry in cell {
            match &entry.outcome {
                Outcome::Finished { report } => {
                    let figures = &report.measures;
                    let rates = system.guests.iter().zip(VM_NAMES);
                    let rates = rates.map(|(guest, vm)| {
                        let name = FigureName::member(Measure::VmThroughput, vm);
                        let rate = figures.named(name.as_str());
                        (guest.share as f64, rate.unwrap_or(0.0))
                    });
                    throughputs.push(throughput(rates));
                    for (least, measure) in least.iter_mut().zip(SHARES) {
                        let own = figures.get(measure).map(|per_cent| per_cent / 100.0);
                        *least = match (*least, own) {
                            (Some(one), Some(other)) => Some(f64::min(one, other)),
                            (one, other) => one.or(other),
                        };
                    }
                }
                Outcome::Failed(why) => self.failures.push(format!("{}: {why}", system.name)),
            }
        }
        let whole = throughputs.len() == cell.len() && !throughputs.is_empty();
        let mean = throughputs.iter().sum::<f64>() / throughputs.len().max(1) as f64;
        self.throughputs.push(whole.then_some(mean));
        for (all, least) in self.least_of_share.iter_mut().zip(least) {
            all.push(least);
        }
    }

    fn worst(&self) -> Option<(usize, f64)> {
        let known = self.regrets.iter().enumerate();
        known
            .filter_map(|(place, regret)| Some((place, (*regret)?)))
            .max_by(|one, other| one.1.total_cmp(&other.1))
    }
}

fn per_cent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The throughput of a system out of the shares and the ends a second of its VMs: their geometric mean, each weighted by its share.
///
/// The mean needs no unit that VMs with different work have in common: the ratio of two policies is the same for any unit of completions. A policy
/// that takes one VM's time for another gains nothing by it: where VMs only compute, the mean is greatest where each has its share.
fn throughput(rates: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (mut sum, mut shares) = (0.0, 0.0);
    for (share, rate) in rates {
        sum += share * rate.ln();
        shares += share;
    }
    (sum / shares).exp()
}

#[cfg(test)]
mod tests {
    use super::throughput;

    #[test]
    fn mean_is_greatest_at_fair_shares() {
        let of = |rates: [f64; 2]| throughput([1.0, 3.0].into_iter().zip(rates));
        let ratio = of([2.0, 30.0]) / of([3.0, 20.0]);
        let other_unit = of([2000.0, 30.0]) / of([3000.0, 20.0]);
        assert!((ratio - other_unit).abs() < 1e-9);
        assert!(of([25.0, 75.0]) > of([30.0, 70.0]) && of([25.0, 75.0]) > of([20.0, 80.0]));
        assert_eq!(of([0.0, 75.0]), 0.0, "a VM that comes to nothing");
    }
}
