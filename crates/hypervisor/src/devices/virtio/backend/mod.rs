//! Backends of virtio devices: a device of the board for one VM alone ([`mediated`]), and emulated devices by which several VMs share one of the
//! board's ([`disk`], [`switch`]) or its memory ([`balloon`]).
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

pub mod balloon;
pub mod disk;
pub mod mediated;
pub mod switch;
