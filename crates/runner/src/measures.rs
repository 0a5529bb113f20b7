//! The papers' measures, each with its definition, computed from what a run reported.
//!
//! Every measure has one place: its row in [`MEASURES`] and its value in [`compute`].

mod compute;
mod costs;
mod list;
mod show;
#[cfg(test)]
mod tests;

use compute::ratio;
pub use compute::{HELD, Inputs, WITHIN, compute, relative};
use costs::COSTS;
use list::GENERAL;
pub use show::{explain, show};

use std::collections::BTreeMap;

/// Figures by the names of their measures. Sorted, so that they are printed alike every time.
pub type Figures = BTreeMap<String, f64>;

/// A figure that a run can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Measure {
    /// Its name, as in `--explain`, in reports and in tables.
    pub name: &'static str,
    /// The unit, empty for pure numbers.
    pub unit: &'static str,
    /// What it means in one line.
    pub line: &'static str,
    /// How it is computed, and where the papers define it.
    pub definition: &'static str,
    /// Whether more of it is better, less of it, or neither.
    pub better: Better,
}

/// Which way a measure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Better {
    /// More is.
    More,
    /// Less is.
    Less,
    /// It says what happened, not how well.
    Neither,
}

const fn measure(
    name: &'static str,
    unit: &'static str,
    better: Better,
    line: &'static str,
    definition: &'static str,
) -> Measure {
    Measure {
        name,
        unit,
        line,
        definition,
        better,
    }
}

/// Every measure, in the order of tables. One whose name ends in `.` stands for a family: a name for each cause.
pub const MEASURES: [Measure; GENERAL.len() + COSTS.len()] = {
    let mut all = [GENERAL[0]; GENERAL.len() + COSTS.len()];
    let mut index = 0;
    while index < all.len() {
        all[index] = match index.checked_sub(GENERAL.len()) {
            Some(index) => COSTS[index],
            None => GENERAL[index],
        };
        index += 1;
    }
    all
};

/// The measures that tables show unless others are asked for.
pub const USUAL: [&str; 8] = [
    "etr",
    "itr",
    "guest-utilisation",
    "scheduling-overhead",
    "simulation-overhead",
    "calls-per-busy-second",
    "response-p50",
    "response-p99",
];

/// The measure of this name, or the family that it belongs to.
pub fn find(name: &str) -> Option<&'static Measure> {
    let family = |measure: &&Measure| {
        measure.name.ends_with('.')
            && name.len() > measure.name.len()
            && name.starts_with(measure.name)
    };
    MEASURES
        .iter()
        .find(|measure| measure.name == name && !name.ends_with('.'))
        .or_else(|| MEASURES.iter().find(family))
}
