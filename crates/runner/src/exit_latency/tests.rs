//! Tests of exit latencies.

use super::*;
use machine::device::HartId;

fn at(retired: u64, cycles: u64, happening: Happening) -> Event {
    Event {
        place: Place::Hart(HartId(0)),
        cycles,
        retired,
        happening,
    }
}

fn leave(retired: u64, cycles: u64, vmid: u16) -> Event {
    let happening = Happening::Exception {
        exception: Exception::new(Cause::VirtualInstruction, WFI),
        from: Mode::VIRTUAL_SUPERVISOR,
        to: Mode::HYPERVISOR,
        pc: 0,
        vmid,
    };
    at(retired, cycles, happening)
}

fn enter(retired: u64, cycles: u64, vmid: u16) -> Event {
    let happening = Happening::Return {
        from: Mode::HYPERVISOR,
        to: Mode::VIRTUAL_SUPERVISOR,
        pc: 0,
        vmid,
    };
    at(retired, cycles, happening)
}

fn rows(events: &[Event]) -> Vec<Row> {
    let mut exit_latency = ExitLatencies::default();
    for event in events {
        exit_latency.event(event);
    }
    exit_latency.rows()
}

fn found(rows: &[Row], kind: LatencyKind, cause: &str) -> (u64, u64, u64) {
    let row = rows
        .iter()
        .find(|row| row.kind == kind && row.cause == cause);
    row.map_or((0, 0, 0), |row| {
        (row.count, row.instructions[0], row.cycles[0])
    })
}

#[test]
fn round_trip_kind_follows_from_last_vcpu() {
    let rows = rows(&[
        leave(100, 1000, 1),
        enter(149, 1200, 1),
        leave(200, 2000, 1),
        enter(299, 2400, 2),
    ]);
    assert_eq!(found(&rows, LatencyKind::Exit, "WFI"), (1, 50, 200));
    assert_eq!(found(&rows, LatencyKind::Dispatch, "WFI"), (1, 100, 400));
    assert_eq!(found(&rows, LatencyKind::Dispatch, "all"), (1, 100, 400));
}

#[test]
fn wait_is_no_part_of_round_trip() {
    let wait = |cycles| {
        let mode = Mode::HYPERVISOR;
        at(110, cycles, Happening::WaitForInterrupt { mode })
    };
    let wake = |cycles| {
        let end = machine::trace::WaitEnd::Interrupt;
        at(111, cycles, Happening::Wake { end })
    };
    let in_place = rows(&[
        leave(100, 1000, 1),
        wait(1010),
        wake(9010),
        enter(120, 9030, 1),
    ]);
    assert_eq!(
        found(&in_place, LatencyKind::Exit, "WFI, which waits"),
        (1, 21, 30)
    );
    let idle = rows(&[
        leave(100, 1000, 1),
        wait(1010),
        wake(9010),
        enter(120, 9030, 2),
    ]);
    assert_eq!(found(&idle, LatencyKind::FromIdle, ""), (1, 10, 20));
}

#[test]
fn pause_wait_is_named_by_its_address() {
    let pause = |retired, cycles, pc| {
        let mode = Mode::HYPERVISOR;
        at(retired, cycles, Happening::Pause { mode, pc })
    };
    let rows = rows(&[
        leave(100, 1000, 1),
        pause(110, 1010, 0x80),
        pause(115, 1020, 0x80),
        pause(120, 1030, 0x80),
        // Too long after it: another wait, which one look ends.
        pause(900, 1031 + LOOP, 0x80),
        // Another loop.
        pause(905, 1040 + LOOP, 0x90),
        pause(907, 1044 + LOOP, 0x90),
        enter(1000, 2000, 1),
    ]);
    let of = |cause: &str| {
        let row = rows
            .iter()
            .find(|row| row.kind == LatencyKind::Pauses && row.cause == cause);
        row.map(|row| (row.count, row.instructions[2], row.cycles[2]))
    };
    assert_eq!(of("0x80"), Some((2, 15, 30)));
    assert_eq!(of("0x90"), Some((1, 4, 8)));
    assert_eq!(
        found(&rows, LatencyKind::Exit, "WFI"),
        (1, 901, 1000),
        "the round trip is as long as without them"
    );
}

#[test]
fn device_store_under_shadow_tables_page_faults() {
    let store = |at| Exception::new(Cause::StorePage, at);
    assert_eq!(name(&store(VIRTIO.0 + QUEUE_NOTIFY)), "virtio notification");
    assert_eq!(name(&store(0x8000_0000)), "page fault");
}

#[test]
fn firmware_trap_belongs_to_round_trip() {
    let call = Happening::Exception {
        exception: Exception::new(Cause::CallFromSupervisor, 0),
        from: Mode::HYPERVISOR,
        to: Mode::MACHINE,
        pc: 0,
        vmid: 1,
    };
    let back = Happening::Return {
        from: Mode::MACHINE,
        to: Mode::HYPERVISOR,
        pc: 0,
        vmid: 1,
    };
    let events = [
        leave(0, 0, 1),
        at(10, 10, call),
        at(500, 500, back),
        enter(599, 600, 1),
    ];
    assert_eq!(
        found(&rows(&events), LatencyKind::Exit, "WFI"),
        (1, 600, 600)
    );
}
