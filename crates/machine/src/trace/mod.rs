//! Stream of events with their times, to draw or count.
//!
//! Events are noted where they happen and handed to a [`Sink`] at the end of each quantum, in the
//! order of their times. Nothing in the machine depends on whether somebody listens: cycle counts,
//! monitor figures and memory are the same with and without. [`Timeline`] is a sink that writes a
//! file for Perfetto's viewer.

mod event;
pub mod locks;
#[cfg(test)]
mod tests;
mod timeline;

pub use event::{Event, Happening, Place, WaitEnd};
pub use timeline::Timeline;

use std::io;

/// Sink of events.
pub trait Sink: std::fmt::Debug + Send {
    /// Takes an event. Times do not decrease from call to call, but for events in one hart's last
    /// instructions of a quantum, which may come up to a block later than other harts' first ones
    /// of the next.
    fn event(&mut self, event: &Event);

    /// The run has ended at this time: nothing comes after this.
    ///
    /// # Errors
    /// Why not everything could be kept.
    fn end(&mut self, _cycles: u64) -> io::Result<()> {
        Ok(())
    }
}
