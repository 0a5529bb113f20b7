//! Zihpm with the events of docs/reference/machine.md, and Sscofpmf. Not for other machines.

#![no_std]
#![no_main]

use conformance::csr::{
    self, HSTATUS, HVIEN, HVIP, ILLEGAL, MIDELEG, MIE, MIP, MSTATEEN0, SIP, VIRTUAL,
};
use conformance::mode::{Mode, attempt, cause, run};
use conformance::suite::{Failure, gives, same};
use conformance::{suite, trap};

suite!(
    "counters",
    fields: "mhpmevent holds the events that exist, OF and the inhibit bits",
    exact: "a counter counts instructions exactly",
    stopped: "mcountinhibit stops a counter and keeps its value",
    written: "a counter goes on from what is written",
    by_mode: "the inhibit bits keep a counter from counting in their modes",
    returns: "a return counts in the mode that it returns from",
    exits: "traps from V = 1 are counted as exits",
    fences: "fences of translations are counted",
    overflow: "a counter that passes zero sets OF and makes the interrupt pending",
    overflow_once: "a set OF keeps a counter from asking again",
    no_overflow: "a counter that does not pass zero leaves OF alone",
    interrupt: "the interrupt is taken in M-mode as number 13",
    delegated: "mideleg bit 13 gives the interrupt to S-mode",
    injected: "hvien bit 13 gives a guest an interrupt of its own",
    overflow_view: "scountovf shows what mcounteren and hcounteren let through",
    overflow_modes: "scountovf is read-only and not for U-mode",
);

type Outcome = Result<(), Failure>;

const MHPMEVENT3: usize = 0x323;
const MHPMEVENT4: usize = 0x324;
const MHPMCOUNTER3: usize = 0xb03;
const MHPMCOUNTER4: usize = 0xb04;
const MCOUNTINHIBIT: usize = 0x320;
const MCOUNTEREN: usize = 0x306;
const HCOUNTEREN: usize = 0x606;
const SCOUNTOVF: usize = 0xda0;

const INSTRUCTIONS: u64 = 2;
const EXITS: u64 = 5;
const TRANSLATION_FENCES: u64 = 21;

const OF: u64 = 1 << 63;
const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const UINH: u64 = 1 << 60;
const VSINH: u64 = 1 << 59;
const VUINH: u64 = 1 << 58;
const ALL_MODES: u64 = MINH | SINH | UINH | VSINH | VUINH;
const LCOFI: u64 = 13;

/// Nothing counts and nothing is pending.
fn quiet() {
    let _ = csr::write::<MIE>(0);
    let _ = csr::write::<MIDELEG>(0);
    let _ = csr::clear::<MIP>(1 << LCOFI);
    let _ = csr::write::<MCOUNTINHIBIT>(0);
    let _ = csr::write::<MHPMEVENT3>(0);
    let _ = csr::write::<MHPMEVENT4>(0);
    let _ = csr::write::<MHPMCOUNTER3>(0);
    let _ = csr::write::<MHPMCOUNTER4>(0);
    let _ = csr::write::<MCOUNTEREN>(u64::MAX);
    let _ = csr::write::<HCOUNTEREN>(u64::MAX);
    let _ = csr::write::<MSTATEEN0>(u64::MAX);
    let _ = csr::clear::<HSTATUS>(1 << 20);
}

fn fields() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(u64::MAX);
    gives("no such event", csr::read::<MHPMEVENT3>(), OF | ALL_MODES)?;
    for event in 1..=28 {
        let _ = csr::write::<MHPMEVENT3>(event);
        gives("an event", csr::read::<MHPMEVENT3>(), event)?;
    }
    let _ = csr::write::<MHPMEVENT3>(29);
    let after = csr::read::<MHPMEVENT3>();
    quiet();
    gives("the first that does not exist", after, 0)
}

/// Twelve instructions between two reads of counter 3, the first read among them.
fn twelve() -> u64 {
    let (before, after): (u64, u64);
    // SAFETY: reads a counter.
    unsafe {
        core::arch::asm!(
            "csrr {0}, 0xb03", ".rept 11", "nop", ".endr", "csrr {1}, 0xb03",
            out(reg) before, out(reg) after);
    }
    after - before
}

fn exact() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS);
    let found = twelve();
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS | MINH);
    let inhibited = twelve();
    quiet();
    same("counting", found, 12)?;
    same("inhibited", inhibited, 0)
}

fn stopped() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS);
    let _ = csr::write::<MCOUNTINHIBIT>(1 << 3);
    let before = csr::read::<MHPMCOUNTER3>();
    let inhibited = twelve();
    let after = csr::read::<MHPMCOUNTER3>();
    let _ = csr::write::<MCOUNTINHIBIT>(0);
    let counting = twelve();
    quiet();
    same("inhibited", inhibited, 0)?;
    same("its value", after.unwrap_or(1), before.unwrap_or(2))?;
    same("counting again", counting, 12)
}

fn written() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS | MINH);
    gives("before", csr::write::<MHPMCOUNTER3>(1 << 40), 1 << 40)?;
    gives(
        "while it is inhibited",
        csr::read::<MHPMCOUNTER3>(),
        1 << 40,
    )?;
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS);
    let found = csr::read::<MHPMCOUNTER3>().unwrap_or(0);
    quiet();
    same("above what was written", u64::from(found > 1 << 40), 1)?;
    same("not far above", u64::from(found < (1 << 40) + 1000), 1)
}

const ROUNDS: u64 = 1000;

extern "C" fn spin() -> u64 {
    // SAFETY: changes nothing but its operand.
    unsafe { core::arch::asm!("1:", "addi {0}, {0}, -1", "bnez {0}, 1b", inout(reg) ROUNDS => _) };
    0
}

/// Count of counter 3 over a loop of 2000 instructions in a mode.
fn counted(mode: Mode, selection: u64) -> u64 {
    let _ = csr::write::<MHPMEVENT3>(0);
    let _ = csr::write::<MHPMCOUNTER3>(0);
    let _ = csr::write::<MHPMEVENT3>(selection);
    run(mode, spin);
    let _ = csr::write::<MHPMEVENT3>(0);
    csr::read::<MHPMCOUNTER3>().unwrap_or(u64::MAX)
}

fn by_mode() -> Outcome {
    quiet();
    for (what, mode, bit) in [
        ("HS", Mode::Supervisor, SINH),
        ("U", Mode::User, UINH),
        ("VS", Mode::VirtualSupervisor, VSINH),
        ("VU", Mode::VirtualUser, VUINH),
    ] {
        let alone = counted(mode, INSTRUCTIONS | ALL_MODES & !bit);
        let never = counted(mode, INSTRUCTIONS | ALL_MODES);
        let others = counted(mode, INSTRUCTIONS | MINH | bit);
        quiet();
        // The loop, and the few instructions around it.
        let near = (2 * ROUNDS..2 * ROUNDS + 20).contains(&alone);
        same(what, u64::from(near), 1)?;
        same(what, never, 0)?;
        same(what, others, 0)?;
    }
    Ok(())
}

core::arch::global_asm!(
    ".globl first_count",
    "first_count:",
    "csrr a0, 0xc03",
    "ret"
);

unsafe extern "C" {
    /// Value of counter 3 at the first instruction of a mode.
    safe fn first_count() -> u64;
}

fn returns() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS | ALL_MODES & !VSINH);
    let found = run(Mode::VirtualSupervisor, first_count);
    quiet();
    same("instructions before the first", found, 0)
}

fn exits() -> Outcome {
    quiet();
    let guest = counted(Mode::VirtualSupervisor, EXITS);
    let host = counted(Mode::Supervisor, EXITS);
    quiet();
    same("the call that ends a stay in VS-mode", guest, 1)?;
    same("the call that ends a stay in HS-mode", host, 0)
}

fn fences() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(TRANSLATION_FENCES);
    // SAFETY: translation is off.
    unsafe { core::arch::asm!("sfence.vma", "sfence.vma x0, {0}", in(reg) 1) };
    let found = csr::read::<MHPMCOUNTER3>();
    quiet();
    gives("two", found, 2)
}

/// Lets counter 3 overflow by instructions, and gives mip and the selection afterwards.
fn let_overflow(selection: u64) -> (u64, u64) {
    let _ = csr::write::<MHPMEVENT3>(0);
    let _ = csr::write::<MHPMCOUNTER3>(u64::MAX - 100);
    let _ = csr::write::<MHPMEVENT3>(selection);
    // Longer than a quantum: the interrupt may come late, but not later.
    (0..10).for_each(|_| {
        spin();
    });
    let pending = csr::read::<MIP>().unwrap_or(0) >> LCOFI & 1;
    (pending, csr::read::<MHPMEVENT3>().unwrap_or(0))
}

fn overflow() -> Outcome {
    quiet();
    let (pending, selection) = let_overflow(INSTRUCTIONS);
    let shown = csr::read::<SCOUNTOVF>();
    quiet();
    same("mip.LCOFIP", pending, 1)?;
    same("mhpmevent", selection, INSTRUCTIONS | OF)?;
    gives("scountovf", shown, 1 << 3)
}

fn overflow_once() -> Outcome {
    quiet();
    let (pending, selection) = let_overflow(INSTRUCTIONS | OF);
    quiet();
    same("mip.LCOFIP", pending, 0)?;
    same("mhpmevent", selection, INSTRUCTIONS | OF)
}

fn no_overflow() -> Outcome {
    quiet();
    let (pending, selection) = let_overflow(INSTRUCTIONS | MINH);
    quiet();
    same("mip.LCOFIP", pending, 0)?;
    same("mhpmevent", selection, INSTRUCTIONS | MINH)
}

fn interrupt() -> Outcome {
    quiet();
    let _ = csr::write::<MIE>(1 << LCOFI);
    let _ = csr::write::<MHPMCOUNTER3>(u64::MAX - 100);
    let _ = csr::write::<MHPMEVENT3>(INSTRUCTIONS);
    trap::clear();
    // SAFETY: the handler masks the interrupt.
    unsafe { core::arch::asm!("csrs mstatus, {0}", in(reg) 8) };
    (0..10).for_each(|_| {
        spin();
    });
    // SAFETY: as above.
    unsafe { core::arch::asm!("csrc mstatus, {0}", in(reg) 8) };
    let taken = trap::interrupt();
    quiet();
    same("its number", taken.unwrap_or(0), LCOFI)
}

fn delegated() -> Outcome {
    quiet();
    let _ = csr::write::<MIDELEG>(u64::MAX);
    let delegated = csr::read::<MIDELEG>().unwrap_or(0) >> LCOFI & 1;
    let_overflow(INSTRUCTIONS);
    let pending = csr::read::<SIP>().unwrap_or(0) >> LCOFI & 1;
    let _ = csr::clear::<SIP>(1 << LCOFI);
    let after = csr::read::<MIP>().unwrap_or(u64::MAX) >> LCOFI & 1;
    quiet();
    same("mideleg", delegated, 1)?;
    same("sip", pending, 1)?;
    same("after sip is cleared", after, 0)
}

extern "C" fn take_overflow() -> u64 {
    let pending = csr::read::<SIP>().unwrap_or(0);
    let _ = csr::clear::<SIP>(1 << LCOFI);
    pending >> LCOFI & 1
}

fn injected() -> Outcome {
    quiet();
    let _ = csr::write::<HVIP>(1 << LCOFI);
    let closed = run(Mode::VirtualSupervisor, take_overflow);
    let _ = csr::write::<HVIEN>(1 << LCOFI);
    let open = run(Mode::VirtualSupervisor, take_overflow);
    let after = csr::read::<HVIP>().unwrap_or(u64::MAX) >> LCOFI & 1;
    let own = csr::read::<MIP>().unwrap_or(u64::MAX) >> LCOFI & 1;
    let _ = csr::write::<HVIEN>(0);
    let _ = csr::write::<HVIP>(0);
    quiet();
    same("without hvien", closed, 0)?;
    same("with it", open, 1)?;
    same("hvip, after the guest has cleared it", after, 0)?;
    same("mip", own, 0)
}

extern "C" fn read_overflow() -> u64 {
    csr::read::<SCOUNTOVF>().unwrap_or(u64::MAX)
}

fn overflow_view() -> Outcome {
    quiet();
    let _ = csr::write::<MHPMEVENT3>(OF);
    let _ = csr::write::<MHPMEVENT4>(OF);
    let all = run(Mode::Supervisor, read_overflow);
    let _ = csr::write::<MCOUNTEREN>(1 << 4);
    let some = run(Mode::Supervisor, read_overflow);
    let machine = csr::read::<SCOUNTOVF>();
    let _ = csr::write::<MCOUNTEREN>(u64::MAX);
    let _ = csr::write::<HCOUNTEREN>(1 << 3);
    let guest = run(Mode::VirtualSupervisor, read_overflow);
    quiet();
    same("in HS-mode", all, 0b11000)?;
    same("without mcounteren bit 3", some, 0b10000)?;
    gives("in M-mode", machine, 0b11000)?;
    same("without hcounteren bit 4", guest, 0b01000)
}

extern "C" fn try_overflow() -> u64 {
    cause(csr::read::<SCOUNTOVF>())
}

fn overflow_modes() -> Outcome {
    quiet();
    let in_mode = |mode| attempt(mode, try_overflow).unwrap_or(0);
    same("U", in_mode(Mode::User), ILLEGAL)?;
    same("VU", in_mode(Mode::VirtualUser), VIRTUAL)?;
    same(
        "a write",
        csr::write::<SCOUNTOVF>(0).err().unwrap_or(0),
        ILLEGAL,
    )
}
