//! Landing pads and shadow stacks, by programs that the execution loop runs.

use riscv::csr::number::{HENVCFG, MENVCFG, MSECCFG, MSTATUS, SATP, SENVCFG, SSP, SSTATUS};
use riscv::exception::SOFTWARE_CHECK;
use riscv::instruction::MRET;

use super::{RAM, machine, write};
use crate::hart::{Cause, Hart, Mode, Privilege};
use crate::machine::{Limit, Machine};
use crate::system::System;

const USER: Mode = Mode::new(Privilege::User, false);
const VIRTUAL_USER: Mode = Mode::new(Privilege::User, true);

const LPE: u64 = 1 << 2;
const SSE: u64 = 1 << 3;
const SPELP: u64 = 1 << 23;
const MPELP: u64 = 1 << 41;
const CODE: u64 = RAM + 0x10_0000;
const HANDLER: u64 = CODE + 0x1000;
const NOP: u32 = 0x13;
const LOOP: u32 = 0x6f;

/// `lpad label`.
const fn landing_pad(label: u32) -> u32 {
    label << 12 | 0x17
}

/// `jalr x0, 0(rs1)`.
const fn jump(rs1: u32) -> u32 {
    rs1 << 15 | 0x67
}

/// Puts words to an address, and a loop behind them.
fn put(system: &mut System, at: u64, words: &[u32]) {
    for (index, &word) in (0..).zip(words.iter().chain(&[LOOP])) {
        let stored = system.memory.store_scalar(at + 4 * index, word, 0);
        assert!(stored.is_some());
    }
}

/// A machine whose hart is about to execute words in a mode that has landing pads, or has none.
fn landing(mode: Mode, words: &[u32], on: bool) -> Machine {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    put(system, CODE, words);
    put(system, HANDLER, &[]);
    let (register, value) = match mode {
        Mode::MACHINE => (MSECCFG, 1 << 10),
        Mode::HYPERVISOR => (MENVCFG, LPE),
        Mode::VIRTUAL_SUPERVISOR => (HENVCFG, LPE),
        _ => (SENVCFG, LPE),
    };
    if on {
        write(hart, system, register, value);
    }
    hart.csrs.mtvec = HANDLER;
    hart.pc = CODE;
    hart.set_mode(mode);
    // The jumps' targets: the fourth word, and the one behind it.
    (hart.x[6], hart.x[8]) = (CODE + 12, CODE + 16);
    (hart.x[1], hart.x[5], hart.x[7]) = (CODE + 16, CODE + 16, CODE + 16);
    machine
}

/// Cause, pc and value of the trap to M-mode, zero without one.
fn run(machine: &mut Machine) -> (u64, u64, u64) {
    machine.run(Limit {
        instructions: Some(30),
        cycles: None,
    });
    let csrs = &machine.harts[0].csrs;
    (csrs.mcause, csrs.mepc, csrs.mtval)
}

#[test]
fn indirect_jumps_need_landing_pads() {
    for mode in super::MODES {
        let name = mode.name();
        // To a pad; past it; past it by link registers and x7; and where nothing is enabled.
        for (rs1, on, fault) in [
            (6, true, false),
            (8, true, true),
            (1, true, false),
            (5, true, false),
            (7, true, false),
            (8, false, false),
        ] {
            let words = [jump(rs1), NOP, NOP, landing_pad(0), NOP];
            let mut machine = landing(mode, &words, on);
            let trap = run(&mut machine);
            let expected = match fault {
                true => (SOFTWARE_CHECK, CODE + 16, 2),
                false => (0, 0, 0),
            };
            assert_eq!(trap, expected, "{name}: by x{rs1}, on {on}");
            let csrs = &machine.harts[0].csrs;
            assert_eq!(csrs.mstatus & MPELP != 0, fault, "{name}: for the return");
            assert!(!csrs.landing_pad_expected);
        }
    }
}

#[test]
fn labels_and_alignment_of_pads_count() {
    for (label, x7, fault) in [
        (0, 0x1234_5000, false),
        (0x12345, 0x1234_5fff, false),
        (0x12345, 0x1234_6000, true),
        // The upper half of x7 is no part of the label.
        (0x12345, 0xffff_ffff_1234_5000, false),
    ] {
        let words = [jump(6), NOP, NOP, landing_pad(label), NOP];
        let mut machine = landing(Mode::HYPERVISOR, &words, true);
        machine.harts[0].x[7] = x7;
        let found = run(&mut machine).0;
        assert_eq!(found == SOFTWARE_CHECK, fault, "{label:#x} {x7:#x}");
    }
    // A pad at an address that is no multiple of four.
    let pad = landing_pad(0);
    let words = [jump(6), NOP, NOP, pad << 16 | 1, NOP << 16 | pad >> 16];
    let mut machine = landing(Mode::HYPERVISOR, &words, true);
    machine.harts[0].x[6] = CODE + 14;
    assert_eq!(run(&mut machine), (SOFTWARE_CHECK, CODE + 14, 2));
}

#[test]
fn returns_bring_expectations_back() {
    let words = [NOP, NOP, NOP, NOP, NOP];
    for (enabled, expected, fault) in [
        (true, true, true),
        (true, false, false),
        (false, true, false),
    ] {
        let mut machine = landing(Mode::HYPERVISOR, &words, enabled);
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        put(system, CODE + 0x2000, &[MRET]);
        hart.set_mode(Mode::MACHINE);
        let bit = if expected { MPELP } else { 0 };
        write(hart, system, MSTATUS, 1 << 11 | bit);
        hart.csrs.mepc = CODE;
        hart.pc = CODE + 0x2000;
        let trap = run(&mut machine);
        assert_eq!(trap.0 == SOFTWARE_CHECK, fault, "{enabled} {expected}");
        let left = machine.harts[0].csrs.mstatus & MPELP;
        assert_eq!(left != 0, fault, "of the trap alone");
    }
}

#[test]
fn supervisors_see_what_was_expected() {
    let words = [jump(8), NOP, NOP, NOP, NOP];
    let mut machine = landing(Mode::HYPERVISOR, &words, true);
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    hart.csrs.medeleg = 1 << SOFTWARE_CHECK;
    hart.csrs.stvec = HANDLER;
    assert_eq!(write(hart, system, SSTATUS, 0) & SPELP, 0);
    run(&mut machine);
    let csrs = &machine.harts[0].csrs;
    let trap = (csrs.scause, csrs.sepc, csrs.stval);
    assert_eq!(trap, (SOFTWARE_CHECK, CODE + 16, 2));
    assert_eq!(csrs.mstatus & SPELP, SPELP);
}

const SSPUSH_X1: u32 = 0xce10_4073;
const SSPOPCHK_X5: u32 = 0xcdc2_c073;
const SSRDP_X6: u32 = 0xcdc0_4373;
/// `ssamoswap.d x6, x1, (x10)`.
const SSAMOSWAP_D: u32 = 0x4815_332f;
/// `ld x6, 0(x10)` and `sd x6, 0(x10)`.
const LD: u32 = 0x0005_3303;
const SD: u32 = 0x0065_3023;
/// Where the page of the shadow stack is seen.
const STACK: u64 = 0x20_0000;
const STORE_ACCESS: u64 = Cause::StoreAccess as u64;
const STORE_PAGE: u64 = Cause::StorePage as u64;
/// V, A and D, and W without R.
const SHADOW: u64 = 0xc1 | 4;

/// A machine in HS-mode with 2 MiB at 0 for code, and 2 MiB at [`STACK`] that a leaf with these flags maps.
fn stacked(words: &[u32], flags: u64) -> Machine {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    put(system, CODE, words);
    put(system, HANDLER, &[]);
    let root = RAM + 0x1000;
    for (place, entry) in [
        (root, (root + 0x1000) >> 2 | 1),
        (root + 0x1000, RAM >> 2 | 0xcf),
        (root + 0x1008, (RAM + 0x20_0000) >> 2 | flags),
    ] {
        assert!(system.memory.store_scalar(place, entry, 0).is_some());
    }
    write(hart, system, MENVCFG, SSE);
    write(hart, system, SATP, 8 << 60 | root >> 12);
    write(hart, system, SSP, STACK + 0x1000);
    hart.csrs.mtvec = HANDLER;
    hart.pc = CODE - RAM;
    (hart.x[1], hart.x[5], hart.x[10]) = (0x1111, 0x1111, STACK + 0xff8);
    hart.set_mode(Mode::HYPERVISOR);
    machine
}

/// Value of the shadow stack's first entry.
fn kept(machine: &Machine) -> Option<u64> {
    machine.system.memory.ram.read::<u64>(RAM + 0x20_0ff8)
}

#[test]
fn shadow_stacks_push_check_and_swap() {
    let words = [SSPUSH_X1, SSRDP_X6, SSPOPCHK_X5, LD];
    let mut machine = stacked(&words, SHADOW);
    assert_eq!(run(&mut machine).0, 0);
    let hart = &machine.harts[0];
    // All loads can read what was pushed.
    assert_eq!((hart.x[6], hart.csrs.ssp), (0x1111, STACK + 0x1000));
    assert_eq!(kept(&machine), Some(0x1111));
    // Another value does not pass, and ssp stays, as SSRDP has read it.
    let mut machine = stacked(&words, SHADOW);
    machine.harts[0].x[5] = 0x2222;
    assert_eq!(run(&mut machine), (SOFTWARE_CHECK, CODE - RAM + 8, 3));
    let hart = &machine.harts[0];
    assert_eq!((hart.x[6], hart.csrs.ssp), (STACK + 0xff8, STACK + 0xff8));
    let mut machine = stacked(&[SSAMOSWAP_D], SHADOW);
    machine.harts[0].x[6] = 7;
    assert_eq!(run(&mut machine).0, 0);
    assert_eq!((machine.harts[0].x[6], kept(&machine)), (0, Some(0x1111)));
}

#[test]
fn shadow_stacks_are_memory_of_their_own() {
    let push = |flags| run(&mut stacked(&[SSPUSH_X1], flags));
    let (at, pc) = (STACK + 0xff8, CODE - RAM);
    for (flags, cause) in [
        // Without V; read only; read and write; execute only; everything.
        (0xc4, STORE_PAGE),
        (0xc3, STORE_PAGE),
        (0xc7, STORE_ACCESS),
        (0xc9, STORE_ACCESS),
        (0xcf, STORE_ACCESS),
        // Without D, without A, a user's page.
        (SHADOW & !0x80, STORE_PAGE),
        (SHADOW & !0x40, STORE_PAGE),
        (SHADOW | 0x10, STORE_PAGE),
    ] {
        assert_eq!(push(flags), (cause, pc, at), "{flags:#x}");
    }
    // SSPOPCHK is told of as a store, too, and needs no D. It reads the entry behind the pages.
    let pop = |flags| {
        let mut machine = stacked(&[SSPOPCHK_X5], flags);
        machine.harts[0].csrs.ssp = at;
        run(&mut machine).0
    };
    assert_eq!(pop(0xc3), STORE_PAGE);
    assert_eq!(pop(SHADOW & !0x80), SOFTWARE_CHECK);
    // Other stores do not reach it.
    assert_eq!(run(&mut stacked(&[SD], SHADOW)), (STORE_ACCESS, pc, at));
}

#[test]
fn shadow_stack_pointers_are_aligned() {
    let mut machine = stacked(&[SSPUSH_X1], SHADOW);
    machine.harts[0].csrs.ssp = STACK + 0xffc;
    assert_eq!(run(&mut machine).0, STORE_ACCESS);
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    assert_eq!(write(hart, system, SSP, u64::MAX), !7);
}

#[test]
fn inactive_shadow_stacks_are_may_be_operations() {
    let mut machine = stacked(&[SSPUSH_X1, SSPOPCHK_X5, SSRDP_X6], SHADOW);
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    (hart.x[6], hart.x[5]) = (5, 0x2222);
    write(hart, system, MENVCFG, 0);
    (hart.pc, hart.x[6]) = (CODE - RAM, 5);
    assert_eq!(run(&mut machine).0, 0);
    let hart = &machine.harts[0];
    assert_eq!((hart.x[6], hart.csrs.ssp), (0, STACK + 0x1000));
    assert_eq!(kept(&machine), Some(0));
    // SSAMOSWAP is none of them; and the page's encoding is reserved again.
    let off = |words: &[u32]| {
        let mut machine = stacked(words, SHADOW);
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        write(hart, system, MENVCFG, 0);
        hart.pc = CODE - RAM;
        run(&mut machine).0
    };
    assert_eq!(off(&[SSAMOSWAP_D]), Cause::IllegalInstruction as u64);
    assert_eq!(off(&[LD]), Cause::LoadPage as u64);
}

#[test]
fn no_shadow_stack_without_translation() {
    let mut machine = stacked(&[SSAMOSWAP_D], SHADOW);
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    write(hart, system, SATP, 0);
    (hart.pc, hart.x[10]) = (CODE, RAM);
    assert_eq!(run(&mut machine), (STORE_ACCESS, CODE, RAM));
}

/// Cause of the exception of a read of ssp in a mode, with SSE of menvcfg, henvcfg and senvcfg.
fn refused(mode: Mode, sse: [bool; 3]) -> Option<Cause> {
    let mut machine = machine();
    let (hart, system): (&mut Hart, _) = (&mut machine.harts[0], &mut machine.system);
    for (number, on) in [MENVCFG, HENVCFG, SENVCFG].into_iter().zip(sse) {
        write(hart, system, number, if on { SSE } else { 0 });
    }
    hart.set_mode(mode);
    let done = hart.execute_csr(u32::from(SSP) << 20 | 0x2373, system);
    done.err().map(|_| hart.exception.cause)
}

#[test]
fn ssp_obeys_the_modes_above() {
    let illegal = Some(Cause::IllegalInstruction);
    let guest = Some(Cause::VirtualInstruction);
    for (mode, sse, expected) in [
        (Mode::MACHINE, [false; 3], None),
        (Mode::HYPERVISOR, [false; 3], illegal),
        (Mode::HYPERVISOR, [true, false, false], None),
        (USER, [true, false, false], illegal),
        (USER, [true, false, true], None),
        (Mode::VIRTUAL_SUPERVISOR, [false; 3], illegal),
        (Mode::VIRTUAL_SUPERVISOR, [true, false, false], guest),
        (Mode::VIRTUAL_SUPERVISOR, [true, true, false], None),
        (VIRTUAL_USER, [true, true, false], guest),
        (VIRTUAL_USER, [true, true, true], None),
    ] {
        assert_eq!(refused(mode, sse), expected, "{} {sse:?}", mode.name());
    }
}
