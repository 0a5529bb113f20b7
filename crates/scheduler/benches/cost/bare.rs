//! The scenarios on bare RISC-V: each is counted by `minstret` and printed. `riscv` builds and runs it.
#![no_std]
#![no_main]

mod scenarios;

use core::arch::{asm, global_asm};
use core::fmt::{self, Write};

use scenarios::{Bench, SCENARIOS, SIZES};

/// The lengths whose difference is counted, in rounds.
const LENGTHS: [u32; 2] = [1000, 3000];

global_asm!(
    ".pushsection .text.entry, \"ax\"",
    ".globl _start",
    "_start:",
    "csrr t0, mhartid",
    "bnez t0, 2f",
    // Floating-point registers are used by no one, but a compiler may copy by them.
    "li t0, 0x2000",
    "csrs mstatus, t0",
    "la sp, stack_top",
    "call main",
    "2: wfi",
    "j 2b",
    ".popsection",
    ".pushsection .bss, \"aw\", @nobits",
    ".align 4",
    ".skip 0x40000",
    "stack_top:",
    ".popsection",
);

/// The board's UART.
struct Uart;

impl Write for Uart {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for byte in text.bytes() {
            // SAFETY: the transmit register of the board's 16550 UART, whose output is never full.
            unsafe { (0x1000_0000 as *mut u8).write_volatile(byte) };
        }
        Ok(())
    }
}

fn instructions() -> u64 {
    let count;
    // SAFETY: a counter is read.
    unsafe { asm!("csrr {}, minstret", out(reg) count, options(nomem, nostack)) };
    count
}

fn counted(place: usize, size: usize) -> Option<u64> {
    let (_, step) = SCENARIOS[place];
    let mut took = [0; 2];
    for (took, rounds) in took.iter_mut().zip(LENGTHS) {
        let mut bench = Bench::new(step, SIZES[size])?;
        let before = instructions();
        let good = bench.run(rounds);
        *took = instructions() - before;
        if good != rounds {
            return None;
        }
    }
    Some((took[1] - took[0]) / u64::from(LENGTHS[1] - LENGTHS[0]))
}

#[unsafe(no_mangle)]
extern "C" fn main() {
    for (place, (name, _)) in SCENARIOS.into_iter().enumerate() {
        let _ = write!(Uart, "| {name} |");
        for size in 0..SIZES.len() {
            let _ = match counted(place, size) {
                Some(count) => write!(Uart, " {count} |"),
                None => write!(Uart, " failed |"),
            };
        }
        let _ = writeln!(Uart);
    }
    // SAFETY: the board's test finisher, told of success, ends the run.
    unsafe { (0x10_0000 as *mut u32).write_volatile(0x5555) };
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: as above, told of a failure.
    unsafe { (0x10_0000 as *mut u32).write_volatile(0x1_3333) };
    loop {}
}
