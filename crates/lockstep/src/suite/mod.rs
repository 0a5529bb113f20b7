//! A folder of bare-metal programs: found, run, judged, and counted in a table.
//!
//! Nothing is known of a program but its file. It passes when it ends by itself with code 0; if a
//! reference signature lies beside it, its signature must also be the same.

mod known;
mod program;
mod run;
mod table;

pub use known::{Known, KnownError};
pub use program::{Program, find};
pub use run::{Outcome, Settings, Verdict, run, run_all};
pub use table::Table;
