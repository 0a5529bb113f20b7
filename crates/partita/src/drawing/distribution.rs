//! How values are distributed: the part that does not exceed each length.

use super::lines::{Line, lines};
use crate::report::Table;
use crate::trace::{Kind, Owner, Timeline};
use std::collections::BTreeMap;

/// Points of the curve.
const POINTS: usize = 200;

/// The picture for sorted lengths in nanoseconds: per cent that last no longer, over microseconds on a logarithmic scale.
pub fn distribution(sorted: &[u64]) -> String {
    let count = sorted.len();
    let step = count.div_ceil(POINTS).max(1);
    let indices = (0..count).step_by(step).chain(count.checked_sub(1));
    let points = indices.filter_map(|index| {
        let microseconds = *sorted.get(index)? as f64 / 1e3;
        let part = (index + 1) as f64 * 100.0 / count as f64;
        Some((microseconds.max(0.001).log10(), part, part, part))
    });
    let line = Line {
        name: format!("{count} in all"),
        points: points.collect(),
    };
    lines(
        &[line],
        "10^x microseconds",
        "per cent that last no longer",
        &[],
    )
}

/// Quantiles of sorted lengths in nanoseconds.
pub fn quantiles(sorted: &[u64]) -> Table {
    let mut table = Table::new(["", "count", "p50", "p90", "p99", "p99.9", "longest"]);
    let at = |part: f64| {
        let rank = (sorted.len() as f64 * part).ceil() as usize;
        let value = sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        format!("{:.1} us", value as f64 / 1e3)
    };
    table.row([
        String::from("lengths"),
        sorted.len().to_string(),
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999),
        at(1.0),
    ]);
    table
}

/// A row's name and its parts by name.
pub type Service = (String, Vec<(String, f64)>);

/// For each hart, and for all together, how much time each VM's vCPUs had it, in nanoseconds.
pub fn service(timeline: &Timeline) -> Vec<Service> {
    let mut vms: Vec<String> = Vec::new();
    for lane in &timeline.lanes {
        if let Owner::Vcpu(vm, _) = &lane.owner
            && !vms.contains(vm)
        {
            vms.push(vm.clone());
        }
    }
    let mut rows: BTreeMap<String, BTreeMap<&str, f64>> = BTreeMap::new();
    for lane in &timeline.lanes {
        let Owner::Vcpu(vm, _) = &lane.owner else {
            continue;
        };
        for slice in lane.slices.iter().filter(|slice| slice.kind == Kind::Runs) {
            let length = (slice.end - slice.start) as f64;
            for row in [slice.name.as_str(), "together"] {
                let row = rows.entry(String::from(row)).or_default();
                *row.entry(vm).or_default() += length;
            }
        }
    }
    let parts = |row: &BTreeMap<&str, f64>| {
        let part = |vm: &String| (vm.clone(), row.get(vm.as_str()).copied().unwrap_or(0.0));
        vms.iter().map(part).collect()
    };
    rows.iter()
        .map(|(name, row)| (name.clone(), parts(row)))
        .collect()
}
