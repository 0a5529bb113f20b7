//! Room for what a report of the performance monitor is made of.

use alloc::vec::Vec;

use abi::monitor::{VmRecord, WorkCounters};

/// Records and counters of a report. They are reserved when the system is assembled, so that the last report allocates nothing: it is printed when a
/// guest powers off.
#[derive(Debug)]
pub struct ReportSpace {
    pub vms: Vec<VmRecord>,
    /// Counters of one hart.
    pub work: Vec<WorkCounters>,
}

impl ReportSpace {
    /// Room for so many VMs.
    #[must_use]
    pub fn new(vms: usize) -> Self {
        Self {
            vms: Vec::with_capacity(vms),
            work: Vec::with_capacity(vms),
        }
    }
}
