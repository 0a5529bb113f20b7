//! Wait policies: how a vCPU that waits for its own interrupts is found when one comes.
//!
//! This is the only list of them: a policy is its [`Rules`], in one file, and its row.

pub(crate) mod rules;

mod active_wait;
mod host_interrupt;
mod self_wait;

use rules::Rules;

/// Makes the policies of rows `Variant = "name": rules`.
macro_rules! wait_policies {
    ($($(#[$documentation:meta])* $policy:ident = $name:literal: $rules:expr,)+) => {
        /// Wait policy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum WaitPolicy {
            $($(#[$documentation])* $policy,)+
        }

        impl WaitPolicy {
            /// Every policy.
            pub const ALL: [Self; [$($name),+].len()] = [$(Self::$policy),+];

            /// Name in configuration files and at the operator's prompt.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$policy => $name,)+
                }
            }

            /// Policy with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.into_iter().find(|policy| policy.name() == name)
            }

            /// Rules of the policy.
            pub(crate) const fn rules(self) -> Rules {
                match self {
                    $(Self::$policy => $rules,)+
                }
            }
        }
    };
}

wait_policies! {
    /// A host interrupt makes the vCPU ready and wakes one idle hart: the conventional method (paper 002 §2), with the count of workloads of
    /// §3.5.
    HostInterrupt = "host-interrupt": host_interrupt::ONE_HART,
    /// A host interrupt makes the vCPU ready and wakes every idle hart: the conventional method as it was.
    HostInterruptAll = "host-interrupt-all": host_interrupt::EVERY_HART,
    /// `host-interrupt-all` with active wait (paper 002 §3.5): idle harts do not sleep but poll whether something has happened, and every event
    /// sends all of them through the scheduler.
    ActiveWaitAll = "active-wait-all": active_wait::EVERY_HART,
    /// No host interrupt: pending interrupts are tested, and the vCPU is dispatched out of the self-wait queue (paper 002 §3.4). Only the vCPU
    /// that has one becomes ready.
    SelfWait = "self-wait": self_wait::ONE_VCPU,
    /// `self-wait`, but all self-waiting vCPUs of the VM become ready (paper 002 §3.5).
    SelfWaitAll = "self-wait-all": self_wait::WHOLE_VM,
}

impl WaitPolicy {
    /// Returns true if the interrupts of waiting vCPUs are found by tests. Otherwise they interrupt the hypervisor, which calls
    /// [`crate::Scheduler::wake`].
    #[must_use]
    pub const fn tests(self) -> bool {
        self.rules().tests
    }
}
