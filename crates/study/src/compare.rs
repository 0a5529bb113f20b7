//! Comparisons: every combination of what is varied, with every start phase, and what they say together.

mod expand;
mod grid;
mod legend;
mod ranking;
mod row;
mod table;
#[cfg(test)]
mod tests;
mod variances;

pub use expand::{ExpandError, KEYS, expand};
pub use grid::{Combination, Grid, GridError, Variation};
pub use legend::legend;
pub use ranking::Ranking;
pub use row::{Cell, Row};
pub use table::Comparison;
