//! Changes of policy while the system runs.

use abi::system::SpinMethod;
use scheduler::{SpinPolicy, WaitPolicy};

use crate::system::Hypervisor;
use crate::system::harts;
use crate::system::interrupt_port;

/// Changes the wait policy. All harts are kicked, and set hgeie before they go on.
pub fn set_wait(system: &Hypervisor, policy: WaitPolicy) {
    system.use_host_interrupts(!policy.tests());
    system.set_wait(policy);
    interrupt_port::watch_as_wanted(system, harts::current());
}

/// Scheduler's policy for a method of the description: the one with the same name. `oracle` is `reservation` with the holder that the machine
/// names.
#[must_use]
pub fn spin_policy(method: SpinMethod) -> SpinPolicy {
    let same = match method {
        SpinMethod::Oracle => SpinMethod::Reservation,
        method => method,
    };
    // A test finds the policy of each method.
    SpinPolicy::from_name(same.name()).unwrap_or(SpinPolicy::None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_and_policies_have_the_same_names() {
        let methods = SpinMethod::ALL.iter().copied();
        for method in methods.filter(|&method| method != SpinMethod::Oracle) {
            assert_eq!(spin_policy(method).name(), method.name());
        }
        for policy in SpinPolicy::ALL {
            let method = SpinMethod::from_name(policy.name());
            assert_eq!(method.map(spin_policy), Some(policy), "{}", policy.name());
        }
    }
}
