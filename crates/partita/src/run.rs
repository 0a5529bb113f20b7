//! Runs a system: QEMU as a child, its console relayed, its end judged.

mod console;
mod process;
mod session;
mod terminal;

pub use console::{Line, Relay};
pub use process::Process;
pub use session::{Ending, Options, Outcome, RunError, default_hypervisor, run};
