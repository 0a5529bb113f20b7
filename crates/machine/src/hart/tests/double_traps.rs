//! Double traps: SDT and MDT.

use riscv::csr::number::{HENVCFG, MENVCFG, MSTATUS, SSTATUS, VSSTATUS};

use super::{RAM, machine, write};
use crate::hart::{Cause, Exception, Mode, Privilege, Wait};
use crate::machine::{Config, Machine};

const DTE: u64 = 1 << 59;
const SDT: u64 = 1 << 24;
const MDT: u64 = 1 << 42;
const SIE: u64 = 1 << 1;
const MIE: u64 = 1 << 3;

/// An exception that supervisors and guests can take.
const fn breakpoint() -> Exception {
    Exception::at(Cause::Breakpoint, 0x1234, false)
}

#[test]
fn supervisors_second_trap_goes_to_machine_mode() {
    for guest in [false, true] {
        let mut machine = machine();
        let (hart, system) = (&mut machine.harts[0], &mut machine.system);
        write(hart, system, MENVCFG, DTE);
        write(hart, system, HENVCFG, DTE);
        hart.csrs.medeleg = 1 << Cause::Breakpoint as u64;
        hart.csrs.hedeleg = if guest { hart.csrs.medeleg } else { 0 };
        let mode = Mode::new(Privilege::Supervisor, guest);
        hart.set_mode(mode);
        hart.take_exception(breakpoint());
        assert_eq!(hart.mode(), mode);
        let csrs = &hart.csrs;
        let status = if guest { csrs.vsstatus } else { csrs.mstatus };
        assert_eq!(status & SDT, SDT);
        hart.pc = RAM + 0x40;
        hart.take_exception(breakpoint());
        assert_eq!(hart.mode(), Mode::MACHINE);
        let csrs = &hart.csrs;
        let causes = (csrs.mcause, csrs.mtval2);
        assert_eq!(causes, (16, Cause::Breakpoint as u64));
        assert_eq!((csrs.mepc, csrs.mtval), (RAM + 0x40, 0x1234));
        // The supervisor's registers are those of the first trap.
        let first = if guest { csrs.vsepc } else { csrs.sepc };
        assert_ne!(first, RAM + 0x40);
    }
}

#[test]
fn traps_are_single_without_dte() {
    let mut machine = machine();
    let hart = &mut machine.harts[0];
    hart.csrs.medeleg = 1 << Cause::Breakpoint as u64;
    hart.set_mode(Mode::HYPERVISOR);
    for _ in 0..2 {
        hart.take_exception(breakpoint());
        let left = (hart.mode(), hart.csrs.mstatus & SDT);
        assert_eq!(left, (Mode::HYPERVISOR, 0));
    }
}

#[test]
fn sdt_keeps_interrupts_off() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    let both = SDT | SIE;
    for number in [SSTATUS, VSSTATUS, MSTATUS] {
        assert_eq!(write(hart, system, number, both) & both, SIE);
    }
    write(hart, system, MENVCFG, DTE);
    assert_eq!(write(hart, system, VSSTATUS, both) & both, SIE);
    write(hart, system, HENVCFG, DTE);
    for number in [SSTATUS, VSSTATUS, MSTATUS] {
        assert_eq!(write(hart, system, number, both) & both, SDT);
        assert_eq!(write(hart, system, number, SIE) & both, SIE);
        write(hart, system, number, SDT);
    }
    // Without DTE the fields are zero, henvcfg's too.
    write(hart, system, MENVCFG, 0);
    assert_eq!((hart.csrs.mstatus | hart.csrs.vsstatus) & SDT, 0);
    assert_eq!(hart.csrs.henvcfg & DTE, 0);
}

#[test]
fn returns_enable_traps_again() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    write(hart, system, MENVCFG, DTE);
    write(hart, system, HENVCFG, DTE);
    // SRET of HS-mode to VU-mode clears both fields, to U-mode its own.
    for (to_guest, left) in [(true, 0), (false, SDT)] {
        hart.csrs.mstatus |= SDT;
        hart.csrs.vsstatus |= SDT;
        hart.csrs.hstatus = u64::from(to_guest) << 7;
        hart.set_mode(Mode::HYPERVISOR);
        hart.return_from_supervisor();
        assert_eq!(hart.csrs.mstatus & SDT, 0);
        assert_eq!(hart.csrs.vsstatus & SDT, left);
    }
    // MRET to U-mode clears SDT; to HS-mode it does not.
    for (privilege, left) in [(0, 0), (1, SDT)] {
        hart.csrs.mstatus = SDT | privilege << 11;
        hart.set_mode(Mode::MACHINE);
        hart.return_from_machine();
        assert_eq!(hart.csrs.mstatus & SDT, left);
    }
}

#[test]
fn double_traps_of_machine_mode_stop_harts() {
    let mut config = Config::default();
    config.board.memory = 4 << 20;
    config.board.isa.extensions.push("smdbltrp".to_owned());
    let mut machine = Machine::new(config).expect("a machine");
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    assert_eq!(hart.csrs.mstatus & MDT, MDT, "from reset on");
    let both = MDT | MIE;
    assert_eq!(write(hart, system, MSTATUS, both) & both, MDT);
    assert_eq!(write(hart, system, MSTATUS, MIE) & both, MIE);
    hart.pc = RAM;
    hart.take_exception(breakpoint());
    assert_eq!((hart.csrs.mstatus & MDT, hart.csrs.mepc), (MDT, RAM));
    let before = hart.csrs.clone();
    hart.pc = RAM + 4;
    hart.take_exception(breakpoint());
    assert_eq!((hart.wait, hart.pc), (Wait::CriticalError, RAM + 4));
    assert_eq!(hart.csrs, before);
}

#[test]
fn machine_mode_has_no_mdt_by_default() {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    assert_eq!(write(hart, system, MSTATUS, MDT) & MDT, 0);
    for _ in 0..2 {
        hart.set_mode(Mode::new(Privilege::User, false));
        hart.take_exception(breakpoint());
        assert_eq!((hart.wait, hart.mode()), (Wait::Nothing, Mode::MACHINE));
    }
}
