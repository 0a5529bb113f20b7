//! Each rule of the papers, and each of ours, by itself.

mod behind;
mod bench;
mod favoured;
mod in_place;
mod partners;
mod queues;
mod reservation;
mod spins;
mod terms;
mod waits;
