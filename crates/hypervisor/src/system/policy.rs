//! Changes of policy while the system runs.

use scheduler::WaitPolicy;

use crate::system::Hypervisor;
use crate::system::harts;
use crate::system::interrupt_port;

/// Changes what becomes of waiting vCPUs. All harts are told, and set hgeie before they go on.
pub fn set_wait(system: &Hypervisor, policy: WaitPolicy) {
    system.use_host_interrupts(!policy.tests());
    system.set_wait(policy);
    interrupt_port::watch_as_wanted(system, harts::current());
}
