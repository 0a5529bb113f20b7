//! The description of a system: `partita.dtb` inside the system image.
//!
//! The laboratory compiles it from TOML; the hypervisor reads it with [`SystemDescription::parse`]. It is a
//! flattened device tree because every boot path of RISC-V already carries them:
//!
//! ```text
//! / {
//!     compatible = "partita,system";
//!     time-slice = <5000>;                     // microseconds
//!     spin = "wopd";                           // these and every other property row of the table of keys may be left out
//!     affinity = <0>;
//!     vms {
//!         vm@0 {
//!             name = "web";
//!             vcpus = <4>;
//!             memory = /bits/ 64 <0x20000000>;
//!             placement = "real";
//!             share = <30>;                    // or dedicated-harts = <2 3>;
//!             kernel = "web/kernel";
//!             initrd = "web/initrd";
//!             bootargs = "console=ttyS0";
//!             devices = <0 1>;                 // virtio-mmio slots of the board
//!             given = "/soc/rtc@101000";       // nodes of the board's device tree
//!             autostart = <0>;
//!             on-failure = "restart";
//!         };
//!     };
//! };
//! ```
//!
//! A property that is neither in [`names`] nor a property row of [`keys`](crate::keys) is an error: a system that says more than the hypervisor
//! understands must not boot as if it had said less.

mod description;
mod error;
mod hidden;
mod identifiers;
pub mod names;
mod parse;
mod served;
mod slices;
mod switches;
#[cfg(test)]
mod tests;

pub use crate::keys::limits;
pub use crate::keys::limits::{
    MAX_BOARD_SLOTS, MAX_BOOTARGS_LENGTH, MAX_GUEST_FILES, MAX_HARTS, MAX_NAME_LENGTH, MAX_SERVED,
    MAX_SHARING, MAX_SLICES, MAX_SLOTS, MAX_SWITCHES, MAX_TERMINALS, MAX_VCPUS,
    MAX_VCPUS_OF_A_SCHEDULER, MAX_VCPUS_PER_VM, MAX_VMS, MEMORY_GRANULE, SECTOR, SHADOW_BYTES,
    SHARE,
};
pub use crate::keys::{
    Confined, Io, Migration, OnFailure, PausePreset, Placement, Purging, RemoteFences, RunQueue,
    Scheduling, SpinMethod, TlbPurge, VmTranslation, WaitMethod, WhenIdle,
};
pub use description::{Allocation, PauseLoops, SystemDescription, VmDescription};
pub use error::{Problem, Subject, SystemError, ValueText};
pub use hidden::{HIDEABLE, Hidden};
pub use identifiers::{HartId, HartSet, RESERVED_NAME, Slot, VmId, VmName};
pub use served::ServedDisk;
pub use slices::{SliceDescription, Slices};
pub use switches::SwitchDescription;

/// The file in the system image that holds the description.
pub const FILE_NAME: &str = "partita.dtb";
