//! Description of a system and of its VMs.

use super::{
    HartSet, Hidden, MAX_SLOTS, MAX_SWITCHES, MAX_VMS, ServedDisk, Slices, Slot, SwitchDescription,
    VmId, VmName,
};
use crate::keys::{self, Key, Settings, Value};
use arrayvec::ArrayVec;

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
    /// Number of vCPUs, from 1 to [`MAX_VCPUS_PER_VM`](super::MAX_VCPUS_PER_VM).
    pub vcpus: u32,
    /// Size of its memory in bytes, a multiple of [`MEMORY_GRANULE`](super::MEMORY_GRANULE).
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
    /// Paths of the devices that the VM is given, with spaces between them.
    pub given: &'a str,
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
    /// The disks that VMs serve to others. They are numbered behind [`Self::disks`].
    pub served: ArrayVec<ServedDisk, MAX_SLOTS>,
    /// The switches between VMs.
    pub switches: ArrayVec<SwitchDescription, MAX_SWITCHES>,
    /// The VMs; a [`VmId`] is a place here.
    pub vms: ArrayVec<VmDescription<'a>, MAX_VMS>,
}

impl<'a> SystemDescription<'a> {
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

    /// The VM that serves a disk of this number, if one does.
    pub fn server_of(&self, disk: u32) -> Option<VmId> {
        let place = (disk as usize).checked_sub(self.disks.len())?;
        self.served.get(place).map(|served| served.server)
    }

    /// Returns true if the VM serves a disk.
    pub fn serves(&self, vm: VmId) -> bool {
        self.served.iter().any(|served| served.server == vm)
    }

    /// The VM with this name.
    pub fn find(&self, name: &str) -> Option<VmId> {
        let index = self.vms.iter().position(|vm| vm.name.as_str() == name)?;
        u8::try_from(index).ok().map(VmId)
    }
}
