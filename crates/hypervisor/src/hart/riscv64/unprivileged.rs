//! Instructions that may fault harmlessly: loads through the guest's own translation, accesses to devices ([`device`](super::device)), and trials of
//! instructions that may not be there.
//! Where double traps are detected (Ssdbltrp), a fault here would be one: the exit that the hypervisor handles was a trap. So sstatus.SDT is cleared in
//! front of an access that may fault; a trial is made outside of exits. The next return to a guest clears the bit in any case.
//! The trap vector steps over an instruction of this section that faults, and sets the flag in t1.

use riscv::csr::{number, status};

use crate::hart::outcome::Outcome;

unsafe extern "C" {
    /// HLVX.HU at the guest-virtual `address`.
    #[link_name = "hypervisor_fetch_halfword"]
    pub fn fetch_halfword(address: u64) -> Outcome;
}

core::arch::global_asm!(
    r#"
.option push
.option arch, +h, +zawrs, +zicboz
.option norvc
.section .text.unprivileged, "ax"
.global hypervisor_unprivileged_begin
.global hypervisor_unprivileged_end
.global hypervisor_fetch_halfword
.balign 4
hypervisor_unprivileged_begin:
hypervisor_fetch_halfword:
    li t1, {double_trap}
    csrc sstatus, t1
    mv t2, a0
    li t1, 0
    hlvx.hu a0, (t2)
    mv a1, t1
    ret
.global hypervisor_try_wait
hypervisor_try_wait:
    li t1, 0
    li t2, 0
    wrs.sto
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_timer
hypervisor_try_timer:
    li t1, 0
    li t2, 0
    csrr t2, {stimecmp}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_state_enable
hypervisor_try_state_enable:
    li t1, 0
    li t2, 0
    csrr t2, {hstateen0}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_vector_length
hypervisor_try_vector_length:
    li t1, 0
    li t2, 0
    csrr t2, {vlenb}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_overflow
hypervisor_try_overflow:
    li t1, 0
    li t2, 0
    csrr t2, {scountovf}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_hypervisor
hypervisor_try_hypervisor:
    li t1, 0
    li t2, 0
    csrr t2, {hgatp}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_interrupt_file
hypervisor_try_interrupt_file:
    li t1, 0
    li t2, 0
    csrr t2, {stopei}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_zero
hypervisor_try_zero:
    li t1, 0
    li t2, 0
    cbo.zero (a0)
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_seed
hypervisor_try_seed:
    li t1, 0
    li t2, 0
    csrrw t2, {seed}, zero
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_pending_test
hypervisor_try_pending_test:
    li t1, 0
    li t2, 0
    .insn r 0x73, 0, 0x56, t2, a0, x0
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_pause_loop
hypervisor_try_pause_loop:
    li t1, 0
    li t2, 0
    csrr t2, {hplegap}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_purge_mask
hypervisor_try_purge_mask:
    li t1, 0
    li t2, 0
    csrr t2, {hpurge}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_try_lock_holder
hypervisor_try_lock_holder:
    li t1, 0
    li t2, 0
    csrr t2, {hlockholder}
    mv a0, t2
    mv a1, t1
    ret
.global hypervisor_device_load_byte
hypervisor_device_load_byte:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    mv t2, a0
    lbu a0, (t2)
    mv a1, t1
    ret
.global hypervisor_device_load_half
hypervisor_device_load_half:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    mv t2, a0
    lhu a0, (t2)
    mv a1, t1
    ret
.global hypervisor_device_load_word
hypervisor_device_load_word:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    mv t2, a0
    lwu a0, (t2)
    mv a1, t1
    ret
.global hypervisor_device_load_double
hypervisor_device_load_double:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    mv t2, a0
    ld a0, (t2)
    mv a1, t1
    ret
.global hypervisor_device_store_byte
hypervisor_device_store_byte:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    sb a1, (a0)
    mv a1, t1
    ret
.global hypervisor_device_store_half
hypervisor_device_store_half:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    sh a1, (a0)
    mv a1, t1
    ret
.global hypervisor_device_store_word
hypervisor_device_store_word:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    sw a1, (a0)
    mv a1, t1
    ret
.global hypervisor_device_store_double
hypervisor_device_store_double:
    li t1, {double_trap}
    csrc sstatus, t1
    li t1, 0
    sd a1, (a0)
    mv a1, t1
    ret
hypervisor_unprivileged_end:
.option pop
"#,
    double_trap = const status::SDT,
    stimecmp = const number::STIMECMP,
    hstateen0 = const number::HSTATEEN0,
    scountovf = const number::SCOUNTOVF,
    vlenb = const number::VLENB,
    hgatp = const number::HGATP,
    stopei = const number::STOPEI,
    seed = const number::SEED,
    hplegap = const number::HPLEGAP,
    hpurge = const number::HPURGE,
    hlockholder = const number::HLOCKHOLDER,
);
