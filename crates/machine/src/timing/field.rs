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
    /// Whether every profile has it.
    pub required: bool,
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
];
const CACHE: &[Row] = &[
    (
        "size",
        Kind::Number(64, 1 << 30),
        "bytes",
        "capacity, in lines of 64 bytes",
    ),
    ("ways", Kind::Number(1, 255), "lines", "lines of a set"),
];
const TLB: &[Row] = &[
    (
        "entries",
        Kind::Number(1, 1 << 20),
        "entries",
        "capacity, in pages of 4 KiB",
    ),
    ("ways", Kind::Number(1, 255), "entries", "entries of a set"),
];
const COSTS: &[Row] = &[
    (
        "l2_hit",
        CYCLES,
        "cycles",
        "a first-level miss that the second level answers",
    ),
    ("memory", CYCLES, "cycles", "a miss of both levels"),
    (
        "l2_tlb_hit",
        CYCLES,
        "cycles",
        "a first-level TLB miss that the second answers",
    ),
    (
        "multiply",
        CYCLES,
        "cycles",
        "a multiplication, beyond its first cycle",
    ),
    ("divide", CYCLES, "cycles", "a division or remainder"),
    ("float", CYCLES, "cycles", "a floating-point computation"),
    ("trap", CYCLES, "cycles", "entry into a trap handler"),
    ("csr", CYCLES, "cycles", "a CSR instruction"),
    (
        "system",
        CYCLES,
        "cycles",
        "SRET, MRET, fences of translations, WFI",
    ),
    ("fence_i", CYCLES, "cycles", "FENCE.I"),
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

/// Tables with their keys, and whether every profile has them.
const TABLES: &[(&str, &[Row], bool)] = &[
    ("", MACHINE, true),
    ("l1i", CACHE, true),
    ("l1d", CACHE, true),
    ("l2", CACHE, true),
    ("itlb", TLB, true),
    ("dtlb", TLB, true),
    ("l2tlb", TLB, false),
    ("costs", COSTS, true),
    ("disk.service", SERVICE, false),
    ("disk.faults.errors", CHANCE, false),
    ("disk.faults.short", CHANCE, false),
    ("disk.faults.lost_interrupts", CHANCE, false),
    ("disk.faults.late_interrupts", CHANCE, false),
    ("disk.faults", LATE, false),
    ("network", LATENCY, false),
    ("network.service", SERVICE, false),
    ("network.faults.errors", CHANCE, false),
    ("network.faults.short", CHANCE, false),
    ("network.faults.lost_interrupts", CHANCE, false),
    ("network.faults.late_interrupts", CHANCE, false),
    ("network.faults", LATE, false),
    ("uart", UART, false),
    ("extensions", EXTENSIONS, false),
];

/// Every key of a profile.
pub fn fields() -> impl Iterator<Item = Field> {
    TABLES.iter().flat_map(|&(table, rows, required)| {
        rows.iter().map(move |&(name, kind, unit, about)| Field {
            table,
            name,
            kind,
            unit,
            about,
            required,
        })
    })
}
