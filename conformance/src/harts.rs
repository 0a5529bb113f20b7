//! Work for the other harts.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Next job of each hart: a `fn() -> u64`, or zero. In its own section of initialised data.
static WORK: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
static RESULT: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
static PRESENT: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];

/// Where the other harts wait for work.
#[unsafe(no_mangle)]
extern "C" fn secondary() {
    let hart = crate::trap::hart() & 7;
    PRESENT[hart].store(1, Ordering::SeqCst);
    let work = WORK[hart].load(Ordering::SeqCst);
    if work != 0 {
        // SAFETY: `run_on` stored a function of this type.
        let function = unsafe { core::mem::transmute::<usize, fn() -> u64>(work) };
        RESULT[hart].store(function() as usize, Ordering::SeqCst);
        WORK[hart].store(0, Ordering::SeqCst);
    }
    core::hint::spin_loop();
}

/// Tests whether a hart is there: waits a while for it to show itself.
pub fn is_present(hart: usize) -> bool {
    (0..10_000_000).any(|_| PRESENT[hart & 7].load(Ordering::SeqCst) != 0)
}

/// Tests whether a hart is known to be there: hart 0 is, others once they have shown themselves.
pub fn is_present_now(hart: usize) -> bool {
    hart == 0 || PRESENT[hart & 7].load(Ordering::SeqCst) != 0
}

/// Runs a function on another hart, in M-mode, and waits for what it returns.
pub fn run_on(hart: usize, function: fn() -> u64) -> u64 {
    start_on(hart, function);
    finish(hart)
}

/// Begins to run a function on another hart, in M-mode.
pub fn start_on(hart: usize, function: fn() -> u64) {
    RESULT[hart & 7].store(0, Ordering::SeqCst);
    WORK[hart & 7].store(function as *const () as usize, Ordering::SeqCst);
}

/// Waits for what the function returns that was begun on another hart.
pub fn finish(hart: usize) -> u64 {
    while WORK[hart & 7].load(Ordering::SeqCst) != 0 {
        core::hint::spin_loop();
    }
    RESULT[hart & 7].load(Ordering::SeqCst) as u64
}
