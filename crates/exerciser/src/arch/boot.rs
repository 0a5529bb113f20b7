//! Entry: the image header's jump, relocation, and the first instructions of every hart.

use core::arch::global_asm;
use core::mem::offset_of;

use crate::harts::Hart;

// The header's fields stand in exerciser.ld. Boot contract (Documentation/arch/riscv/boot.rst): satp = 0,
// a0 = hart id, a1 = device tree; other harts come in by SBI HSM with a1 = the opaque value that we gave,
// which is the hart's own `Hart` record.
global_asm!(
    r#"
    .section .head.jump, "ax"
    .option push
    .option norvc
    .global _start
_start:
    j       _entry
    .word   0
    .option pop

    .section .head.entry, "ax"
_entry:
    csrw    sie, zero
    csrci   sstatus, 2
    la      t0, _relocations_start
    la      t1, _relocations_end
    la      t2, _start_of_image
    li      t6, 3                   /* R_RISCV_RELATIVE */
1:  bgeu    t0, t1, 3f
    ld      t3, 0(t0)
    ld      t4, 8(t0)
    ld      t5, 16(t0)
    bne     t4, t6, 2f
    add     t3, t3, t2
    add     t5, t5, t2
    sd      t5, 0(t3)
2:  addi    t0, t0, 24
    j       1b
3:  la      t0, _bss_start
    la      t1, _bss_end
4:  bgeu    t0, t1, 5f
    sd      zero, 0(t0)
    addi    t0, t0, 8
    j       4b
5:  la      sp, _boot_stack_top
    mv      tp, zero
    call    _first_hart
6:  wfi
    j       6b

    .section .text
    .balign 4
    .global _other_entry
_other_entry:
    csrw    sie, zero
    csrci   sstatus, 2
    mv      tp, a1
    ld      sp, {stack_top}(a1)
    mv      a0, a1
    call    _other_hart
7:  wfi
    j       7b
    "#,
    stack_top = const offset_of!(Hart, stack_top),
);

unsafe extern "C" {
    static _start_of_image: u8;
    static _end_of_image: u8;
    fn _other_entry();
}

/// Where the image lies: first byte and the byte after its last, zeroed data and boot stack included.
pub fn image() -> (u64, u64) {
    (
        (&raw const _start_of_image).addr() as u64,
        (&raw const _end_of_image).addr() as u64,
    )
}

/// The address that SBI HSM starts another hart at.
pub fn other_entry() -> u64 {
    (_other_entry as *const ()).addr() as u64
}

/// The first hart's way into safe code.
#[unsafe(no_mangle)]
extern "C" fn _first_hart(hart_id: usize, device_tree: *const u8) -> ! {
    super::trap::install();
    super::csr::enable_floating_point();
    crate::start::first(hart_id as u64, device_tree)
}

/// Every other hart's way into safe code; `tp` is already its record.
#[unsafe(no_mangle)]
extern "C" fn _other_hart(_record: usize) -> ! {
    super::trap::install();
    super::csr::enable_floating_point();
    crate::harts::other()
}
