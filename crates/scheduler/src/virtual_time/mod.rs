//! `virtual-time`: one account of virtual time a VM ([`Account`](crate::policies::account::Account)) says what each hart runs next.
//!
//! - [`accounts`]: who pays what, and the mean that VMs are compared with;
//! - [`gangs`]: the VM that gets its harts together for a slice, because it loses time at locks otherwise;
//! - [`next`]: the vCPU that a hart runs next, and the one that preempts.
//!
//! There are no service rounds, no debts, and no boosts. Spins wait for their words as under `reservation`.

mod accounts;
mod gangs;
mod next;
