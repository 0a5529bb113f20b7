//! Groups of harts: a scheduler for each hart, so that the cost of a decision does not grow with the computer.
//!
//! A [`Group`] is a [`Scheduler`](crate::Scheduler) for its own harts, with queues, masks and accounts of its own, under a lock of its own. A vCPU is in
//! one group at a time. [`migration`], [`balance`] and the operator's changes move vCPUs between groups; the [`Directory`] says where each is.
//! `docs/why/scheduling.md` has the argument.
//!
//! The hypervisor keeps the groups under their locks and is reached by [`Access`]. With one group, vCPUs' numbers are their places.

pub mod balance;
pub mod migration;
pub mod operator;

mod access;
mod directory;
mod group;
mod layout;
mod ledger;
mod load_bits;
mod numbers;

pub use access::{Access, wake_all};
pub use directory::{Directory, GroupId, MAX_GROUPS, Place};
pub use group::Group;
pub use layout::Layout;
pub use ledger::Ledger;
pub use load_bits::{Flow, LoadBits};
pub use numbers::{Members, NumberSet};
