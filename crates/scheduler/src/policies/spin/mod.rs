//! Spin policies: what becomes of a vCPU that leaves its hart because it spins.
//!
//! This is the only list of them: a policy is one file here with a type that implements [`SpinRule`], its `mod` line and its row.
//! `docs/how-to-add-a-policy.md` is a guide that a test follows.

pub mod exit;
pub(crate) mod rule;

mod directed;
mod none;
mod not_same;
mod reservation;
mod rslp;
mod wapd;
mod wopd;
mod yielding;

use rule::SpinRule;

/// Makes the policies of rows `Variant = "name": rule`.
macro_rules! spin_policies {
    ($($(#[$documentation:meta])* $policy:ident = $name:literal: $rule:expr,)+) => {
        /// Spin policy.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum SpinPolicy {
            $($(#[$documentation])* $policy,)+
        }

        impl SpinPolicy {
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

            /// Implementation of the policy.
            pub(crate) fn rule(self) -> &'static dyn SpinRule {
                match self {
                    $(Self::$policy => &$rule,)+
                }
            }
        }
    };
}

spin_policies! {
    /// Spins are not trapped: a spinning vCPU keeps its hart until its slice ends.
    None = "none": none::Continue,
    /// Wait for one partner to be dispatched (paper 000 §3.2).
    Wopd = "wopd": wopd::OnePartner,
    /// Wait for all partners to be dispatched (paper 000 §3.2).
    Wapd = "wapd": wapd::AllPartners,
    /// Requeue the spinning vCPU last (paper 000 §3.2).
    Rslp = "rslp": rslp::Requeue,
    /// Requeue the spinning vCPU behind all of its priority, as Xen's credit scheduler does (paper 004 §4.1 runs Xen 4.5).
    Yield = "yield": yielding::Yield,
    /// Never give the slice back to the vCPU that has just left (paper 004 §4.4).
    NotSame = "not-same": not_same::NotSame,
    /// Run one sibling that was preempted in its kernel, in turn, as KVM does.
    Directed = "directed": directed::Directed,
    /// Wait until the word that the vCPU waits on has changed.
    Reservation = "reservation": reservation::Reservation,
    /// Co-schedule the VM's vCPUs by Ousterhout's matrix; spins are not suspended (`src/gang`).
    Gang = "gang": none::Continue,
}
