//! Work of a VM's devices that waits for the VM's own time.
//!
//! A device's interrupt that comes while a hart has a vCPU of another VM only leaves a mark here. The device is served before a vCPU of its own VM
//! enters its guest next. Until then it is not acknowledged, so it does not interrupt again.

use core::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crate::devices::trapped_devices::DeviceNumber;

/// Bit of the devices that have none of their own: each of them is served with it.
const OTHERS: u32 = u64::BITS - 1;

/// Work of one VM's devices.
#[derive(Debug, Default)]
pub struct DeviceWork {
    /// A bit for each device.
    devices: AtomicU64,
    /// Index in its VM of the vCPU that does the work.
    vcpu: AtomicU16,
    /// Ticks that harts worked for these devices in the time of other VMs, as far as the scheduler was not told.
    by_others: AtomicU64,
}

impl DeviceWork {
    /// Marks a device. Returns true if it was not marked yet.
    pub fn mark(&self, device: DeviceNumber) -> bool {
        let bit = 1 << (device.index() as u32).min(OTHERS);
        self.devices.fetch_or(bit, Ordering::SeqCst) & bit == 0
    }

    /// True while a device is marked.
    #[inline]
    #[must_use]
    pub fn is_pending(&self) -> bool {
        // The hart that marked a device tells the scheduler afterwards, whose lock orders this load.
        self.devices.load(Ordering::Relaxed) != 0
    }

    /// Takes all marks, and visits the devices, of which the VM has `count`.
    pub fn take(&self, count: usize, mut serve: impl FnMut(DeviceNumber)) {
        let taken = self.devices.swap(0, Ordering::SeqCst);
        let is_taken = |index: &usize| taken >> (*index as u32).min(OTHERS) & 1 != 0;
        let devices = (0..count).filter(is_taken);
        devices.map(DeviceNumber::new).for_each(&mut serve);
    }

    /// Drops all marks, after the devices have been reset.
    pub fn clear(&self) {
        self.devices.store(0, Ordering::SeqCst);
    }

    /// Index of the vCPU that does the work.
    #[must_use]
    pub fn vcpu(&self) -> u16 {
        self.vcpu.load(Ordering::Relaxed)
    }

    /// The vCPU with this index does the work from now on.
    pub fn set_vcpu(&self, vcpu: u16) {
        if self.vcpu() != vcpu {
            self.vcpu.store(vcpu, Ordering::Relaxed);
        }
    }

    /// Notes that a hart has worked for these devices in the time of another VM.
    pub fn note_by_others(&self, ticks: u64) {
        self.by_others.fetch_add(ticks, Ordering::Relaxed);
    }

    /// Takes the ticks that were noted.
    #[inline]
    #[must_use]
    pub fn take_by_others(&self) -> u64 {
        // A load first: an exchange costs more, and there hardly ever is any.
        match self.by_others.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.by_others.swap(0, Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(work: &DeviceWork, count: usize) -> Vec<usize> {
        let mut taken = Vec::new();
        work.take(count, |device| taken.push(device.index()));
        taken
    }

    #[test]
    fn marked_devices_are_served_once() {
        let work = DeviceWork::default();
        assert!(!work.is_pending());
        for (device, is_new) in [(3, true), (3, false), (1, true)] {
            assert_eq!(work.mark(DeviceNumber::new(device)), is_new);
        }
        assert!(work.is_pending());
        assert_eq!(taken(&work, 5), [1, 3]);
        assert!(!work.is_pending());
        assert!(taken(&work, 5).is_empty());
    }

    #[test]
    fn devices_beyond_the_bits_are_served_together() {
        let work = DeviceWork::default();
        assert!(work.mark(DeviceNumber::new(70)));
        assert!(!work.mark(DeviceNumber::new(63)));
        assert_eq!(taken(&work, 66), [63, 64, 65]);
    }

    #[test]
    fn reset_devices_have_no_work() {
        let work = DeviceWork::default();
        work.set_vcpu(2);
        work.mark(DeviceNumber::new(1));
        work.clear();
        assert!(!work.is_pending() && taken(&work, 2).is_empty());
        assert_eq!(work.vcpu(), 2);
        assert!(work.mark(DeviceNumber::new(1)), "the next interrupt tells");
    }

    #[test]
    fn ticks_are_told_once() {
        let work = DeviceWork::default();
        work.note_by_others(5);
        work.note_by_others(2);
        assert_eq!(work.take_by_others(), 7);
        assert_eq!(work.take_by_others(), 0);
    }
}
