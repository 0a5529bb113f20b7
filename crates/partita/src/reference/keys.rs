//! Every key of a system file, with the limits that reading it has.

use crate::cache::BUILT_FILES;
use crate::system::{
    BOARD_GUEST_FILES, BOARD_HARTS, BOARD_SLOTS, Bytes, Duration, EXERCISER, FileName,
    MOST_TERMINALS, PausePreset, SHUFFLED,
};
use abi::system::{
    AFFINITY, COST, Io, MAX_BOOTARGS_LENGTH, MAX_NAME_LENGTH, MAX_VCPUS_PER_VM, MEMORY_GRANULE,
    Migration, OnFailure, PAUSE_LOOP, Placement, Purging, Queue, RELAXED_TERMS,
    RESERVATION_LIMIT_US, ROUND, RemoteFences, SELF_WAIT_BUDGET, SHARE, Scheduling, SpinMethod,
    TIME_SLICE_US, Translations, VmTranslation, WaitMethod, WhenIdle,
};
use scheduler::Config;

/// What a key takes.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A whole number within limits.
    Integer(u64, u64),
    /// One of these words.
    Word(Vec<&'static str>),
    /// An amount of memory: a text of a number and a unit.
    Size,
    /// A time within limits in microseconds: a text of a number and a unit.
    Time(u64, u64),
    /// Any text.
    Text,
    /// A text that names a file.
    File,
    /// `true` or `false`.
    Boolean,
    /// A list of whole numbers within limits.
    Integers(u64, u64),
    /// A list of names.
    Names,
    /// A list of names, each of which may be a table of this path.
    NamesOr(&'static str),
    /// A list of tables of this path.
    Tables(&'static str),
    /// A table of this path.
    Table(&'static str),
}

/// A key.
#[derive(Debug, Clone, PartialEq)]
pub struct Key {
    /// The table that it stands in: empty for the file's own, `vm.NAME`, `vm.NAME.disks`, `vm.NAME.network` or `vm.NAME.terminals`.
    pub table: &'static str,
    /// Its name.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// What holds without it; `None` if it must be given.
    pub default: Option<String>,
    /// A value as a file has it.
    pub example: &'static str,
    /// What it is.
    pub what: &'static str,
}

/// The file's own table.
pub const ROOT: &str = "";
/// A VM's table.
pub const VM: &str = "vm.NAME";
/// A disk's table.
pub const DISK: &str = "vm.NAME.disks";
/// The same of a slice.
pub const SLICE: &str = "vm.NAME.disks, of a slice";
/// The table of a disk that VMs share.
pub const SHARED_DISK: &str = "disk.NAME";
/// The table of a switch between VMs.
pub const SWITCH: &str = "switch.NAME";
/// The table of a VM's terminals.
pub const TERMINALS: &str = "vm.NAME.terminals";
/// A network card of a VM.
pub const CARD: &str = "vm.NAME.network";

fn words<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str) -> Kind {
    Kind::Word(all.iter().map(|value| name(*value)).collect())
}

fn wide<T: Copy + Into<u64>>(limits: &std::ops::RangeInclusive<T>) -> (u64, u64) {
    ((*limits.start()).into(), (*limits.end()).into())
}

/// Every key, table by table.
pub fn keys() -> Vec<Key> {
    /// Ticks of a clock in which a microsecond is one.
    const MICROSECONDS: u64 = 1_000_000;
    let usual = Config::new(MICROSECONDS);
    let time = |microseconds: u64| Some(Duration(microseconds).to_string());
    let text = |text: &str| Some(String::from(text));
    let integer = |(low, high)| Kind::Integer(low, high);
    let key = |table, name, kind, default, example, what| Key {
        table,
        name,
        kind,
        default,
        example,
        what,
    };
    let slice = wide(&TIME_SLICE_US);
    vec![
        key(
            ROOT,
            "harts",
            Kind::Integer(1, BOARD_HARTS.into()),
            None,
            "4",
            "harts of the computer",
        ),
        key(
            ROOT,
            "memory",
            Kind::Size,
            None,
            "\"2 GiB\"",
            "the computer's memory, for the hypervisor, the system image and all VMs",
        ),
        key(
            ROOT,
            "guest-files",
            Kind::Integer(0, BOARD_GUEST_FILES.into()),
            text("as many as the computer has"),
            "3",
            "guest interrupt files a hart; with fewer than vCPUs, some take their interrupts through the hypervisor",
        ),
        key(
            ROOT,
            "time-slice",
            Kind::Time(slice.0, slice.1),
            text("by the hart's speed: 1 ms, more below 125 million instructions a second"),
            "\"2 ms\"",
            "the longest time that a vCPU keeps a shared hart while another waits for it",
        ),
        key(
            ROOT,
            "spin",
            words(SpinMethod::ALL, SpinMethod::name),
            text(SpinMethod::Reservation.name()),
            "\"wapd\"",
            "what happens when a vCPU spins",
        ),
        key(
            ROOT,
            "wait",
            words(WaitMethod::ALL, WaitMethod::name),
            text(WaitMethod::SelfWait.name()),
            "\"self-wait\"",
            "what happens when a vCPU waits for an interrupt",
        ),
        key(
            ROOT,
            "when-idle",
            words(WhenIdle::ALL, WhenIdle::name),
            text(WhenIdle::PowerOffAfterAll.name()),
            "\"stay\"",
            "what happens when the last VM that runs ends",
        ),
        key(
            ROOT,
            "migration",
            words(Migration::ALL, Migration::name),
            text(Migration::AsNeeded.name()),
            "\"as-needed\"",
            "when vCPUs go to other harts; always is for tests",
        ),
        key(
            ROOT,
            "queue",
            words(Queue::ALL, Queue::name),
            text(Queue::Single.name()),
            "\"sharded\"",
            "one scheduler for all harts, or one for each",
        ),
        key(
            ROOT,
            "scheduling",
            words(Scheduling::ALL, Scheduling::name),
            text(Scheduling::Floating.name()),
            "\"fixed\"",
            "which harts may run a vCPU of a VM that shares: any, or one",
        ),
        key(
            ROOT,
            "translations",
            words(Translations::ALL, Translations::name),
            text(Translations::LastHost.name()),
            "\"one-shot\"",
            "when a hart drops the cached translations of a vCPU",
        ),
        key(
            ROOT,
            "purge",
            words(Purging::ALL, Purging::name),
            text(Purging::Fence.name()),
            "\"rename\"",
            "how a hart drops them: by a fence, or by a new VMID",
        ),
        key(
            ROOT,
            "remote-fences",
            words(RemoteFences::ALL, RemoteFences::name),
            text(RemoteFences::Precise.name()),
            "\"any-address\"",
            "what a fence drops that a guest asks for on its other vCPUs",
        ),
        key(
            ROOT,
            "round",
            integer(wide(&ROUND)),
            text("10 ms, and two slices at least"),
            "8",
            "the length of a service round, in slices of each shared hart",
        ),
        key(
            ROOT,
            "affinity",
            integer(wide(&AFFINITY)),
            Some(usual.affinity.to_string()),
            "0",
            "dispatches that a vCPU may be passed over for one that ran on the hart last",
        ),
        key(
            ROOT,
            "self-wait-budget",
            integer(wide(&SELF_WAIT_BUDGET)),
            Some(usual.self_wait_budget.to_string()),
            "16",
            "vCPUs that a hart takes out of the self-wait queue in a row while others are ready",
        ),
        key(
            ROOT,
            "relaxed-terms",
            integer(wide(&RELAXED_TERMS)),
            text("1"),
            "0",
            "0: a vCPU that has a shared hart for itself has a slice, too, and its waits trap",
        ),
        key(
            ROOT,
            "ple",
            words(PausePreset::ALL, PausePreset::name),
            text("none"),
            "\"kvm\"",
            "the terms of pause loops that others have: Xen's (a gap of 128 and a window of 4096 cycles) or KVM's (the same, with a window that doubles without a bound); the three keys below come first",
        ),
        pause_loop(ROOT, "ple-gap"),
        pause_loop(ROOT, "ple-window"),
        pause_loop(ROOT, "ple-window-most"),
        key(
            ROOT,
            "host-interrupt-cost",
            integer(wide(&COST)),
            text("0"),
            "500",
            "cycles that the hypervisor takes in addition for each interrupt of a waiting vCPU that interrupts the hypervisor",
        ),
        key(
            ROOT,
            "futile-pass-cost",
            integer(wide(&COST)),
            text("0"),
            "500",
            "cycles that the hypervisor takes in addition for each pass through the scheduler that finds nothing to run",
        ),
        key(
            ROOT,
            "dispatch-cost",
            integer(wide(&COST)),
            text("0"),
            "500",
            "cycles that the hypervisor takes in addition for each dispatch",
        ),
        key(
            ROOT,
            "mode-change-cost",
            integer(wide(&COST)),
            text("0"),
            "500",
            "cycles that the hypervisor takes in addition for each change from a guest to the hypervisor, and again for each change back",
        ),
        key(
            ROOT,
            "reservation-limit",
            Kind::Time(wide(&RESERVATION_LIMIT_US).0, wide(&RESERVATION_LIMIT_US).1),
            time(usual.reservation_limit.get()),
            "\"100 ms\"",
            "the longest time that a vCPU waits for a word to change; not below the time slice",
        ),
        key(
            ROOT,
            "time-limit",
            Kind::Time(1_000_000, 86_400_000_000),
            text("none"),
            "\"2 min\"",
            "when a run is given up: machine time on the machine, the host's on QEMU",
        ),
        key(
            ROOT,
            "console",
            Kind::Text,
            text("none"),
            "\"partita\"",
            "whose console a terminal gets: a VM's name, or partita for the operator's prompt",
        ),
        key(
            ROOT,
            "date",
            Kind::Text,
            text("2025-01-01T00:00:00Z, or host if a network reaches it"),
            "\"2026-01-31T12:00:00Z\"",
            "the hour of the day in UTC when the computer is switched on, or host for the host's, with which no run can be repeated",
        ),
        key(
            ROOT,
            "host-network",
            Kind::Text,
            text("none"),
            "\"lan\"",
            "the network of the VMs that reaches the host's, by user-mode networking (QEMU's, which must be there); such a run \
             cannot be repeated",
        ),
        key(
            ROOT,
            "forward",
            Kind::Text,
            text("none"),
            "\"2222:22 8080:10.0.2.16:80\"",
            "ports of the host's loopback address that lead to guests: HOST:GUEST for the first guest, HOST:ADDRESS:GUEST for any",
        ),
        key(
            VM,
            "vcpus",
            Kind::Integer(1, MAX_VCPUS_PER_VM as u64),
            None,
            "4",
            "virtual CPUs",
        ),
        key(
            VM,
            "memory",
            Kind::Size,
            None,
            "\"512 MiB\"",
            "the VM's memory",
        ),
        key(
            VM,
            "placement",
            words(Placement::ALL, Placement::name),
            text(Placement::Real.name()),
            "\"real\"",
            "how that memory lies in the computer's: in one piece at the same addresses; in one piece, seen from 2 GiB on, its devices being told the constant between the two; or in single pages that come when they are touched",
        ),
        key(
            VM,
            "translation",
            words(VmTranslation::ALL, VmTranslation::name),
            text(VmTranslation::TwoStage.name()),
            "\"shadow\"",
            "by which tables its guest is translated: its own and the hypervisor's, in two dimensions; or shadow tables that the hypervisor makes of both, in one walk",
        ),
        key(
            VM,
            "io",
            words(Io::ALL, Io::name),
            text(Io::Direct.name()),
            "\"general\"",
            "how its disks, cards and entropy source are reached: by the guest itself, which is trusted then; or through the hypervisor, in general or the fast way",
        ),
        key(
            VM,
            "share",
            integer(wide(&SHARE)),
            text("none: share or dedicated-harts must be given"),
            "100",
            "the VM's service in proportion to that of the others that share harts",
        ),
        key(
            VM,
            "dedicated-harts",
            Kind::Integers(0, u64::from(BOARD_HARTS) - 1),
            text("none"),
            "[2, 3]",
            "harts that are the VM's alone, one for each vCPU",
        ),
        key(
            VM,
            "kernel",
            Kind::File,
            None,
            "\"image:debian/kernel\"",
            "the kernel, a RISC-V Linux Image or another with its header",
        ),
        key(
            VM,
            "initrd",
            Kind::File,
            text("none"),
            "\"image:debian/initrd\"",
            "the initial RAM disk",
        ),
        key(
            VM,
            "command-line",
            Kind::Text,
            text("empty"),
            "\"console=ttyS0 quiet\"",
            "the kernel's command line",
        ),
        key(
            VM,
            "disks",
            Kind::Tables(DISK),
            text("none"),
            "[{ file = \"image:debian/disk\" }]",
            "disks, in the guest's order: its own, then slices of disks that VMs share",
        ),
        key(
            VM,
            "network",
            Kind::NamesOr(CARD),
            text("none"),
            "[\"lan\", { network = \"other\", io = \"fast\" }]",
            "a network card for each name or table; VMs whose cards name the same network see each other, and nobody else. Where `[switch.NAME]` has the name, a port of that switch in place of a card of the computer",
        ),
        key(
            CARD,
            "network",
            Kind::Text,
            None,
            "\"lan\"",
            "the network that the card is on",
        ),
        key(
            CARD,
            "io",
            words(Io::ALL, Io::name),
            text("as the VM says"),
            "\"fast\"",
            "how it is reached",
        ),
        key(
            VM,
            "balloon",
            Kind::Boolean,
            text("false"),
            "true",
            "a device by which a guest with single pages gives those back that it does not need",
        ),
        key(
            VM,
            "rng",
            Kind::Boolean,
            text("false"),
            "true",
            "a source of random numbers",
        ),
        key(
            VM,
            "terminals",
            Kind::Table(TERMINALS),
            text("none"),
            "{ count = 4, transactions = 20, think = \"200 ms\" }",
            "terminals with users at them, on the machine",
        ),
        key(
            VM,
            "hide",
            Kind::Names,
            text("none"),
            "[\"zawrs\"]",
            "extensions that the guest is not told of, though it has them",
        ),
        key(
            VM,
            "scheduling",
            words(Scheduling::ALL, Scheduling::name),
            text("the system's"),
            "\"fixed\"",
            "which harts may run its vCPUs, if it shares: any, or one",
        ),
        key(
            VM,
            "ple",
            words(PausePreset::ALL, PausePreset::name),
            text("the system's"),
            "\"kvm\"",
            "the terms of pause loops that others have: Xen's (a gap of 128 and a window of 4096 cycles) or KVM's (the same, with a window that doubles without a bound); the three keys below come first",
        ),
        pause_loop(VM, "ple-gap"),
        pause_loop(VM, "ple-window"),
        pause_loop(VM, "ple-window-most"),
        key(
            VM,
            "autostart",
            Kind::Boolean,
            text("true"),
            "false",
            "whether the VM starts with the hypervisor",
        ),
        key(
            VM,
            "on-failure",
            words(OnFailure::ALL, OnFailure::name),
            text(OnFailure::Stop.name()),
            "\"restart\"",
            "what happens when the VM fails",
        ),
        key(
            DISK,
            "file",
            Kind::File,
            None,
            "\"image:debian/disk\"",
            "a raw image",
        ),
        key(
            DISK,
            "keep",
            Kind::Boolean,
            text("false"),
            "true",
            "whether what the guest writes stays; otherwise each run begins with the same image",
        ),
        key(
            DISK,
            "slot",
            Kind::Integer(0, BOARD_SLOTS as u64 - 1),
            text("the next that is free"),
            "0",
            "the virtio-mmio slot",
        ),
        key(
            DISK,
            "io",
            words(Io::ALL, Io::name),
            text("as the VM says"),
            "\"fast\"",
            "how it is reached",
        ),
        key(
            SLICE,
            "slice-of",
            Kind::Text,
            None,
            "\"disk0\"",
            "the disk `[disk.NAME]` of which the VM has a part, as a disk of its own",
        ),
        key(
            SLICE,
            "first",
            Kind::Size,
            text("the disk's beginning"),
            "\"256 MiB\"",
            "where on it the slice begins",
        ),
        key(
            SLICE,
            "size",
            Kind::Size,
            text("to the disk's end"),
            "\"256 MiB\"",
            "how long the slice is",
        ),
        key(
            SLICE,
            "read-only",
            Kind::Boolean,
            text("false"),
            "true",
            "whether the guest may not write to the slice; several VMs may then have the same one",
        ),
        key(
            SHARED_DISK,
            "file",
            Kind::File,
            None,
            "\"image:debian/disk\"",
            "a raw image, of which VMs have slices",
        ),
        key(
            SHARED_DISK,
            "keep",
            Kind::Boolean,
            text("false"),
            "true",
            "whether what the guests write stays; otherwise each run begins with the same image",
        ),
        key(
            SHARED_DISK,
            "slot",
            Kind::Integer(0, BOARD_SLOTS as u64 - 1),
            text("the next that is free"),
            "0",
            "the virtio-mmio slot of the board",
        ),
        key(
            SWITCH,
            "uplink",
            Kind::Boolean,
            text("false"),
            "true",
            "whether a card of the computer, which the hypervisor drives, joins the switch to the network of its name outside",
        ),
        key(
            TERMINALS,
            "count",
            Kind::Integer(1, MOST_TERMINALS.into()),
            None,
            "4",
            "terminals, each with a user",
        ),
        key(
            TERMINALS,
            "transactions",
            Kind::Integer(1, 1_000_000),
            None,
            "20",
            "lines that each user sends",
        ),
        key(
            TERMINALS,
            "think",
            Kind::Time(1_000, 3_600_000_000),
            None,
            "\"200 ms\"",
            "mean time that a user thinks before the next line",
        ),
    ]
}

impl Key {
    /// What it takes, in words.
    pub fn takes(&self) -> String {
        let limits = |low: &u64, high: &u64| format!("{low} to {high}");
        match &self.kind {
            Kind::Integer(low, high) => format!("a whole number, {}", limits(low, high)),
            Kind::Word(words) => words
                .iter()
                .map(|word| format!("`{word}`"))
                .collect::<Vec<_>>()
                .join(", "),
            Kind::Size if self.table == SLICE => {
                format!("a size in multiples of 512 bytes ({})", Bytes::units())
            }
            Kind::Size => format!(
                "a size in multiples of {} ({})",
                Bytes(MEMORY_GRANULE),
                Bytes::units()
            ),
            Kind::Time(low, high) => format!(
                "a time, {} to {} ({})",
                Duration(*low),
                Duration(*high),
                Duration::units()
            ),
            Kind::Text if self.name == "command-line" => {
                format!("a text of at most {MAX_BOOTARGS_LENGTH} bytes")
            }
            Kind::Text => String::from("a name"),
            Kind::File => {
                let built = BUILT_FILES.iter().chain(&[EXERCISER, SHUFFLED]);
                let built: Vec<String> = built
                    .map(|name| format!("`{}{name}`", FileName::BUILT))
                    .collect();
                format!(
                    "a file, seen from the system file's folder, or one of {}",
                    built.join(", ")
                )
            }
            Kind::Boolean => String::from("`true` or `false`"),
            Kind::Integers(low, high) => format!("a list of whole numbers, {}", limits(low, high)),
            Kind::Names => format!(
                "a list of names: a letter, then letters, digits, - and _, at most {MAX_NAME_LENGTH}"
            ),
            Kind::NamesOr(table) => {
                format!("a list of names, each of which may be a table with the keys of `{table}`")
            }
            Kind::Tables(table) => format!("a list of tables with the keys of `{table}`"),
            Kind::Table(table) => format!("a table with the keys of `{table}`"),
        }
    }
}

/// One of the parameters of pause loops, which are the same for the system and for a VM.
fn pause_loop(table: &'static str, name: &'static str) -> Key {
    let (usual, example, what) = match name {
        "ple-gap" => (
            "128",
            "128",
            "cycles within which PAUSEs that follow each other are one loop, on harts with xpartitaple",
        ),
        "ple-window" => (
            "4096",
            "4096",
            "cycles after which a pause loop exits, on harts with xpartitaple; 0 is never",
        ),
        _ => (
            "ple-window's",
            "65536",
            "cycles up to which ple-window doubles at each exit, until the vCPU is dispatched again",
        ),
    };
    let usual = if table == VM { "the system's" } else { usual };
    let (low, high) = wide(&PAUSE_LOOP);
    Key {
        table,
        name,
        kind: Kind::Integer(low, high),
        default: Some(String::from(usual)),
        example,
        what,
    }
}
