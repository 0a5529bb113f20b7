//! Runs a system: a computer with its console relayed, its end judged.

mod account;
mod console;
mod control;
mod live;
mod logs;
mod scrape;
mod script;
mod session;

pub use account::{Account, Ending, Outcome};
pub use console::{Line, Relay};
pub(crate) use session::check_memory;
pub use session::{Options, RunError, default_hypervisor, run};
