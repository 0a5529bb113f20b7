//! Medians with their intervals, one line for each combination.

use super::page::{colour, escape};
use super::scale::Scale;
use crate::compare::Comparison;
use std::fmt::Write;

/// Distances in the picture's units.
const WIDTH: f64 = 900.0;
const LABELS: f64 = 300.0;
const ROW: f64 = 26.0;
const TOP: f64 = 26.0;

/// The picture of one measure.
pub(super) fn intervals(comparison: &Comparison, measure: &str) -> String {
    let cells: Vec<_> = (0..comparison.rows.len())
        .map(|row| comparison.cell(row, measure))
        .collect();
    let values = cells.iter().flatten().map(|cell| cell.value);
    let ends = values.flat_map(|value| [value.low, value.high]);
    let scale = Scale::new(ends, false, LABELS, WIDTH - 20.0);
    let height = TOP + ROW * cells.len() as f64 + 8.0;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\">\n");
    // Writing to a String does not fail.
    for (value, text) in scale.marks() {
        let x = scale.at(value);
        let _ = writeln!(
            svg,
            "<line class=\"grid\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{height}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>",
            TOP - 10.0
        );
    }
    for (index, (row, cell)) in comparison.rows.iter().zip(&cells).enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let label = shortened(&row.combination.label());
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
            LABELS - 16.0,
            y + 4.0
        );
        let Some(cell) = cell else { continue };
        let (low, middle, high) = (
            scale.at(cell.value.low),
            scale.at(cell.value.median),
            scale.at(cell.value.high),
        );
        let colour = colour(index);
        let _ = writeln!(
            svg,
            "<line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"3\" \
             stroke-linecap=\"round\"/><circle cx=\"{middle:.1}\" cy=\"{y:.1}\" r=\"5.5\" fill=\"{colour}\"/>"
        );
    }
    svg + "</svg>\n"
}

/// A label that fits beside the picture.
fn shortened(label: &str) -> String {
    const MOST: usize = 44;
    let count = label.chars().count();
    if count <= MOST {
        return escape(label);
    }
    let end: String = label.chars().skip(count - MOST + 1).collect();
    format!("…{}", escape(&end))
}
