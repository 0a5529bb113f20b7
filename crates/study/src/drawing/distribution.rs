//! How values are distributed: the part that does not exceed each length.

use super::frame::Frame;
use super::page::colour;
use super::scale::Scale;
use runner::table::Table;
use runner::trace::{Owner, SliceKind, Timeline};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Points of the curve.
const POINTS: usize = 400;
const FRAME: Frame = Frame {
    width: 900.0,
    height: 240.0,
    left: 70.0,
    right: 30.0,
    top: 16.0,
    bottom: 30.0,
};

/// The picture for sorted lengths in nanoseconds: per cent that last no longer, over time on a logarithmic scale.
pub fn distribution(sorted: &[u64]) -> String {
    let mut svg = FRAME.open();
    let (Some(&shortest), Some(&longest)) = (sorted.first(), sorted.last()) else {
        return svg + "</svg>\n";
    };
    // Whole decades, at least one.
    let low = shortest.max(1).ilog10();
    let high = (longest.max(1).saturating_sub(1).max(1).ilog10() + 1).max(low + 1);
    let x = Scale::exact(f64::from(low), f64::from(high), FRAME.left, FRAME.end());
    let y = Scale::exact(0.0, 100.0, FRAME.floor(), FRAME.top);
    for part in [0.0, 50.0, 90.0, 100.0] {
        FRAME.across(&mut svg, y.at(part), &format!("{part} %"));
    }
    for decade in low..=high {
        let text = time(10u64.saturating_pow(decade));
        FRAME.down(&mut svg, x.at(f64::from(decade)), &text);
    }
    let place = |length: u64| x.at((length.max(1) as f64).log10());
    let mut path = format!("{:.1},{:.1}", place(shortest), FRAME.floor());
    let count = sorted.len();
    let step = count.div_ceil(POINTS).max(1);
    let indices = (0..count).step_by(step).chain(count.checked_sub(1));
    let points = indices.filter_map(|index| Some((index, *sorted.get(index)?)));
    for (index, length) in points {
        let part = (index + 1) as f64 * 100.0 / count as f64;
        // Writing to a String does not fail.
        let _ = write!(path, " {:.1},{:.1}", place(length), y.at(part));
    }
    let _ = writeln!(
        svg,
        "<polyline points=\"{path}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
        colour(0)
    );
    svg + "</svg>\n"
}

/// A length of time as people say it, to three digits.
fn time(nanoseconds: u64) -> String {
    let (value, unit) = match nanoseconds {
        0..1_000 => (nanoseconds as f64, "ns"),
        1_000..1_000_000 => (nanoseconds as f64 / 1e3, "us"),
        1_000_000..1_000_000_000 => (nanoseconds as f64 / 1e6, "ms"),
        _ => (nanoseconds as f64 / 1e9, "s"),
    };
    let digits = if value.fract() == 0.0 || value >= 100.0 {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {unit}")
}

/// Quantiles of sorted lengths in nanoseconds.
pub fn quantiles(sorted: &[u64]) -> Table {
    let mut table = Table::new(["", "count", "p50", "p90", "p99", "p99.9", "longest"]);
    let at = |part: f64| {
        let rank = (sorted.len() as f64 * part).ceil() as usize;
        let value = sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0);
        time(value)
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
        for slice in lane
            .slices
            .iter()
            .filter(|slice| slice.kind == SliceKind::Runs)
        {
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
