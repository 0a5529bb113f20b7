//! The papers' measures, each with its definition, computed from what a run reported.
//!
//! Every measure has one place: its row in [`MEASURES`] and its value in [`fn@compute`].

mod compute;
mod costs;
mod definitions;
mod explain;
mod inputs;
mod measure;
#[cfg(test)]
mod tests;

pub use compute::{HELD, WITHIN, compute, relative};
use costs::COSTS;
use definitions::GENERAL;
pub use explain::{explain, show};
pub use inputs::Inputs;
pub use measure::{Better, Measure};

use std::collections::BTreeMap;

/// Figures by the names of their measures. Sorted, so that they are printed alike every time.
pub type Figures = BTreeMap<String, f64>;

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
