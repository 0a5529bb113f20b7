//! Debug triggers, by programs that the execution loop runs.

use riscv::csr::number::{MSTATUS, TDATA1, TDATA2};

use super::{RAM, machine, write};
use crate::hart::{Cause, Hart, Mode};
use crate::machine::{Limit, Machine};

const TYPE6: u64 = 6 << 60;
const S: u64 = 1 << 4;
const EXECUTE: u64 = 1 << 2;
const STORE: u64 = 1 << 1;
const LOAD: u64 = 1;
const NOP: u32 = 0x13;
/// `ld x6, 0(x5)`, `sd x6, 0(x5)`, `amoadd.d x6, x6, (x5)`, `jal x0, 0`.
const LD: u32 = 0x0002_b303;
const SD: u32 = 0x0062_b023;
const AMO: u32 = 0x0062_b32f;
const LOOP: u32 = 0x6f;
const CODE: u64 = RAM + 0x10_0000;
const DATA: u64 = RAM + 0x20_0000;

/// A machine whose hart is about to execute these words in HS-mode, with a trigger.
fn prepared(words: &[u32], control: u64, data: u64) -> Machine {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    for (index, &word) in (0..).zip(words.iter().chain(&[LOOP])) {
        let stored = system.memory.store_scalar(CODE + 4 * index, word, 0);
        assert!(stored.is_some());
    }
    write(hart, system, TDATA2, data);
    assert_eq!(write(hart, system, TDATA1, control), control);
    write(hart, system, MSTATUS, 0);
    hart.csrs.mtvec = CODE + 0x1000;
    hart.x[5] = DATA;
    hart.pc = CODE;
    hart.set_mode(Mode::HYPERVISOR);
    assert!(system.memory.store_scalar(CODE + 0x1000, LOOP, 0).is_some());
    machine
}

/// Cause, pc and value of the first trap to M-mode, and the hart.
fn trapped(machine: &mut Machine) -> Option<(u64, u64, u64)> {
    machine.run(Limit {
        instructions: Some(40),
        cycles: None,
    });
    let csrs = &machine.harts[0].csrs;
    (machine.harts[0].mode() == Mode::MACHINE).then_some((csrs.mcause, csrs.mepc, csrs.mtval))
}

#[test]
fn instructions_stop_before_they_execute() {
    let mut machine = prepared(&[NOP, NOP, NOP], TYPE6 | S | EXECUTE, CODE + 8);
    let breakpoint = Cause::Breakpoint as u64;
    assert_eq!(
        trapped(&mut machine),
        Some((breakpoint, CODE + 8, CODE + 8))
    );
    // Without the mode nothing fires.
    let mut machine = prepared(&[NOP, NOP, NOP], TYPE6 | 1 << 6 | EXECUTE, CODE + 8);
    assert_eq!(trapped(&mut machine), None);
}

#[test]
fn accesses_stop_before_memory_changes() {
    let breakpoint = Cause::Breakpoint as u64;
    for (word, access, fires) in [
        (LD, LOAD, true),
        (LD, STORE, false),
        (SD, STORE, true),
        (SD, LOAD, false),
        (AMO, LOAD, true),
        (AMO, STORE, true),
    ] {
        // The word has been executed before, so that the hart knows its page.
        let mut machine = prepared(&[LD, SD, NOP, word], 15 << 60, 0);
        assert_eq!(trapped(&mut machine), None);
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        write(hart, system, TDATA2, DATA + 7);
        write(hart, system, TDATA1, TYPE6 | S | access);
        hart.pc = CODE + 12;
        (hart.x[5], hart.x[6]) = (DATA, 77);
        let expected = fires.then_some((breakpoint, CODE + 12, DATA));
        assert_eq!(trapped(&mut machine), expected, "{word:#x} {access}");
        let hart = &machine.harts[0];
        let left = machine.system.memory.ram.read::<u64>(DATA);
        if fires {
            assert_eq!((hart.x[6], left), (77, Some(0)), "{word:#x}");
            assert_ne!(hart.csrs.triggers.control() & 1 << 22, 0, "hit");
        }
    }
}

#[test]
fn triggers_spare_handlers_without_interrupts() {
    let control = TYPE6 | S | EXECUTE;
    let enable = |machine: &mut Machine, medeleg: u64, enabled: bool| {
        let hart: &mut Hart = &mut machine.harts[0];
        hart.csrs.medeleg = medeleg;
        hart.csrs.stvec = CODE + 0x1000;
        hart.csrs.mstatus |= u64::from(enabled) << 1;
    };
    let delegated = 1 << Cause::Breakpoint as u64;
    for (medeleg, enabled, fires) in [
        (0, false, true),
        (delegated, false, false),
        (delegated, true, true),
    ] {
        let mut machine = prepared(&[NOP, NOP, NOP], control, CODE + 8);
        enable(&mut machine, medeleg, enabled);
        trapped(&mut machine);
        let hart = &machine.harts[0];
        assert_eq!(hart.csrs.sepc | hart.csrs.mepc == CODE + 8, fires);
    }
}

#[test]
fn counts_stop_after_as_many_instructions() {
    let control = 3 << 60 | 1 << 7 | 3 << 10;
    let mut machine = prepared(&[NOP, LD, NOP, NOP, NOP], control, 0);
    let breakpoint = Cause::Breakpoint as u64;
    assert_eq!(trapped(&mut machine), Some((breakpoint, CODE + 12, 0)));
}
