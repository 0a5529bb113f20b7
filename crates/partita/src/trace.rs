//! Timelines: what each vCPU, hart and device did when, recorded from the machine's events.
//!
//! A [`Recorder`] listens to the machine and knows the vCPUs by their VMIDs, so it sees every hypervisor alike, and the
//! hypervisor pays nothing. [`perfetto`] writes a timeline for Perfetto, [`crate::drawing::lanes`] draws it.

pub mod perfetto;
mod record;
#[cfg(test)]
mod tests;
mod timeline;

pub use record::{Recorder, Window};
pub use timeline::{Kind, Lane, Mark, Owner, Slice, Timeline};
