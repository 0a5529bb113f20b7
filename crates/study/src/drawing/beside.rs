//! A paper's ratios beside ours: a line for each, with the paper's value as an empty diamond and ours with its interval.

use super::page::{colour, escape};
use std::fmt::Write;

/// Distances in the picture's units.
const WIDTH: f64 = 900.0;
const GAP: f64 = 16.0;
const LETTER: f64 = 7.0;
const ROW: f64 = 22.0;
const TOP: f64 = 26.0;
const BOTTOM: f64 = 26.0;
/// A name with more characters is cut.
const MAX_NAME_LENGTH: usize = 60;

/// A ratio of the paper's, and ours: the median with the ends of its interval.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// Its subject.
    pub name: String,
    /// The paper's.
    pub paper: f64,
    /// Ours.
    pub ours: (f64, f64, f64),
}

/// Legend of such a picture: each mark as it is drawn, with its name.
pub fn beside_marks() -> [(String, String); 2] {
    let theirs = format!(
        "<svg class=\"mark\" viewBox=\"0 0 14 14\">{}</svg>",
        diamond(7.0, 7.0)
    );
    let own = format!(
        "<svg class=\"mark\" viewBox=\"0 0 28 14\">{}</svg>",
        interval(3.0, 25.0, 14.0, 7.0)
    );
    [
        (theirs, String::from("the paper")),
        (own, String::from("ours, with its interval")),
    ]
}

/// The paper's value.
fn diamond(x: f64, y: f64) -> String {
    format!(
        "<path d=\"M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5z\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>",
        y - 5.5,
        colour(1)
    )
}

/// Our interval with its median.
fn interval(from: f64, to: f64, median: f64, y: f64) -> String {
    let own = colour(0);
    format!(
        "<line x1=\"{from:.1}\" x2=\"{to:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{own}\" stroke-width=\"3\" \
         stroke-linecap=\"round\"/><circle cx=\"{median:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{own}\"/>"
    )
}

/// The picture, with the name of its axis. Ratios that are not above zero have no place on it.
pub fn beside(pairs: &[Pair], axis: &str) -> String {
    let values = pairs.iter().flat_map(|pair| {
        let (median, low, high) = pair.ours;
        [pair.paper, median, low, high]
    });
    let logarithms = values.filter(|value| *value > 0.0 && value.is_finite());
    let (low, high) = logarithms.fold((0.0f64, 0.0f64), |(low, high), value| {
        (low.min(value.log2()), high.max(value.log2()))
    });
    // No narrower than a tenth of a doubling, so that equal values are not drawn as far apart.
    let (low, high) = (low.min(-0.05) - 0.02, high.max(0.05) + 0.02);
    let longest = pairs
        .iter()
        .map(|pair| pair.name.chars().count().min(MAX_NAME_LENGTH));
    let left = GAP + LETTER * longest.max().unwrap_or(0) as f64 + GAP;
    let right = WIDTH - 20.0;
    let at = |value: f64| {
        let part = (value.log2() - low) / (high - low);
        left + part.clamp(0.0, 1.0) * (right - left)
    };
    let floor = TOP + ROW * pairs.len() as f64 + 4.0;
    let height = floor + BOTTOM;
    let mut svg = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\">\n");
    // Writing to a String does not fail.
    for mark in marks(low, high) {
        let x = at(mark);
        let _ = writeln!(
            svg,
            "<line class=\"{}\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{floor}\"/>\
             <text class=\"faint\" x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{mark}</text>",
            if mark == 1.0 { "axis" } else { "grid" },
            TOP - 10.0
        );
    }
    let _ = writeln!(
        svg,
        "<text class=\"faint\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
        (left + right) / 2.0,
        floor + 18.0,
        escape(axis)
    );
    for (index, pair) in pairs.iter().enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let name: String = pair.name.chars().take(MAX_NAME_LENGTH).collect();
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            left - GAP,
            y + 4.0,
            escape(&name)
        );
        let (median, from, to) = pair.ours;
        if from > 0.0 && median > 0.0 {
            svg += &interval(at(from), at(to), at(median), y);
            svg.push('\n');
        }
        if pair.paper > 0.0 {
            svg += &diamond(at(pair.paper), y);
            svg.push('\n');
        }
    }
    svg + "</svg>\n"
}

/// Round ratios between two logarithms to the base of two.
fn marks(low: f64, high: f64) -> Vec<f64> {
    const FINE: [f64; 9] = [0.7, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.2, 1.4];
    const COARSE: [f64; 15] = [
        0.001, 0.003, 0.01, 0.03, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 30.0, 100.0, 300.0, 1000.0,
    ];
    let all: &[f64] = if high - low < 1.2 { &FINE } else { &COARSE };
    let inside = |mark: &&f64| (low..=high).contains(&mark.log2());
    all.iter().filter(inside).copied().collect()
}
