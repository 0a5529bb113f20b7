//! A hart's timer: the end of the slice, the deadlines of vCPUs that wait here, and the next polls of the interrupt files, of devices and of
//! the words that partners wait for.

use core::sync::atomic::Ordering;

use scheduler::Ticks;

use crate::hart;
use crate::system::Hypervisor;
use crate::system::harts::Hart;

/// Sets the hart's timer to the earliest of: the end of the slice, the deadlines of vCPUs that wait here, the polls of devices and of partners'
/// words, and the poll of the interrupt files, the console and the IOMMUs while a file can have a missed interrupt, the console has none, or
/// there is an IOMMU.
pub fn set_timer(system: &Hypervisor, hart: &Hart) {
    let waits = hart.waiting.has_any(system.vcpus.len());
    let earliest = hart.waiting.earliest(|| find_earliest(system, hart));
    let polls_board = (system.console_is_polled() || !system.iommus.is_empty())
        && system.interrupt_affinity.of_board() == Some(hart.index);
    let poll = if waits || polls_board || hart.files.forwards() {
        hart.next_poll.load(Ordering::Relaxed)
    } else {
        u64::MAX
    };
    let end = hart.slice_end.load(Ordering::Relaxed);
    let next = end.min(poll).min(hart.poll_timer.next());
    hart.poll_schedule.set_timer(earliest.min(next));
}

/// Earliest deadline of the vCPUs that wait on `hart`.
#[inline(never)]
fn find_earliest(system: &Hypervisor, hart: &Hart) -> u64 {
    let mut earliest = u64::MAX;
    system.for_each_waiting_on(hart, |vcpu| {
        earliest = earliest.min(vcpu.deadline.load(Ordering::Relaxed));
    });
    earliest
}

/// Returns true if the running slice is over.
#[inline]
pub fn slice_is_over(hart: &Hart) -> bool {
    hart.slice_end.load(Ordering::Relaxed) <= hart::time()
}

/// Starts a slice of length `slice`; `None` has no end.
pub fn set_slice(system: &Hypervisor, hart: &Hart, now: Ticks, slice: Option<Ticks>) {
    let end = slice.map_or(u64::MAX, |slice| (now + slice).get());
    hart.slice_end.store(end, Ordering::Relaxed);
    set_timer(system, hart);
}
