//! The world switch itself: the way into a guest, the one trap vector, and the floating-point registers.
//!
//! Offsets are taken from [`GuestContext`] and [`FloatContext`].

use core::mem::offset_of;

use riscv::csr::number;

use crate::hart::context::{FloatContext, GuestContext};

unsafe extern "C" {
    /// Entry of every trap to HS-mode.
    #[link_name = "hypervisor_trap_vector"]
    pub fn trap_vector();
    /// Stores the floating-point registers.
    #[link_name = "hypervisor_float_save"]
    pub fn float_save(context: *mut FloatContext);
    /// Loads the floating-point registers.
    #[link_name = "hypervisor_float_restore"]
    pub fn float_restore(context: *const FloatContext);
}

/// Runs the guest until it traps to HS-mode.
///
/// # Safety
/// The memory and registers that hgatp and the VS-level registers let the guest reach are its own, and no other hart uses `context` meanwhile.
#[inline(always)]
pub unsafe fn enter_guest(context: *mut GuestContext) {
    // SAFETY: the routine keeps s0, s1, gp, tp and sp, and every other integer register is named here as one that it changes. So the
    // compiler keeps of the others what it still needs, which is little. The hypervisor holds nothing in floating-point registers.
    unsafe {
        core::arch::asm!(
            "call hypervisor_enter_guest",
            in("a0") context,
            out("s2") _,
            out("s3") _,
            out("s4") _,
            out("s5") _,
            out("s6") _,
            out("s7") _,
            out("s8") _,
            out("s9") _,
            out("s10") _,
            out("s11") _,
            clobber_abi("C"),
        );
    }
}

core::arch::global_asm!(
    r#"
.option push
.option arch, +f, +d, +c, +h
.section .text.world, "ax"
.balign 64
.global hypervisor_enter_guest
hypervisor_enter_guest:
    addi sp, sp, -48
    sd ra, 0(sp)
    sd gp, 8(sp)
    sd s0, 16(sp)
    sd s1, 24(sp)
    sd tp, 32(sp)
    sd sp, {registers} + 0(a0)
    ld t0, {program_counter}(a0)
    ld t1, {sstatus}(a0)
    ld t2, {hstatus}(a0)
    csrw sepc, t0
    csrw sstatus, t1
    csrw {hstatus_number}, t2
    csrw sscratch, a0
    ld x1, {registers} + 8(a0)
    ld x2, {registers} + 16(a0)
    ld x3, {registers} + 24(a0)
    ld x4, {registers} + 32(a0)
    ld x5, {registers} + 40(a0)
    ld x6, {registers} + 48(a0)
    ld x7, {registers} + 56(a0)
    ld x8, {registers} + 64(a0)
    ld x9, {registers} + 72(a0)
    ld x11, {registers} + 88(a0)
    ld x12, {registers} + 96(a0)
    ld x13, {registers} + 104(a0)
    ld x14, {registers} + 112(a0)
    ld x15, {registers} + 120(a0)
    ld x16, {registers} + 128(a0)
    ld x17, {registers} + 136(a0)
    ld x18, {registers} + 144(a0)
    ld x19, {registers} + 152(a0)
    ld x20, {registers} + 160(a0)
    ld x21, {registers} + 168(a0)
    ld x22, {registers} + 176(a0)
    ld x23, {registers} + 184(a0)
    ld x24, {registers} + 192(a0)
    ld x25, {registers} + 200(a0)
    ld x26, {registers} + 208(a0)
    ld x27, {registers} + 216(a0)
    ld x28, {registers} + 224(a0)
    ld x29, {registers} + 232(a0)
    ld x30, {registers} + 240(a0)
    ld x31, {registers} + 248(a0)
    ld x10, {registers} + 80(a0)
    sret

.balign 64
.global hypervisor_trap_vector
hypervisor_trap_vector:
    csrrw a0, sscratch, a0
    beqz a0, 1f
    sd x1, {registers} + 8(a0)
    sd x2, {registers} + 16(a0)
    sd x3, {registers} + 24(a0)
    sd x4, {registers} + 32(a0)
    sd x5, {registers} + 40(a0)
    sd x6, {registers} + 48(a0)
    sd x7, {registers} + 56(a0)
    sd x8, {registers} + 64(a0)
    sd x9, {registers} + 72(a0)
    sd x11, {registers} + 88(a0)
    sd x12, {registers} + 96(a0)
    sd x13, {registers} + 104(a0)
    sd x14, {registers} + 112(a0)
    sd x15, {registers} + 120(a0)
    sd x16, {registers} + 128(a0)
    sd x17, {registers} + 136(a0)
    sd x18, {registers} + 144(a0)
    sd x19, {registers} + 152(a0)
    sd x20, {registers} + 160(a0)
    sd x21, {registers} + 168(a0)
    sd x22, {registers} + 176(a0)
    sd x23, {registers} + 184(a0)
    sd x24, {registers} + 192(a0)
    sd x25, {registers} + 200(a0)
    sd x26, {registers} + 208(a0)
    sd x27, {registers} + 216(a0)
    sd x28, {registers} + 224(a0)
    sd x29, {registers} + 232(a0)
    sd x30, {registers} + 240(a0)
    sd x31, {registers} + 248(a0)
    csrrw t0, sscratch, zero
    sd t0, {registers} + 80(a0)
    csrr t1, sepc
    sd t1, {program_counter}(a0)
    csrr t2, sstatus
    sd t2, {sstatus}(a0)
    ld sp, {registers} + 0(a0)
    ld tp, 32(sp)
    ld ra, 0(sp)
    ld gp, 8(sp)
    ld s0, 16(sp)
    ld s1, 24(sp)
    addi sp, sp, 48
    ret
    # A trap from the hypervisor itself: an access on a guest's behalf that faulted, or a defect of ours.
1:  csrr a0, sepc
    la t0, hypervisor_unprivileged_begin
    bltu a0, t0, 2f
    la t0, hypervisor_unprivileged_end
    bgeu a0, t0, 2f
    addi a0, a0, 4
    csrw sepc, a0
    li t1, 1
    csrrw a0, sscratch, zero
    sret
2:  csrw sscratch, zero
    tail hypervisor_unexpected_trap

.global hypervisor_float_save
hypervisor_float_save:
    fsd f0, {float} + 0(a0)
    fsd f1, {float} + 8(a0)
    fsd f2, {float} + 16(a0)
    fsd f3, {float} + 24(a0)
    fsd f4, {float} + 32(a0)
    fsd f5, {float} + 40(a0)
    fsd f6, {float} + 48(a0)
    fsd f7, {float} + 56(a0)
    fsd f8, {float} + 64(a0)
    fsd f9, {float} + 72(a0)
    fsd f10, {float} + 80(a0)
    fsd f11, {float} + 88(a0)
    fsd f12, {float} + 96(a0)
    fsd f13, {float} + 104(a0)
    fsd f14, {float} + 112(a0)
    fsd f15, {float} + 120(a0)
    fsd f16, {float} + 128(a0)
    fsd f17, {float} + 136(a0)
    fsd f18, {float} + 144(a0)
    fsd f19, {float} + 152(a0)
    fsd f20, {float} + 160(a0)
    fsd f21, {float} + 168(a0)
    fsd f22, {float} + 176(a0)
    fsd f23, {float} + 184(a0)
    fsd f24, {float} + 192(a0)
    fsd f25, {float} + 200(a0)
    fsd f26, {float} + 208(a0)
    fsd f27, {float} + 216(a0)
    fsd f28, {float} + 224(a0)
    fsd f29, {float} + 232(a0)
    fsd f30, {float} + 240(a0)
    fsd f31, {float} + 248(a0)
    frcsr t0
    sd t0, {control}(a0)
    ret

.global hypervisor_float_restore
hypervisor_float_restore:
    ld t0, {control}(a0)
    fscsr t0
    fld f0, {float} + 0(a0)
    fld f1, {float} + 8(a0)
    fld f2, {float} + 16(a0)
    fld f3, {float} + 24(a0)
    fld f4, {float} + 32(a0)
    fld f5, {float} + 40(a0)
    fld f6, {float} + 48(a0)
    fld f7, {float} + 56(a0)
    fld f8, {float} + 64(a0)
    fld f9, {float} + 72(a0)
    fld f10, {float} + 80(a0)
    fld f11, {float} + 88(a0)
    fld f12, {float} + 96(a0)
    fld f13, {float} + 104(a0)
    fld f14, {float} + 112(a0)
    fld f15, {float} + 120(a0)
    fld f16, {float} + 128(a0)
    fld f17, {float} + 136(a0)
    fld f18, {float} + 144(a0)
    fld f19, {float} + 152(a0)
    fld f20, {float} + 160(a0)
    fld f21, {float} + 168(a0)
    fld f22, {float} + 176(a0)
    fld f23, {float} + 184(a0)
    fld f24, {float} + 192(a0)
    fld f25, {float} + 200(a0)
    fld f26, {float} + 208(a0)
    fld f27, {float} + 216(a0)
    fld f28, {float} + 224(a0)
    fld f29, {float} + 232(a0)
    fld f30, {float} + 240(a0)
    fld f31, {float} + 248(a0)
    ret
.option pop
"#,
    registers = const offset_of!(GuestContext, registers),
    program_counter = const offset_of!(GuestContext, program_counter),
    sstatus = const offset_of!(GuestContext, sstatus),
    hstatus = const offset_of!(GuestContext, hstatus),
    float = const offset_of!(FloatContext, registers),
    hstatus_number = const number::HSTATUS,
    control = const offset_of!(FloatContext, control),
);
