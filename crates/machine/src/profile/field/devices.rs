//! The keys of devices.

use super::row::{MAX_CYCLES, Row, ValueKind, cycles, flag, number, time};

pub(super) const SERVICE: &[Row] = &[
    time("fixed_nanoseconds", "service time of any request"),
    number(
        "picoseconds_per_byte",
        (0, MAX_CYCLES),
        "ps/byte",
        "service time of its data",
    ),
    time(
        "shortest_seek_nanoseconds",
        "least for a request elsewhere than the last",
    ),
    time(
        "longest_seek_nanoseconds",
        "most for a request elsewhere than the last",
    ),
    number(
        "queue_depth",
        (1, 1024),
        "requests",
        "requests in service at once",
    ),
];
pub(super) const CHANCE: &[Row] = &[
    number(
        "per_million",
        (0, 1_000_000),
        "per million",
        "requests struck, drawn from the seed",
    ),
    (
        "at",
        ValueKind::Numbers,
        "",
        "requests struck, by number from 0",
    ),
];
pub(super) const LATE: &[Row] = &[time("late_nanoseconds", "how late a late interrupt is")];
pub(super) const LATENCY: &[Row] = &[time("latency_nanoseconds", "way through the switch")];
pub(super) const UART: &[Row] = &[time(
    "nanoseconds_per_character",
    "time of a character on its line",
)];
pub(super) const IOMMU: &[Row] = &[
    number(
        "contexts",
        (0, 4096),
        "contexts",
        "of devices, and of processes, that it keeps",
    ),
    number("entries", (0, 4096), "translations", "that it keeps"),
    flag(
        "message_tables",
        "whether it has MSI page tables, and contexts of 64 bytes",
    ),
    cycles("hit", "a translation, for each page of an access"),
    cycles("step", "a reference to memory of a walk"),
    cycles("command", "a command"),
];
