//! Each rule of the papers, and each of ours, by itself.

mod bench;
mod gang;
mod in_place;
mod partners;
mod queues;
mod reservation;
mod spins;
mod terms;
mod vm_boost;
mod waits;
mod wakeup_preemption;
