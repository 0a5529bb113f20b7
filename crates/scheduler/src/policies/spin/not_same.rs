//! `not-same`: the hart goes to any vCPU but the one that has just left (paper 004 §4.4).

use super::rule::{KnownWait, Scene, SpinRule, Suspend};

pub(super) struct NotSame;

impl SpinRule for NotSame {
    fn suspend(&self, _: &mut Scene<'_>, _: KnownWait) -> Suspend {
        Suspend::Skip
    }
}
