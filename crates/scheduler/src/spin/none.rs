//! `none`: spins are not suspended.

use super::{Scene, Spin, Suspend};
use crate::ticks::Ticks;

pub(super) struct GoOn;

impl Spin for GoOn {
    fn may_go_on(&self) -> bool {
        true
    }

    fn suspend(&self, _: &mut Scene<'_>, _: Option<Ticks>) -> Suspend {
        Suspend::GoOn
    }
}
