//! Drivers that break the rules: they find their device in need of a reset, and no other VM notices.

use super::*;
use crate::devices::virtio::QUEUE_PARTS;

/// Violation by a guest, and whether the guest's device needs a reset then.
type Deed = (&'static str, fn(&mut Guest, &World), bool);

fn chain(guest: &mut Guest, world: &World, queue: usize, descriptors: &[(u64, u32, u16, u16)]) {
    for (number, (at, length, flags, next)) in (0..).zip(descriptors) {
        let table = RAM + QUEUE * queue as u64;
        guest.describe(world, table, number, (*at, *length), (*flags, *next));
    }
    guest.make(world, queue, 0);
}

const BUFFER: u64 = BUFFERS[1];

const SENDING: [Deed; 14] = [
    (
        "goes round",
        |g, w| chain(g, w, 1, &[(BUFFER, 4, 1, 1), (BUFFER, 4, 1, 0)]),
        true,
    ),
    (
        "a descriptor beyond the table",
        |g, w| chain(g, w, 1, &[(BUFFER, 4, 1, 999)]),
        true,
    ),
    ("a head beyond the table", |g, w| g.make(w, 1, 999), true),
    (
        "elsewhere",
        |g, w| chain(g, w, 1, &[(0x1000, 100, 0, 0)]),
        true,
    ),
    (
        "beyond the end",
        |g, w| chain(g, w, 1, &[(RAM + 2 * HALF - 50, 100, 0, 0)]),
        true,
    ),
    (
        "wraps",
        |g, w| chain(g, w, 1, &[(u64::MAX - 7, 100, 0, 0)]),
        true,
    ),
    ("empty", |g, w| chain(g, w, 1, &[(BUFFER, 0, 0, 0)]), true),
    (
        "to be written",
        |g, w| chain(g, w, 1, &[(BUFFER, 100, 2, 0)]),
        true,
    ),
    (
        "partly to be written",
        |g, w| {
            chain(g, w, 1, &[(BUFFER, 100, 1, 1), (BUFFER, 4, 2, 0)]);
        },
        true,
    ),
    (
        "more than the ring holds",
        |g, w| {
            (0..9).for_each(|_| g.make(w, 1, 0));
        },
        true,
    ),
    (
        "too short",
        |g, w| chain(g, w, 1, &[(BUFFER, 25, 0, 0)]),
        false,
    ),
    (
        "shorter than a header",
        |g, w| chain(g, w, 1, &[(BUFFER, 1, 0, 0)]),
        false,
    ),
    (
        "too long",
        |g, w| chain(g, w, 1, &[(BUFFER, 1527, 0, 0)]),
        false,
    ),
    (
        "as long as can be",
        |g, w| chain(g, w, 1, &[(RAM, 0xffff, 1, 1), (RAM, 0xffff, 0, 0)]),
        false,
    ),
];

#[test]
fn chains_that_cannot_be_sent_are_not() {
    for (what, deed, is_broken) in SENDING {
        let (world, mut guests) = started(2, true);
        guests[0].write(&world, BUFFER, &[0xff; 2000]);
        deed(&mut guests[0], &world);
        guests[0].set(&world, QUEUE_NOTIFY, 1);
        assert_eq!(guests[0].is_broken(&world), is_broken, "{what}");
        assert!(guests[0].device.irq_level(), "{what}");
        assert_eq!(world.notified.get(), Clients::NONE, "{what}");
        assert_eq!(world.count(0, Event::FrameSent), 0, "{what}");
        // Others, and the same guest after a reset, are as before.
        let frame = frame(address(1), address(0), 60, 3);
        guests[0].start(&world, true);
        guests[0].send(&world, &frame);
        world.settle(&mut guests);
        assert_eq!(guests[1].received(&world), [frame], "{what}");
    }
}

#[test]
fn a_guest_sends_as_itself_alone() {
    let (world, mut guests) = started(3, true);
    for source in [address(1), BROADCAST, Address([0; 6])] {
        for to in [address(2), BROADCAST, Address([0x52; 6])] {
            guests[0].send(&world, &frame(to, source, 60, 3));
        }
    }
    // Nor to itself.
    guests[0].send(&world, &frame(address(0), address(0), 60, 3));
    assert_eq!(world.count(0, Event::FrameDropped), 10);
    assert_eq!(world.notified.get(), Clients::NONE);
    assert!(world.card_sends().is_empty());
}

#[test]
fn frames_before_a_wrong_chain_are_sent() {
    let (world, mut guests) = started(2, false);
    let frame = frame(address(1), address(0), 60, 3);
    guests[0].put(&world, &frame, &[12]);
    guests[0].make(&world, 1, 999);
    guests[0].set(&world, QUEUE_NOTIFY, 1);
    assert!(guests[0].is_broken(&world));
    world.settle(&mut guests);
    assert_eq!(guests[1].received(&world), [frame]);
}

const RECEIVING: [Deed; 9] = [
    (
        "no buffer that is written",
        |g, w| chain(g, w, 0, &[(BUFFER, 2000, 0, 0)]),
        true,
    ),
    (
        "one that is not",
        |g, w| chain(g, w, 0, &[(BUFFER, 12, 1, 1), (BUFFER, 2000, 2, 0)]),
        true,
    ),
    (
        "elsewhere",
        |g, w| chain(g, w, 0, &[(0x1000, 2000, 2, 0)]),
        true,
    ),
    (
        "goes round",
        |g, w| chain(g, w, 0, &[(BUFFER, 4, 3, 1), (BUFFER, 4, 3, 0)]),
        true,
    ),
    ("empty", |g, w| chain(g, w, 0, &[(BUFFER, 0, 2, 0)]), true),
    ("a head beyond the table", |g, w| g.make(w, 0, 8), true),
    (
        "more than the ring holds",
        |g, w| (0..9).for_each(|_| g.make(w, 0, 0)),
        true,
    ),
    (
        "many descriptors",
        |g, w| {
            for number in 0..33 {
                let link = if number == 32 {
                    (2, 0)
                } else {
                    (3, number + 1)
                };
                g.describe(w, RAM + HALF, number, (BUFFER, 100), link);
            }
            chain(g, w, 0, &[(RAM + HALF, 33 * 16, 4, 0)]);
        },
        true,
    ),
    (
        "too small",
        |g, w| chain(g, w, 0, &[(BUFFER, 71, 2, 0)]),
        false,
    ),
];

#[test]
fn read_only_chains_receive_nothing() {
    for (what, deed, is_broken) in RECEIVING {
        let world = World::new(2, false);
        let mut guests = world.guests(2);
        guests[0].start(&world, true);
        guests[1].start(&world, false);
        deed(&mut guests[1], &world);
        let all = guests[1].read(&world, RAM + 0x8000, 0x1_0000);
        let long = frame(address(1), address(0), 60, 3);
        guests[0].send(&world, &long);
        world.settle(&mut guests);
        assert_eq!(guests[1].is_broken(&world), is_broken, "{what}");
        assert!(!guests[0].is_broken(&world) && guests[0].in_flight(&world) == 0);
        assert_eq!(guests[1].half(&world, RAM + 0x2002), 0, "{what}");
        let after = guests[1].read(&world, RAM + 0x8000, 0x1_0000);
        assert!(all == after, "{what}: nothing was written");
        // One that fits comes to the chain that was too small for the other.
        let short = frame(address(1), address(0), 59, 3);
        guests[0].send(&world, &short);
        world.settle(&mut guests);
        let returned = guests[1].half(&world, RAM + 0x2002);
        assert_eq!(returned, u16::from(!is_broken), "{what}");
    }
}

#[test]
fn queues_lie_in_the_guests_memory() {
    let world = World::new(2, false);
    let mut guests = world.guests(2);
    let guest = &mut guests[0];
    for (size, low) in [(8, 0x1000), (3, RAM), (512, RAM), (0, RAM), (8, RAM + 8)] {
        guest.set_up(&world, false);
        guest.set(&world, STATUS, 0);
        guest.set(&world, STATUS, 1 | 2);
        guest.set(&world, DRIVER_FEATURES_SELECT, 1);
        guest.set(&world, DRIVER_FEATURES, 1);
        guest.set(&world, STATUS, 1 | 2 | 8);
        guest.set(&world, QUEUE_SELECT, 0);
        guest.set(&world, QUEUE_SIZE, size);
        for register in QUEUE_PARTS {
            guest.set(&world, register, low as u32);
            guest.set(&world, register + 4, (low >> 32) as u32);
        }
        guest.set(&world, QUEUE_READY, 1);
        assert!(guest.is_broken(&world), "{size} at {low:x}");
        assert_eq!(guest.get(&world, QUEUE_READY, Width::Word), 0);
        guest.go(&world);
        guest.set(&world, QUEUE_NOTIFY, 0);
    }
    // Notifications of what there is not, and of a device that was not started, do nothing.
    guest.set(&world, STATUS, 0);
    for queue in [0, 1, 2, u32::MAX] {
        guest.set(&world, QUEUE_NOTIFY, queue);
    }
    guest.start(&world, false);
    for queue in [2, 77, u32::MAX] {
        guest.set(&world, QUEUE_NOTIFY, queue);
    }
    assert!(!guest.is_broken(&world));
}

#[test]
fn features_that_were_not_offered_are_refused() {
    let world = World::new(2, false);
    let mut guests = world.guests(2);
    let guest = &mut guests[0];
    for (low, high) in [(1 << 15, 1), (1 << 5, 0), (0, 3), (1, 1)] {
        guest.set(&world, STATUS, 0);
        guest.set(&world, STATUS, 1 | 2);
        for (word, half) in [(0, low), (1, high)] {
            guest.set(&world, DRIVER_FEATURES_SELECT, word);
            guest.set(&world, DRIVER_FEATURES, half);
        }
        guest.set(&world, STATUS, 1 | 2 | 8);
        assert_eq!(
            guest.get(&world, STATUS, Width::Word),
            3,
            "{low:x} {high:x}"
        );
    }
}
