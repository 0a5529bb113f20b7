//! Vector registers of a guest: saved, and loaded.
//!
//! Whole registers are moved, which depends on neither vl nor vtype ("V" extension, section "Vector Load/Store Whole Register
//! Instructions"), with vstart zero meanwhile.

use core::mem::offset_of;

use crate::hart::context::VectorControl;

unsafe extern "C" {
    /// Stores the vector CSRs.
    #[link_name = "hypervisor_vector_save_control"]
    pub fn vector_save_control(control: *mut VectorControl);
    /// Stores the vector registers behind one another from `registers`.
    #[link_name = "hypervisor_vector_save"]
    pub fn vector_save(registers: *mut u8);
    /// Loads the vector registers.
    #[link_name = "hypervisor_vector_restore"]
    pub fn vector_restore(control: *const VectorControl, registers: *const u8);
}

core::arch::global_asm!(
    r#"
.option push
.option arch, +v
.section .text.vector, "ax"
.balign 4
.global hypervisor_vector_save_control
hypervisor_vector_save_control:
    csrr t0, vstart
    csrr t1, vcsr
    csrr t2, vl
    csrr t3, vtype
    sd t0, {vstart}(a0)
    sd t1, {vcsr}(a0)
    sd t2, {vl}(a0)
    sd t3, {vtype}(a0)
    ret

.global hypervisor_vector_save
hypervisor_vector_save:
    csrr t0, vstart
    csrr t4, vlenb
    csrw vstart, zero
    slli t4, t4, 3
    vs8r.v v0, (a0)
    add a0, a0, t4
    vs8r.v v8, (a0)
    add a0, a0, t4
    vs8r.v v16, (a0)
    add a0, a0, t4
    vs8r.v v24, (a0)
    # The registers stay the vCPU's: it may come back to this hart before any other.
    csrw vstart, t0
    ret

.global hypervisor_vector_restore
hypervisor_vector_restore:
    csrr t4, vlenb
    csrw vstart, zero
    slli t4, t4, 3
    vl8re8.v v0, (a1)
    add a1, a1, t4
    vl8re8.v v8, (a1)
    add a1, a1, t4
    vl8re8.v v16, (a1)
    add a1, a1, t4
    vl8re8.v v24, (a1)
    ld t0, {vstart}(a0)
    ld t1, {vcsr}(a0)
    ld t2, {vl}(a0)
    ld t3, {vtype}(a0)
    vsetvl zero, t2, t3
    csrw vcsr, t1
    csrw vstart, t0
    ret
.option pop
"#,
    vstart = const offset_of!(VectorControl, vstart),
    vcsr = const offset_of!(VectorControl, vcsr),
    vl = const offset_of!(VectorControl, vl),
    vtype = const offset_of!(VectorControl, vtype),
);
