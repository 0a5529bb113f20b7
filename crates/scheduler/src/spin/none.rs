//! `none`: spins are not suspended.

use super::{Known, Scene, Spin, Suspend};
use crate::decision::{Keep, SpinExit};
use crate::id::VcpuId;
use crate::table::Scheduler;

pub(super) struct GoOn;

impl Spin for GoOn {
    fn keep(&self, _: &mut Scheduler, _: VcpuId, _: SpinExit) -> Keep {
        Keep::GoOn
    }

    fn suspend(&self, _: &mut Scene<'_>, _: Known) -> Suspend {
        Suspend::GoOn
    }
}
