//! Parameters of the policies.

use core::ops::RangeInclusive;

/// Bounds of [`Parameters::affinity`].
pub const AFFINITY: RangeInclusive<u32> = 0..=64;
/// Bounds of [`Parameters::self_wait_budget`].
pub const SELF_WAIT_BUDGET: RangeInclusive<u32> = 1..=1024;
/// Bounds of [`Parameters::reservation_limit_us`]; it is not below the time slice either.
pub const RESERVATION_LIMIT_US: RangeInclusive<u32> = 1_000..=1_000_000;
/// Bounds of [`Parameters::round`].
pub const ROUND: RangeInclusive<u32> = 2..=1024;
/// Bounds of [`Parameters::relaxed_terms`].
pub const RELAXED_TERMS: RangeInclusive<u32> = 0..=1;
/// Bounds of each of [`Costs`].
pub const COST: RangeInclusive<u32> = 0..=1_000_000;

/// Bounds of each of [`PauseLoops`].
pub const PAUSE_LOOP: RangeInclusive<u32> = 0..=u32::MAX;

/// Those parameters of the policies that a system gives. The others have the scheduler's usual values. What belongs to a policy
/// that is not chosen waits until it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Parameters {
    /// Dispatches that a ready vCPU may be passed over for one that ran on the hart last.
    pub affinity: Option<u32>,
    /// vCPUs that a hart takes out of the self-wait queue in a row while others are ready.
    pub self_wait_budget: Option<u32>,
    /// Longest time in microseconds that a vCPU waits for a word to change.
    pub reservation_limit_us: Option<u32>,
    /// Length of a service round in slices of each shared hart.
    pub round: Option<u32>,
    /// 0: a vCPU that has its hart for itself has a slice, and its waits trap, all the same.
    pub relaxed_terms: Option<u32>,
    /// When pause loops exit.
    pub pause_loops: PauseLoops,
    /// What the hypervisor costs in addition.
    pub costs: Costs,
}

/// Cycles that the hypervisor takes in addition, to stand for another one whose steps took longer. None where nothing is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    /// For each interrupt of a waiting vCPU that interrupts the hypervisor. It is simulation for the vCPU's VM.
    pub host_interrupt: Option<u32>,
    /// For each pass through the scheduler that finds nothing to run, under the scheduler's lock.
    pub futile_pass: Option<u32>,
    /// For each dispatch, under the scheduler's lock.
    pub dispatch: Option<u32>,
    /// For each change from the guest to the hypervisor, and again for each change back.
    pub mode_change: Option<u32>,
}

/// When a pause loop of a guest exits, on harts with pause-loop exiting (`xpartitaple`), in cycles. What is not given comes from the system
/// for a VM, and for the system is what Xen and KVM use: 128 and 4,096.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PauseLoops {
    /// PAUSEs that follow each other within it are one loop.
    pub gap: Option<u32>,
    /// A loop that is older exits; 0 is never.
    pub window: Option<u32>,
    /// The window doubles at each exit up to this, until the vCPU is dispatched again.
    pub window_most: Option<u32>,
}

impl PauseLoops {
    /// These, and what they leave out from `others`.
    #[must_use]
    pub fn or(self, others: Self) -> Self {
        Self {
            gap: self.gap.or(others.gap),
            window: self.window.or(others.window),
            window_most: self.window_most.or(others.window_most),
        }
    }
}
