//! Virtqueues (virtio 1.2, §2.7): the guest's side, the device's side, and what both are made of.

pub mod area;
pub mod chain;
pub mod device;
pub mod guest;
pub mod layout;
pub mod polling;
pub mod rings;
pub mod scattered;
