//! Hart that takes an interrupt of the board for the hypervisor: of the UART, and of a device whose vCPU keeps
//! its interrupts in memory.
//!
//! A hart that belongs to one VM takes interrupts of this VM's devices alone. Other interrupts go to a shared hart, or to
//! the first hart if every hart belongs to some VM.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use scheduler::{HartId, HartSet, VmId};

/// Assignment of the board's interrupts to harts, shared by all harts.
#[derive(Debug)]
pub struct InterruptAffinity {
    shared: AtomicU64,
    /// Dedicated harts of each VM; none for a VM that shares.
    own: Vec<AtomicU64>,
}

impl InterruptAffinity {
    /// Table for `vms` VMs that share `harts`.
    #[must_use]
    pub fn new(harts: HartSet, vms: usize) -> Self {
        Self {
            shared: AtomicU64::new(harts.bits()),
            own: (0..vms).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Sets the dedicated harts of `vm`, among `online`; none if it shares.
    pub fn set(&self, online: HartSet, vm: VmId, own: HartSet) {
        if let Some(place) = self.own.get(vm.index()) {
            place.store(own.bits(), Ordering::SeqCst);
        }
        let taken = |taken: u64, own: &AtomicU64| taken | own.load(Ordering::SeqCst);
        let taken = self.own.iter().fold(0, taken);
        let shared = online.without(HartSet::from_bits(taken));
        self.shared.store(shared.bits(), Ordering::SeqCst);
    }

    /// Returns true if `hart` belongs to no VM.
    #[must_use]
    pub fn is_shared(&self, hart: HartId) -> bool {
        HartSet::from_bits(self.shared.load(Ordering::SeqCst)).contains(hart)
    }

    /// Hart for interrupts that belong to no VM.
    #[must_use]
    pub fn of_board(&self) -> Option<HartId> {
        HartSet::from_bits(self.shared.load(Ordering::SeqCst))
            .first()
            .or(HartId::new(0))
    }

    /// Hart for the devices of `vm`.
    #[must_use]
    pub fn of_vm(&self, vm: VmId) -> Option<HartId> {
        let own = self.own.get(vm.index());
        let own = own.map_or(0, |own| own.load(Ordering::SeqCst));
        HartSet::from_bits(own).first().or_else(|| self.of_board())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn harts(numbers: &[u16]) -> HartSet {
        numbers.iter().filter_map(|n| HartId::new(*n)).collect()
    }

    #[test]
    fn own_harts_take_nothing_of_others() {
        let online = harts(&[0, 1, 2]);
        let interrupt_affinity = InterruptAffinity::new(online, 2);
        let [one, two] = [0, 1].map(|number| VmId::new(number).unwrap());
        assert_eq!(interrupt_affinity.of_board(), HartId::new(0));
        interrupt_affinity.set(online, one, harts(&[0, 1]));
        assert_eq!(interrupt_affinity.of_vm(one), HartId::new(0));
        assert_eq!(interrupt_affinity.of_vm(two), HartId::new(2));
        assert_eq!(interrupt_affinity.of_board(), HartId::new(2));
        let [own, shared] = [0, 2].map(|number| HartId::new(number).unwrap());
        assert!(!interrupt_affinity.is_shared(own) && interrupt_affinity.is_shared(shared));
        interrupt_affinity.set(online, two, harts(&[2]));
        assert_eq!(interrupt_affinity.of_vm(two), HartId::new(2));
        assert_eq!(
            interrupt_affinity.of_board(),
            HartId::new(0),
            "nobody shares"
        );
        interrupt_affinity.set(online, one, HartSet::EMPTY);
        assert_eq!(interrupt_affinity.of_vm(one), HartId::new(0));
        assert_eq!(interrupt_affinity.of_board(), HartId::new(0));
    }
}
