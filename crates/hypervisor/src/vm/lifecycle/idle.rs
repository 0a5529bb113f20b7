//! What becomes of the computer when no VM runs any more.

use abi::monitor::VmState;
use abi::system::WhenIdle;

/// Whether the power goes off, where a VM has just ended and all VMs are in these states.
#[must_use]
pub fn powers_off(when_idle: WhenIdle, mut states: impl Iterator<Item = VmState>) -> bool {
    states.all(|state| match when_idle {
        WhenIdle::PowerOff => matches!(state, VmState::Stopped | VmState::Defined),
        WhenIdle::PowerOffAfterAll => state == VmState::Stopped,
        WhenIdle::Stay => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use VmState::{Defined, Running, Stopped};

    #[test]
    fn a_vm_that_was_never_started_keeps_the_power_on_unless_that_is_unwanted() {
        let answers = |states: [VmState; 2]| {
            [
                WhenIdle::PowerOff,
                WhenIdle::PowerOffAfterAll,
                WhenIdle::Stay,
            ]
            .map(|when_idle| powers_off(when_idle, states.into_iter()))
        };
        assert_eq!(answers([Stopped, Stopped]), [true, true, false]);
        assert_eq!(answers([Stopped, Defined]), [true, false, false]);
        assert_eq!(answers([Stopped, Running]), [false, false, false]);
    }
}
