//! Charges, their sums, and what is read of them meanwhile.

use super::*;
use crate::hart::csr::{self, number};

#[test]
fn loading_counts_as_work_without_exits() {
    let accounts = Accounts::new(1);
    let at = |cycles: u64| {
        // SAFETY: the register is the stand-in's.
        unsafe { csr::write::<{ number::CYCLE }>(cycles) };
    };
    at(100);
    accounts.open();
    at(340);
    accounts.of(VmId::new(0).unwrap()).charge_loading();
    let (own, work) = accounts.read();
    let counters = &work[0];
    assert_eq!(counters.guest, Cycles(0));
    assert_eq!(counters.simulation(ExitCause::Loading), Cycles(240));
    assert_eq!(counters.exits(ExitCause::Loading), 0);
    assert_eq!(own.elapsed, Cycles(240));
}

#[test]
fn work_beside_a_guest_is_its_vms() {
    let accounts = Accounts::new(3);
    let of = |vm: u16| accounts.of(VmId::new(vm).unwrap());
    let at = |cycles: u64| {
        // SAFETY: the register is the stand-in's.
        unsafe { csr::write::<{ number::CYCLE }>(cycles) };
    };
    at(100);
    accounts.open();
    at(300);
    // The guest of VM 0 is left at 250. A device of VM 1 is served from 300 to 400, in which 30 cycles are work for VM 2.
    let began = accounts.begin_booking();
    at(360);
    let within = accounts.begin_booking();
    at(390);
    of(2).book_devices(accounts.cycles_since(within));
    at(400);
    of(1).book_devices(accounts.cycles_since(began));
    at(420);
    of(0).charge_exit(250, ExitCause::HostExternal);
    let (own, work) = accounts.read();
    let cycles = work.iter();
    let cycles = cycles.map(|counters| counters.simulation(ExitCause::HostExternal).0);
    assert_eq!(cycles.collect::<Vec<_>>(), [70, 70, 30]);
    assert_eq!(work[0].guest, Cycles(150));
    let exits = |vm: usize| work[vm].exits(ExitCause::HostExternal);
    assert_eq!([0, 1, 2].map(exits), [1, 0, 0]);
    assert_eq!(own.elapsed, Cycles(320));
}

#[test]
fn copies_hold_all_counters() {
    let (accounts, published) = (Accounts::new(2), Accounts::new(2));
    let at = |cycles: u64| {
        // SAFETY: the register is the stand-in's.
        unsafe { csr::write::<{ number::CYCLE }>(cycles) };
    };
    at(100);
    accounts.open();
    for (number, cause) in ExitCause::ALL.into_iter().enumerate() {
        at(200 + 10 * number as u64);
        accounts
            .of(VmId::new(1).unwrap())
            .charge_exit(195 + 10 * number as u64, cause);
    }
    let of = accounts.of(VmId::new(0).unwrap());
    for event in Event::ALL {
        of.count_times(event, 1 + event.index() as u64);
    }
    of.count_dispatch();
    of.count_call();
    of.count_injected();
    at(5000);
    accounts.charge_idle();
    at(5010);
    of.charge_scheduling();
    at(5100);
    accounts.charge_scheduling();
    let count = crate::heap::allocations(|| published.copy(&accounts));
    assert_eq!((count, published.read()), (0, accounts.read()));
    let before = published.read();
    at(6000);
    accounts.charge_idle();
    assert_eq!(published.read(), before, "what is published stands");
}

#[test]
fn reading_again_allocates_nothing() {
    let accounts = Accounts::new(3);
    // No account has these cycles, so that the reader looks until it gives up.
    accounts.charged_to.set(7);
    let mut work = Vec::with_capacity(3);
    let count = crate::heap::allocations(|| {
        let own = accounts.read_into(&mut work);
        assert_eq!(own.elapsed, Cycles(0));
    });
    assert_eq!((count, work.len()), (0, 3));
}

#[test]
fn inconsistent_accounts_are_still_read() {
    let accounts = Accounts::new(2);
    accounts.started.set(100);
    accounts.idle.set(40);
    accounts.scheduling.set(2);
    accounts.work[1].guest.set(300);
    // A charge of eight cycles has begun, and is on no account yet.
    accounts.charged_to.set(100 + 40 + 2 + 300 + 8);
    let (own, work) = accounts.read();
    assert_eq!(own.elapsed, Cycles(40 + 2 + 300));
    assert_eq!(own.idle, Cycles(40));
    assert_eq!(own.scheduling, Cycles(2));
    assert_eq!(work[1].guest, Cycles(300));
}
