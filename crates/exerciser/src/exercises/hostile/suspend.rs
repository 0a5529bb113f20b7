//! Sleep over an interrupt: whatever is pending and enabled ends WFI and a suspension by SBI at once.

use riscv::sbi::hart_state::SUSPEND;
use riscv::sbi::{HSM, IPI};

use super::Siege;
use crate::arch::{csr, imsic, sbi, team};
use crate::board::board;
use crate::harts;
use crate::interrupts::WAKE;

/// The interrupt of a counter (Sscofpmf).
const COUNTER: u64 = riscv::csr::interrupt::LCOFI;
/// The hypervisor's notification.
const NOTIFICATION: u64 = 1 << abi::sbi::NOTIFICATION_INTERRUPT;

/// A sleep that nothing ends is ended by the timer after so long, in microseconds.
const LIMIT_US: u64 = 300_000;
/// Length of a suspension that the timer alone ends, in microseconds.
const SHORT_US: u64 = 5_000;

pub fn run(siege: &mut Siege) {
    let board = board();
    let own = team::current();
    let before = csr::interrupt_enables();
    for (name, bit) in [
        ("software", csr::SOFTWARE),
        ("counter", COUNTER),
        ("notification", NOTIFICATION),
        ("external", csr::EXTERNAL),
    ] {
        for by_call in [false, true] {
            csr::set_interrupt_enables(bit | csr::TIMER);
            match bit {
                csr::EXTERNAL if own.page() == 0 => continue,
                csr::EXTERNAL => imsic::send(own.page(), WAKE),
                _ => csr::set_pending(bit),
            }
            // Bits that the computer does not have stay 0.
            if csr::pending() & csr::interrupt_enables() & bit == 0 {
                continue;
            }
            let began = csr::time();
            harts::set_timer(began + board.ticks(LIMIT_US));
            let error = if by_call {
                sbi::call(HSM, SUSPEND, [0; 6]).error
            } else {
                csr::wait_for_interrupt();
                0
            };
            let took = csr::time() - began;
            harts::set_timer(u64::MAX);
            csr::clear_pending(bit);
            csr::set_interrupt_enables(csr::EXTERNAL);
            csr::take_interrupts();
            let how = if by_call { "a suspension" } else { "WFI" };
            siege.check_strictly(
                error == 0 && took < board.ticks(LIMIT_US / 2),
                format_args!("{how} with a {name} interrupt pending: error {error}, {took} ticks"),
            );
        }
    }
    own_message(siege);
    csr::set_interrupt_enables(before);
}

/// An IPI to oneself that is not enabled ends no suspension, whether it is still there or was taken back.
fn own_message(siege: &mut Siege) {
    let board = board();
    let own = team::current().id();
    for taken_back in [false, true] {
        csr::set_interrupt_enables(csr::TIMER);
        sbi::call(IPI, 0, [1, own, 0, 0, 0, 0]);
        if taken_back {
            csr::clear_pending(csr::SOFTWARE);
        }
        let until = csr::time() + board.ticks(SHORT_US);
        harts::set_timer(until);
        let error = sbi::call(HSM, SUSPEND, [0; 6]).error;
        let early = until.saturating_sub(csr::time());
        harts::set_timer(u64::MAX);
        csr::clear_pending(csr::SOFTWARE);
        csr::set_interrupt_enables(csr::EXTERNAL);
        csr::take_interrupts();
        siege.check_strictly(
            error == 0 && early == 0,
            format_args!("a suspension ended {early} ticks early by an IPI that is not enabled"),
        );
    }
}
