//! The laboratory: composes systems, runs them, and shows what the performance monitor saw.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod bench;
pub mod board;
pub mod cache;
pub mod claims;
pub mod compare;
pub mod computer;
pub mod drawing;
pub mod image;
pub mod images;
pub mod installed;
pub mod laboratory;
pub mod measures;
pub mod nuisance;
pub mod paper;
pub mod papers;
pub mod passages;
pub mod qemu;
pub mod random;
pub mod reference;
pub mod report;
pub mod results;
pub mod run;
pub mod storms;
pub mod sweep;
pub mod system;
pub mod terminals;
pub mod top;
pub mod trace;
