//! Power-off when no VM runs any more.

use abi::monitor::VmState;
use abi::system::WhenIdle;

/// Returns true if the power goes off after a VM has ended and all VMs are in these states.
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
    fn defined_vm_delays_power_off_after_all() {
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
