//! States of harts and of spins between two events.

/// State of a hart.
#[derive(Debug, Default)]
pub(super) struct OnHart {
    /// The VMID of the vCPU that has it, and since when.
    pub(super) vcpu: Option<(u16, u64)>,
    /// The exit that is being handled: since when, and why.
    pub(super) exit: Option<(u64, String)>,
    /// Idle since then.
    pub(super) idle: Option<u64>,
}

/// State of a vCPU's spin.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spin {
    /// The physical address of the word.
    pub(super) word: u64,
    pub(super) start: u64,
    /// When it was last seen to wait.
    pub(super) last: u64,
    /// Set while the vCPU waits.
    pub(super) waiting: bool,
    /// Holder of the lock when it began, and number of waiters then.
    pub(super) holder: Option<u16>,
    pub(super) waiters: usize,
}
