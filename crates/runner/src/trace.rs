//! Timelines: what each vCPU, hart, lock and device did when, recorded from the machine's events.
//!
//! A [`Recorder`] listens to the machine and knows the vCPUs by their VMIDs, so it sees every hypervisor alike, and the
//! hypervisor pays nothing. [`perfetto`] writes a timeline for Perfetto, `study::drawing::lanes` draws it.

mod interrupts;
mod lanes;
mod names;
pub mod perfetto;
mod record;
mod states;
#[cfg(test)]
mod tests;
mod timeline;

pub use record::{PAUSE_LOOP_EXIT, Recorder};
pub use timeline::{Flow, Lane, Mark, Owner, Slice, SliceKind, Timeline, Window};
