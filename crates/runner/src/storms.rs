//! Storms of pause-loop exits, taken apart from outside of the guest (paper 004).
//!
//! A [`Watcher`] listens to a machine that has pause-loop exiting. At each exit the machine tells which word the loop looks at, and from
//! then on of every store to that word; so the watcher knows who holds a ticket lock or a swap lock, and whose turn it is. Nothing
//! in the machine or the guest depends on whether it listens. docs/why/pause-loops.md says what is exact here and what is inferred.

mod count;
mod watch;

pub use count::{Held, PauseExitClass, Storms, TOGETHER};
pub use watch::{Runs, Watcher};
