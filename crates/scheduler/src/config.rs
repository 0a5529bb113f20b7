//! Configuration of a scheduler, and its limits.

use core::fmt;
use core::ops::RangeInclusive;

use crate::base::id::HartSet;
use crate::base::ticks::Ticks;
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

/// Shared harts on which a vCPU may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// All: floating scheduling.
    Floating,
    /// One that is chosen when the VM is added: fixed scheduling.
    Fixed,
}

/// Times at which a vCPU migrates to another hart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Migration {
    /// The vCPU migrates if its own hart is not free, or another vCPU was passed over too often.
    AsNeeded,
    /// At every dispatch that another shared hart can make; no vCPU waits in place. For tests: all state that follows a vCPU migrates all the time.
    Always,
}

/// Configuration of a scheduler.
///
/// [`Config::new`] gives defaults; [`crate::Scheduler::new`] checks the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Frequency of the clock in Hz.
    pub frequency: u64,
    /// Time slice, in [`Config::SLICE_US`].
    pub slice: Ticks,
    /// Length of a service round in slices of each shared hart, in [`Config::ROUND`]. In one round, a VM may consume its share before it goes out of
    /// service.
    pub round: u32,
    /// Times that a ready vCPU may be passed over for one that ran on the dispatching hart last, in [`Config::AFFINITY`]; 0 is the strict order.
    pub affinity: u8,
    /// vCPUs that a hart takes out of the self-wait queue in a row while others are ready, in [`Config::SELF_WAIT_BUDGET`]. It bounds the time that a
    /// storm of interrupts takes from the ready queue.
    pub self_wait_budget: u16,
    /// Longest wait for a word: one slice to [`Config::LONGEST_RESERVATION_US`].
    pub reservation_limit: Ticks,
    /// Spin policy.
    pub spin: SpinPolicy,
    /// Wait policy.
    pub wait: WaitPolicy,
    /// Floating or fixed scheduling on the shared harts.
    pub placement: Placement,
    /// Set if a vCPU that has its hart to itself runs without a slice and with waits that do not trap. On a dedicated hart it always does.
    pub relaxes: bool,
    /// Migration of vCPUs. `Always` is refused under fixed scheduling and with a single hart.
    pub migration: Migration,
}

impl Config {
    /// Limits of [`Config::slice`] in microseconds (paper 002 §1).
    pub const SLICE_US: RangeInclusive<u64> = 1_000..=10_000;
    /// Limits of [`Config::round`].
    pub const ROUND: RangeInclusive<u32> = 2..=1024;
    /// Limits of [`Config::affinity`].
    pub const AFFINITY: RangeInclusive<u8> = 0..=64;
    /// Limits of [`Config::self_wait_budget`].
    pub const SELF_WAIT_BUDGET: RangeInclusive<u16> = 1..=1024;
    /// Largest [`Config::reservation_limit`] in microseconds; the smallest is the slice.
    pub const LONGEST_RESERVATION_US: u64 = 1_000_000;

    /// Default length of a service round: half of the shortest time over which shares are to be seen.
    const ROUND_US: u64 = 10_000;
    /// Context switch in simple instructions, with its misses in caches and TLBs.
    const CHANGE: u64 = 5_000;
    /// Context switches in a slice, so that at most two per cent of a hart's time go into the ends of slices.
    const CHANGES: u64 = 50;

    /// Default slice in microseconds: whole milliseconds that are fifty context switches long, within [`Config::SLICE_US`], on a hart that executes
    /// `instructions` simple instructions in `microseconds`.
    #[must_use]
    pub fn usual_slice_us(instructions: u64, microseconds: u64) -> u32 {
        let slice = u128::from(Self::CHANGE * Self::CHANGES) * u128::from(microseconds)
            / u128::from(instructions.max(1));
        let (shortest, longest) = (*Self::SLICE_US.start(), *Self::SLICE_US.end());
        let slice = u64::try_from(slice)
            .unwrap_or(longest)
            .clamp(shortest, longest);
        u32::try_from(slice / 1000 * 1000).unwrap_or(u32::MAX)
    }

    /// Default slices in a service round: 10 ms of them, and two at least.
    #[must_use]
    pub fn usual_round(slice_us: u32) -> u32 {
        let slices = Self::ROUND_US / u64::from(slice_us.max(1));
        u32::try_from(slices)
            .map_or(u32::MAX, |slices| slices.max(2))
            .min(*Self::ROUND.end())
    }

    /// Default configuration for a clock of `frequency` ticks a second: 5 ms slices, `rslp`, `host-interrupt`, floating.
    #[must_use]
    pub const fn new(frequency: u64) -> Self {
        Self {
            frequency,
            slice: Ticks::new(frequency / 200),
            round: 8,
            affinity: 3,
            self_wait_budget: 16,
            reservation_limit: Ticks::new(frequency / 10),
            spin: SpinPolicy::Rslp,
            wait: WaitPolicy::HostInterrupt,
            placement: Placement::Floating,
            relaxes: true,
            migration: Migration::AsNeeded,
        }
    }

    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        // A thousandth of a second must be a whole tick at least; above 2^40 sums might overflow.
        if !(1000..=1 << 40).contains(&self.frequency) {
            return Err(ConfigError::Frequency);
        }
        let shortest = (self.frequency * Self::SLICE_US.start()).div_ceil(1_000_000);
        let longest = self.frequency * Self::SLICE_US.end() / 1_000_000;
        if !(shortest..=longest.max(shortest)).contains(&self.slice.get()) {
            return Err(ConfigError::Slice);
        }
        if !Self::ROUND.contains(&self.round) {
            return Err(ConfigError::Round);
        }
        if !Self::AFFINITY.contains(&self.affinity) {
            return Err(ConfigError::Affinity);
        }
        if !Self::SELF_WAIT_BUDGET.contains(&self.self_wait_budget) {
            return Err(ConfigError::SelfWaitBudget);
        }
        let longest = self.frequency * Self::LONGEST_RESERVATION_US / 1_000_000;
        if !(self.slice.get()..=longest).contains(&self.reservation_limit.get()) {
            return Err(ConfigError::ReservationLimit);
        }
        if self.migration == Migration::Always && self.placement == Placement::Fixed {
            return Err(ConfigError::Migration);
        }
        Ok(())
    }
}

/// Allocation of harts to a VM (paper 000 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// Its vCPUs share harts with vCPUs of other VMs.
    Shared {
        /// Weight of its service: 1 to 10,000.
        share: u32,
    },
    /// Each vCPU has one hart of its own: the first vCPU the first hart of the set, and so on.
    Dedicated {
        /// Dedicated harts, as many as there are vCPUs.
        harts: HartSet,
    },
}

/// A VM, as the scheduler must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VmConfig {
    /// Number of its vCPUs, at least one.
    pub vcpus: u16,
    /// Allocation of harts.
    pub allocation: Allocation,
}

/// Refusal of a configuration or a change. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigError {
    /// The clock's frequency is below 1 kHz or above 2^40 Hz.
    Frequency,
    /// The slice is not in [`Config::SLICE_US`].
    Slice,
    /// The service round is not in [`Config::ROUND`].
    Round,
    /// The number of times that a vCPU may be passed over is not in [`Config::AFFINITY`].
    Affinity,
    /// The self-wait budget is not in [`Config::SELF_WAIT_BUDGET`].
    SelfWaitBudget,
    /// The limit of a reservation wait is not between one slice and [`Config::LONGEST_RESERVATION_US`].
    ReservationLimit,
    /// vCPUs are to move at every dispatch, and have one hart to run on.
    Migration,
    /// No hart is online.
    NoHarts,
    /// A VM has no vCPU.
    NoVcpus,
    /// The table holds no more VMs.
    TooManyVms,
    /// The row of numbers has no room for this number of vCPUs.
    TooManyVcpus,
    /// A share is not between 1 and 10,000.
    Share,
    /// The number of dedicated harts is not the number of vCPUs.
    DedicatedCount,
    /// A dedicated hart is not online.
    DedicatedOffline,
    /// A dedicated hart is dedicated to another VM.
    DedicatedTwice,
    /// No hart would be left for a VM that shares.
    NoSharedHart,
    /// Unknown VM.
    NoSuchVm,
    /// A vCPU is still on a hart: stop it and wait until it has left.
    StillRunning,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Frequency => "the clock's frequency must be from 1 kHz to 2^40 Hz",
            Self::Slice => {
                let (low, high) = (Config::SLICE_US.start(), Config::SLICE_US.end());
                return write!(formatter, "time-slice must be from {low} to {high} us");
            }
            Self::Round => {
                let (low, high) = (Config::ROUND.start(), Config::ROUND.end());
                return write!(formatter, "round must be from {low} to {high} slices");
            }
            Self::Affinity => {
                let (low, high) = (Config::AFFINITY.start(), Config::AFFINITY.end());
                return write!(formatter, "affinity must be from {low} to {high}");
            }
            Self::SelfWaitBudget => {
                let (low, high) = (
                    Config::SELF_WAIT_BUDGET.start(),
                    Config::SELF_WAIT_BUDGET.end(),
                );
                return write!(formatter, "self-wait-budget must be from {low} to {high}");
            }
            Self::ReservationLimit => {
                let longest = Config::LONGEST_RESERVATION_US;
                return write!(
                    formatter,
                    "reservation-limit must be from one slice to {longest} us"
                );
            }
            Self::Migration => {
                "vCPUs can move at every dispatch under floating scheduling on two harts at least"
            }
            Self::NoHarts => "no hart is online",
            Self::NoVcpus => "a virtual machine needs at least one vCPU",
            Self::TooManyVms => "there are too many virtual machines",
            Self::TooManyVcpus => "there are too many vCPUs",
            Self::Share => "a share must be from 1 to 10000",
            Self::DedicatedCount => "as many harts must be dedicated as there are vCPUs",
            Self::DedicatedOffline => "a dedicated hart is not online",
            Self::DedicatedTwice => "a hart is dedicated to two virtual machines",
            Self::NoSharedHart => "no hart is left for the virtual machines that share",
            Self::NoSuchVm => "there is no such virtual machine",
            Self::StillRunning => "a vCPU of the virtual machine is still running",
        })
    }
}

impl core::error::Error for ConfigError {}
