//! The laboratory: many runs of a system, each a *point*, and what came of them.
//!
//! A [`Point`] says what is run and is known by a hash of everything that can change its result. A [`Runner`] runs one;
//! [`run_all`] runs many on the computer's cores and appends each finished one to a [`Store`], from which an
//! interrupted series goes on. [`statistics`] condenses repetitions.

mod child;
pub mod diff;
mod durations;
mod native_baseline;
mod phase;
mod point;
mod record;
mod series;
pub mod shard;
mod start;
pub mod statistics;
mod store;
pub mod tidy;
pub mod verdict;

pub use child::ChildRunner;
pub use durations::{Durations, Forecast, Timed};
pub use native_baseline::{counts_ends, native_figures, native_point};
pub use phase::{with_phase, with_window};
pub use point::{Computer, MadeBy, Point, PointError};
pub use record::{Recorded, RunReport, differences};
pub use series::{Bar, Progress, Series, SeriesError, run_all};
pub use start::{from_checkpoint, usual_start, within};
pub use store::{Entry, Store, StoreError};

use runner::document::RunDocument;
use runner::measures::Figures;
use serde::{Deserialize, Serialize};

/// Outcome of one point.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// The run ended in order.
    Finished {
        /// The run's document, with its measures.
        report: Box<RunDocument>,
    },
    /// The run failed: the reason, for people.
    Failed(String),
}

impl Outcome {
    /// Outcome of a run with these figures and nothing else.
    pub fn of_figures(figures: Figures) -> Self {
        let report = Box::new(RunDocument::of_figures(figures));
        Self::Finished { report }
    }

    /// The figures, if it finished.
    pub fn figures(&self) -> Option<&Figures> {
        match self {
            Self::Finished { report } => Some(&report.measures),
            Self::Failed(_) => None,
        }
    }
}

/// Returns whether several runs came to the same figures, all of them: they are one run, made often.
pub fn is_one_run(entries: &[Entry]) -> bool {
    let mut figures = entries.iter().filter_map(|entry| entry.outcome.figures());
    let first = figures.next();
    let mut others = figures.peekable();
    others.peek().is_some() && others.all(|other| Some(other) == first)
}

/// Runs single points: the one thing that a series needs to know about computers.
pub trait Runner: Sync {
    /// Runs a point to its end. `None` if it was broken off by the user and says nothing.
    fn run(&self, point: &Point) -> Option<Outcome>;
}
