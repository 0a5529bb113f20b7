//! Medians with their intervals, one line for each combination.

use crate::compare::{Combination, Comparison, Ranking};
use crate::drawing::{Scale, colour, escape};
use crate::laboratory::verdict::Answer;
use std::fmt::Write;

/// Distances in the picture's units.
const WIDTH: f64 = 900.0;
const GAP: f64 = 16.0;
const LETTER: f64 = 7.0;
const ROW: f64 = 26.0;
const TOP: f64 = 26.0;

/// The picture of one measure.
pub(super) fn intervals(comparison: &Comparison, measure: &str) -> String {
    let cells: Vec<_> = (0..comparison.rows.len())
        .map(|row| comparison.cell(row, measure))
        .collect();
    let labels: Vec<String> = comparison
        .rows
        .iter()
        .map(|row| row.combination.label())
        .collect();
    let longest = labels
        .iter()
        .map(|label| label.chars().count().min(MAX_LABEL_LENGTH));
    let labels_end = GAP + LETTER * longest.max().unwrap_or(0) as f64 + GAP;
    let values = cells.iter().flatten().map(|cell| cell.value);
    let ends = values.flat_map(|value| [value.low, value.high]);
    let scale = Scale::new(ends, false, labels_end, WIDTH - 20.0);
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
    let ranking = comparison
        .rankings
        .iter()
        .find(|one| one.measure == measure);
    let best = best(ranking, &labels);
    let factors = Factors::of(comparison);
    for (index, (row, cell)) in comparison.rows.iter().zip(&cells).enumerate() {
        let y = TOP + ROW * (index as f64 + 0.5);
        let label = shortened(labels.get(index).map_or("", String::as_str));
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\"{}>{label}</text>",
            labels_end - GAP,
            y + 4.0,
            if best == Some(index) {
                " class=\"best\""
            } else {
                ""
            }
        );
        let Some(cell) = cell else { continue };
        let (low, middle, high) = (
            scale.at(cell.value.low),
            scale.at(cell.value.median),
            scale.at(cell.value.high),
        );
        let (first, second) = factors.place(&row.combination);
        let colour = colour(first);
        let _ = writeln!(
            svg,
            "<line x1=\"{low:.1}\" x2=\"{high:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" stroke=\"{colour}\" stroke-width=\"3\" \
             stroke-linecap=\"round\"/>{}",
            mark(second, middle, y, &colour)
        );
        if best == Some(index) {
            let _ = writeln!(
                svg,
                "<text class=\"best\" x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">best</text>",
                y - 7.0
            );
        }
    }
    svg + "</svg>\n"
}

/// The row that is best by the runs' verdict; none where they leave that open.
fn best(ranking: Option<&Ranking>, labels: &[String]) -> Option<usize> {
    let ranking = ranking?;
    if !matches!(ranking.answer, Answer::Above | Answer::Below) {
        return None;
    }
    let first = ranking.order.first()?;
    labels.iter().position(|label| label == first)
}

/// Legend of colours and shapes: the values of the first key that is varied, and of the second.
struct Factors {
    values: [Vec<String>; 2],
}

impl Factors {
    fn of(comparison: &Comparison) -> Self {
        let mut values = [Vec::new(), Vec::new()];
        for row in &comparison.rows {
            for ((_, value), known) in row.combination.values.iter().zip(&mut values) {
                if !known.contains(value) {
                    known.push(value.clone());
                }
            }
        }
        Self { values }
    }

    /// Which colour and which shape a combination has.
    fn place(&self, combination: &Combination) -> (usize, usize) {
        let [first, second] = &self.values;
        let of = |known: &Vec<String>, at: usize| {
            let (_, value) = combination.values.get(at)?;
            known.iter().position(|other| other == value)
        };
        (of(first, 0).unwrap_or(0), of(second, 1).unwrap_or(0))
    }
}

/// A mark of the shape with this number: circle, square, diamond, triangle, ring.
fn mark(shape: usize, x: f64, y: f64, colour: &str) -> String {
    let corners = |corners: &[(f64, f64)]| {
        let points = corners
            .iter()
            .map(|(dx, dy)| format!("{:.1},{:.1}", x + dx, y + dy));
        let points = points.collect::<Vec<_>>().join(" ");
        format!("<polygon points=\"{points}\" fill=\"{colour}\"/>")
    };
    match shape % 5 {
        0 => format!("<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5.5\" fill=\"{colour}\"/>"),
        1 => corners(&[(-5.0, -5.0), (5.0, -5.0), (5.0, 5.0), (-5.0, 5.0)]),
        2 => corners(&[(0.0, -7.0), (7.0, 0.0), (0.0, 7.0), (-7.0, 0.0)]),
        3 => corners(&[(0.0, -7.0), (6.5, 5.0), (-6.5, 5.0)]),
        _ => format!(
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"5\" fill=\"var(--paper)\" stroke=\"{colour}\" stroke-width=\"2.5\"/>"
        ),
    }
}

/// Most characters of a label.
const MAX_LABEL_LENGTH: usize = 44;

/// A label that fits beside the picture.
fn shortened(label: &str) -> String {
    let count = label.chars().count();
    if count <= MAX_LABEL_LENGTH {
        return escape(label);
    }
    let end: String = label.chars().skip(count - MAX_LABEL_LENGTH + 1).collect();
    format!("…{}", escape(&end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn best_is_marked_by_verdict() {
        let labels = ["a", "b"].map(String::from);
        let marked = |answer| {
            let ranking = Ranking {
                measure: String::from("throughput"),
                order: vec![String::from("b"), String::from("a")],
                lead: None,
                answer,
                comparisons: 1,
                smallest: 0.0,
                is_one_run: false,
            };
            best(Some(&ranking), &labels)
        };
        assert_eq!(marked(Answer::Above), Some(1));
        assert_eq!(marked(Answer::Below), Some(1));
        let refused = Answer::Refused {
            phases: 6,
            needed: 7,
        };
        for undecided in [Answer::Open, Answer::Within, refused] {
            assert_eq!(marked(undecided), None, "{undecided:?}");
        }
        assert_eq!(best(None, &labels), None);
    }

    #[test]
    fn shapes_differ() {
        let marks: Vec<String> = (0..5).map(|shape| mark(shape, 10.0, 10.0, "red")).collect();
        for (index, mark) in marks.iter().enumerate() {
            assert!(!marks[..index].contains(mark), "{mark}");
        }
    }
}
