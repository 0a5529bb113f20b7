//! Files that a vCPU has left on other harts, and that may still hold messages to it.

use core::sync::atomic::{AtomicU64, Ordering};

use scheduler::{HartId, HartSet, VcpuNumber};

use super::HartFiles;

/// Harts on which a vCPU has left a file that was not opened yet.
///
/// Every WFI of a guest checks for messages on their way. Only the few harts that the vCPU has left are read, so that the check costs
/// as little on a large computer as on a small one.
#[derive(Debug, Default)]
pub struct StaleFiles(AtomicU64);

impl StaleFiles {
    /// Notes that the vCPU has left a file on `hart`. Called by the hart that is about to run the vCPU, or while its VM does not run.
    pub fn note(&self, hart: HartId) {
        self.0
            .fetch_or(HartSet::only(hart).bits(), Ordering::Relaxed);
    }

    /// Returns true while messages to `vcpu` may lie in a stale file, which the file's hart has not opened yet. That hart was
    /// kicked, so that this ends soon. A vCPU that blocks now, and is dispatched on another hart for that message, would strand
    /// it again. Called by the hart that runs the vCPU.
    #[inline]
    pub fn is_arriving<'a>(
        &self,
        vcpu: VcpuNumber,
        files: impl Fn(HartId) -> &'a HartFiles,
    ) -> bool {
        // The scheduler's lock, by which the vCPU has come to its hart, orders this after the notes of other harts.
        let left = HartSet::from_bits(self.0.load(Ordering::Relaxed));
        !left.is_empty() && self.find_unopened(vcpu, left, files)
    }

    #[cold]
    #[inline(never)]
    fn find_unopened<'a>(
        &self,
        vcpu: VcpuNumber,
        left: HartSet,
        files: impl Fn(HartId) -> &'a HartFiles,
    ) -> bool {
        for hart in left.iter() {
            if files(hart).has_unopened(vcpu) {
                return true;
            }
            // An opened file stays open until the vCPU has come back and left again.
            self.0
                .fetch_and(!HartSet::only(hart).bits(), Ordering::Relaxed);
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interrupts::table::{Forwarder, InFlight};
    use crate::interrupts::{Generation, GuestFile, ResetEpoch};

    #[test]
    fn harts_are_asked_until_they_have_looked() {
        let vcpu = VcpuNumber::new(3).unwrap();
        let harts = [HartFiles::default(), HartFiles::default()];
        let [one, other] = [0, 1].map(|index| HartId::new(index).unwrap());
        let files = |hart: HartId| &harts[hart.index()];
        let left = StaleFiles::default();
        assert!(!left.is_arriving(vcpu, files), "it has left nothing");

        let file = GuestFile::new(1).unwrap();
        let mut forwarder = Forwarder {
            vcpu,
            life: ResetEpoch::default(),
            generation: Generation::default(),
            open: false,
            in_flight: InFlight::Nothing,
            forwards: 0,
            notified: false,
        };
        for hart in [one, other] {
            files(hart).open(1);
            files(hart).leave(file, forwarder);
            left.note(hart);
        }
        let stranger = VcpuNumber::new(4).unwrap();
        assert!(!StaleFiles::default().is_arriving(stranger, files));
        assert!(left.is_arriving(vcpu, files));

        forwarder.open = true;
        files(one).update(file, forwarder);
        assert!(left.is_arriving(vcpu, files), "the other has not looked");
        files(other).free(file);
        assert!(!left.is_arriving(vcpu, files));
        assert_eq!(left.0.load(Ordering::Relaxed), 0, "nobody is asked again");

        // It comes back, and leaves again.
        forwarder.open = false;
        files(one).update(file, forwarder);
        left.note(one);
        assert!(left.is_arriving(vcpu, files));
    }
}
