//! `not-same`: anybody but the vCPU that has just left (paper 004 §4.4).

use super::{Known, Scene, Spin, Suspend};

pub(super) struct NotSame;

impl Spin for NotSame {
    fn suspend(&self, _: &mut Scene<'_>, _: Known) -> Suspend {
        Suspend::GiveWay
    }
}
