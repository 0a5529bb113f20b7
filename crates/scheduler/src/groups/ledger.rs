//! Ledger: facts about VMs that no single group has. Its owner is the only one that changes them.

use super::access::Access;
use super::directory::{GroupId, MAX_GROUPS};
use crate::base::id::{HartSet, MAX_VMS, VcpuNumber, VmId};
use crate::base::ticks::Ticks;
use crate::config::{Allocation, ConfigError, Placement};
use crate::dispatch::transfer::Terms;

/// Weight of a vCPU that has had work since the last balance, when its VM's share is divided.
pub(super) const ACTIVE_WEIGHT: u32 = 16;

/// Weight of another vCPU. It is not 0: the vCPU may wake at any time, and is to be served then.
pub(super) const ASLEEP_WEIGHT: u32 = 1;

/// A VM, over all groups.
#[derive(Clone, Copy, Debug)]
pub(super) struct VmRecord {
    /// First number of its vCPUs, which are consecutive.
    pub(super) first: u16,
    pub(super) vcpus: u16,
    pub(super) share: u32,
    pub(super) placement: Placement,
    /// Dedicated harts; none while it shares.
    pub(super) own: HartSet,
    /// Time that it had run at the last balance.
    pub(super) used: Ticks,
    /// Service in relation to its share since it began, with what it did not want. A balance serves the VM with the least first.
    pub(super) served: u64,
}

impl VmRecord {
    pub(super) fn numbers(&self) -> impl Iterator<Item = VcpuNumber> + use<> {
        (self.first..self.first + self.vcpus).map_while(VcpuNumber::new)
    }

    pub(super) fn terms(&self) -> Terms {
        Terms {
            dedicated: !self.own.is_empty(),
            share: self.share,
            placement: self.placement,
        }
    }
}

/// Facts about VMs that no single group has.
#[derive(Clone, Debug)]
pub struct Ledger {
    pub(super) vms: [Option<VmRecord>; MAX_VMS],
    pub(super) online: HartSet,
    pub(super) next_number: u16,
    /// Shares of the vCPUs that were placed in each group.
    pub(super) load: [u64; MAX_GROUPS],
}

impl Ledger {
    /// Ledger of a computer with these harts, without VMs.
    #[must_use]
    pub const fn new(online: HartSet) -> Self {
        Self {
            vms: [None; MAX_VMS],
            online,
            next_number: 0,
            load: [0; MAX_GROUPS],
        }
    }

    /// Share of a VM, also while it does not share; 1 if there is no such VM.
    #[must_use]
    pub fn share(&self, vm: VmId) -> u32 {
        self.vms[vm.index()].map_or(1, |vm| vm.share)
    }

    /// Dedicated harts of a VM; none while it shares.
    #[must_use]
    pub fn own_harts(&self, vm: VmId) -> HartSet {
        self.vms[vm.index()].map_or(HartSet::EMPTY, |vm| vm.own)
    }

    /// Harts that are not dedicated.
    #[must_use]
    pub fn shared_harts(&self) -> HartSet {
        let all = self.vms.iter().flatten();
        all.fold(self.online, |shared, vm| shared.without(vm.own))
    }

    pub(super) fn check(
        &self,
        vm: Option<VmId>,
        vcpus: u16,
        to: Allocation,
    ) -> Result<HartSet, ConfigError> {
        let others = || {
            let all = self.vms.iter().enumerate();
            let others = all.filter(move |(place, _)| Some(*place) != vm.map(VmId::index));
            others.filter_map(|(_, vm)| vm.as_ref())
        };
        let taken = others().fold(HartSet::EMPTY, |taken, vm| taken.union(vm.own));
        let mut sharing = others().any(|vm| vm.own.is_empty());
        let own = match to {
            Allocation::Shared { share } => {
                if !(1..=10_000).contains(&share) {
                    return Err(ConfigError::Share);
                }
                sharing = true;
                HartSet::EMPTY
            }
            Allocation::Dedicated { harts } => {
                if harts.count() != u32::from(vcpus) {
                    return Err(ConfigError::DedicatedCount);
                }
                if !harts.without(self.online).is_empty() {
                    return Err(ConfigError::DedicatedOffline);
                }
                if !harts.intersection(taken).is_empty() {
                    return Err(ConfigError::DedicatedTwice);
                }
                harts
            }
        };
        if sharing && self.online.without(taken.union(own)).is_empty() {
            return Err(ConfigError::NoSharedHart);
        }
        Ok(own)
    }
}

impl Ledger {
    /// Group with the least share a shared hart, and the number of vCPUs that are placed there together.
    pub(super) fn lightest(&self, access: &impl Access) -> Result<(GroupId, u32), ConfigError> {
        let shared = self.shared_harts();
        let candidates = access.groups().filter_map(|group| {
            let harts = access.with(group, |group| match group.is_full() {
                true => HartSet::EMPTY,
                false => group.harts.intersection(shared),
            });
            (!harts.is_empty()).then(|| (group, harts.count()))
        });
        candidates
            .min_by_key(|&(group, harts)| self.load[group.index()] / u64::from(harts))
            .ok_or(ConfigError::TooManyVcpus)
    }

    /// Service of the VM served least.
    pub(super) fn least_served(&self) -> u64 {
        let served = self.vms.iter().flatten().map(|vm| vm.served);
        served.min().unwrap_or(0)
    }
}
