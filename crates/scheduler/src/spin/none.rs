//! `none`: spins are not suspended.

use super::{Scene, Spin, Suspend};
use crate::vcpu::Word;

pub(super) struct GoOn;

impl Spin for GoOn {
    fn may_go_on(&self) -> bool {
        true
    }

    fn suspend(&self, _: &mut Scene<'_>, _: Option<Word>) -> Suspend {
        Suspend::GoOn
    }
}
