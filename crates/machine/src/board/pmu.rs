//! The hardware performance counters as the device tree describes them to OpenSBI.
//!
//! Binding: OpenSBI, docs/pmu_support.md; event indices: SBI specification, "Performance Monitoring
//! Unit Extension", hardware general events and hardware cache events.

use crate::count::Event;

/// A hardware cache event's index: cache, operation, and 1 for its misses.
const fn cache(cache: u32, operation: u32) -> u32 {
    1 << 16 | cache << 3 | operation << 1 | 1
}

const READ: u32 = 0;
const WRITE: u32 = 1;

/// SBI's events and ours.
const EVENTS: [(u32, Event); 11] = [
    // Cycles, instructions, cache misses, stalled cycles of the back end.
    (1, Event::Cycles),
    (2, Event::Instructions),
    (4, Event::SharedMisses),
    (9, Event::Stalled),
    // L1D, L1I, last level, DTLB, ITLB.
    (cache(0, READ), Event::LoadMisses),
    (cache(0, WRITE), Event::StoreMisses),
    (cache(1, READ), Event::FetchMisses),
    (cache(2, READ), Event::SharedMisses),
    (cache(3, READ), Event::LoadTlbMisses),
    (cache(3, WRITE), Event::StoreTlbMisses),
    (cache(4, READ), Event::FetchTlbMisses),
];

/// Counters 3 to 31: every one of them counts everything.
const COUNTERS: u32 = !7;

/// `riscv,event-to-mhpmevent`: an event's index and the two halves of mhpmevent.
pub(super) fn selections() -> Vec<u32> {
    let each = EVENTS.into_iter();
    each.flat_map(|(index, event)| [index, 0, event as u32])
        .collect()
}

/// `riscv,event-to-mhpmcounters`: the first and the last index of a range, and the counters.
pub(super) fn counters() -> Vec<u32> {
    let each = EVENTS.into_iter();
    each.flat_map(|(index, _)| [index, index, COUNTERS])
        .collect()
}

/// `riscv,raw-event-to-mhpmcounters`: two halves of a value, two halves of the bits that must equal
/// it, and the counters. Raw events are the numbers of docs/reference/machine.md, below 32.
pub(super) fn raw_events() -> Vec<u32> {
    const _: () = assert!(Event::COUNT <= 32);
    vec![0, 0, u32::MAX, !31, COUNTERS]
}
