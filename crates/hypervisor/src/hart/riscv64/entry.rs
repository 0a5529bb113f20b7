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
