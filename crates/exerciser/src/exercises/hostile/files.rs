//! Identities that a guest was not told of: all of those above the first 64 that its interrupt file happens to have.

use super::Siege;
use crate::arch::{csr, imsic};
use crate::board::board;
use crate::harts;
use crate::interrupts::WAKE;

/// Microseconds of each sleep.
const SLEEP_US: u64 = 200;

/// Every hart makes them pending and enabled in its own file, again and again, takes none of them, and sleeps in between, so
/// that it may go on elsewhere. Afterwards interrupts come as before.
pub fn run(siege: &mut Siege) {
    let board = board();
    if board.files.base == 0 {
        return;
    }
    let end = csr::time() + board.ticks(siege.storm_ms * 1000);
    harts::run(siege.harts, &|_| {
        let enabled = csr::interrupt_enables();
        csr::set_interrupt_enables(csr::TIMER);
        while csr::time() < end {
            imsic::set_all_above_first(u64::MAX);
            harts::set_timer(csr::time() + board.ticks(SLEEP_US));
            csr::wait_for_interrupt();
            csr::take_interrupts();
        }
        imsic::set_all_above_first(0);
        harts::set_timer(u64::MAX);
        csr::set_interrupt_enables(enabled);
    });
    for hart in harts::all(1) {
        let before = hart.taken(WAKE);
        hart.send(WAKE);
        csr::set_interrupt_enables(csr::interrupt_enables() | csr::EXTERNAL);
        csr::take_interrupts();
        siege.check(
            hart.taken(WAKE) == before + 1,
            format_args!("an interrupt did not come after all identities were set"),
        );
    }
}
