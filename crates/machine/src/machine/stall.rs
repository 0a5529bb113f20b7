//! Record of a machine that makes no progress.

/// Beginning of a stretch in which no hart retires an instruction, in a machine whose running harts all trap at one place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stall {
    /// Instructions retired by all harts.
    pub retired: u64,
    /// The time in cycles.
    pub since: u64,
}
