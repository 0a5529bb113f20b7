//! `self-wait`: pending interrupts are tested, and taken by the vCPU itself (paper 002 §3.3 to §3.5).

use super::Wait;

pub(super) struct SelfWait {
    /// The paper's rule for interrupts that any vCPU of a virtual machine can take: all that wait
    /// become ready. A message-signalled interrupt names one, which is then enough.
    pub(super) whole_vm: bool,
}

impl Wait for SelfWait {
    fn tests(&self) -> bool {
        true
    }

    fn in_place(&self) -> bool {
        // Where one's interrupt is a reason for all of them, all must be in the queue.
        !self.whole_vm
    }

    fn grants_all(&self) -> bool {
        self.whole_vm
    }

    fn orders_by_service(&self) -> bool {
        true
    }
}
