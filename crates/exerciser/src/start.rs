//! From the first safe instruction to the shutdown.

use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use exerciser::arguments::Arguments;

use crate::arch::{csr, memory, sbi};
use crate::board::{self, Board, board};
use crate::console::{self, say};
use crate::exercises::{self, Verdict};
use crate::{frames, harts};

/// Set once a verdict is printed: there is exactly one.
static ENDED: AtomicBool = AtomicBool::new(false);

/// Time when the boot hart came in.
static ENTERED: AtomicU64 = AtomicU64::new(0);

/// Time, in ticks, when the boot hart came in.
pub fn entered() -> u64 {
    ENTERED.load(Ordering::Relaxed)
}

/// The boot hart: reads the tree, opens everything, runs the exercise, shuts down.
pub fn first(hart_id: u64, device_tree: *const u8) -> ! {
    ENTERED.store(csr::time(), Ordering::Relaxed);
    console::open(sbi::probe(riscv::sbi::DBCN), 0);
    let Some(tree) = memory::device_tree(device_tree) else {
        fail(format_args!("a1 names no device tree"));
    };
    match Board::read(&tree, device_tree.addr() as u64, hart_id) {
        Ok(board) => board::keep(board),
        Err(missing) => fail(format_args!("the device tree lacks {missing}")),
    }
    let board = board();
    console::open(sbi::probe(riscv::sbi::DBCN), board.uart);
    frames::open(board.memory, &[board.device_tree, board.initrd]);
    if harts::open().is_none() {
        fail(format_args!(
            "not enough memory for {} harts",
            board.hart_count
        ));
    }
    let arguments = match Arguments::parse(board.bootargs) {
        Ok(arguments) => arguments,
        Err(error) => fail(format_args!("{error}")),
    };
    match arguments.get("console") {
        Some("uart") => console::open(false, board.uart),
        Some("sbi") => console::open(true, 0),
        _ => {}
    }
    say!(
        "harts={} memory={:#x}..{:#x} free-kib={} timebase={} aia={} sstc={} image={:#x}",
        board.hart_count,
        board.memory.0,
        board.memory.1,
        frames::left() / 1024,
        board.timebase,
        u8::from(board.files.base != 0),
        u8::from(board.has("sstc")),
        crate::arch::boot::image().0,
    );
    let started = csr::time();
    let verdict = exercises::run(&arguments);
    let elapsed = board.nanoseconds(csr::time() - started) / 1000;
    end(
        verdict,
        format_args!(
            "{} elapsed-us={elapsed}",
            arguments.get("exercise").unwrap_or("boot")
        ),
    )
}

fn end(verdict: Verdict, what: fmt::Arguments<'_>) -> ! {
    if !ENDED.swap(true, Ordering::AcqRel) {
        match verdict {
            Verdict::Pass => say!("PASS {what}"),
            Verdict::Fail => say!("FAIL {what}"),
        }
    }
    sbi::shutdown()
}

/// Ends the run as failed, with the reason.
pub fn fail(reason: fmt::Arguments<'_>) -> ! {
    end(Verdict::Fail, reason)
}

/// An exception in the kernel itself.
pub fn unexpected_trap(cause: u64, pc: u64, value: u64, caller: u64) -> ! {
    let base = crate::arch::boot::image().0;
    fail(format_args!(
        "unexpected trap: scause={cause:#x} sepc={pc:#x} (image+{:#x}) stval={value:#x} ra=image+{:#x}",
        pc.wrapping_sub(base),
        caller.wrapping_sub(base),
    ))
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    fail(format_args!("{info}"))
}
