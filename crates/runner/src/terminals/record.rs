//! Response times of one user at a terminal.

use std::sync::{Arc, Mutex};

/// Record of one user. Times are machine time in cycles.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// How long each answer took, in the order in which they came.
    pub responses: Vec<u64>,
    /// When the first line was sent.
    pub first: Option<u64>,
    /// When the last answer was complete.
    pub last: u64,
    /// Set when everything was done, and the user has left.
    pub left: bool,
    /// Answers that were not what they should have been, for people.
    pub wrong: Vec<String>,
}

/// A record that a user fills while the machine runs.
pub type Shared = Arc<Mutex<Record>>;
