//! Interrupts of VS-mode: hvip, hvictl, vstopi, guest files.

use super::*;

pub fn vstopi_hvip() -> Outcome {
    quiet();
    // VSSIP, VSTIP and VSEIP are one above the supervisor's.
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(0x222);
    for (bit, interrupt) in [(6, STI), (2, SSI), (10, SEI)] {
        let _ = csr::set::<HVIP>(1 << bit);
        same("vstopi", top(csr::read::<VSTOPI>()), interrupt)?;
        gives("stopi", csr::read::<STOPI>(), 0)?;
    }
    quiet();
    gives("with nothing pending", csr::read::<VSTOPI>(), 0)
}

pub fn hvictl_fields() -> Outcome {
    quiet();
    let _ = csr::write::<HVICTL>(EVERYTHING);
    let found = csr::read::<HVICTL>().unwrap_or(0);
    let _ = csr::write::<HVICTL>(0);
    // At least six bits of IID.
    let fields = VTI | 0x3f << 16 | 1 << 9 | 1 << 8 | 0xff;
    same("defined fields", found & fields, fields)?;
    same("reserved bits", found & !(fields | 0xfff << 16), 0)
}

pub fn hvictl_injects() -> Outcome {
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    for (iid, priority) in [(13, 7), (SSI, 200), (STI, 1)] {
        let _ = csr::write::<HVICTL>(VTI | iid << 16 | 1 << 8 | priority);
        gives("vstopi", csr::read::<VSTOPI>(), iid << 16 | priority)?;
    }
    // IPRIOM = 0: the priority shows as 1.
    let _ = csr::write::<HVICTL>(VTI | 13 << 16 | 77);
    gives("vstopi without IPRIOM", csr::read::<VSTOPI>(), 13 << 16 | 1)?;
    // VTI hides what vsip and vsie have, and IID = 9 is no interrupt.
    let _ = csr::write::<VSIE>(0x222);
    let _ = csr::write::<HVIP>(1 << 2);
    let _ = csr::write::<HVICTL>(VTI | SEI << 16);
    let found = csr::read::<VSTOPI>();
    quiet();
    gives("vstopi with IID = 9", found, 0)
}

pub fn hvictl_external() -> Outcome {
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(0x222);
    let _ = csr::write::<HVIP>(1 << 10);
    let _ = csr::write::<HVICTL>(SEI << 16 | 1 << 8 | 42);
    gives("with a priority", csr::read::<VSTOPI>(), SEI << 16 | 42)?;
    // Without one it is 256, which shows as 255.
    let _ = csr::write::<HVICTL>(SEI << 16 | 1 << 8);
    let found = csr::read::<VSTOPI>();
    quiet();
    gives("without a priority", found, SEI << 16 | 255)
}

pub extern "C" fn read_sip() -> u64 {
    cause(csr::read::<SIP>())
}

pub extern "C" fn write_sie() -> u64 {
    cause(csr::write::<SIE>(0))
}

pub extern "C" fn write_stimecmp() -> u64 {
    cause(csr::write::<STIMECMP>(EVERYTHING))
}

pub fn hvictl_traps() -> Outcome {
    quiet();
    // stimecmp of the guest, where there is Sstc.
    let _ = csr::set::<MENVCFG>(1 << 63);
    let henvcfg_set = {
        const HENVCFG: usize = 0x60a;
        csr::set::<HENVCFG>(1 << 63)
    };
    const MCOUNTEREN: usize = 0x306;
    const HCOUNTEREN: usize = 0x606;
    let _ = csr::set::<MCOUNTEREN>(2);
    let _ = csr::set::<HCOUNTEREN>(2);
    for (what, function) in [
        ("sip", read_sip as extern "C" fn() -> u64),
        ("sie", write_sie),
        ("stimecmp", write_stimecmp),
    ] {
        if what == "stimecmp" && henvcfg_set.is_err() {
            continue;
        }
        let _ = csr::write::<HVICTL>(0);
        same(
            what,
            attempt(Mode::VirtualSupervisor, function).unwrap_or(0),
            0,
        )?;
        let _ = csr::write::<HVICTL>(VTI | SEI << 16);
        same(
            what,
            attempt(Mode::VirtualSupervisor, function).unwrap_or(0),
            VIRTUAL,
        )?;
    }
    quiet();
    Ok(())
}

pub fn vs_external_from_file() -> Outcome {
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(0x222);
    open_guest_file(4);
    device::write(supervisor_file(0, 4), 44);
    same("vsip.SEIP", csr::read::<VSIP>().unwrap_or(0) >> SEI & 1, 1)?;
    let _ = csr::write::<HVICTL>(1 << 8);
    gives("vstopi", csr::read::<VSTOPI>(), SEI << 16 | 44)?;
    gives("the claim", csr::swap::<VSTOPEI>(0), 44 << 16 | 44)?;
    let found = csr::read::<VSTOPI>();
    quiet();
    gives("vstopi after the claim", found, 0)
}

pub extern "C" fn wait_for_interrupt() -> u64 {
    // vstvec leads to the trap below, which leaves with vscause.
    (0..1000).for_each(|_| core::hint::spin_loop());
    0
}

pub extern "C" fn report_cause() -> u64 {
    const SCAUSE: usize = 0x142;
    csr::read::<SCAUSE>().unwrap_or(0)
}

core::arch::global_asm!(
    r#"
    .text
    .balign 4
    .globl leave_with_cause
leave_with_cause:
    call {report}
    li a7, 0x6c656176
    ecall
    "#,
    report = sym report_cause
);

unsafe extern "C" {
    pub fn leave_with_cause();
}

pub fn vs_interrupt_is_taken() -> Outcome {
    const VSSTATUS: usize = 0x200;
    const VSTVEC: usize = 0x205;
    quiet();
    let _ = csr::write::<HIDELEG>(0x444);
    let _ = csr::write::<VSIE>(1 << SEI);
    let _ = csr::write::<VSTVEC>(leave_with_cause as *const () as u64);
    let _ = csr::write::<VSSTATUS>(2);
    open_guest_file(2);
    device::write(supervisor_file(0, 2), 5);
    trap::clear();
    let taken = run(Mode::VirtualSupervisor, wait_for_interrupt);
    let _ = csr::write::<VSSTATUS>(0);
    quiet();
    same("vscause", taken, 1 << 63 | SEI)
}

pub fn sgei_is_taken() -> Outcome {
    quiet();
    let _ = csr::set::<HIE>(1 << SGEI);
    open_guest_file(3);
    let _ = csr::write::<HGEIE>(1 << 3);
    device::write(supervisor_file(0, 3), 6);
    let found = top(csr::read::<STOPI>());
    let _ = csr::clear::<HIE>(1 << SGEI);
    let _ = csr::swap::<VSTOPEI>(0);
    quiet();
    same("stopi", found, SGEI)
}

pub extern "C" fn read_stopei() -> u64 {
    cause(csr::read::<STOPEI>())
}

pub extern "C" fn read_stopi_cause() -> u64 {
    cause(csr::read::<STOPI>())
}
