//! From the firmware to Rust: the first instructions, the heap, and the way out when all is lost.

use core::panic::PanicInfo;

use fdt::Fdt;
use linked_list_allocator::LockedHeap;

use crate::board::{Board, Range};
use crate::hart::firmware::{self, Reset};
use crate::hart::{csr, world};
use crate::{log, say};

/// The bound of the hypervisor's one heap.
const HEAP_BYTES: usize = 2 << 20;

#[global_allocator]
static HEAP: LockedHeap = LockedHeap::empty();

static mut HEAP_SPACE: [u8; HEAP_BYTES] = [0; HEAP_BYTES];

core::arch::global_asm!(
    r#"
.section .text.entry, "ax"
.global _start
_start:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    la sp, __boot_stack_top
    la t0, __bss_start
    la t1, __bss_end
1:  bgeu t0, t1, 2f
    sd zero, 0(t0)
    addi t0, t0, 8
    j 1b
2:  tail hypervisor_main

.global hypervisor_secondary_start
hypervisor_secondary_start:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    mv tp, a1
    ld sp, 0(tp)
    mv a0, tp
    tail hypervisor_secondary_main
"#
);

#[unsafe(no_mangle)]
extern "C" fn hypervisor_main(hart_id: u64, tree: *const u8) -> ! {
    world::install_vector();
    // SAFETY: this runs once, on one hart, before anything is allocated; the space is used for nothing else.
    unsafe { HEAP.lock().init((&raw mut HEAP_SPACE).cast(), HEAP_BYTES) };
    // SAFETY: the firmware passes the address of the board's device tree in a1 (SBI boot convention); `from_ptr`
    // checks its magic and length.
    let Ok(tree) = (unsafe { Fdt::from_ptr(tree) }) else {
        fail(format_args!("the firmware passed no device tree"));
    };
    let location = Range {
        start: tree_address(&tree),
        size: tree.total_size() as u64,
    };
    let board = match Board::read(&tree, location) {
        Ok(board) => board,
        Err(error) => fail(format_args!("{error}")),
    };
    log::use_uart(board.uart.base);
    say!("hart {hart_id}: {board:#?}");
    firmware::reset(Reset::PowerOff)
}

fn tree_address(_tree: &Fdt<'_>) -> u64 {
    0
}

/// Says why nothing can go on, and powers the board off.
pub fn fail(reason: core::fmt::Arguments<'_>) -> ! {
    log::line(format_args!("cannot start: {reason}"));
    firmware::reset(Reset::PowerOffAfterFailure)
}

#[unsafe(no_mangle)]
extern "C" fn hypervisor_secondary_main() -> ! {
    loop {
        crate::hart::wait_for_interrupt();
    }
}

/// Called by the trap vector when the hypervisor itself trapped: a defect, told before the board stops.
#[unsafe(no_mangle)]
extern "C" fn hypervisor_own_fault() -> ! {
    let cause = csr::read::<{ csr::number::SCAUSE }>();
    let pc = csr::read::<{ csr::number::SEPC }>();
    let value = csr::read::<{ csr::number::STVAL }>();
    say!("defect: the hypervisor trapped at {pc:#x}, scause {cause:#x}, stval {value:#x}");
    firmware::reset(Reset::PowerOffAfterFailure)
}

#[panic_handler]
fn panic(information: &PanicInfo<'_>) -> ! {
    say!("defect: {information}");
    firmware::reset(Reset::PowerOffAfterFailure)
}
