//! Each rule of the papers, and each of ours, by itself.

mod bench;
mod queues;
mod spins;
mod terms;
mod waits;
