//! Additional cycles, with which the hypervisor stands for another one whose steps took longer (paper 002's).
//!
//! The cycles are spent where the other hypervisor would have spent them, and charged there: cycles in the handling of an exit are
//! simulation, cycles in a pass through the scheduler are scheduling, and both passes and dispatches hold the
//! scheduler's lock meanwhile, through which all of the paper's processors had to go. Without a setting no cycles are spent.

use abi::keys::{self, Settings};
use scheduler::Dispatch;

use crate::hart;

/// Costs of the hypervisor's work, in cycles of the hart that does it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Costs {
    /// Cost of each interrupt of a waiting vCPU that interrupts the hypervisor.
    pub host_interrupt: u64,
    /// Cost of each pass through the scheduler that finds nothing to run.
    futile_pass: u64,
    /// Cost of each dispatch.
    dispatch: u64,
    /// Cost of each change from the guest to the hypervisor, and again of each change back.
    pub mode_change: u64,
}

impl Costs {
    /// The costs that a description gives.
    #[must_use]
    pub fn of(settings: &Settings) -> Self {
        let cycles = |key| settings.get::<u32>(key).into();
        Self {
            host_interrupt: cycles(keys::HOST_INTERRUPT_COST),
            futile_pass: cycles(keys::FUTILE_PASS_COST),
            dispatch: cycles(keys::DISPATCH_COST),
            mode_change: cycles(keys::MODE_CHANGE_COST),
        }
    }

    /// Cost of the pass through the scheduler that came to `decision`.
    #[must_use]
    pub fn of_pass<V, S>(&self, decision: &Dispatch<V, S>) -> u64 {
        match decision {
            Dispatch::Run { .. } => self.dispatch,
            Dispatch::Idle { .. } => self.futile_pass,
        }
    }
}

/// Spends so many cycles, and the few of the loop.
#[inline]
pub fn spend(cycles: u64) {
    if cycles == 0 {
        return;
    }
    let start = hart::cycles();
    while hart::cycles().wrapping_sub(start) < cycles {
        core::hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use scheduler::{Kicks, VcpuSet};

    use super::*;

    #[test]
    fn cost_of_a_pass_follows_its_decision() {
        let settings = Settings::default()
            .with(keys::FUTILE_PASS_COST, 20)
            .with(keys::DISPATCH_COST, 300);
        let costs = Costs::of(&settings);
        let idle: Dispatch = Dispatch::Idle {
            watch: VcpuSet::EMPTY,
            poll: false,
            active: false,
            kicks: Kicks::NONE,
        };
        assert_eq!(costs.of_pass(&idle), 20);
        assert_eq!((costs.host_interrupt, costs.mode_change), (0, 0));
        assert_eq!(Costs::default().of_pass(&idle), 0);
    }
}
