//! Names of the nodes and properties of a system's description, apart from those of the property rows of [`keys`](crate::keys).
//! A property row is a `<string>` for a word, and a `<u32>` for a number, a time in microseconds, or a flag (0 or 1). Each is optional.

/// The root's `compatible`.
pub const COMPATIBLE_VALUE: &str = "partita,system";

/// Root: `<string>`, [`COMPATIBLE_VALUE`]. Required.
pub const COMPATIBLE: &str = "compatible";
/// Root: `<string>`, the name of the VM that has the console at the start. Optional.
pub const CONSOLE_FOCUS: &str = "console-focus";

/// Root: a row of `<u32>`, virtio-mmio slots of the disks that VMs share, in rising order. Optional, none without it.
pub const SHARED_DISKS: &str = "shared-disks";

/// Root: rows of three `<u32>`, each a [`ServedDisk`](super::ServedDisk) without its name. Optional, none without it.
pub const SERVED_DISKS: &str = "served-disks";
/// Root: `<string>`, the names of the disks of [`SERVED_DISKS`] with spaces between them. As many as there are disks.
pub const SERVED_NAMES: &str = "served-names";

/// Root: a row of `<u32>`, one for each switch between VMs: the virtio-mmio slot of its uplink's card, or `0xffff_ffff`. Optional, none without
/// it.
pub const SWITCHES: &str = "switches";

/// The node under the root that holds the VMs.
pub const VMS_NODE: &str = "vms";
/// Name of a VM's node, before `@` and the VM's number in hexadecimal.
pub const VM_NODE: &str = "vm";

/// VM: `<string>`. Required.
pub const NAME: &str = "name";
/// VM: `<u32>`. Required.
pub const VCPUS: &str = "vcpus";
/// VM: `<u64>`, bytes. Required.
pub const MEMORY: &str = "memory";
/// VM: `<u32>`. Either this or [`DEDICATED_HARTS`].
pub const SHARE: &str = "share";
/// VM: a row of `<u32>`. Either this or [`SHARE`].
pub const DEDICATED_HARTS: &str = "dedicated-harts";
/// VM: `<string>`, a path in the system image. Required.
pub const KERNEL: &str = "kernel";
/// VM: `<string>`, a path in the system image. Optional.
pub const INITRD: &str = "initrd";
/// VM: `<string>`. Optional, empty without it.
pub const BOOTARGS: &str = "bootargs";
/// VM: a row of `<u32>`, virtio-mmio slots. Optional, none without it.
pub const DEVICES: &str = "devices";
/// VM: `<string>`, paths of nodes of the board's device tree with spaces between them: devices that the VM is given. Optional, none without it.
pub const GIVEN: &str = "given";
/// VM: a row of `<u32>`, those of its slots whose devices the hypervisor mediates. Optional, none without it.
pub const MEDIATED: &str = "mediated";
/// VM: a row of `<u32>`, those of [`MEDIATED`] that are mediated the fast way. Optional, none without it.
pub const FAST: &str = "fast";
/// VM: rows of six `<u32>`, each a [`SliceDescription`](super::SliceDescription). Optional, none without it.
pub const SLICES: &str = "slices";
/// VM: a row of `<u32>`, the switches of which it has a port, by their places in [`SWITCHES`]. Optional, none without it.
pub const PORTS: &str = "ports";
/// VM: `<string>`, names of [`HIDEABLE`](super::HIDEABLE) extensions with spaces between them. Optional, none without it.
pub const HIDE: &str = "hide";
