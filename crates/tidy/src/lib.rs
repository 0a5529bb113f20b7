//! Checks of the workspace's form: names, comments, lengths, links, numbers and imports.
//!
//! The tests of this crate hold the whole workspace to the rules in [`rules`]; the program `tidy` prints the figures.

pub mod imports;
pub mod links;
pub mod numbers;
pub mod rules;
pub mod sources;
