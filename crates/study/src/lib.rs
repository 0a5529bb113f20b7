//! Many runs and what they say together: series, comparisons, verdicts, the papers' experiments, and pictures of them.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod claims;
pub mod compare;
pub mod drawing;
pub mod laboratory;
pub mod nuisance;
pub mod pages;
pub mod paper;
pub mod papers;
pub mod provenance;
pub mod random;
pub mod results;
pub mod sweep;
