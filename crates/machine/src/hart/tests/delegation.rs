//! Counters of supervisors behind siselect.

use riscv::csr::number::{
    MCOUNTEREN, MCOUNTINHIBIT, MENVCFG, MHPMEVENT3, MIDELEG, MIE, MVIEN, MVIP, SCOUNTINHIBIT,
    SCOUNTOVF, SIE, SIP, SIREG, SIREG2, SIREG3, SIREG4, SISELECT,
};

use super::{machine, write};
use crate::hart::{Cause, Hart, Mode};
use crate::machine::Machine;
use crate::system::System;

const CDE: u64 = 1 << 60;
const MINH: u64 = 1 << 62;
const SINH: u64 = 1 << 61;
const LCOFI: u64 = 1 << 13;

/// A machine with counters 0 and 3 for supervisors.
fn delegating() -> Machine {
    let mut machine = machine();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    write(hart, system, MENVCFG, CDE);
    write(hart, system, MCOUNTEREN, 0b1001);
    hart.csrs.hstateen[0] = u64::MAX;
    machine
}

/// Writes a CSR in a mode and reads it back, or the cause why not.
fn access(
    hart: &mut Hart,
    system: &mut System,
    mode: Mode,
    number: u16,
    value: u64,
) -> Result<u64, Cause> {
    hart.set_mode(mode);
    hart.x[5] = value;
    for raw in [0x2_9073, 0x2373].map(|word| u32::from(number) << 20 | word) {
        let done = hart.execute_csr(raw, system);
        done.map_err(|_| hart.exception.cause)?;
    }
    Ok(hart.x[6])
}

#[test]
fn supervisors_write_delegated_counters() {
    let mut machine = delegating();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    let own = Mode::HYPERVISOR;
    write(hart, system, MCOUNTINHIBIT, 0b1001);
    write(hart, system, MHPMEVENT3, MINH | 1);
    write(hart, system, SISELECT, 0x43);
    assert_eq!(access(hart, system, own, SIREG, 77), Ok(77));
    assert_eq!(hart.counter(3), 77);
    // MINH is M-mode's: neither seen nor changed.
    assert_eq!(access(hart, system, own, SIREG2, SINH | 2), Ok(SINH | 2));
    assert_eq!(hart.csrs.mhpmevent[0], MINH | SINH | 2);
    write(hart, system, SISELECT, 0x40);
    assert_eq!(access(hart, system, own, SIREG2, SINH | MINH), Ok(SINH));
    assert_eq!(hart.csrs.mcyclecfg, SINH);
}

#[test]
fn what_is_not_delegated_is_illegal() {
    let mut machine = delegating();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    let own = Mode::HYPERVISOR;
    let illegal = Err(Cause::IllegalInstruction);
    // time; instret, which mcounteren does not show; registers that there are not.
    for (select, number) in [(0x41, SIREG), (0x42, SIREG), (0x43, SIREG3), (0x43, SIREG4)] {
        write(hart, system, SISELECT, select);
        let found = access(hart, system, own, number, 0);
        assert_eq!(found, illegal, "{select:#x}");
    }
    write(hart, system, SISELECT, 0x43);
    write(hart, system, MENVCFG, 0);
    assert_eq!(access(hart, system, own, SIREG, 0), illegal);
    assert_eq!(access(hart, system, own, SCOUNTINHIBIT, 0), illegal);
}

#[test]
fn guests_counters_are_left_to_hypervisors() {
    let mut machine = delegating();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    let guest = Mode::VIRTUAL_SUPERVISOR;
    hart.csrs.vsiselect = 0x43;
    let emulated = Err(Cause::VirtualInstruction);
    for number in [SIREG, SIREG2, SCOUNTINHIBIT] {
        let found = access(hart, system, guest, number, 0);
        assert_eq!(found, emulated, "{number:#x}");
    }
    let overflows = u32::from(SCOUNTOVF) << 20 | 0x2373;
    assert!(hart.execute_csr(overflows, system).is_err());
    assert_eq!(hart.exception.cause, Cause::VirtualInstruction);
    write(hart, system, MENVCFG, 0);
    hart.set_mode(guest);
    assert!(hart.execute_csr(overflows, system).is_ok());
    let illegal = Err(Cause::IllegalInstruction);
    assert_eq!(access(hart, system, guest, SIREG, 0), illegal);
}

#[test]
fn scountinhibit_reaches_delegated_counters_alone() {
    let mut machine = delegating();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    write(hart, system, MCOUNTINHIBIT, 0b1_0000);
    let read = access(hart, system, Mode::HYPERVISOR, SCOUNTINHIBIT, u64::MAX);
    assert_eq!(read, Ok(0b1001));
    assert_eq!(hart.csrs.mcountinhibit, 0b1_1001);
}

#[test]
fn overflow_interrupts_can_be_given_to_supervisors() {
    let mut machine = delegating();
    let (hart, system) = (&mut machine.harts[0], &mut machine.system);
    write(hart, system, MIDELEG, 0);
    write(hart, system, MIE, 0);
    assert_eq!(write(hart, system, MVIEN, u64::MAX), LCOFI);
    assert_eq!(write(hart, system, SIE, LCOFI), LCOFI);
    assert_eq!(hart.csrs.mie & LCOFI, 0, "it is sie's own");
    hart.set_mode(Mode::HYPERVISOR);
    hart.csrs.mstatus |= 1 << 1;
    assert!(hart.interrupt_to_take(system).is_none());
    assert_eq!(write(hart, system, MVIP, LCOFI) & LCOFI, LCOFI);
    assert_eq!(write(hart, system, SIP, LCOFI), LCOFI);
    let taken = hart.interrupt_to_take(system);
    let taken = taken.map(|taken| (taken.code, taken.to));
    assert_eq!(taken, Some((13, Mode::HYPERVISOR)));
    assert_eq!(write(hart, system, SIP, 0), 0);
    assert!(hart.interrupt_to_take(system).is_none());
}
