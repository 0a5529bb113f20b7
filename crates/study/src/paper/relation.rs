//! How one measure of a method's runs goes with another, over the start phases (paper 004, figure 2).

use super::published::Against;
use crate::laboratory::Entry;
use runner::table::number;
use serde::{Deserialize, Serialize};

/// Relation of two measures of one method's runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relation {
    /// The method.
    pub method: String,
    /// The measure that is drawn across, and that which is drawn upwards.
    pub across: String,
    /// See `across`.
    pub up: String,
    /// Both, start phase by start phase.
    pub points: Vec<(f64, f64)>,
    /// Spearman's rank correlation; `None` where one of the two is the same in every phase.
    pub correlation: Option<f64>,
    /// The median of the slopes between any two phases (Theil and Sen): how much of the one goes with one more of the other.
    pub slope: Option<f64>,
}

impl Relation {
    /// Of a method's runs that finished.
    pub(super) fn of(against: &Against, method: &str, entries: &[Entry]) -> Self {
        let point = |entry: &Entry| {
            let figures = entry.outcome.figures()?;
            // Where no loop exits there is no such figure.
            let across = figures.named(&against.across).unwrap_or(0.0);
            Some((across, figures.named(&against.up)?))
        };
        let points: Vec<(f64, f64)> = entries.iter().filter_map(point).collect();
        Self {
            method: String::from(method),
            across: against.across.clone(),
            up: against.up.clone(),
            correlation: correlation(&points),
            slope: slope(&points),
            points,
        }
    }

    /// The ends of the line with the slope that leaves as many points above as below, from the least to the largest across.
    pub fn trend(&self) -> Option<[(f64, f64); 2]> {
        let slope = self.slope?;
        let mut heights: Vec<f64> = (self.points.iter().map(|(x, y)| y - slope * x)).collect();
        heights.sort_by(f64::total_cmp);
        let height = heights.get(heights.len().checked_sub(1)? / 2)?;
        let across = self.points.iter().map(|point| point.0);
        let (least, most) = (across.clone().reduce(f64::min)?, across.reduce(f64::max)?);
        Some([least, most].map(|x| (x, height + slope * x)))
    }

    /// In words, with quantiles of both.
    pub fn words(&self) -> String {
        let (across, up): (Vec<f64>, Vec<f64>) = self.points.iter().copied().unzip();
        let range = |values: Vec<f64>| {
            let quantiles = quantiles(values);
            quantiles.map_or_else(
                || String::from("-"),
                |values| values.map(number).join(" / "),
            )
        };
        let shown = |value: Option<f64>| value.map_or_else(|| String::from("-"), number);
        format!(
            "{}: {} of {} phases, least / 25 % / middle / 75 % / 99 % / largest: {} {}, {} {}; rank correlation {}, slope {}",
            self.method,
            self.up,
            self.points.len(),
            self.across,
            range(across),
            self.up,
            range(up),
            shown(self.correlation),
            shown(self.slope)
        )
    }
}

fn quantiles(mut values: Vec<f64>) -> Option<[f64; 6]> {
    values.sort_by(f64::total_cmp);
    let last = values.len().checked_sub(1)?;
    let at = |per_cent: usize| values.get(last * per_cent / 100).copied();
    Some([at(0)?, at(25)?, at(50)?, at(75)?, at(99)?, at(100)?])
}

/// Ranks from 0, ties sharing the mean of theirs.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count();
    let equal = |value: f64| values.iter().filter(|other| **other == value).count();
    let rank = |value: &f64| below(*value) as f64 + (equal(*value) as f64 - 1.0) / 2.0;
    values.iter().map(rank).collect()
}

fn correlation(points: &[(f64, f64)]) -> Option<f64> {
    let (across, up): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (across, up) = (ranks(&across), ranks(&up));
    let mean = (points.len() as f64 - 1.0) / 2.0;
    let product = |one: &[f64], other: &[f64]| -> f64 {
        one.iter()
            .zip(other)
            .map(|(a, b)| (a - mean) * (b - mean))
            .sum()
    };
    let spread = product(&across, &across) * product(&up, &up);
    (spread > 0.0).then(|| product(&across, &up) / spread.sqrt())
}

fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let mut slopes: Vec<f64> = Vec::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let others = points.iter().skip(index + 1);
        let steps = others.map(|(other, up)| (up - y) / (other - x));
        slopes.extend(steps.filter(|slope| slope.is_finite()));
    }
    slopes.sort_by(f64::total_cmp);
    slopes.get(slopes.len().checked_sub(1)? / 2).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotone_pairs_correlate_for_any_shape() {
        let points: Vec<(f64, f64)> = (1..10)
            .map(f64::from)
            .map(|at| (at, at * at * at))
            .collect();
        assert!((correlation(&points).unwrap() - 1.0).abs() < 1e-12);
        let fallen: Vec<(f64, f64)> = points.iter().map(|(x, y)| (*x, -y)).collect();
        assert!((correlation(&fallen).unwrap() + 1.0).abs() < 1e-12);
    }

    #[test]
    fn slope_resists_an_outlier() {
        let mut points: Vec<(f64, f64)> = (0..9).map(f64::from).map(|at| (at, 3.0 * at)).collect();
        points.push((9.0, 1e9));
        assert_eq!(slope(&points), Some(3.0));
    }

    #[test]
    fn line_passes_through_median_point() {
        let points: Vec<(f64, f64)> = vec![(0.0, 1.0), (1.0, 3.0), (2.0, 5.0), (3.0, 1e6)];
        let relation = Relation {
            method: String::from("yield"),
            across: String::from("pause-exits"),
            up: String::from("throughput"),
            correlation: correlation(&points),
            slope: Some(2.0),
            points,
        };
        assert_eq!(relation.trend(), Some([(0.0, 1.0), (3.0, 7.0)]));
        let hundred: Vec<f64> = (0..=100).map(f64::from).collect();
        assert_eq!(
            quantiles(hundred),
            Some([0.0, 25.0, 50.0, 75.0, 99.0, 100.0])
        );
        assert_eq!(quantiles(Vec::new()), None);
    }

    #[test]
    fn where_nothing_varies_there_is_no_correlation() {
        assert_eq!(correlation(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(slope(&[(1.0, 2.0), (1.0, 3.0)]), None);
        assert_eq!(slope(&[]), None);
    }
}
