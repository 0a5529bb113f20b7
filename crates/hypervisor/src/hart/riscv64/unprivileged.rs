//! Loads through the guest's own translation. The trap vector steps over a load of this section that faults, and sets
//! the flag in t1.

use crate::hart::unprivileged::Outcome;

unsafe extern "C" {
    /// HLVX.HU at the guest-virtual `address`.
    #[link_name = "hypervisor_fetch_halfword"]
    pub fn fetch_halfword(address: u64) -> Outcome;
}

core::arch::global_asm!(
    r#"
.option push
.option arch, +h
.option norvc
.section .text.unprivileged, "ax"
.global hypervisor_unprivileged_begin
.global hypervisor_unprivileged_end
.global hypervisor_fetch_halfword
.balign 4
hypervisor_unprivileged_begin:
hypervisor_fetch_halfword:
    mv t2, a0
    li t1, 0
    hlvx.hu a0, (t2)
    mv a1, t1
    ret
hypervisor_unprivileged_end:
.option pop
"#
);
