//! A hart's timer: the end of the slice, the deadlines of those that wait here, and the next looks into the interrupt files, at devices and at
//! the words that partners wait for.

use core::sync::atomic::Ordering;

use scheduler::Ticks;

use crate::hart;
use crate::system::Hypervisor;
use crate::system::harts::Hart;

/// Sets the hart's timer to the end of the slice, to the earliest deadline of those that wait here, to the time of devices, or to the next look
/// at partners' words, or into the interrupt files where there is something to see.
pub fn set_timer(system: &Hypervisor, hart: &Hart) {
    let (waits, earliest) =
        system
            .waiting_on(hart)
            .fold((false, u64::MAX), |(_, earliest), vcpu| {
                let deadline = vcpu.deadline.load(Ordering::Relaxed);
                (true, earliest.min(deadline))
            });
    let look = if waits || hart.files.forwards() {
        hart.next_poll.load(Ordering::Relaxed)
    } else {
        u64::MAX
    };
    let end = hart.slice_end.load(Ordering::Relaxed);
    let next = end.min(look).min(hart.poll_timer.next());
    hart.poll_schedule.set_timer(earliest.min(next));
}

/// Returns true if the running slice is over.
#[inline]
pub fn slice_is_over(hart: &Hart) -> bool {
    hart.slice_end.load(Ordering::Relaxed) <= hart::time()
}

/// Starts a slice of `slice`, without an end where there is none.
pub fn set_slice(system: &Hypervisor, hart: &Hart, now: Ticks, slice: Option<Ticks>) {
    let end = slice.map_or(u64::MAX, |slice| (now + slice).get());
    hart.slice_end.store(end, Ordering::Relaxed);
    set_timer(system, hart);
}
