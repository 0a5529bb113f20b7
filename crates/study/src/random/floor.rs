//! The floor: what a strict partition of time would give each VM, and how much of it a policy gives.
//!
//! A VM with the part *s* of all shares that would end *A* jobs alone, on the same harts in the same time, ends *s* x *A* where the whole computer is
//! its own for the part *s* of the time. Such a partition needs no knowledge of guests, so a policy that gives a VM less does harm.

use super::draw::{Drawn, VM_NAMES};
use crate::compare::Grid;
use crate::laboratory::{Computer, Entry, Outcome, Point};
use runner::measures::{FigureName, Figures, Measure};
use runner::table::Table;
use serde::Serialize;
use std::path::PathBuf;

/// Keys that choose a policy. A VM that runs alone runs under the policies of its file, so that all policies are held against the same floor.
const POLICIES: [&str; 3] = ["spin", "wait", "run-queue"];

/// Result of a series of drawn systems, each of whose VMs has run alone as well.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Floor {
    /// A row for each combination.
    pub rows: Vec<FloorRow>,
}

/// A combination, such as one policy, over all systems.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FloorRow {
    /// Its name in tables.
    pub name: String,
    /// VMs of the systems whose runs all finished, in the order of the systems.
    pub vms: Vec<FloorRatio>,
    /// Why runs of a VM alone failed.
    pub failures: Vec<String>,
}

/// A VM beside its floor.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FloorRatio {
    /// Name of the system.
    pub system: String,
    /// Name of the VM.
    pub vm: String,
    /// The VM's part of all shares.
    pub share: f64,
    /// Completions a second beside the other VMs, mean over the start phases.
    pub ends: f64,
    /// Completions a second alone, mean over the start phases.
    pub alone: f64,
    /// `ends` / (`share` x `alone`).
    pub ratio: f64,
}

/// Points of each VM of a drawn system alone, by the files of the VMs ([`Drawn::alone`]). The order is that of combinations, VMs and start phases.
pub fn alone(
    grid: &Grid,
    files: &[PathBuf],
    changes: &[String],
    computer: &Computer,
) -> Vec<Point> {
    let mut points = Vec::new();
    for combination in &grid.combinations {
        for (file, vm) in files.iter().zip(VM_NAMES) {
            // The other VMs are not in the file.
            let concerns = |key: &str| match key.strip_prefix("vm.") {
                Some(rest) => rest.split('.').next() == Some(vm),
                None => true,
            };
            let own = changes.iter().filter(|change| concerns(change)).cloned();
            let own: Vec<String> = own.collect();
            let one = Grid {
                combinations: vec![
                    combination.only(|key| concerns(key) && !POLICIES.contains(&key)),
                ],
                seeds: grid.seeds.clone(),
            };
            points.extend(one.points(file, &own, computer));
        }
    }
    points
}

impl Floor {
    /// Floor ratios. `together` has the entries of all VMs together, in the order of systems, combinations and start phases; `alone` those of the
    /// points of [`alone`], system by system.
    pub fn new(systems: &[Drawn], grid: &Grid, together: &[Entry], alone: &[Entry]) -> Self {
        let phases = grid.seeds.len().max(1);
        let mut rows: Vec<FloorRow> = grid
            .combinations
            .iter()
            .map(|combination| FloorRow {
                name: combination.label(),
                vms: Vec::new(),
                failures: Vec::new(),
            })
            .collect();
        let mut together = together.chunks(phases);
        let mut alone = alone.chunks(phases);
        for system in systems {
            for row in &mut rows {
                let all = together.next().unwrap_or_default();
                let each: Vec<&[Entry]> = alone.by_ref().take(system.guests.len()).collect();
                row.add(system, all, &each);
            }
        }
        Self { rows }
    }

    /// A line for each combination.
    pub fn table(&self) -> Table {
        let mut table = Table::new([
            "policy",
            "VMs",
            "floor ratio, least",
            "mean",
            "VMs below 1",
            "worst system",
            "VM",
        ]);
        for row in &self.rows {
            let ratios = || row.vms.iter().map(|vm| vm.ratio);
            let count = row.vms.len();
            let mean = ratios().sum::<f64>() / count.max(1) as f64;
            let number = |ratio: f64| match count {
                0 => String::from("-"),
                _ => format!("{ratio:.3}"),
            };
            let worst = row.worst();
            table.row([
                row.name.clone(),
                count.to_string(),
                number(worst.map_or(0.0, |worst| worst.ratio)),
                number(mean),
                ratios().filter(|ratio| *ratio < 1.0).count().to_string(),
                worst.map_or_else(String::new, |worst| worst.system.clone()),
                worst.map_or_else(String::new, |worst| worst.vm.clone()),
            ]);
        }
        table
    }

    /// Names of the systems on which a combination has its least ratio, without repetition.
    pub fn worst_systems(&self) -> Vec<&str> {
        let worst = self.rows.iter().filter_map(FloorRow::worst);
        let mut names: Vec<&str> = worst.map(|worst| worst.system.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

impl FloorRow {
    fn add(&mut self, system: &Drawn, together: &[Entry], alone: &[&[Entry]]) {
        let shares: u64 = system.guests.iter().map(|guest| guest.share).sum();
        let vms = VM_NAMES.iter().zip(&system.guests).zip(alone);
        for ((vm, guest), alone) in vms {
            let name = FigureName::member(Measure::VmThroughput, vm);
            let ends = mean(together, |figures| figures.named(name.as_str()));
            let by_itself = mean(alone, |figures| figures.get(Measure::Throughput));
            let why = alone.iter().filter_map(|entry| match &entry.outcome {
                Outcome::Failed(why) => Some(format!("{}, {vm} alone: {why}", system.name)),
                Outcome::Finished { .. } => None,
            });
            self.failures.extend(why);
            let (Some(ends), Some(alone)) = (ends, by_itself.filter(|alone| *alone > 0.0)) else {
                continue;
            };
            let share = guest.share as f64 / shares.max(1) as f64;
            self.vms.push(FloorRatio {
                system: system.name.clone(),
                vm: String::from(*vm),
                share,
                ends,
                alone,
                ratio: ends / (share * alone),
            });
        }
    }

    /// The VM with the least ratio.
    pub fn worst(&self) -> Option<&FloorRatio> {
        let vms = self.vms.iter();
        vms.min_by(|one, other| one.ratio.total_cmp(&other.ratio))
    }
}

/// Mean of a figure over the start phases. A run that finished without the figure has none of the work done; `None` if a run failed, or if there is
/// none.
fn mean(entries: &[Entry], figure: impl Fn(&Figures) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = entries
        .iter()
        .map(|entry| Some(figure(entry.outcome.figures()?).unwrap_or(0.0)))
        .collect();
    let values = values.filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}
