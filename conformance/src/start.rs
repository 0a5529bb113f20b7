//! From reset to a program's `run`, on every hart.

use core::arch::global_asm;

global_asm!(
    r#"
    .section .text.start, "ax"
    .globl _start
_start:
    csrw mie, zero
    csrw mstatus, zero
    csrr a0, mhartid
    // Harts beyond the eight stacks stay here.
    li t0, 8
    bltu a0, t0, 2f
1:  wfi
    j 1b

    // A stack of 24 KiB and, above it, 8 KiB for traps and the hart's frame.
2:  la sp, stacks_end
    slli t0, a0, 15
    sub sp, sp, t0
    addi t1, sp, -1024
    csrw mscratch, t1
    li t0, 0x2000
    sub sp, sp, t0
    la t0, trap_entry
    csrw mtvec, t0

    // All of memory to S- and U-mode.
    li t0, -1
    csrw pmpaddr0, t0
    li t0, 0x1f
    csrw pmpcfg0, t0
    bnez a0, 3f
    call run_suite
3:  call secondary
    j 3b

    .section .tohost, "aw"
    .balign 64
    .globl tohost
tohost: .dword 0
    .balign 64
    .globl fromhost
fromhost: .dword 0
    "#
);

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    crate::device::print(format_args!("panic: {info}\n"));
    crate::device::finish(0xffff)
}
