//! The scheduler behind its locks: one for each group of harts.
//!
//! [`Access::with`] changes a group under its lock. Before the lock is released, the group publishes its surplus and its need; if
//! another group matches, this hart migrates vCPUs once the lock is free.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

use scheduler::groups::operator;
use scheduler::groups::{Access, Directory, Flow, Group, GroupId, Layout, Ledger, LoadBits};
use scheduler::{
    Config, ConfigError, HartId, HartSet, Placement, Ticks, VcpuNumber, VmConfig, VmId,
};

use crate::lock::{Mutex, MutexGuard, place};
use crate::system::turn::TurnMutex;

/// Group locked by a hart.
type Held<'a> = MutexGuard<'a, Group, { place::SCHEDULER }>;

/// Groups of harts, and the state of all of them.
#[derive(Debug)]
#[repr(C)]
pub struct Groups {
    pub(super) groups: Box<[TurnMutex<Group, { place::SCHEDULER }>]>,
    /// Set if there is more than one group.
    pub(super) several: bool,
    pub(super) shared: Box<Shared>,
}

/// State of all groups that no group's lock protects.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) directory: Directory,
    pub(super) load_bits: LoadBits,
    /// Settings of all groups, as an operator sees them.
    pub(super) ledger: Mutex<Ledger, { place::LEDGER }>,
    /// Time at which shares are balanced next between groups.
    pub(super) next_balance: AtomicU64,
}

/// Divisor of a slice that bounds the rest before an idle hart asks other groups for work. A measured context switch is longer if the hart
/// itself was preempted, as a thread of another computer.
const MAX_REST_DIVISOR: u64 = 64;

/// Number of times that a hart releases the first of two groups because another hart has the second. Then it waits for the second with the first held,
/// so that it gets both at some time.
const TRIES: u32 = 16;

impl Groups {
    /// The groups of this layout, without VMs.
    ///
    /// # Errors
    /// As [`scheduler::Scheduler::new`].
    pub fn new(config: Config, layout: &Layout) -> Result<Self, ConfigError> {
        let groups = (0..layout.groups()).map_while(GroupId::new);
        let groups: Result<Vec<Group>, ConfigError> = groups
            .map(|group| Group::new(group, config, layout))
            .collect();
        let groups = groups?;
        let online = groups
            .iter()
            .fold(HartSet::EMPTY, |all, group| all.union(group.harts()));
        Ok(Self {
            several: layout.groups() > 1,
            groups: groups.into_iter().map(TurnMutex::new).collect(),
            shared: Box::new(Shared {
                directory: layout.directory(),
                load_bits: LoadBits::new(),
                ledger: Mutex::new(Ledger::new(online)),
                next_balance: AtomicU64::new(0),
            }),
        })
    }

    #[inline]
    pub(super) fn lock(&self, group: GroupId) -> Held<'_> {
        // There is one group at least, and only those of the layout are named. A remainder would keep the index in its bounds too, but takes longer.
        let named = group.index();
        let place = if named < self.groups.len() { named } else { 0 };
        self.groups[place].lock()
    }

    /// The group of a hart.
    #[inline]
    pub fn lock_of(&self, hart: HartId) -> Held<'_> {
        self.lock(self.group_of(hart))
    }

    #[inline]
    pub(super) fn group_of(&self, hart: HartId) -> GroupId {
        if self.several {
            self.shared.directory.group_of(hart)
        } else {
            GroupId::FIRST
        }
    }

    /// Returns true if another group than that of `hart` has surplus vCPUs.
    #[inline]
    pub fn others_have_surplus(&self, hart: HartId) -> bool {
        self.several
            && self
                .shared
                .load_bits
                .others_have_surplus(self.group_of(hart))
    }

    /// Returns true if the vCPU is in another group than the hart.
    pub fn is_elsewhere(&self, vcpu: VcpuNumber, hart: HartId) -> bool {
        let own = self.group_of(hart);
        self.several && (self.places().place(vcpu)).is_some_and(|place| place.group != own)
    }

    /// Places of vCPUs.
    #[must_use]
    pub fn places(&self) -> &Directory {
        &self.shared.directory
    }

    /// Publishes the surplus or need of `group`, which has changed. To be called before the group's lock is released.
    #[inline]
    pub fn publish(&self, group: &Group) -> Option<Flow> {
        if self.several {
            group.publish(&self.shared.load_bits)
        } else {
            None
        }
    }

    /// Publishes the need of `hart`, which is of `group` and idle at `now`. While others have work, an idle hart asks for it only after it has rested for
    /// `longest`. Returns also the time of its next poll, if there is one.
    pub fn publish_idle(
        &self,
        group: &Group,
        hart: HartId,
        (now, longest): (Ticks, Ticks),
    ) -> (Option<Flow>, Option<Ticks>) {
        if !self.several {
            return (None, None);
        }
        let slice = group.scheduler().config().slice.get();
        let longest = longest.min(Ticks::new(slice / MAX_REST_DIVISOR));
        let rested = group.idle_for(hart, now);
        if rested < longest && group.publish_sated(&self.shared.load_bits) {
            return (None, Some(now + (longest - rested)));
        }
        (group.publish(&self.shared.load_bits), None)
    }

    /// Adds a VM while no hart runs.
    ///
    /// # Errors
    /// As [`scheduler::Scheduler::add_placed_vm`].
    pub fn add_vm(&self, config: VmConfig, placement: Placement) -> Result<VmId, ConfigError> {
        let mut ledger = self.shared.ledger.lock();
        let (vm, kicks) = operator::add_vm(&mut ledger, &Boot(self), config, placement)?;
        // No hart runs yet, so there is none to interrupt.
        let _ = kicks;
        Ok(vm)
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> Config {
        *self.lock(GroupId::FIRST).scheduler().config()
    }

    /// Share of a VM, also of one that has harts of its own now.
    #[must_use]
    pub fn share(&self, vm: VmId) -> u32 {
        self.shared.ledger.lock().share(vm)
    }

    /// Dedicated harts of a VM; none if it shares.
    #[must_use]
    pub fn own_harts(&self, vm: VmId) -> HartSet {
        self.shared.ledger.lock().own_harts(vm)
    }

    pub(super) fn with_both<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R {
        // Always the one with the lower number first.
        let (mut low, mut high);
        let low_first = one < other;
        let (first, second) = if low_first {
            (one, other)
        } else {
            (other, one)
        };
        let [first, second] =
            [first, second].map(|group| &self.groups[group.index() % self.groups.len()]);
        let mut tries = 0..TRIES;
        loop {
            low = first.lock();
            if let Some(free) = second.try_lock() {
                high = free;
                break;
            }
            if tries.next().is_none() {
                high = second.lock_behind();
                break;
            }
            // Other harts must not wait for this hart while it waits itself.
            drop(low);
            second.await_free();
        }
        let result = if low_first {
            what(&mut low, &mut high)
        } else {
            what(&mut high, &mut low)
        };
        for group in [&low, &high] {
            // The two groups have balanced each other; other groups are left to their own harts.
            let _ = self.publish(group);
        }
        result
    }
}

/// Groups while no hart runs, so that there is none to interrupt.
struct Boot<'a>(&'a Groups);

impl Access for Boot<'_> {
    fn directory(&self) -> &Directory {
        &self.0.shared.directory
    }

    fn load_bits(&self) -> &LoadBits {
        &self.0.shared.load_bits
    }

    fn count(&self) -> usize {
        self.0.groups.len()
    }

    fn with<R>(&self, group: GroupId, what: impl FnOnce(&mut Group) -> R) -> R {
        what(&mut self.0.lock(group))
    }

    fn with_two<R>(
        &self,
        one: GroupId,
        other: GroupId,
        what: impl FnOnce(&mut Group, &mut Group) -> R,
    ) -> R {
        self.0.with_both(one, other, what)
    }
}
