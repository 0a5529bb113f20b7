//! Runs one system on a computer, and reads what it prints: computers, consoles, traces, measures.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod beside;
pub mod board;
pub mod checkpoint;
pub mod computer;
pub mod document;
mod entitlement;
pub mod exit_latency;
pub mod fairness;
pub mod headless;
pub mod images;
pub mod kvm;
pub mod measures;
pub mod metrics;
pub mod native;
pub mod protocol;
pub mod qemu;
pub mod report;
pub mod run;
pub mod storms;
pub mod summary;
pub mod table;
pub mod terminals;
pub mod top;
pub mod trace;
pub mod vector_length;
pub mod window;
pub mod workloads;
