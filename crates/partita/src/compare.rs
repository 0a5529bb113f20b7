//! Comparisons: every combination of what is varied, with every start phase, and what they say together.

mod expand;
mod grid;
mod phase;
mod ranking;
mod start;
mod table;
#[cfg(test)]
mod tests;
mod variances;
mod words;

pub use expand::{ExpandError, KEYS, expand};
pub use grid::{Combination, Grid, GridError, Variation};
pub use phase::{with_phase, with_window};
pub use ranking::Ranking;
pub use start::{from_checkpoint, usual_start, within};
pub use table::{Cell, Comparison, Row};
pub use words::legend;
