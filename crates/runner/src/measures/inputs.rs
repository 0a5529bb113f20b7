//! The reports of a run that its measures are computed from.

use crate::exit_latency::Row;
use crate::report::Report;
use crate::storms::Storms;
use crate::workloads::Guests;

/// Reports of a run.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// The hypervisor's performance monitor; a native run has none.
    pub report: Option<&'a Report>,
    /// The machine's hardware monitor; QEMU has none.
    pub hardware: Option<&'a machine::monitor::Report>,
    /// Accounts of the pause-loop exits, on a machine that has them.
    pub storms: Option<&'a Storms>,
    /// The round trips through the hypervisor, where they were counted.
    pub exit_latency: &'a [Row],
    /// The guests' workloads.
    pub guests: &'a Guests,
}

pub(super) fn ratio(part: Option<f64>, whole: Option<f64>) -> Option<f64> {
    Some(part? / whole.filter(|whole| *whole != 0.0)?)
}
