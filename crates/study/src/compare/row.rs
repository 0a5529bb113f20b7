//! A row of a comparison: a combination with its runs condensed.

use super::Combination;
use crate::laboratory::statistics::Summary;
use serde::Serialize;

/// One measure of one combination.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Cell {
    /// The measure.
    pub measure: String,
    /// Over all start phases.
    pub value: Summary,
    /// Start phase by start phase, as a part of the first combination's.
    pub ratios: Vec<f64>,
    /// Median and interval of the ratios.
    pub ratio: Option<Summary>,
}

/// A combination with its runs condensed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Row {
    /// Which.
    pub combination: Combination,
    /// Its measures.
    pub cells: Vec<Cell>,
    /// Why runs failed: seed and reason.
    pub failures: Vec<(u64, String)>,
    /// Set if the start phases, of which there are several, agree in every figure: they were one run, made often.
    pub alike: bool,
}

impl Row {
    /// Returns whether the interval of one of its cells says anything: a single run, and one that was made often, has none.
    pub fn has_spread(&self, summary: &Summary) -> bool {
        summary.count > 1 && !self.alike
    }
}
