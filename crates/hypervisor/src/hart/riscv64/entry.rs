//! The first instructions of every hart. The linker script places them at the image's start.

unsafe extern "C" {
    static __image_start: u8;
    static __image_end: u8;
    static __boot_stack_bottom: [u64; STACK_WORDS];
    fn hypervisor_secondary_start();
    fn hypervisor_roll_call();
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

/// Words at the end of the boot hart's stack that must never be reached: a page.
const STACK_WORDS: usize = 512;

/// Returns true if the boot hart's stack has never been as long as its memory: the last page is as it was cleared at the start.
#[must_use]
pub fn is_stack_long_enough() -> bool {
    let words = &raw const __boot_stack_bottom;
    // SAFETY: the linker script gives the stack far more than a page, and nothing but a stack that is too long writes the last one.
    let word = |number| unsafe { words.cast::<u64>().add(number).read_volatile() };
    (0..STACK_WORDS).all(|number| word(number) == 0)
}

/// Entry of all harts but the first, with the address of the `Hart` in a1.
#[must_use]
pub fn secondary() -> u64 {
    hypervisor_secondary_start as *const () as u64
}

/// Entry of a hart that only stores 1 in the byte whose address is in a1, and stops.
#[must_use]
pub fn roll_call() -> u64 {
    hypervisor_roll_call as *const () as u64
}

/// Leaves the services of EFI for good: goes on as where the firmware starts a kernel, with the data as it is.
///
/// # Safety
/// The boot services are exited; `hart_id` is this hart and `tree` the board's device tree.
pub unsafe fn leave_firmware(hart_id: u64, tree: *const u8) -> ! {
    unsafe extern "C" {
        fn hypervisor_leave_firmware(hart_id: u64, tree: *const u8) -> !;
    }
    // SAFETY: the caller answers for both; nothing of the firmware's stack is used again.
    unsafe { hypervisor_leave_firmware(hart_id, tree) }
}

// The image begins with two headers in one page. The first 64 bytes are the header of a RISC-V kernel image (Linux,
// Documentation/arch/riscv/boot-image-header.rst), by which U-Boot's booti knows how much memory the image takes and that it
// belongs 2 MiB into RAM. Its first two bytes are an instruction without effect and the letters of a DOS header, and its last
// word leads to the header of a PE file (Microsoft, PE Format; UEFI, section 2.1.1), which EFI's loader reads. The PE file has two
// sections, code and data, each at the same place in the file as in memory, and needs no relocations by the loader.
core::arch::global_asm!(
    r#"
.section .text.entry, "ax"
.global _start
_start:
.option push
.option arch, +c
    c.li s4, -13
.option norvc
    j hypervisor_start
.option rvc
    c.nop
.option pop
    .dword 0x200000
    .dword __image_end - __image_start
    .dword 0
    .word 2
    .word 0
    .dword 0
    .ascii "RISCV\0\0\0"
    .ascii "RSC\5"
    .word hypervisor_pe - _start

hypervisor_pe:
    .ascii "PE\0\0"
    .half 0x5064                // Machine: RISC-V, 64 bits
    .half 2                     // NumberOfSections
    .word 0, 0, 0               // TimeDateStamp, PointerToSymbolTable, NumberOfSymbols
    .half 2f - 1f               // SizeOfOptionalHeader
    .half 0x206                 // Characteristics: executable, without line numbers and debug information
1:  .half 0x20b                 // Magic: PE32+
    .byte 1, 0                  // linker version
    .word __text_end - __text_start
    .word __data_end - __data_start
    .word __image_end - __data_end
    .word hypervisor_efi_start - __image_start
    .word __text_start - __image_start
    .dword 0                    // ImageBase
    .word 4096, 512             // SectionAlignment, FileAlignment
    .half 0, 0, 0, 0, 0, 0      // versions of the operating system, the image, the subsystem
    .word 0
    .word __image_end - __image_start
    .word __text_start - __image_start
    .word 0                     // CheckSum
    .half 10, 0x100             // Subsystem: EFI application; DllCharacteristics: data need not be executable
    .dword 0, 0, 0, 0           // stack and heap, which EFI does not look at
    .word 0, 6                  // LoaderFlags, NumberOfRvaAndSizes
    .dword 0, 0, 0, 0, 0, 0     // no directory
2:  .ascii ".text\0\0\0"
    .word __text_end - __text_start, __text_start - __image_start
    .word __text_end - __text_start, __text_start - __image_start
    .word 0, 0, 0, 0x60000020   // code, executable, readable
    .ascii ".data\0\0\0"
    .word __image_end - __data_start, __data_start - __image_start
    .word __data_end - __data_start, __data_start - __image_start
    .word 0, 0, 0, 0xc0000040   // initialised data, readable, writable

.text
hypervisor_start:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    jal t6, hypervisor_relocate
    la sp, __boot_stack_top
    tail hypervisor_main

// EFI's entry (UEFI, section 7.4): the image's handle in a0, the system table in a1, the firmware's stack.
// It comes back here with a status where the hypervisor cannot be started.
hypervisor_efi_start:
    addi sp, sp, -16
    sd ra, 0(sp)
    jal t6, hypervisor_relocate
    call hypervisor_efi_main
    ld ra, 0(sp)
    addi sp, sp, 16
    ret

.global hypervisor_leave_firmware
hypervisor_leave_firmware:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    la sp, __boot_stack_top
    tail hypervisor_main

// Clears .bss, and puts every address of the image's data right: each entry of the list is a place, a kind, and what the
// address is at the place where the image was linked to begin. The only kind is R_RISCV_RELATIVE (RISC-V ELF psABI, section 8.4).
// Returns through t6; changes t0 to t5.
hypervisor_relocate:
    la t0, __bss_start
    la t1, __bss_end
1:  sd zero, 0(t0)
    addi t0, t0, 8
    bltu t0, t1, 1b
    la t0, __relocations_start
    la t1, __relocations_end
    la t2, __image_start
    lla t3, hypervisor_linked_for
    ld t3, 0(t3)
    sub t2, t2, t3
    j 3f
2:  ld t3, 0(t0)
    ld t4, 16(t0)
    add t3, t3, t2
    add t4, t4, t2
    sd t4, 0(t3)
    addi t0, t0, 24
3:  bltu t0, t1, 2b
    fence.i
    jr t6
.balign 8
hypervisor_linked_for:
    .dword __linked_for

.global hypervisor_secondary_start
hypervisor_secondary_start:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    mv tp, a1
    ld sp, {stack_top}(tp)
    mv a0, tp
    tail hypervisor_secondary_main

// Without a stack. If the firmware cannot stop the hart, it waits for ever and is not counted on.
.global hypervisor_roll_call
hypervisor_roll_call:
    csrw sie, zero
    csrci sstatus, 2
    csrw satp, zero
    li t0, 1
    sb t0, 0(a1)
    fence rw, rw
    li a7, {hsm}
    li a6, {stop}
    ecall
1:  wfi
    j 1b
"#,
    stack_top = const crate::hart::STACK_TOP_OFFSET,
    hsm = const riscv::sbi::HSM,
    stop = const riscv::sbi::hart_state::STOP,
);
