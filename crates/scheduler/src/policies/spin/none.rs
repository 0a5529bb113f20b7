//! `none`: spins are not suspended.

use super::exit::{Keep, SpinExit};
use super::rule::{KnownWait, Scene, SpinRule, Suspend};

pub(super) struct Continue;

impl SpinRule for Continue {
    fn keep(&self, _: &mut Scene<'_>, _: SpinExit) -> Keep {
        Keep::Yes
    }

    fn suspend(&self, _: &mut Scene<'_>, _: KnownWait) -> Suspend {
        Suspend::Continue
    }
}
