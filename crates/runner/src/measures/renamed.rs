//! Former names of measures, and their present ones.

use super::Measure;

/// Former names with the present ones, until version 0.2.
pub(super) const RENAMED: [(&str, &str); 55] = [
    ("etr", "throughput"),
    ("etr.", "throughput."),
    ("itr", "completions-per-busy-second"),
    ("ends", "completions"),
    ("busy-per-end", "cpu-time-per-completion"),
    ("calls-per-busy-second", "spin-exits-per-busy-second"),
    ("fast-translations", "fast-path-ratio"),
    ("host-interrupts", "host-interrupts-per-second"),
    ("host-interrupts.", "host-interrupts-per-second."),
    ("looks-per-spin", "polls-per-spin"),
    ("pause-exits.holder-off", "pause-exits.holder-preempted"),
    ("pause-exits.next-off", "pause-exits.waiter-preempted"),
    ("pause-exits.runs", "pause-exits.false-exit"),
    ("pause-exits.other-word", "pause-exits.not-a-lock"),
    ("pause-exits.not-read", "pause-exits.undecoded"),
    ("pause-time.holder-off", "pause-wait-share.holder-preempted"),
    ("pause-time.next-off", "pause-wait-share.waiter-preempted"),
    ("pause-time.runs", "pause-wait-share.false-exit"),
    ("pause-time.other-word", "pause-wait-share.not-a-lock"),
    ("pause-time.not-read", "pause-wait-share.undecoded"),
    ("pause-time.", "pause-wait-share."),
    ("vcpus-exiting-most", "max-vcpus-exiting"),
    ("exits-per-wait-most", "max-exits-per-wait"),
    ("exits-per-wait-within.", "exits-per-wait-cdf."),
    ("storms", "pause-exit-storms"),
    ("exits-per-contended", "exits-per-contended-acquisition"),
    ("pause-wait-most", "max-pause-wait"),
    ("pause-wait-within.", "pause-wait-cdf."),
    ("lock-hold-within.", "lock-hold-cdf."),
    ("overtaken", "out-of-order-acquisitions"),
    ("off-line", "offline-cpus"),
    ("guest-walks", "guest-page-walks"),
    ("guest-instruction-time", "guest-cpi"),
    ("guest-basic-time", "guest-base-cpi"),
    ("guest-walk-time", "guest-cycles-per-walk"),
    ("tlb-misses", "tlb-mpki"),
    ("cache-misses", "cache-mpki"),
    ("native-etr", "relative-throughput"),
    ("er", "elapsed-time-expansion"),
    ("cr", "cpu-time-expansion"),
    ("seconds", "uptime"),
    ("least-of-share-20ms", "min-share-20ms"),
    ("least-of-share-200ms", "min-share-200ms"),
    ("event-cycles", "cycles-per-event"),
    ("event-instructions", "instructions-per-event"),
    ("event-expansion", "event-slowdown"),
    ("passage-cycles.", "exit-latency-cycles."),
    ("passage-instructions.", "exit-latency-instructions."),
    (
        "passage-cycles-per-event.",
        "exit-latency-cycles-per-event.",
    ),
    (
        "passage-instructions-per-event.",
        "exit-latency-instructions-per-event.",
    ),
    ("dispatch-passage-cycles", "dispatch-latency-cycles"),
    ("hypervisor-pauses", "hypervisor-spinning"),
    ("exit-cycles.", "exit-handling-cycles."),
    ("operations-per-million", "io-per-million-instructions"),
    ("hypervisor-instruction-time", "hypervisor-cpi"),
];

/// Families of measures whose members are events and exit causes.
const MONITORED: [Measure; 4] = [
    Measure::Events,
    Measure::CauseOverhead,
    Measure::CauseExitsPerSecond,
    Measure::ExitHandlingCycles,
];

/// Former names of events and exit causes with the present ones, until version 0.1.
const RENAMED_MEMBERS: [(&str, &str); 23] = [
    ("fence", "sfence-vma"),
    ("address-space", "satp"),
    ("mmio-clock", "mmio-rtc"),
    ("spin-begun", "spin-wait"),
    ("spin-over", "spin-satisfied"),
    ("spin-kept", "spin-continued"),
    ("spins-1", "spin-wait-exits-1"),
    ("spins-2", "spin-wait-exits-2"),
    ("spins-3", "spin-wait-exits-3"),
    ("spins-4", "spin-wait-exits-4"),
    ("spins-more", "spin-wait-exits-over-4"),
    (
        "spins-more-by-itself",
        "spin-wait-exits-over-4-uninterrupted",
    ),
    ("ticket-known", "ticket-decoded"),
    ("holder-favoured", "holder-boosted"),
    ("spin-found", "spin-detected"),
    ("translations-purged", "tlb-purged"),
    ("translations-kept", "tlb-kept"),
    ("translations-renamed", "vmid-renewed"),
    ("fences-armed", "fence-trap-armed"),
    ("forwarded", "msi-forwarded"),
    ("memory-file", "memory-resident-file"),
    ("chain-fast", "request-fast"),
    ("chain-general", "request-general"),
];

/// Present name of what had this name, if the name is a former one.
pub(super) fn present_name(name: &str) -> Option<String> {
    let whole = RENAMED.iter().find(|(former, _)| *former == name);
    if let Some((_, present)) = whole {
        return Some(String::from(*present));
    }
    let families = RENAMED.iter().filter(|(former, _)| former.ends_with('.'));
    let mut members = families.filter_map(|(former, present)| {
        let member = name.strip_prefix(former)?;
        Some(format!("{present}{member}"))
    });
    members.next().or_else(|| present_member(name))
}

/// Present name of a figure whose event or exit cause had another name.
fn present_member(name: &str) -> Option<String> {
    let families = MONITORED.iter().map(|measure| measure.name());
    let mut members = families.filter_map(|family| Some((family, name.strip_prefix(family)?)));
    let (family, member) = members.next()?;
    let mut renamed = RENAMED_MEMBERS.iter();
    let (_, present) = renamed.find(|(former, _)| *former == member)?;
    Some(format!("{family}{present}"))
}
