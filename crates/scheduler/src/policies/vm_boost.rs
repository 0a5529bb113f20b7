//! VM boost: the VM that comes first on every hart for a slice.

use crate::base::id::{HartSet, VmId};
use crate::base::ticks::Ticks;

/// The boosted VM, and the end of its boost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct VmBoost {
    pub(crate) vm: Option<VmId>,
    pub(crate) until: Ticks,
    /// Lag of the VM behind the mean when it was chosen, in virtual time.
    pub(crate) lag: i64,
    /// Harts on which the VM comes first at most.
    pub(crate) max_harts: u32,
    /// Harts that have tested for interrupts of other VMs since.
    pub(crate) tested: HartSet,
}
