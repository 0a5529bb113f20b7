//! Generation of a VM's G-stage table that each hart uses.
//!
//! A guest's store to the page of an interrupt file goes where the table sent it when the store was made, and may still be on
//! its way when the hart has left the guest. A hart that finds that no hart uses an older table reads the file for the last
//! time and frees it. So a hart withdraws its declaration only after a fence that orders its stores to devices before.

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::hart;

/// 1 + the VM's number in the upper 16 bits, the generation in the others; 0 where no guest runs.
const VM_SHIFT: u32 = 48;

/// Declaration of one hart. Only the hart itself changes it.
#[derive(Debug, Default)]
pub struct Running(AtomicU64);

impl Running {
    /// Declares that a guest of VM `vm` is about to run here under `generation` of its table. A hart that reads the
    /// generation again after this call sees a change of the table, or the hart that made the change sees this declaration.
    pub fn set(&self, vm: u16, generation: u64) {
        self.declare(u64::from(vm + 1) << VM_SHIFT | generation);
        fence(Ordering::SeqCst);
    }

    /// Declares that no guest runs here.
    pub fn clear(&self) {
        self.declare(0);
    }

    /// Returns true if a guest of VM `vm` runs here, or has just left.
    #[must_use]
    pub fn is_of(&self, vm: u16) -> bool {
        self.0.load(Ordering::Relaxed) >> VM_SHIFT == u64::from(vm) + 1
    }

    /// Tests whether a guest of another VM than `vm` runs here, or has just left.
    #[must_use]
    pub fn is_of_another(&self, vm: u16) -> bool {
        let value = self.0.load(Ordering::Relaxed) >> VM_SHIFT;
        value != 0 && value != u64::from(vm) + 1
    }

    fn declare(&self, value: u64) {
        // Without a guest since the last declaration there are no stores of one.
        if self.0.load(Ordering::Relaxed) != 0 {
            hart::devices_before_memory();
        }
        // A hart that does not see this store yet assumes the former declaration.
        self.0.store(value, Ordering::Release);
    }

    /// Returns true if this hart may still use a translation of VM `vm` older than `generation`.
    #[must_use]
    pub fn may_use_older(&self, vm: u16, generation: u64) -> bool {
        let value = self.0.load(Ordering::SeqCst);
        value >> VM_SHIFT == u64::from(vm) + 1 && (value & ((1 << VM_SHIFT) - 1)) < generation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hart::fences_behind_devices;

    #[test]
    fn harts_use_only_their_declared_generation() {
        let running = Running::default();
        assert!(!running.may_use_older(0, u64::MAX));
        running.set(3, 7);
        assert!(running.is_of(3) && !running.is_of(2));
        assert!(running.is_of_another(2) && !running.is_of_another(3));
        assert!(!running.may_use_older(3, 7));
        assert!(running.may_use_older(3, 8));
        assert!(!running.may_use_older(2, 8), "another VM");
        running.clear();
        assert!(!running.may_use_older(3, 8));
        assert!(!running.is_of_another(2), "no guest runs");
    }

    #[test]
    fn device_stores_precede_the_next_declaration() {
        let running = Running::default();
        let fences = || fences_behind_devices();
        let before = fences();
        running.set(3, 7);
        assert_eq!(fences(), before, "no guest has stored anything yet");
        running.set(3, 8);
        assert_eq!(
            fences(),
            before + 1,
            "the table has changed under the guest"
        );
        running.clear();
        assert_eq!(fences(), before + 2, "the guest has left");
    }
}
