//! `host-interrupt`: an interrupt to the hypervisor makes the waiting vCPU ready (paper 002 §2).

use super::Wait;

pub(super) struct HostInterrupt {
    /// Wake every idle hart, as was the custom (paper 002 §3.5), or only as many as there is work for.
    pub(super) every_hart: bool,
}

impl Wait for HostInterrupt {
    fn tests(&self) -> bool {
        false
    }

    fn wakes_every_hart(&self) -> bool {
        self.every_hart
    }
}
