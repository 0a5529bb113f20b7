//! Dispatching: the scheduler's tables, and what happens to vCPUs and harts.
//!
//! [`table`] has the [`Scheduler`](table::Scheduler). Each other file has a part of its methods: events of vCPUs ([`event`], [`leave`]), the choice of
//! the next vCPU ([`decide`], [`search`], [`ready`]), the harts that are kicked for work ([`assign`]), and the operator's changes.

mod allocation;
mod assign;
mod decide;
mod devices;
mod event;
pub(crate) mod hart;
mod leave;
mod operator;
mod ready;
mod search;
mod service;
pub(crate) mod soundness;
mod spins;
pub(crate) mod table;
pub(crate) mod transfer;
pub(crate) mod vcpu;
mod wait_in_place;
