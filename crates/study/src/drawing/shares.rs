//! Stacked bars: how a whole is divided.

use super::page::{colour, escape};
use std::fmt::Write;

/// Distances in the picture's units.
const WIDTH: f64 = 900.0;
const LABELS: f64 = 300.0;
const ROW: f64 = 28.0;
const TOP: f64 = 30.0;
/// A part narrower than this has no number in it.
const NARROW: f64 = 40.0;

/// A bar for each row, each divided into `parts`; the values are taken as parts of their sum.
pub fn shares(parts: &[&str], rows: &[(String, Vec<f64>)]) -> String {
    let height = TOP + ROW * rows.len() as f64 + 8.0;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\">\n");
    let mut x = LABELS;
    // Writing to a String does not fail.
    for (index, part) in parts.iter().enumerate() {
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"4\" width=\"11\" height=\"11\" rx=\"2\" fill=\"{}\"/>\
             <text class=\"faint\" x=\"{:.1}\" y=\"14\">{}</text>",
            colour(index),
            x + 16.0,
            escape(part)
        );
        x += 40.0 + 7.0 * part.chars().count() as f64;
    }
    for (row, (label, values)) in rows.iter().enumerate() {
        let y = TOP + ROW * row as f64;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LABELS - 12.0,
            y + 16.0,
            escape(label)
        );
        let whole: f64 = values.iter().sum();
        let mut x = LABELS;
        for (index, value) in values.iter().enumerate() {
            let part = if whole > 0.0 { value / whole } else { 0.0 };
            let width = part * (WIDTH - LABELS - 10.0);
            let _ = writeln!(
                svg,
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" fill=\"{}\"/>",
                ROW - 6.0,
                colour(index)
            );
            if width >= NARROW {
                let _ = writeln!(
                    svg,
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:var(--paper)\">{:.1} %</text>",
                    x + width / 2.0,
                    y + 15.5,
                    part * 100.0
                );
            }
            x += width;
        }
    }
    svg + "</svg>\n"
}
