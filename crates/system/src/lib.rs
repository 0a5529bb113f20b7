//! A system as the user describes it in TOML: read, checked, and laid out as the image that the hypervisor boots from.
//!
//! [`Document`] is the text with the changes of `--set`; [`System::read`] turns it into a [`System`] or
//! into *all* the mistakes that it has, those that only show when VMs are compared ([`verify`]) among them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod cache;
mod contents;
pub mod disk_image;
mod document;
pub mod fingerprint;
mod host;
pub mod image;
pub mod installed;
pub mod kernel;
pub mod keys;
pub mod memory;
mod methods;
mod model;
mod problem;
mod read;
mod section;
mod settings;
#[cfg(test)]
mod tests;
pub mod verify;

pub use contents::contents;
pub use document::{Document, Located, Node, Origin, Table, Value};
pub use host::{Date, Forward, HostNetwork, calendar};
pub use installed::{EXERCISER, SHUFFLED};
pub use methods::papers_methods;
pub use model::*;
pub use problem::{Mistakes, Problem};
pub use quantity::{Bytes, Duration};

pub use settings::Settings;
