//! The first instructions of every hart. The linker script places them at the image's start.

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    fn hypervisor_secondary_start();
}

/// The addresses from which and to which the hypervisor's image lies: code, data, heap and the boot hart's stack.
#[must_use]
pub fn image() -> (u64, u64) {
    let bound = |symbol: *const u8| symbol.addr() as u64;
    (
        bound(&raw const __image_start),
        bound(&raw const __image_end),
    )
}

/// Where a hart other than the first starts, with the address of its `Hart` in a1.
#[must_use]
pub fn secondary() -> u64 {
    hypervisor_secondary_start as *const () as u64
}

core::arch::global_asm!(
    r#"
.section .text.entry, "ax"
.global _start
_start:
// The header of a RISC-V kernel image (Linux, Documentation/arch/riscv/boot-image-header.rst), by which U-Boot's booti knows
// where the image belongs: it is linked for 2 MiB into RAM that begins at 0x80000000, and runs nowhere else.
.option push
.option norvc
    j 3f
    nop
.option pop
    .dword 0x200000
    .dword __image_end - __image_start
    .dword 0
    .word 2
    .word 0
    .dword 0
    .ascii "RISCV\0\0\0"
    .ascii "RSC\5"
    .word 0
3:  csrw sie, zero
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
