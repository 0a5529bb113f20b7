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
//!             autostart = <0>;
//!             on-failure = "restart";
//!         };
//!     };
//! };
//! ```
//!
//! A property that is neither in [`names`] nor a property row of [`keys`] is an error: a system that says more than the hypervisor
//! understands must not boot as if it had said less.

mod error;
mod hidden;
pub mod names;
mod parse;
mod slices;
mod switches;
#[cfg(test)]
mod tests;

pub use crate::keys::limits;
pub use crate::keys::limits::{
    MAX_BOARD_SLOTS, MAX_BOOTARGS_LENGTH, MAX_GUEST_FILES, MAX_HARTS, MAX_NAME_LENGTH, MAX_SHARING,
    MAX_SLICES, MAX_SLOTS, MAX_SWITCHES, MAX_TERMINALS, MAX_VCPUS, MAX_VCPUS_OF_A_SCHEDULER,
    MAX_VCPUS_PER_VM, MAX_VMS, MEMORY_GRANULE, SECTOR, SHADOW_BYTES, SHARE,
};
pub use crate::keys::{
    Io, Migration, OnFailure, PausePreset, Placement, Purging, RemoteFences, RunQueue, Scheduling,
    SpinMethod, TlbPurge, VmTranslation, WaitMethod, WhenIdle,
};
pub use error::{Problem, Subject, SystemError, ValueText};
pub use hidden::{HIDEABLE, Hidden};

pub use slices::{SliceDescription, Slices};
pub use switches::SwitchDescription;

use crate::keys::{self, Key, Settings, Value};
use arrayvec::{ArrayString, ArrayVec};
use core::fmt;

/// The file in the system image that holds the description.
pub const FILE_NAME: &str = "partita.dtb";
/// A name that no VM may have: the hypervisor's own lines on the console carry it.
pub const RESERVED_NAME: &str = "partita";

/// A VM by its number, which is its place in the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VmId(pub u8);

impl VmId {
    /// The place in the description.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// A hart by its number as the board's device tree gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HartId(pub u32);

/// A virtio-mmio slot of the board, from 0 at the lowest address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(pub u8);

macro_rules! display_number {
    ($($kind:ident)*) => {
        $(impl fmt::Display for $kind {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        })*
    };
}
display_number!(VmId HartId Slot);

/// A VM's name: a letter, then letters, digits, `-` and `_`, in ASCII; never [`RESERVED_NAME`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VmName(ArrayString<MAX_NAME_LENGTH>);

impl VmName {
    /// Checks a name; `None` if it is not one.
    pub fn new(name: &str) -> Option<Self> {
        let mut bytes = name.bytes();
        let first = bytes.next()?.is_ascii_alphabetic();
        let rest = bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        if !first || !rest || name == RESERVED_NAME {
            return None;
        }
        Some(Self(ArrayString::from(name).ok()?))
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for VmName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// A set of harts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HartSet(u64);

impl HartSet {
    /// The set of no harts.
    pub const EMPTY: Self = Self(0);

    /// Adds a hart. False, and nothing changes, if it is there already or its number is not below [`MAX_HARTS`].
    pub fn insert(&mut self, hart: HartId) -> bool {
        let bit = 1u64.checked_shl(hart.0).unwrap_or(0);
        let new = bit != 0 && self.0 & bit == 0;
        self.0 |= bit;
        new
    }

    /// Returns true if the hart is in the set.
    pub fn contains(self, hart: HartId) -> bool {
        1u64.checked_shl(hart.0)
            .is_some_and(|bit| self.0 & bit != 0)
    }

    /// Number of harts in the set.
    pub fn len(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns true if the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The harts in both sets.
    pub fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// The harts in either set.
    pub fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The harts, lowest number first.
    pub fn iter(self) -> impl Iterator<Item = HartId> {
        (0..MAX_HARTS)
            .map(HartId)
            .filter(move |hart| self.contains(*hart))
    }

    /// The set as a mask: bit N stands for hart N.
    pub fn mask(self) -> u64 {
        self.0
    }
}

/// Allocation of harts to a VM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Allocation {
    /// Its vCPUs take turns with those of other VMs on the shared harts.
    Shared {
        /// Its part of them, relative to the other VMs' shares.
        share: u32,
    },
    /// Each of its vCPUs has one of these harts to itself, the first vCPU the lowest.
    Dedicated {
        /// Dedicated harts, as many as the VM has vCPUs.
        harts: HartSet,
    },
}

/// Pause-loop exiting of a VM, on harts that have it (`xpartitaple`), in cycles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PauseLoops {
    /// Greatest distance between two PAUSEs of one loop.
    pub gap: u32,
    /// Time after which a loop exits; 0 is never.
    pub window: u32,
    /// Bound of the window, which doubles at each exit until the vCPU is dispatched again.
    pub window_max: u32,
}

/// One virtual machine.
#[derive(Debug, Clone)]
pub struct VmDescription<'a> {
    /// Its name, unique in the system.
    pub name: VmName,
    /// Number of vCPUs, from 1 to [`MAX_VCPUS_PER_VM`].
    pub vcpus: u32,
    /// Size of its memory in bytes, a multiple of [`MEMORY_GRANULE`].
    pub memory: u64,
    /// Allocation of harts.
    pub allocation: Allocation,
    /// The kernel's path in the system image.
    pub kernel: &'a str,
    /// The initial RAM disk's path in the system image.
    pub initrd: Option<&'a str>,
    /// The kernel's command line.
    pub bootargs: &'a str,
    /// The virtio-mmio slots that are the VM's own, in rising order; no other VM has them.
    pub devices: ArrayVec<Slot, MAX_SLOTS>,
    /// Devices whose registers trap, and whose queues the hypervisor mediates.
    pub mediated: ArrayVec<Slot, MAX_SLOTS>,
    /// Mediated devices on the fast path.
    pub fast: ArrayVec<Slot, MAX_SLOTS>,
    /// The slices of disks that it has.
    pub slices: Slices<'a>,
    /// The switches of which it has a port, each a place in [`SystemDescription::switches`].
    pub ports: ArrayVec<u8, MAX_SWITCHES>,
    /// Extensions that its guest is not told of.
    pub hidden: Hidden,
    /// The values that its node gives for other keys.
    pub settings: Settings,
}

impl VmDescription<'_> {
    /// Value of a key of the VM's own.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        self.settings.get(key)
    }
}

/// A system for the hypervisor to run.
#[derive(Debug, Clone)]
pub struct SystemDescription<'a> {
    /// The values that the root gives for keys.
    pub settings: Settings,
    /// The VM that has the console at the start.
    pub console_focus: Option<VmId>,
    /// The slots of the disks that VMs share.
    pub disks: ArrayVec<Slot, MAX_SLOTS>,
    /// The switches between VMs.
    pub switches: ArrayVec<SwitchDescription, MAX_SWITCHES>,
    /// The VMs; a [`VmId`] is a place here.
    pub vms: ArrayVec<VmDescription<'a>, MAX_VMS>,
}

impl<'a> SystemDescription<'a> {
    /// Reads a description. Strings borrow from `dtb`.
    ///
    /// # Errors
    /// The first mistake found, by VM, property and value.
    pub fn parse(dtb: &'a [u8]) -> Result<Self, SystemError> {
        parse::parse(dtb)
    }

    /// Value of a key of the system's.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        self.settings.get(key)
    }

    /// Value of a key that a VM may give, and the system for VMs that do not.
    pub fn get_for<T: Value>(&self, vm: &VmDescription<'_>, key: Key<T>) -> T {
        let place = key.place();
        let given = vm.settings.number(place);
        key.value(given.or_else(|| self.settings.number(place)))
    }

    /// Pause-loop exiting of a VM: gap, window and the window's bound, in cycles.
    pub fn pause_loops(&self, vm: &VmDescription<'_>) -> PauseLoops {
        let window = self.get_for(vm, keys::PLE_WINDOW);
        PauseLoops {
            gap: self.get_for(vm, keys::PLE_GAP),
            window,
            window_max: self.get_for(vm, keys::PLE_WINDOW_MAX).unwrap_or(window),
        }
    }

    /// The VM with this name.
    pub fn find(&self, name: &str) -> Option<VmId> {
        let index = self.vms.iter().position(|vm| vm.name.as_str() == name)?;
        u8::try_from(index).ok().map(VmId)
    }
}
