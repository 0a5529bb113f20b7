//! What can be chosen, and the ranges within which it can.

use core::fmt;
use core::ops::RangeInclusive;

use crate::base::id::HartSet;
use crate::base::ticks::Ticks;
use crate::policies::spin::SpinPolicy;
use crate::policies::wait::WaitPolicy;

/// On which of the shared harts a vCPU may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On any: floating scheduling.
    Floating,
    /// On one that is chosen when its virtual machine is added: fixed scheduling.
    Fixed,
}

/// When a vCPU goes to another hart than the one that it ran on last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Migration {
    /// When its own hart is not free, or somebody has been passed over too often.
    AsNeeded,
    /// At every dispatch, where another shared hart may take it; and nobody waits in place. For tests: all that has to
    /// follow a vCPU does so all the time.
    Always,
}

/// Everything about a scheduler that can be chosen.
///
/// [`Config::new`] gives usual values; [`crate::Scheduler::new`] checks the ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Config {
    /// Ticks a second of the clock that all times are in.
    pub frequency: u64,
    /// The time slice, in [`Config::SLICE_US`].
    pub slice: Ticks,
    /// The length of a service round in slices of each shared hart, in [`Config::ROUND`]. In one round, a
    /// virtual machine may consume its share of it before it goes out of service.
    pub round: u32,
    /// How often a ready vCPU may be passed over for one that ran on the dispatching hart last, in
    /// [`Config::AFFINITY`]; 0 is the strict order.
    pub affinity: u8,
    /// How many vCPUs a hart takes out of the self-wait queue in a row while others are ready, in
    /// [`Config::SELF_WAIT_BUDGET`]. This bounds what a storm of interrupts can take from the ready queue.
    pub self_wait_budget: u16,
    /// The longest that a vCPU waits for a word to change: one slice to [`Config::LONGEST_RESERVATION_US`].
    pub reservation_limit: Ticks,
    /// What happens at a spin.
    pub spin: SpinPolicy,
    /// How waiting vCPUs are found.
    pub wait: WaitPolicy,
    /// Floating or fixed scheduling on the shared harts.
    pub placement: Placement,
    /// Whether a vCPU that has its hart for itself runs on relaxed terms, without a slice and with waits that do not trap. On a
    /// hart of its own it always does.
    pub relaxes: bool,
    /// When vCPUs move. `Always` makes no sense under fixed scheduling, or with a single hart.
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
    /// Most of [`Config::reservation_limit`] in microseconds; the least is the slice.
    pub const LONGEST_RESERVATION_US: u64 = 1_000_000;

    /// The length of a service round, unless it is given: half of the shortest time over which shares are to be seen.
    const ROUND_US: u64 = 10_000;
    /// As long as a change of vCPU takes, with what it misses in caches and TLBs, in simple instructions.
    const CHANGE: u64 = 5_000;
    /// The changes in a slice, so that no more than two per cent of a hart's time go into the ends of slices.
    const CHANGES: u64 = 50;

    /// The slice in microseconds, unless it is given: whole milliseconds that are fifty changes of vCPU long, within
    /// [`Config::SLICE_US`], where a hart executes `instructions` simple instructions in `microseconds`.
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

    /// The slices in a service round, unless they are given: 10 ms of them, and two at least.
    #[must_use]
    pub fn usual_round(slice_us: u32) -> u32 {
        let slices = Self::ROUND_US / u64::from(slice_us.max(1));
        u32::try_from(slices)
            .map_or(u32::MAX, |slices| slices.max(2))
            .min(*Self::ROUND.end())
    }

    /// The usual values for a clock of `frequency` ticks a second: 5 ms slices, `rslp`,
    /// `host-interrupt`, floating.
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

/// How a virtual machine gets its harts (paper 000 §2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Allocation {
    /// Its vCPUs share harts with those of others.
    Shared {
        /// Its service in proportion to that of the others: 1 to 10,000.
        share: u32,
    },
    /// Each vCPU has one hart of its own: the first vCPU the first hart of the set, and so on.
    Dedicated {
        /// As many harts as there are vCPUs.
        harts: HartSet,
    },
}

/// A virtual machine as the scheduler must know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct VmConfig {
    /// The number of its vCPUs, at least one.
    pub vcpus: u16,
    /// Where they run.
    pub allocation: Allocation,
}

/// Why a configuration, or a change of one, is refused. Nothing has changed then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConfigError {
    /// The clock's frequency is below 1 kHz or above 2^40 Hz.
    Frequency,
    /// The slice is not in [`Config::SLICE_US`].
    Slice,
    /// The service round is not in [`Config::ROUND`].
    Round,
    /// How often a vCPU may be passed over is not in [`Config::AFFINITY`].
    Affinity,
    /// The self-wait budget is not in [`Config::SELF_WAIT_BUDGET`].
    SelfWaitBudget,
    /// The limit of a reservation wait is not between one slice and [`Config::LONGEST_RESERVATION_US`].
    ReservationLimit,
    /// vCPUs are to move at every dispatch, and have one hart to run on.
    Migration,
    /// No hart is online.
    NoHarts,
    /// A virtual machine has no vCPU.
    NoVcpus,
    /// There are already as many virtual machines as the table holds.
    TooManyVms,
    /// There is no room in a row for so many vCPUs.
    TooManyVcpus,
    /// A share is not between 1 and 10,000.
    Share,
    /// The number of dedicated harts is not the number of vCPUs.
    DedicatedCount,
    /// A dedicated hart is not online.
    DedicatedOffline,
    /// A dedicated hart is dedicated to another virtual machine.
    DedicatedTwice,
    /// A virtual machine that shares would have no hart left.
    NoSharedHart,
    /// There is no such virtual machine.
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
