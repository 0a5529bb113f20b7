//! Running one closure on several harts: started and stopped by SBI HSM for each run.

use core::arch::asm;
use core::cell::UnsafeCell;
use core::fmt;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::harts::{self, Hart};

/// Job of the harts of the present run: the closure, without its lifetime.
struct Job {
    work: UnsafeCell<Option<*const (dyn Fn(&'static Hart) + Sync)>>,
    finished: AtomicUsize,
}

// SAFETY: `work` is written only by the boot hart while no other hart runs (`run` waits for all of them to
// stop), and what it points to is `Sync`.
unsafe impl Sync for Job {}

impl fmt::Debug for Job {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Job")
    }
}

static JOB: Job = Job {
    work: UnsafeCell::new(None),
    finished: AtomicUsize::new(0),
};

/// The record of the hart that runs this.
pub fn current() -> &'static Hart {
    let record: *const Hart;
    // SAFETY: reading tp. Every hart sets it to its record, one of the static array, before safe code runs.
    unsafe { asm!("mv {}, tp", out(reg) record, options(nomem, nostack)) };
    // SAFETY: as above; the array lives for ever and is shared by atomics only.
    unsafe { &*record }
}

/// Makes `hart` the record of the hart that runs this (the boot hart's first act).
pub fn set_current(hart: &'static Hart) {
    // SAFETY: tp is the kernel's own to use: there is no thread-local storage on this target.
    unsafe { asm!("mv tp, {}", in(reg) ptr::from_ref(hart), options(nostack)) };
}

/// Runs `work` on the first `count` harts, this one (the boot hart) among them, and returns when all have
/// finished and every other one has stopped.
///
/// # Errors
/// The hart that could not be started and what SBI returned. The harts started before it still finish.
pub fn run(count: usize, work: &(dyn Fn(&'static Hart) + Sync)) -> Result<(), (u64, i64)> {
    let mut failure = Ok(());
    let mut started = 0;
    // SAFETY: only the lifetime goes. No other hart runs now, and none keeps the pointer beyond this call:
    // the wait below ends only when each that was started has finished with it.
    unsafe {
        let erased = core::mem::transmute::<
            *const (dyn Fn(&'static Hart) + Sync + '_),
            *const (dyn Fn(&'static Hart) + Sync + 'static),
        >(ptr::from_ref(work));
        *JOB.work.get() = Some(erased);
    }
    JOB.finished.store(0, Ordering::Release);
    for hart in harts::all(count).iter().skip(1) {
        let opaque = ptr::from_ref(hart).addr() as u64;
        let answer = super::sbi::hart_start(hart.id(), super::boot::other_entry(), opaque);
        if answer.error == 0 {
            started += 1;
        } else {
            failure = Err((hart.id(), answer.error));
            break;
        }
    }
    if failure.is_ok() {
        work(current());
    }
    while JOB.finished.load(Ordering::Acquire) < started {
        harts::sleep_until(super::csr::time().saturating_add(crate::board::board().ticks(1000)));
    }
    for hart in harts::all(count).iter().skip(1).take(started) {
        while super::sbi::hart_status(hart.id()).value != 1 {
            harts::sleep_until(super::csr::time().saturating_add(crate::board::board().ticks(50)));
        }
    }
    failure
}

/// Runs the job on a hart other than the first, then stops the hart.
pub fn follow() -> ! {
    // SAFETY: the boot hart set the closure before it started this one, and waits for `finished`.
    if let Some(work) = unsafe { *JOB.work.get() } {
        // SAFETY: the closure outlives this call, as `run` waits.
        unsafe { (*work)(current()) };
    }
    super::csr::set_interrupt_enables(0);
    JOB.finished.fetch_add(1, Ordering::Release);
    loop {
        super::sbi::hart_stop();
        super::csr::pause();
    }
}
