//! The keys of a profile: what each means, in which unit, and what it can be.

mod devices;
mod row;

use super::ReplacementPolicy;
use devices::{CHANCE, IOMMU, LATE, LATENCY, SERVICE, UART};
pub use row::ValueKind;
use row::{Row, cycles, flag, number};

/// A key of a profile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Field {
    /// The tables that it is in, by a dotted path; empty for the outermost.
    pub table: &'static str,
    /// Its name there.
    pub name: &'static str,
    /// Type of the value.
    pub kind: ValueKind,
    /// The unit of a number.
    pub unit: &'static str,
    /// Description of the key.
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

const REPLACEMENT: Row = (
    "replacement",
    ValueKind::Word(ReplacementPolicy::NAMES),
    "",
    "which entry of a full set has to go",
);

const MACHINE: &[Row] = &[
    number(
        "hertz",
        (1_000, 1_000_000_000_000),
        "Hz",
        "frequency of the harts",
    ),
    number(
        "timebase",
        (1, 1_000_000_000_000),
        "Hz",
        "frequency of the time CSR",
    ),
    number(
        "guest_files",
        (0, 63),
        "files",
        "guest interrupt files a hart",
    ),
    number("quantum", (1, 1_000_000), "cycles", "a hart's turn"),
    cycles("wrs_nto_limit", "longest wait of WRS.NTO where it may trap"),
    cycles("wrs_sto_limit", "longest wait of WRS.STO"),
    flag(
        "svadu",
        "whether A and D bits can be set by hardware (Svadu), or never are (Svade)",
    ),
    number(
        "virtual_address_bits",
        (39, 57),
        "bits",
        "of virtual addresses in the widest scheme: 39, 48 or 57",
    ),
    number(
        "vmid_bits",
        (0, 14),
        "bits",
        "of VMIDs: hgatp keeps so many",
    ),
    number(
        "pmp_entries",
        (16, 64),
        "entries",
        "of physical memory protection: 16 or 64",
    ),
    flag(
        "fence_i_clears",
        "whether FENCE.I empties the instruction cache",
    ),
    flag(
        "misaligned_traps",
        "whether misaligned loads and stores trap in the timing mode",
    ),
    flag(
        "prefetch_next_line",
        "whether a data miss brings the next line of the page too",
    ),
    number(
        "store_buffer",
        (0, 64),
        "stores",
        "whose lines may be on their way while the hart goes on",
    ),
];
const MEMORY: &[Row] = &[
    number(
        "channels",
        (1, 64),
        "channels",
        "that lines are interleaved over",
    ),
    number("banks", (1, 256), "banks", "of a channel"),
    cycles("bank_busy", "least time between two lines of a bank"),
];
const PREFETCHER: &[Row] = &[
    number("streams", (1, 64), "streams", "that are followed at once"),
    number("distance", (1, 63), "lines", "in front of a stream"),
    number(
        "outstanding",
        (1, 64),
        "lines",
        "on their way at once, at most",
    ),
];
const PREDICTOR: &[Row] = &[
    number(
        "counters",
        (1, 1 << 16),
        "counters",
        "of two bits, which predict directions",
    ),
    number(
        "history",
        (0, 16),
        "branches",
        "whose directions choose a counter together with the address; 0: bimodal",
    ),
    number(
        "targets",
        (1, 1 << 14),
        "entries",
        "of the branch target buffer",
    ),
    number("target_ways", (1, 255), "entries", "entries of a set of it"),
    number(
        "returns",
        (0, 64),
        "addresses",
        "that the return stack holds",
    ),
    REPLACEMENT,
];
const CACHE: &[Row] = &[
    number(
        "size",
        (64, 1 << 30),
        "bytes",
        "capacity, in lines of 64 bytes",
    ),
    number("ways", (1, 255), "lines", "lines of a set"),
    number("line", (64, 64), "bytes", "size of a line"),
    REPLACEMENT,
];
const TLB: &[Row] = &[
    number(
        "entries",
        (1, 1 << 20),
        "entries",
        "capacity, in pages of 4 KiB",
    ),
    number("ways", (1, 255), "entries", "entries of a set"),
    number(
        "large",
        (0, 255),
        "entries",
        "more, fully associative, for 2 MiB and 1 GiB pages",
    ),
    flag("any_size", "whether entries take pages of every size"),
    REPLACEMENT,
];
const VECTOR: &[Row] = &[number(
    "vlen",
    (128, 1024),
    "bits",
    "of a vector register: 128, 256, 512 or 1024",
)];
const VECTOR_COSTS: &[Row] = &[
    number("datapath", (64, 8192), "bits", "that a pass works on"),
    flag(
        "chaining",
        "whether the next instruction takes results as they come",
    ),
    cycles(
        "latency",
        "from the last pass to its result, where nothing is chained",
    ),
    cycles("integer", "a pass of integers, but for what follows"),
    cycles("multiply", "a pass of integer multiplications"),
    cycles("divide", "an element of a division or remainder"),
    cycles("float", "a pass of floating point, but for what follows"),
    cycles("float_divide", "an element of a division or square root"),
    cycles("slide", "a pass of a slide"),
    cycles(
        "gather",
        "a pass of a gather or VCOMPRESS, for each pass that its elements come from",
    ),
    cycles("reduction", "a pass of a reduction"),
    cycles("mask", "a pass of comparisons and instructions on masks"),
    cycles("crypto", "a pass of cryptography"),
    number(
        "memory",
        (8, 8192),
        "bits",
        "that a load or store with unit stride moves in a cycle",
    ),
    cycles(
        "element",
        "an element of a load or store with a stride or indices",
    ),
];
const HONOURS: &[Row] = &[
    flag("address", "whether it looks at its address"),
    flag("asid", "whether it looks at its ASID"),
    flag("vmid", "whether it looks at the VMID"),
    flag(
        "host",
        "whether it spares the host's entries, or empties everything",
    ),
];
/// Keys that can be left out wherever they are.
const OPTIONAL: [&str; 17] = [
    "line",
    "replacement",
    "store_buffer",
    "large",
    "any_size",
    "virtual_address_bits",
    "vmid_bits",
    "pmp_entries",
    "misaligned_traps",
    "prefetch_next_line",
    "update",
    "line_crossing",
    "memory_gap",
    "mispredict",
    "redirect",
    "purge",
    "broadcast",
];
const COSTS: &[Row] = &[
    cycles("l2_hit", "a first-level miss that the second level answers"),
    cycles("memory", "a miss of all caches"),
    cycles(
        "transfer",
        "more if another hart could have changed the line; the right to store to a shared line",
    ),
    cycles(
        "l2_tlb_hit",
        "the look-up of the second-level TLB, whether it answers a first-level miss or a walk begins after it",
    ),
    cycles(
        "walk_step",
        "a page-table entry that a walk reads, besides its cache access",
    ),
    cycles("device", "a load or store that a device answers"),
    cycles("multiply", "a multiplication, beyond its first cycle"),
    cycles("divide", "a division or remainder"),
    cycles("float", "a floating-point computation"),
    cycles("float_divide", "a floating-point division or square root"),
    cycles("atomic", "LR, SC and the AMOs"),
    cycles("guest_access", "HLV, HLVX and HSV"),
    cycles("csr", "a CSR instruction"),
    cycles("trap", "entry into a trap handler"),
    cycles("trap_return", "SRET and MRET"),
    cycles("mode_change", "more for a trap or return that changes V"),
    cycles("fence", "FENCE"),
    cycles("fence_i", "FENCE.I"),
    cycles(
        "fence_translation",
        "SFENCE, HFENCE and Svinval's instructions",
    ),
    cycles("wait", "WFI and WRS, besides the wait"),
    cycles("pause", "PAUSE"),
    cycles(
        "pending_test",
        "the global pending test of docs/reference/extensions.md",
    ),
    cycles(
        "update",
        "an A or D bit set by a walk, besides its cache access",
    ),
    cycles(
        "line_crossing",
        "more for a load or store that lies in two lines",
    ),
    cycles(
        "memory_gap",
        "least time between two lines of a channel of memory; 0: no limit",
    ),
    cycles(
        "mispredict",
        "a branch or jump whose direction or target was predicted wrongly",
    ),
    cycles(
        "redirect",
        "a branch or jump whose target was known when it was decoded, not before",
    ),
    cycles("purge", "the purge by hardware at an entry to a guest"),
    cycles("broadcast", "the broadcast fence, for each other hart"),
];
const OPTIONS: &[Row] = &[
    flag(
        "counter_filters",
        "whether cycle and instret can leave out privilege modes (Smcntrpmf)",
    ),
    flag("entropy", "whether there is a seed CSR (Zkr)"),
    flag(
        "counter_delegation",
        "whether supervisors can have counters (Smcdeleg and Ssccfg)",
    ),
    flag(
        "double_traps",
        "whether there are double traps below M-mode (Ssdbltrp)",
    ),
    flag(
        "machine_double_traps",
        "whether there are double traps of M-mode (Smdbltrp)",
    ),
    flag("landing_pads", "whether there are landing pads (Zicfilp)"),
    flag("shadow_stacks", "whether there are shadow stacks (Zicfiss)"),
    flag("triggers", "whether there are debug triggers (Sdtrig)"),
    flag(
        "valid_entries",
        "whether the tree says that entries which become valid need no fence (Svvptc)",
    ),
];
const EXTENSIONS: &[Row] = &[
    flag("pending_test", "global pending test (OTPI)"),
    flag("purge_mask", "purge mask of VS-mode fences (TLBPCW)"),
    flag("pause_loop_exit", "pause-loop exiting"),
    flag("purge_check", "purge by hardware at an entry to a guest"),
    flag("broadcast_fence", "fence on all harts (SPTLB)"),
    flag(
        "lock_holder",
        "question for the holder of a lock (an oracle)",
    ),
];

/// Tables with their keys, and which profiles have them.
const TABLES: &[(&str, &[Row], Need)] = &[
    ("", MACHINE, Need::Always),
    ("memory", MEMORY, Need::WithTable),
    ("prefetcher", PREFETCHER, Need::WithTable),
    ("predictor", PREDICTOR, Need::WithTable),
    ("l1i", CACHE, Need::Always),
    ("l1d", CACHE, Need::Always),
    ("l2", CACHE, Need::WithTable),
    ("itlb", TLB, Need::Always),
    ("dtlb", TLB, Need::Always),
    ("l2tlb", TLB, Need::WithTable),
    ("guest_tlb", TLB, Need::WithTable),
    ("walk_cache", TLB, Need::WithTable),
    ("guest_walk_cache", TLB, Need::WithTable),
    ("vector", VECTOR, Need::WithTable),
    ("vector.costs", VECTOR_COSTS, Need::WithTable),
    ("fences.sfence", HONOURS, Need::Never),
    ("fences.hfence_vvma", HONOURS, Need::Never),
    ("fences.hfence_gvma", HONOURS, Need::Never),
    ("fences.broadcast", HONOURS, Need::Never),
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
    ("iommu", IOMMU, Need::Never),
    ("uart", UART, Need::Never),
    ("options", OPTIONS, Need::Never),
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
