//! `not-same`: anybody but the vCPU that has just left (paper 004 §4.4).

use super::{Scene, Spin, Suspend};
use crate::vcpu::Word;

pub(super) struct NotSame;

impl Spin for NotSame {
    fn suspend(&self, _: &mut Scene<'_>, _: Option<Word>) -> Suspend {
        Suspend::GiveWay
    }
}
