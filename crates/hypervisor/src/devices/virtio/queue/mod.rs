//! Virtqueues (virtio 1.2, §2.7): the guest's side, the device's side, and their common parts.

pub mod area;
pub mod chain;
pub mod device;
pub mod guest;
pub mod layout;
pub mod polling;
pub mod rings;
pub mod scattered;
