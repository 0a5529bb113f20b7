//! Split of work between `fast` and `general`, and the notifications that each side asks for.

use super::*;
use crate::devices::testing::context::Alone;

fn count(guest: &Guest, event: Event) -> u32 {
    guest
        .world
        .counts
        .borrow()
        .get(&event)
        .copied()
        .unwrap_or(0)
}

/// A chain of so many descriptors, one buffer each, from descriptor 0 of a table on.
fn chain(world: &World, table: u64, descriptors: u64) {
    for number in 0..descriptors {
        let is_last = number + 1 == descriptors;
        let flags = if is_last { 2 } else { 1 };
        let next = number as u16 + 1;
        world.describe(table, number, BUFFERS + 0x10 * number, 16, flags, next);
    }
}

#[test]
fn simple_chains_take_the_fast_way() {
    for (way, fast) in [
        (Way::General, false),
        (Way::FastInPieces, true),
        (Way::Fast, true),
    ] {
        for indirect in [false, true] {
            let mut guest = Guest::started(way);
            if indirect {
                guest.world.describe(TABLE, 0, BUFFERS + 0x800, 48, 4, 0);
                chain(&guest.world, BUFFERS + 0x800, 3);
            } else {
                chain(&guest.world, TABLE, 3);
            }
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            let (_, buffers) = guest.world.device_takes().unwrap();
            let place = guest.world.place(BUFFERS);
            let expected = [0, 1, 2].map(|number| (place + 0x10 * number, 16, number == 2));
            assert_eq!(buffers, expected);
            let counts =
                [Event::RequestFast, Event::RequestGeneral].map(|event| count(&guest, event));
            assert_eq!(counts, [fast, !fast].map(u32::from), "{way:?} {indirect}");
        }
    }
}

/// `general` decides whatever `fast` does not handle.
#[test]
fn other_chains_take_the_general_way() {
    let mut guest = Guest::started(Way::Fast);
    // A table in whose middle another one stands: refused as ever.
    guest.world.describe(TABLE, 0, BUFFERS, 16, 1, 1);
    guest.world.describe(TABLE, 1, BUFFERS, 16, 4 | 1, 2);
    guest.world.offer(0, &[0]);
    guest.set(QUEUE_NOTIFY, 0);
    assert!(guest.is_broken());
    assert_eq!(guest.world.device_takes(), None);
    assert_eq!(count(&guest, Event::RequestFast), 0);
}

#[test]
fn event_indices_choose_interrupts() {
    for way in Way::ALL {
        let mut guest = Guest::new(way, 0);
        guest.world.guest_sets(AVAILABLE, &[0; 32]);
        guest.world.guest_sets(USED, &[0; 128]);
        guest.start(VERSION_1 | EVENT_INDEX, ENTRIES, [TABLE, AVAILABLE, USED]);
        for number in 0..4 {
            let at = BUFFERS + 0x100 * number;
            guest.world.describe(TABLE, number, at, 16, 2, 0);
        }
        // It wants to hear when the third has been used: used_event is 2. It is asked to tell of the fifth: avail_event is 4.
        let (used_event, available_event) = (AVAILABLE + 4 + 16, USED + 4 + 64);
        guest.world.guest_sets(used_event, &[2, 0]);
        guest.world.offer(0, &[0, 1, 2, 3]);
        guest.set(QUEUE_NOTIFY, 0);
        assert_eq!(guest.world.guest_gets::<2>(available_event), [4, 0]);
        let mut wires = Vec::new();
        for _ in 0..4 {
            let (head, _) = guest.world.device_takes().unwrap();
            guest.world.device_returns(head.into(), 16);
            guest.device.poll(&Alone(&guest.world));
            wires.push(guest.device.irq_level());
            guest.set(INTERRUPT_ACKNOWLEDGE, 1);
        }
        assert_eq!(wires, [false, false, true, false], "{way:?}");
        // Two at once, of which the first was the one.
        guest.world.guest_sets(used_event, &[4, 0]);
        guest.world.offer(4, &[0, 1]);
        guest.set(QUEUE_NOTIFY, 0);
        for _ in 0..2 {
            let (head, _) = guest.world.device_takes().unwrap();
            guest.world.device_returns(head.into(), 16);
        }
        guest.device.poll(&Alone(&guest.world));
        assert!(guest.device.irq_level());
        assert_eq!(guest.world.guest_gets::<2>(available_event), [6, 0]);
    }
}

/// Any ring before: the guest is asked to notify for the first chain.
#[test]
fn event_indices_ask_for_the_first() {
    for way in Way::ALL {
        let mut guest = Guest::new(way, 0);
        guest.world.guest_sets(AVAILABLE, &[0; 32]);
        guest.start(VERSION_1 | EVENT_INDEX, ENTRIES, [TABLE, AVAILABLE, USED]);
        let available_event = USED + 4 + 64;
        assert_eq!(guest.world.guest_gets::<2>(available_event), [0, 0]);
    }
}

/// A board's device takes its time: the guest's store is done again until the device has ended.
#[test]
fn resets_end_when_the_device_says() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        guest.world.board.slow_resets.set(3);
        let mut times = 0;
        while guest.store(STATUS, 0) == Err(WouldBlock) {
            // Meanwhile nothing is passed on.
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            assert_eq!(guest.world.device_takes(), None);
            times += 1;
        }
        assert_eq!(times, 3);
        assert_eq!(guest.get(STATUS), 0);
        assert_eq!(guest.get(QUEUE_READY), 0);
    }
}

#[test]
fn the_page_shows_what_the_registers_hold() {
    let mut guest = Guest::new(Way::Fast, 1 << 6);
    assert_eq!(guest.get(DEVICE_ID), 2);
    assert_eq!(guest.get(VERSION), 2);
    assert_eq!(guest.get(0x100), 0x5566_7788);
    assert_eq!(guest.get(0x0b0), u32::MAX);
    // Nothing is left of what the memory held before.
    assert_eq!([0x054, 0x800].map(|offset| guest.get(offset)), [0; 2]);
    guest.set(QUEUE_SELECT, 9);
    assert_eq!(guest.get(QUEUE_SIZE_MAX), 0);
    guest.set(QUEUE_SELECT, 0);
    assert_eq!(guest.get(QUEUE_SIZE_MAX), ENTRIES);
    // The device changes its configuration and says so.
    guest.start(VERSION_1, ENTRIES, [TABLE, AVAILABLE, USED]);
    guest.world.board.configuration.set(0x99);
    guest.world.board.interrupts.set(2);
    guest.device.poll(&Alone(&guest.world));
    assert_eq!(guest.get(0x100), 0x99);
    assert_eq!(guest.get(INTERRUPT_STATUS), 2);
    guest.set(INTERRUPT_ACKNOWLEDGE, 2);
    assert_eq!(guest.get(INTERRUPT_STATUS), 0);
    // What the device finds wrong by itself.
    guest.world.board.status.set(15 | status::NEEDS_RESET);
    guest.world.board.interrupts.set(2);
    guest.device.poll(&Alone(&guest.world));
    assert!(guest.is_broken());
}

/// Ranges through which the guest's memory is reached, in the order of the addresses.
fn reached(guest: &Guest) -> Vec<(u64, u64)> {
    let mut all = Vec::new();
    guest
        .device
        .for_each_in_flight(&Alone(&guest.world), &mut |region| {
            all.push((region.base().raw(), region.size()));
        });
    all.sort_unstable();
    all
}

/// Buffers that wait for frames wait for long: they are told of until the device has returned them and the guest has got them.
#[test]
fn buffers_in_flight_are_visited() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        let across = RAM + HALF - 0x80;
        guest.world.describe(TABLE, 0, BUFFERS, 16, 1, 1);
        guest.world.describe(TABLE, 1, across, 0x100, 2, 0);
        guest.world.describe(TABLE, 2, BUFFERS + 0x800, 32, 2, 0);
        guest.world.offer(0, &[0, 2]);
        assert_eq!(reached(&guest), []);
        guest.set(QUEUE_NOTIFY, 0);
        let place = |at| guest.world.place(at);
        let first = (place(BUFFERS), 16);
        let last = (place(BUFFERS + 0x800), 32);
        let crossing = match way {
            Way::Fast => vec![(place(across), 0x100)],
            _ => vec![(place(across), 0x80), (place(RAM + HALF), 0x80)],
        };
        let mut all = [&[first, last][..], &crossing].concat();
        all.sort_unstable();
        assert_eq!(reached(&guest), all);
        // The device has one of them back, which the guest has not got yet.
        let (head, _) = guest.world.device_takes().unwrap();
        guest.world.device_returns(head.into(), 0);
        assert_eq!(reached(&guest), all);
        guest.device.poll(&Alone(&guest.world));
        assert_eq!(reached(&guest), [last]);
    }
}

/// A driver that knew no limit would make chains that the device's queue cannot hold, where each page is a piece. The device is not told of
/// features that it has not offered.
#[test]
fn disk_names_limits_to_guests_in_pages() {
    use crate::devices::virtio::backend::mediated::segments::Segments;
    use riscv::virtio::block::feature::SEG_MAX;
    for (way, own) in [
        (Way::InPages, 0),
        (Way::InPages, SEG_MAX),
        (Way::General, SEG_MAX),
    ] {
        let mut guest = Guest::with_entries(way, own, 64);
        guest.set(DEVICE_FEATURES_SELECT, 0);
        let offered = u64::from(guest.get(DEVICE_FEATURES)) & Segments::FEATURES;
        guest.start(offered | VERSION_1, 64, [TABLE, AVAILABLE, USED]);
        let limits = (guest.get(CONFIGURATION + 8), guest.get(CONFIGURATION + 12));
        let accepted = guest.world.board.accepted.get();
        assert_eq!(accepted & Segments::FEATURES, own, "{way:?}");
        match way {
            Way::InPages => {
                assert_eq!(offered, Segments::FEATURES);
                // The test device's number of segments is 0, which is a limit only where the device has the feature.
                let count = if own == 0 { 30 } else { 0 };
                assert_eq!(limits, (4096, count));
            }
            _ => assert_eq!((offered, limits), (own, (0, 0))),
        }
    }
}
