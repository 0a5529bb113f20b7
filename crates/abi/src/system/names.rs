//! Names of the nodes and properties of a system's description.

/// The root's `compatible`.
pub const COMPATIBLE_VALUE: &str = "partita,system";

/// Root: `<string>`, [`COMPATIBLE_VALUE`]. Required.
pub const COMPATIBLE: &str = "compatible";
/// Root: `<u32>`, microseconds. Without it, by the speed of the hart that boots.
pub const TIME_SLICE_US: &str = "time-slice-us";
/// Root: `<string>`, a [`SpinMethod`](super::SpinMethod). Required.
pub const SPIN: &str = "spin";
/// Root: `<string>`, a [`WaitMethod`](super::WaitMethod). Required.
pub const WAIT: &str = "wait";
/// Root: `<string>`, a [`Migration`](super::Migration). Optional, `as-needed` without it.
pub const MIGRATION: &str = "migration";
/// Root: `<string>`, a [`Queue`](super::Queue). Optional, `single` without it.
pub const QUEUE: &str = "queue";
/// Root: `<string>`, a [`Scheduling`](super::Scheduling). Optional, `floating` without it.
pub const SCHEDULING: &str = "scheduling";
/// Root: `<string>`, a [`Translations`](super::Translations). Optional, `last-host` without it.
pub const TRANSLATIONS: &str = "translations";
/// Root: `<string>`, a [`Purging`](super::Purging). Optional, `fence` without it.
pub const PURGE: &str = "purge";
/// Root: `<string>`, a [`RemoteFences`](super::RemoteFences). Optional, `precise` without it.
pub const REMOTE_FENCES: &str = "remote-fences";
/// Root: `<u32>`, in [`AFFINITY`](super::AFFINITY). Optional.
pub const AFFINITY: &str = "affinity";
/// Root: `<u32>`, in [`SELF_WAIT_BUDGET`](super::SELF_WAIT_BUDGET). Optional.
pub const SELF_WAIT_BUDGET: &str = "self-wait-budget";
/// Root: `<u32>`, microseconds, in [`RESERVATION_LIMIT_US`](super::RESERVATION_LIMIT_US) and not below [`TIME_SLICE_US`].
/// Optional.
pub const RESERVATION_LIMIT_US: &str = "reservation-limit-us";
/// Root: `<u32>`, in [`ROUND`](super::ROUND). Optional.
pub const ROUND: &str = "round";
/// Root: `<u32>`, in [`RELAXED_TERMS`](super::RELAXED_TERMS). Optional, 1 without it.
pub const RELAXED_TERMS: &str = "relaxed-terms";
/// Root: `<u32>`, cycles, in [`COST`](super::COST). Optional, 0 without it; so are the next three.
pub const HOST_INTERRUPT_COST: &str = "host-interrupt-cost";
/// Root: as before.
pub const FUTILE_PASS_COST: &str = "futile-pass-cost";
/// Root: as before.
pub const DISPATCH_COST: &str = "dispatch-cost";
/// Root: as before.
pub const MODE_CHANGE_COST: &str = "mode-change-cost";
/// Root or VM: `<u32>`, cycles, in [`PAUSE_LOOP`](super::PAUSE_LOOP). Optional, 128 without it.
pub const PLE_GAP: &str = "ple-gap";
/// Root or VM: `<u32>`, cycles, in [`PAUSE_LOOP`](super::PAUSE_LOOP). Optional, 4096 without it.
pub const PLE_WINDOW: &str = "ple-window";
/// Root or VM: `<u32>`, cycles, in [`PAUSE_LOOP`](super::PAUSE_LOOP). Optional, [`PLE_WINDOW`]'s without it.
pub const PLE_WINDOW_MOST: &str = "ple-window-most";
/// Root: `<string>`, the name of the VM that has the console at the start. Optional.
pub const CONSOLE_FOCUS: &str = "console-focus";
/// Root: `<string>`, a [`WhenIdle`](super::WhenIdle). Optional, `power-off-after-all` without it.
pub const WHEN_IDLE: &str = "when-idle";

/// Root: a row of `<u32>`, virtio-mmio slots of the disks that VMs share, in rising order. Optional, none without it.
pub const SHARED_DISKS: &str = "shared-disks";

/// Root: a row of `<u32>`, one for each switch between VMs: the virtio-mmio slot of its uplink's card, or `0xffff_ffff`. Optional, none without
/// it.
pub const SWITCHES: &str = "switches";

/// The node under the root that holds the VMs.
pub const VMS_NODE: &str = "vms";
/// What a VM's node is called before `@` and its number in hexadecimal.
pub const VM_NODE: &str = "vm";

/// VM: `<string>`. Required.
pub const NAME: &str = "name";
/// VM: `<string>`, a [`Scheduling`](super::Scheduling). Optional, the root's without it.
pub const VM_SCHEDULING: &str = SCHEDULING;
/// VM: `<u32>`. Required.
pub const VCPUS: &str = "vcpus";
/// VM: `<u64>`, bytes. Required.
pub const MEMORY: &str = "memory";
/// VM: `<string>`, a [`Placement`](super::Placement). Required.
pub const PLACEMENT: &str = "placement";
/// VM: `<string>`, a [`VmTranslation`](super::VmTranslation). Optional, two-stage without it.
pub const TRANSLATION: &str = "translation";
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
/// VM: a row of `<u32>`, those of its slots whose devices the hypervisor simulates. Optional, none without it.
pub const SIMULATED: &str = "simulated";
/// VM: a row of `<u32>`, those of [`SIMULATED`] that are simulated the fast way. Optional, none without it.
pub const FAST: &str = "fast";
/// VM: rows of six `<u32>`, each a [`SliceDescription`](super::SliceDescription). Optional, none without it.
pub const SLICES: &str = "slices";
/// VM: a row of `<u32>`, the switches of which it has a port, by their places in [`SWITCHES`]. Optional, none without it.
pub const PORTS: &str = "ports";
/// VM: empty; there or not. Whether it has a balloon, by which its guest gives pages back. Only with placement `paged`.
pub const BALLOON: &str = "balloon";
/// VM: `<string>`, names of [`HIDEABLE`](super::HIDEABLE) extensions with spaces between them. Optional, none without it.
pub const HIDE: &str = "hide";
/// VM: empty; there or not.
pub const AUTOSTART: &str = "autostart";
/// VM: `<string>`, an [`OnFailure`](super::OnFailure). Optional, `stop` without it.
pub const ON_FAILURE: &str = "on-failure";
