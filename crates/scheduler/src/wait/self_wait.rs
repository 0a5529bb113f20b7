//! `self-wait`: pending interrupts are tested, and taken by the vCPU itself (paper 002 §3.3 to §3.5).

use super::Wait;
use crate::id::{VcpuId, VcpuSet};

pub(super) struct SelfWait {
    /// The paper's rule for interrupts that any vCPU of a virtual machine can take: all that wait
    /// become ready. A message-signalled interrupt names one, which is then enough.
    pub(super) whole_vm: bool,
}

impl Wait for SelfWait {
    fn tests(&self) -> bool {
        true
    }

    fn grants(&self, found: VcpuId, waiting: VcpuSet) -> VcpuSet {
        if self.whole_vm {
            waiting
        } else {
            VcpuSet::only(found)
        }
    }

    fn orders_by_service(&self) -> bool {
        true
    }
}
