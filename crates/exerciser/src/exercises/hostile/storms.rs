//! Storms: interrupts, console output, fences, and harts that start and stop without end.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use riscv::sbi::{DBCN, RFENCE, TIME};

use super::Siege;
use crate::arch::{csr, imsic, sbi, team};
use crate::board::board;
use crate::console::{self, say};
use crate::harts;
use crate::interrupts::{self, WAKE};

/// Every hart interrupts itself and the next one as fast as it can, then lets its timer be always over.
pub fn run_interrupts(siege: &mut Siege) {
    let ticks = board().ticks(siege.storm_ms * 1000);
    let (sent, timers) = (AtomicU64::new(0), AtomicU64::new(0));
    let count = siege.harts;
    let all_running = AtomicUsize::new(0);
    harts::run(count, &|hart| {
        harts::meet(&all_running, count);
        let next = &harts::all(count)[(hart.index() + 1) % count];
        let end = csr::time() + ticks;
        while csr::time() < end {
            if hart.page() == 0 {
                next.send(WAKE);
            } else {
                imsic::send(hart.page(), WAKE);
                imsic::send(next.page(), WAKE);
            }
            sent.fetch_add(2, Ordering::Relaxed);
            csr::take_interrupts();
        }
        let before = hart.timers.load(Ordering::Relaxed);
        let end = csr::time() + ticks;
        interrupts::keep_timer_expired_until(end);
        csr::set_interrupt_enables(csr::interrupt_enables() | csr::TIMER);
        harts::set_timer(0);
        while csr::time() < end {
            csr::take_interrupts();
        }
        csr::set_interrupt_enables(csr::interrupt_enables() & !csr::TIMER);
        harts::set_timer(u64::MAX);
        timers.fetch_add(
            hart.timers.load(Ordering::Relaxed) - before,
            Ordering::Relaxed,
        );
    });
    interrupts::keep_timer_expired_until(0);
    let (sent, timers) = (sent.into_inner(), timers.into_inner());
    siege.check(sent > 0 && timers > 0, format_args!("storm of nothing"));
    say!("storms sent={sent} timer-interrupts={timers}");
}

/// Output without end and without line ends, by every way out.
pub fn run_console(siege: &mut Siege) {
    let bytes = siege.flood_kib * 1024;
    let junk: [u8; 64] = core::array::from_fn(|index| b' ' + (index as u8 * 7) % 95);
    let mut written = 0;
    while written < bytes {
        console::write(&junk);
        written += junk.len() as u64;
    }
    for index in 0..bytes / 16 {
        // DBCN write_byte, and the UART by hand.
        sbi::call(DBCN, 2, [u64::from(b'a') + index % 26, 0, 0, 0, 0, 0]);
        if board().uart != 0 {
            console::uart_put(board().uart, b'A' + (index % 26) as u8);
        }
    }
    console::write(b"\n");
    siege.check(true, format_args!("console"));
    say!("console bytes={}", written + bytes / 8);
}

/// Fences by every hart, to every hart, of ranges of every size, and timers set by SBI between them.
pub fn run_fences(siege: &mut Siege) {
    let ticks = board().ticks(siege.storm_ms * 1000);
    let (fences, refused) = (AtomicU64::new(0), AtomicU64::new(0));
    let seed = siege.seed;
    let count = siege.harts;
    let (all_running, all_done) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let over = AtomicBool::new(false);
    harts::run(count, &|hart| {
        harts::meet(&all_running, count);
        let mut random = exerciser::random::Random::stream(seed, 100 + hart.index() as u64);
        let end = csr::time() + ticks;
        while csr::time() < end && !over.load(Ordering::Relaxed) {
            let function = random.below(3);
            let (start, size) = (
                random.next() >> random.below(64),
                random.next() >> random.below(64),
            );
            let asid = random.below(1 << 16);
            // Mask base -1: every hart (SBI §3.1).
            let answer = sbi::call(
                RFENCE,
                function,
                [0, u64::MAX, start & !4095, size, asid, 0],
            );
            refused.fetch_add(u64::from(answer.error != 0), Ordering::Relaxed);
            csr::fence_translation(Some(start), Some(asid));
            csr::fence_translation(None, None);
            fences.fetch_add(1, Ordering::Relaxed);
            sbi::call(TIME, 0, [u64::MAX, 0, 0, 0, 0, 0]);
            csr::take_interrupts();
        }
        if hart.index() == 0 {
            over.store(true, Ordering::Relaxed);
        }
        // OpenSBI 1.5 waits for ever for a hart that is stopped with a fence still to do.
        harts::meet(&all_done, count);
    });
    let fences = fences.into_inner();
    siege.check(fences > 0, format_args!("no fence"));
    say!("fences remote={fences} refused={}", refused.into_inner());
}

/// Starts and stops every other hart over and over, and suspends and wakes them.
pub fn run_harts(siege: &mut Siege) {
    let runs = AtomicU64::new(0);
    for _ in 0..siege.rounds {
        harts::run(siege.harts, &|_| {
            runs.fetch_add(1, Ordering::Relaxed);
        });
    }
    let wanted = siege.rounds * siege.harts as u64;
    let runs = runs.into_inner();
    siege.check(
        runs == wanted,
        format_args!("harts ran {runs} times, not {wanted}"),
    );
    // A start of what runs, a stop and a status of what does not exist.
    let me = team::current().id();
    let again = sbi::hart_start(me, crate::arch::boot::other_entry(), 0);
    siege.check(
        again.error == -6,
        format_args!("start of a started hart: {}", again.error),
    );
    for hart in [4096, 1 << 33, u64::MAX] {
        let start = sbi::hart_start(hart, crate::arch::boot::other_entry(), 0);
        siege.check_strictly(
            start.error == -3,
            format_args!("start of hart {hart:#x}: {}", start.error),
        );
        let status = sbi::hart_status(hart);
        siege.check_strictly(
            status.error == -3,
            format_args!("status of hart {hart:#x}: {}", status.error),
        );
    }
    // Retentive suspend (HSM function 3, type 0), ended by the timer.
    for _ in 0..siege.rounds {
        harts::set_timer(csr::time() + board().ticks(100));
        csr::set_interrupt_enables(csr::interrupt_enables() | csr::TIMER);
        let answer = sbi::call(riscv::sbi::HSM, riscv::sbi::hart_state::SUSPEND, [0; 6]);
        csr::take_interrupts();
        siege.check(
            answer.error == 0 || answer.error == -2,
            format_args!("suspend: {}", answer.error),
        );
    }
    say!("hsm runs={runs}");
}
