//! The keys of a profile: what each means, in which unit, and what it can be.

/// What a key's value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number from one bound to the other.
    Number(u64, u64),
    /// A list of whole numbers.
    Numbers,
    /// True or false.
    Flag,
}

/// A key of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The tables that it is in, by a dotted path; empty for the outermost.
    pub table: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// What it can be.
    pub kind: Kind,
    /// The unit of a number.
    pub unit: &'static str,
    /// What it says.
    pub about: &'static str,
    /// Which profiles have it.
    pub need: Need,
}

/// Which profiles have a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every one.
    Always,
    /// Those that have its table.
    WithTable,
    /// None has to.
    Never,
}

impl Field {
    /// The whole path.
    #[must_use]
    pub fn key(&self) -> String {
        match self.table {
            "" => self.name.to_owned(),
            table => format!("{table}.{}", self.name),
        }
    }
}

type Row = (&'static str, Kind, &'static str, &'static str);

/// Most cycles that anything may cost: far beyond use, and far from where sums overflow.
const MOST_CYCLES: u64 = 1_000_000_000;
/// Longest time that anything may take: an hour in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;
const CYCLES: Kind = Kind::Number(0, MOST_CYCLES);
const TIME: Kind = Kind::Number(0, HOUR);

const MACHINE: &[Row] = &[
    (
        "hertz",
        Kind::Number(1_000, 1_000_000_000_000),
        "Hz",
        "frequency of the harts",
    ),
    (
        "timebase",
        Kind::Number(1, 1_000_000_000_000),
        "Hz",
        "frequency of the time CSR",
    ),
    (
        "guest_files",
        Kind::Number(0, 63),
        "files",
        "guest interrupt files a hart",
    ),
    (
        "quantum",
        Kind::Number(1, 1_000_000),
        "cycles",
        "a hart's turn",
    ),
    (
        "wrs_nto_limit",
        CYCLES,
        "cycles",
        "longest wait of WRS.NTO where it may trap",
    ),
    ("wrs_sto_limit", CYCLES, "cycles", "longest wait of WRS.STO"),
    (
        "svadu",
        Kind::Flag,
        "",
        "whether A and D bits can be set by hardware (Svadu), or never are (Svade)",
    ),
    (
        "fence_i_clears",
        Kind::Flag,
        "",
        "whether FENCE.I empties the instruction cache",
    ),
];
const CACHE: &[Row] = &[
    (
        "size",
        Kind::Number(64, 1 << 30),
        "bytes",
        "capacity, in lines of 64 bytes",
    ),
    ("ways", Kind::Number(1, 255), "lines", "lines of a set"),
    ("line", Kind::Number(64, 64), "bytes", "size of a line"),
];
const TLB: &[Row] = &[
    (
        "entries",
        Kind::Number(1, 1 << 20),
        "entries",
        "capacity, in pages of 4 KiB",
    ),
    ("ways", Kind::Number(1, 255), "entries", "entries of a set"),
    (
        "large",
        Kind::Number(0, 255),
        "entries",
        "more, fully associative, for 2 MiB and 1 GiB pages",
    ),
    (
        "any_size",
        Kind::Flag,
        "",
        "whether entries take pages of every size",
    ),
];
const HONOURS: &[Row] = &[
    ("address", Kind::Flag, "", "whether it looks at its address"),
    ("asid", Kind::Flag, "", "whether it looks at its ASID"),
    ("vmid", Kind::Flag, "", "whether it looks at the VMID"),
    (
        "host",
        Kind::Flag,
        "",
        "whether it spares the host's entries, or empties everything",
    ),
];
/// Keys that can be left out wherever they are.
const OPTIONAL: [&str; 3] = ["line", "large", "any_size"];
const COSTS: &[Row] = &[
    (
        "l2_hit",
        CYCLES,
        "cycles",
        "a first-level miss that the second level answers",
    ),
    ("memory", CYCLES, "cycles", "a miss of all caches"),
    (
        "transfer",
        CYCLES,
        "cycles",
        "more if another hart could have changed the line; the right to store to a shared line",
    ),
    (
        "l2_tlb_hit",
        CYCLES,
        "cycles",
        "a first-level TLB miss that the second answers",
    ),
    (
        "walk_step",
        CYCLES,
        "cycles",
        "a page-table entry that a walk reads, besides its cache access",
    ),
    (
        "device",
        CYCLES,
        "cycles",
        "a load or store that a device answers",
    ),
    (
        "multiply",
        CYCLES,
        "cycles",
        "a multiplication, beyond its first cycle",
    ),
    ("divide", CYCLES, "cycles", "a division or remainder"),
    ("float", CYCLES, "cycles", "a floating-point computation"),
    (
        "float_divide",
        CYCLES,
        "cycles",
        "a floating-point division or square root",
    ),
    ("atomic", CYCLES, "cycles", "LR, SC and the AMOs"),
    ("guest_access", CYCLES, "cycles", "HLV, HLVX and HSV"),
    ("csr", CYCLES, "cycles", "a CSR instruction"),
    ("trap", CYCLES, "cycles", "entry into a trap handler"),
    ("trap_return", CYCLES, "cycles", "SRET and MRET"),
    (
        "mode_change",
        CYCLES,
        "cycles",
        "more for a trap or return that changes V",
    ),
    ("fence", CYCLES, "cycles", "FENCE"),
    ("fence_i", CYCLES, "cycles", "FENCE.I"),
    (
        "fence_translation",
        CYCLES,
        "cycles",
        "SFENCE, HFENCE and Svinval's instructions",
    ),
    ("wait", CYCLES, "cycles", "WFI and WRS, besides the wait"),
    ("pause", CYCLES, "cycles", "PAUSE"),
    (
        "pending_test",
        CYCLES,
        "cycles",
        "the global pending test of docs/extensions.md",
    ),
];
const SERVICE: &[Row] = &[
    (
        "fixed_nanoseconds",
        TIME,
        "ns",
        "service time of any request",
    ),
    (
        "picoseconds_per_byte",
        Kind::Number(0, MOST_CYCLES),
        "ps/byte",
        "service time of its data",
    ),
    (
        "shortest_seek_nanoseconds",
        TIME,
        "ns",
        "least for a request elsewhere than the last",
    ),
    (
        "longest_seek_nanoseconds",
        TIME,
        "ns",
        "most for a request elsewhere than the last",
    ),
    (
        "queue_depth",
        Kind::Number(1, 1024),
        "requests",
        "requests in service at once",
    ),
];
const CHANCE: &[Row] = &[
    (
        "per_million",
        Kind::Number(0, 1_000_000),
        "per million",
        "requests struck, drawn from the seed",
    ),
    ("at", Kind::Numbers, "", "requests struck, by number from 0"),
];
const LATE: &[Row] = &[(
    "late_nanoseconds",
    TIME,
    "ns",
    "how late a late interrupt is",
)];
const LATENCY: &[Row] = &[("latency_nanoseconds", TIME, "ns", "way through the switch")];
const UART: &[Row] = &[(
    "nanoseconds_per_character",
    TIME,
    "ns",
    "time of a character on its line",
)];
const EXTENSIONS: &[Row] = &[
    ("pending_test", Kind::Flag, "", "global pending test (OTPI)"),
    (
        "purge_mask",
        Kind::Flag,
        "",
        "purge mask of VS-mode fences (TLBPCW)",
    ),
    ("pause_loop_exit", Kind::Flag, "", "pause-loop exiting"),
];

/// Tables with their keys, and which profiles have them.
const TABLES: &[(&str, &[Row], Need)] = &[
    ("", MACHINE, Need::Always),
    ("l1i", CACHE, Need::Always),
    ("l1d", CACHE, Need::Always),
    ("l2", CACHE, Need::WithTable),
    ("itlb", TLB, Need::Always),
    ("dtlb", TLB, Need::Always),
    ("l2tlb", TLB, Need::WithTable),
    ("guest_tlb", TLB, Need::WithTable),
    ("walk_cache", TLB, Need::WithTable),
    ("guest_walk_cache", TLB, Need::WithTable),
    ("fences.sfence", HONOURS, Need::Never),
    ("fences.hfence_vvma", HONOURS, Need::Never),
    ("fences.hfence_gvma", HONOURS, Need::Never),
    ("costs", COSTS, Need::Always),
    ("disk.service", SERVICE, Need::Never),
    ("disk.faults.errors", CHANCE, Need::Never),
    ("disk.faults.short", CHANCE, Need::Never),
    ("disk.faults.lost_interrupts", CHANCE, Need::Never),
    ("disk.faults.late_interrupts", CHANCE, Need::Never),
    ("disk.faults", LATE, Need::Never),
    ("network", LATENCY, Need::Never),
    ("network.service", SERVICE, Need::Never),
    ("network.faults.errors", CHANCE, Need::Never),
    ("network.faults.short", CHANCE, Need::Never),
    ("network.faults.lost_interrupts", CHANCE, Need::Never),
    ("network.faults.late_interrupts", CHANCE, Need::Never),
    ("network.faults", LATE, Need::Never),
    ("uart", UART, Need::Never),
    ("extensions", EXTENSIONS, Need::Never),
];

/// Every key of a profile.
pub fn fields() -> impl Iterator<Item = Field> {
    TABLES.iter().flat_map(|&(table, rows, need)| {
        rows.iter().map(move |&(name, kind, unit, about)| Field {
            table,
            name,
            kind,
            unit,
            about,
            need: if OPTIONAL.contains(&name) {
                Need::Never
            } else {
                need
            },
        })
    })
}
