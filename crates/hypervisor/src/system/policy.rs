//! Changes of policy while the system runs.

use abi::system::SpinMethod;
use scheduler::{SpinPolicy, WaitPolicy};

use crate::system::Hypervisor;
use crate::system::harts;
use crate::system::interrupt_port;

/// Changes what becomes of waiting vCPUs. All harts are told, and set hgeie before they go on.
pub fn set_wait(system: &Hypervisor, policy: WaitPolicy) {
    system.use_host_interrupts(!policy.tests());
    system.set_wait(policy);
    interrupt_port::watch_as_wanted(system, harts::current());
}

/// The scheduler's policy for the description's method.
#[must_use]
pub fn spin_policy(method: SpinMethod) -> SpinPolicy {
    match method {
        SpinMethod::None => SpinPolicy::None,
        SpinMethod::Wopd => SpinPolicy::Wopd,
        SpinMethod::Wapd => SpinPolicy::Wapd,
        SpinMethod::Rslp => SpinPolicy::Rslp,
        SpinMethod::Yield => SpinPolicy::Yield,
        SpinMethod::NotSame => SpinPolicy::NotSame,
        SpinMethod::Directed => SpinPolicy::Directed,
        SpinMethod::Reservation | SpinMethod::Oracle => SpinPolicy::Reservation,
    }
}
