//! The table of keys.

use super::key::Key;
use super::limits::{
    MAX_BOARD_SLOTS, MAX_BOOTARGS_LENGTH, MAX_GUEST_FILES, MAX_HARTS, MAX_TERMINALS,
    MAX_VCPUS_PER_VM, MEMORY_GRANULE, SECTOR, SHARE as SHARES,
};
use super::row::{Note, Row, Scope, Takes, Without};
use super::value::{Structure, Value, agrees};
use super::words::{
    Confined, Io, Migration, OnFailure, PausePreset, Placement, Purging, RemoteFences, RunQueue,
    Scheduling, SpinMethod, TlbPurge, VmTranslation, WaitMethod, WhenIdle,
};

/// Makes the table of its rows: a constant a key, and [`ROWS`] and [`NOTES`] in the same order.
///
/// A row is `NAME: type = kind [scopes] "name", takes, without, "example";` below the sentences that say what the key is.
/// `property` rows go to the hypervisor in the description without further code; `host` rows are the laboratory's, or have code of
/// their own.
macro_rules! rows {
    (
        $(
            $(#[doc = $text:literal])+
            $key:ident: $type:ty = $kind:ident [$($scope:ident),+] $name:literal, $takes:expr, $without:expr, $example:literal;
        )+
    ) => {
        #[allow(non_camel_case_types, reason = "one variant a constant, by its name")]
        #[allow(clippy::upper_case_acronyms, reason = "as before")]
        enum Place { $($key,)+ COUNT }

        /// Number of keys.
        pub const COUNT: usize = Place::COUNT as usize;

        /// The keys, for programs.
        pub static ROWS: [Row; COUNT] = TABLE;

        const TABLE: [Row; COUNT] = [$(Row {
            name: $name,
            scopes: &[$(Scope::$scope),+],
            takes: $takes,
            without: $without,
            property: rows!(@$kind),
        }),+];

        /// The keys, for people: a note a row.
        pub static NOTES: [Note; COUNT] = [$(Note {
            text: concat!($($text),+),
            example: $example,
        }),+];

        $(
            $(#[doc = $text])+
            pub const $key: Key<$type> = Key::new(Place::$key as usize, &ROWS[Place::$key as usize]);
            const _: () = assert!(agrees(<$type as Value>::OPTIONAL, $key.row().without));
        )+
    };
    (@property) => { true };
    (@host) => { false };
}

impl<T> Key<T> {
    /// The key's note.
    pub fn note(self) -> &'static Note {
        // Both tables have the same rows.
        &NOTES[self.place()]
    }
}

const fn number(min: u32, max: u32, unit: &'static str) -> Takes {
    Takes::Number { min, max, unit }
}

const fn time(min: u64, max: u64) -> Takes {
    Takes::Time { min, max }
}

/// Memory, in multiples of the granule.
const MEMORY_SIZE: Takes = Takes::Size {
    min: MEMORY_GRANULE,
    granule: MEMORY_GRANULE,
};

/// Extra cycles of a step of the hypervisor.
const CYCLES: Takes = number(0, 1_000_000, "cycles");

/// Cycles of pause-loop exiting.
const PAUSE_CYCLES: Takes = number(0, u32::MAX, "cycles");

const REQUIRED: Without = Without::Required;
const NONE: Without = Without::Follows("none");
const OFF: Without = Without::Value(0);
const ON: Without = Without::Value(1);

/// A word by default.
macro_rules! usually {
    ($word:expr) => {
        Without::Value($word as u64)
    };
}

rows! {
    /// Number of harts of the computer.
    HARTS: u32 = host [System] "harts", number(1, MAX_HARTS, ""), REQUIRED, "4";

    /// Memory of the computer: for the hypervisor, the system image and all VMs together.
    MEMORY: Structure = host [System] "memory", MEMORY_SIZE, REQUIRED, "\"2 GiB\"";

    /// Guest interrupt files of each hart. A vCPU that has none gets its interrupts through the hypervisor.
    GUEST_INTERRUPT_FILES: Option<u32> = host [System] "guest-interrupt-files", number(0, MAX_GUEST_FILES, ""),
        Without::Follows("as many as the computer has"), "3";

    /// Longest time that a vCPU keeps a shared hart while another vCPU is ready.
    TIME_SLICE: Option<u32> = property [System] "time-slice", time(1_000, 10_000),
        Without::Follows("by the hart's speed: 1 ms, more below 125 million instructions a second"), "\"2 ms\"";

    /// Policy for a vCPU that spins at a lock. docs/why/spinning.md compares the policies.
    SPIN: SpinMethod = property [System] "spin", Takes::Word(SpinMethod::WORDS), usually!(SpinMethod::Reservation), "\"wapd\"";

    /// Policy for a vCPU that waits for an interrupt. docs/why/scheduling.md compares the policies.
    WAIT: WaitMethod = property [System] "wait", Takes::Word(WaitMethod::WORDS), usually!(WaitMethod::SelfWait), "\"self-wait\"";

    /// Action when the last running VM has ended: power the computer off, power it off if every VM has run, or stay at the operator's
    /// prompt.
    WHEN_IDLE: WhenIdle = property [System] "when-idle", Takes::Word(WhenIdle::WORDS), usually!(WhenIdle::PowerOffAfterAll), "\"stay\"";

    /// Run queues: one for all harts, or one for each hart.
    RUN_QUEUE: RunQueue = property [System] "run-queue", Takes::Word(RunQueue::WORDS), usually!(RunQueue::Global), "\"per-hart\"";

    /// Harts that may run a vCPU of a VM with a share: any shared hart, or one that is chosen when the system starts.
    SCHEDULING: Scheduling = property [System, Vm] "scheduling", Takes::Word(Scheduling::WORDS), usually!(Scheduling::Floating),
        "\"pinned\"";

    /// Rule by which a hart purges the TLB entries of a vCPU that it dispatches. docs/why/translations.md compares the rules.
    TLB_PURGE: TlbPurge = property [System] "tlb-purge", Takes::Word(TlbPurge::WORDS), usually!(TlbPurge::LastHost), "\"one-shot\"";

    /// Longest time that a vCPU waits for its watched word to change, under the spin policies that watch it. It is not below the time
    /// slice.
    RESERVATION_LIMIT: u32 = property [System] "reservation-limit", time(1_000, 1_000_000), Without::Value(100_000), "\"100 ms\"";

    /// Time after which a run is given up: the machine's time on the machine, the host's on QEMU.
    TIME_LIMIT: Option<u64> = host [System] "time-limit", time(1_000_000, 86_400_000_000), NONE, "\"2 min\"";

    /// Console that a terminal shows at the start: a VM's name, or `partita` for the operator's prompt.
    CONSOLE: Structure = host [System] "console", Takes::Name, NONE, "\"partita\"";

    /// Date and time of day in UTC at power-on, or `host` for the host's clock. A run with the host's clock cannot be repeated.
    DATE: Structure = host [System] "date", Takes::Text(usize::MAX), Without::Follows("2025-01-01T00:00:00Z, or `host` if a network reaches the host"),
        "\"2026-01-31T12:00:00Z\"";

    /// Network of the VMs that reaches the host's network, by QEMU's user-mode networking; QEMU must be installed. Such a run cannot be
    /// repeated.
    HOST_NETWORK: Structure = host [System] "host-network", Takes::Name, NONE, "\"lan\"";

    /// Ports of the host's loopback address that lead to guests, with spaces between them: `HOST:GUEST` for the first guest,
    /// `HOST:ADDRESS:GUEST` for any guest.
    FORWARD: Structure = host [System] "forward", Takes::Text(usize::MAX), NONE, "\"2222:22 8080:10.0.2.16:80\"";

    /// Virtual machines, by their names.
    VMS: Structure = host [System] "vm", Takes::Named(&[Scope::Vm]), REQUIRED, "{ web = { vcpus = 1 } }";

    /// Disks that VMs share, by their names.
    SHARED_DISKS: Structure = host [System] "disk", Takes::Named(&[Scope::SharedDisk, Scope::ServedDisk]), NONE, "{ disk0 = { file = \"image:debian/disk\" } }";

    /// Switches between VMs, by the names of their networks.
    SWITCHES: Structure = host [System] "switch", Takes::Named(&[Scope::Switch]), NONE, "{ lan = {} }";

    /// Parameters for experiments, which no system needs.
    EXPERIMENT: Structure = host [System] "experiment", Takes::Table(Scope::Experiment), NONE, "{ affinity = 0 }";

    /// Migration of vCPUs between harts: as needed, or at every dispatch, which tests whatever must follow a vCPU.
    MIGRATION: Migration = property [Experiment] "migration", Takes::Word(Migration::WORDS), usually!(Migration::AsNeeded), "\"always\"";

    /// Way to purge a vCPU's TLB entries: by a fence, or by a new VMID.
    PURGE: Purging = property [Experiment] "purge", Takes::Word(Purging::WORDS), usually!(Purging::Fence), "\"new-vmid\"";

    /// Reach of a fence that a guest asks for on its other vCPUs: what it names, or one of the simplifications of paper 003.
    REMOTE_FENCES: RemoteFences = property [Experiment] "remote-fences", Takes::Word(RemoteFences::WORDS), usually!(RemoteFences::Precise),
        "\"any-address\"";

    /// Length of a service round, over which VMs get their shares, in slices of each shared hart.
    ROUND: Option<u32> = property [Experiment] "round", number(2, 1024, "slices"), Without::Follows("10 ms, and at least two slices"), "8";

    /// Times that the scheduler may prefer a vCPU that ran on this hart last, and finds its caches warm, to the one that is first in the queue.
    /// 0 keeps the order of the queue.
    AFFINITY: u32 = property [Experiment] "affinity", number(0, 64, "dispatches"), Without::Value(3), "0";

    /// vCPUs that a hart dispatches from the self-wait queue in a row while other vCPUs are ready.
    SELF_WAIT_BUDGET: u32 = property [Experiment] "self-wait-budget", number(1, 1024, "vCPUs"), Without::Value(16), "16";

    /// Makes WFI and WRS trap, and time slices end, even if no other vCPU wants the hart. Set it to count every wait as an exit; it costs time.
    TRAP_WAITS: bool = property [Experiment] "trap-waits", Takes::Flag, OFF, "true";

    /// Preset of pause-loop exiting: a guest that spins on PAUSE exits to the hypervisor. `xen`: a gap of 128 and a window of 4096 cycles.
    /// `kvm`: the same, with a window that doubles without a bound. `ple-gap`, `ple-window` and `ple-window-max` replace one number each.
    /// Only harts with `xpartitaple` have it: choose a profile with `extensions.pause_loop_exit = true`.
    PLE: Option<PausePreset> = host [Experiment, VmExperiment] "ple", Takes::Word(PausePreset::WORDS), NONE, "\"kvm\"";

    /// Greatest distance between two PAUSEs of one pause loop, on harts with `xpartitaple`.
    PLE_GAP: u32 = property [Experiment, VmExperiment] "ple-gap", PAUSE_CYCLES, Without::Value(128), "128";

    /// Time after which a pause loop exits, on harts with `xpartitaple`; 0 is never.
    PLE_WINDOW: u32 = property [Experiment, VmExperiment] "ple-window", PAUSE_CYCLES, Without::Value(4096), "4096";

    /// Bound of the window, which doubles at each exit until the vCPU is dispatched again.
    PLE_WINDOW_MAX: Option<u32> = property [Experiment, VmExperiment] "ple-window-max", PAUSE_CYCLES, Without::Follows("as `ple-window`"),
        "65536";

    /// Extra time of the hypervisor for each interrupt of a waiting vCPU that interrupts the hypervisor.
    HOST_INTERRUPT_COST: u32 = property [Experiment] "host-interrupt-cost", CYCLES, OFF, "500";

    /// Extra time of the hypervisor for each pass through the scheduler that finds no vCPU to run.
    FUTILE_PASS_COST: u32 = property [Experiment] "futile-pass-cost", CYCLES, OFF, "500";

    /// Extra time of the hypervisor for each dispatch.
    DISPATCH_COST: u32 = property [Experiment] "dispatch-cost", CYCLES, OFF, "500";

    /// Extra time of the hypervisor for each change from a guest to the hypervisor, and for each change back.
    MODE_CHANGE_COST: u32 = property [Experiment] "mode-change-cost", CYCLES, OFF, "500";

    /// Number of vCPUs.
    VCPUS: u32 = host [Vm] "vcpus", number(1, MAX_VCPUS_PER_VM as u32, ""), REQUIRED, "4";

    /// Memory of the VM.
    VM_MEMORY: Structure = host [Vm] "memory", MEMORY_SIZE, REQUIRED, "\"512 MiB\"";

    /// Placement of the VM's memory on the host. `real`: one piece at the addresses that the guest uses; it works with every guest. `resident`:
    /// one piece anywhere; the guest's drivers must honour `dma-ranges`, as Linux's do. `paged`: single pages, allocated when the guest
    /// touches them; its devices need `io = "general"` or `io = "fast"`.
    PLACEMENT: Placement = property [Vm] "placement", Takes::Word(Placement::WORDS), usually!(Placement::Real), "\"paged\"";

    /// Address translation of the guest: by its own tables and the hypervisor's in two stages, or by shadow tables that the hypervisor
    /// makes of both.
    TRANSLATION: VmTranslation = property [Vm] "translation", Takes::Word(VmTranslation::WORDS), usually!(VmTranslation::TwoStage),
        "\"shadow\"";

    /// Access to the VM's disks, network cards and entropy source: `direct`, by the guest's own driver, whose device reaches all memory, so
    /// that the guest must be trusted; `general`, through the hypervisor, which checks each request; `fast`, the same with less
    /// work for simple requests.
    IO: Io = host [Vm] "io", Takes::Word(Io::WORDS), usually!(Io::Direct), "\"general\"";

    /// Weight of the VM among those that share harts: its service is in proportion to it.
    SHARE: Option<u32> = host [Vm] "share", number(*SHARES.start(), *SHARES.end(), ""), Without::Follows("none: either `share` or `dedicated-harts` must be given"),
        "100";

    /// Harts that belong to the VM alone, one for each vCPU.
    DEDICATED_HARTS: Structure = host [Vm] "dedicated-harts", Takes::Harts, NONE, "[2, 3]";

    /// Kernel: a RISC-V Linux `Image`, as it is or compressed, another file with its header, or an ELF file for QEMU's board.
    KERNEL: Structure = host [Vm] "kernel", Takes::File, Without::Follows("none: either `kernel` or `firmware` must be given"),
        "\"image:debian/kernel\"";

    /// Firmware, in the place of a kernel: it reads the guest's disks and starts what it finds there. `image:u-boot` is Debian's U-Boot; a
    /// file of your own is an ELF file for QEMU's board, a flat program for address 0x80200000, or an `Image`. `placement` is `resident` and
    /// `io` is `general` unless the VM says otherwise.
    FIRMWARE: Structure = host [Vm] "firmware", Takes::File, NONE, "\"image:u-boot\"";

    /// Initial RAM disk.
    INITRD: Structure = host [Vm] "initrd", Takes::File, NONE, "\"image:debian/initrd\"";

    /// Command line of the kernel.
    COMMAND_LINE: Structure = host [Vm] "command-line", Takes::Text(MAX_BOOTARGS_LENGTH), Without::Follows("empty"),
        "\"console=ttyS0 quiet\"";

    /// Disks in the guest's order: the VM's own, then its slices of shared disks.
    DISKS: Structure = host [Vm] "disks", Takes::Tables(&[Scope::Disk, Scope::Slice]), NONE, "[{ file = \"image:debian/disk\" }]";

    /// Network cards, one for each name of a network. VMs on the same network see each other and nobody else. Where `[switch.NAME]`
    /// has the name, the card is a port of that switch.
    NETWORK: Structure = host [Vm] "network", Takes::NamesOr(Scope::Card), NONE, "[\"lan\", { network = \"other\", io = \"fast\" }]";

    /// Balloon, by which a guest in single pages (`placement = "paged"`) gives pages back.
    BALLOON: bool = property [Vm] "balloon", Takes::Flag, OFF, "true";

    /// Entropy source (virtio-rng).
    RNG: bool = host [Vm] "rng", Takes::Flag, OFF, "true";

    /// Terminals with simulated users, on the machine.
    TERMINALS: Structure = host [Vm] "terminals", Takes::Table(Scope::Terminals), NONE,
        "{ count = 4, transactions = 20, think-time = \"200 ms\" }";

    /// Devices of the board that the guest has for itself, by their paths in the board's device tree. `partita board --describe` names them, and
    /// says why one cannot be given.
    DEVICES: Structure = host [Vm] "devices", Takes::Paths, NONE, "[\"/soc/ethernet@10090000\"]";

    /// Need of an IOMMU between memory and the devices that the guest drives itself. `required` refuses every such device that reaches memory
    /// and that the board's device tree puts behind no RISC-V IOMMU.
    CONFINED: Confined = property [Vm] "confined", Takes::Word(Confined::WORDS), usually!(Confined::Trusted), "\"required\"";

    /// Extensions that the guest's device tree does not name, though the harts have them. Without `v`, vector instructions are illegal.
    HIDE: Structure = host [Vm] "hide", Takes::Extensions, NONE, "[\"zawrs\"]";

    /// Length of a vector register that the guest needs, a power of two. The VM is refused where the harts have no vectors or another length,
    /// since no hart shortens its registers for a guest.
    VECTOR_LENGTH: Option<u32> = property [Vm] "vector-length", number(128, 65_536, "bits"), Without::Follows("that of the harts, if they have vectors"),
        "256";

    /// Starts the VM with the hypervisor.
    AUTOSTART: bool = property [Vm] "autostart", Takes::Flag, ON, "false";

    /// Action when the VM fails.
    ON_FAILURE: OnFailure = property [Vm] "on-failure", Takes::Word(OnFailure::WORDS), usually!(OnFailure::Stop), "\"restart\"";

    /// Guest page faults of a vCPU in a row, at up to four addresses in turn where the VM has nothing, after which the VM has failed. 0 is never.
    FAULT_LIMIT: u32 = property [Vm] "fault-limit", number(0, u32::MAX, "faults"), Without::Value(1_000_000), "100000";

    /// Parameters for experiments, which no VM needs.
    VM_EXPERIMENT: Structure = host [Vm] "experiment", Takes::Table(Scope::VmExperiment), NONE, "{ ple-window = 0 }";

    /// Image of the disk: raw, or qcow2, VMDK, VHDX, VHD or VDI, of which QEMU's `qemu-img` makes a raw disk in the cache.
    DISK_FILE: Structure = host [Disk, SharedDisk] "file", Takes::File, REQUIRED, "\"image:debian/disk\"";

    /// Keeps what guests write in the file. Otherwise each run begins with the same image.
    PERSISTENT: bool = host [Disk, SharedDisk] "persistent", Takes::Flag, OFF, "true";

    /// Takes the file as a raw disk whatever its first bytes are. Otherwise a file that begins as one of another form does, such as qcow2, is
    /// converted.
    RAW: bool = host [Disk, SharedDisk] "raw", Takes::Flag, OFF, "true";

    /// Snapshot in a qcow2 image with which the disk begins, by its name.
    SNAPSHOT: Structure = host [Disk, SharedDisk] "snapshot", Takes::Text(1023), Without::Follows("the present state"), "\"before\"";

    /// virtio-mmio slot of the board.
    SLOT: Option<u32> = host [Disk, SharedDisk] "slot", number(0, MAX_BOARD_SLOTS as u32 - 1, ""), Without::Follows("the next free slot"), "0";

    /// Access to the device, as `vm.NAME.io`.
    DEVICE_IO: Option<Io> = host [Disk, Card] "io", Takes::Word(Io::WORDS), Without::Follows("the VM's"), "\"fast\"";

    /// VM that serves the disk to others, by its name: a program in its guest carries their requests out. docs/guide/serve-a-disk.md says how.
    SERVED_BY: Structure = host [ServedDisk] "served-by", Takes::Name, REQUIRED, "\"storage\"";

    /// Length of the disk. What the serving VM's guest keeps it in is not shorter.
    SERVED_SIZE: Structure = host [ServedDisk] "size", Takes::Size { min: SECTOR, granule: SECTOR }, REQUIRED, "\"1 GiB\"";

    /// Shared disk `[disk.NAME]` that the slice is a part of.
    SLICE_OF: Structure = host [Slice] "slice-of", Takes::Name, REQUIRED, "\"disk0\"";

    /// Beginning of the slice on the disk.
    OFFSET: Structure = host [Slice] "offset", Takes::Size { min: 0, granule: SECTOR }, Without::Follows("the disk's beginning"),
        "\"256 MiB\"";

    /// Length of the slice.
    SIZE: Structure = host [Slice] "size", Takes::Size { min: SECTOR, granule: SECTOR }, Without::Follows("to the disk's end"),
        "\"256 MiB\"";

    /// Forbids the guest to write. Several VMs may then have the same slice.
    READ_ONLY: bool = host [Slice] "read-only", Takes::Flag, OFF, "true";

    /// Joins the switch to the network of its name outside, by a card of the computer that the hypervisor drives.
    UPLINK: bool = host [Switch] "uplink", Takes::Flag, OFF, "true";

    /// Network that the card is on.
    CARD_NETWORK: Structure = host [Card] "network", Takes::Name, REQUIRED, "\"lan\"";

    /// Number of terminals, each with a user.
    TERMINAL_COUNT: u32 = host [Terminals] "count", number(1, MAX_TERMINALS, ""), REQUIRED, "4";

    /// Lines that each user sends.
    TRANSACTIONS: u32 = host [Terminals] "transactions", number(1, 1_000_000, ""), REQUIRED, "20";

    /// Mean think time of a user before the next line.
    THINK_TIME: Option<u64> = host [Terminals] "think-time", time(1_000, 3_600_000_000), REQUIRED, "\"200 ms\"";
}
