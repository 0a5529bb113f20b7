//! Ports, switch and uplink with guests, drivers and a card that are written out here.

mod guest;
mod hostile;
mod random;
mod world;

use abi::monitor::Event;

use self::guest::Guest;
use self::world::*;
use super::frame::{Address, HEADER, Head};
use super::inbox::{Inbox, SLOTS, Sender};
use super::*;
use crate::devices::irq::SourceNumber;
use crate::devices::testing::context::Alone;
use crate::devices::testing::memory::Host;
use crate::devices::trapped::TrappedDevice;
use crate::devices::virtio::DeviceKind;
use crate::devices::virtio::driver::Board;
use crate::devices::virtio::driver::DriverError;
use crate::devices::virtio::register::*;
use crate::hart::decode::Width;
use crate::memory::address::HostPhysical;

/// A switch and as many guests, all started and with buffers.
fn started(ports: usize, uplink: bool) -> (World, Vec<Guest>) {
    let world = World::new(ports, uplink);
    let mut guests = world.guests(ports);
    for guest in &mut guests {
        guest.start(&world, true);
        guest.offer(&world, ENTRIES.into(), 12);
    }
    (world, guests)
}

#[test]
fn frames_reach_their_address_alone() {
    for (length, cuts) in [
        (14, &[12][..]),
        (15, &[]),
        (60, &[5, 12, 13, 26, 27]),
        (61, &[25, 26, 40]),
        (1514, &[12]),
        (1513, &[12, 0x40, 700]),
    ] {
        let (world, mut guests) = started(3, false);
        let frame = frame(address(2), address(0), length, 0x33);
        guests[0].put(&world, &frame, cuts);
        guests[0].notify(&world, 1, 0);
        assert!(
            !guests[2].device.irq_level(),
            "others' devices are not touched"
        );
        world.settle(&mut guests);
        assert_eq!(guests[0].in_flight(&world), 0);
        let got: Vec<_> = guests.iter_mut().map(|one| one.received(&world)).collect();
        assert_eq!(got, [vec![], vec![], vec![frame]]);
        assert!(guests[2].device.irq_level() && !guests[1].device.irq_level());
        let counts = [(0, Event::FrameSent), (2, Event::FrameReceived)];
        assert!(
            counts
                .iter()
                .all(|(vm, event)| world.count(*vm, *event) == 1)
        );
        assert_eq!(world.counts.borrow().len(), 2);
    }
}

#[test]
fn unknown_addresses_reach_the_uplink() {
    let (world, mut guests) = started(3, true);
    assert_eq!(world.card.notified[0].get(), 1);
    let group = Address([0x33, 0x33, 0, 0, 0, 1]);
    let unknown = Address([0x52, 0x54, 0, 0, 0, 1]);
    let frames = [BROADCAST, group, unknown, address(2)];
    let frames = frames.map(|to| frame(to, address(1), 77, 0x11));
    for frame in &frames {
        guests[1].send(&world, frame);
    }
    world.settle(&mut guests);
    assert_eq!(guests[0].received(&world), frames[..2]);
    assert_eq!(guests[1].received(&world), [[0; 0]; 0]);
    let third = [&frames[..2], &frames[3..]].concat();
    assert_eq!(guests[2].received(&world), third);
    assert_eq!(world.card_sends(), frames[..3]);
    assert_eq!(world.card.notified[1].get(), 3, "none for the last");
    // Without an uplink no port gets frames for unknown addresses.
    let (world, mut guests) = started(2, false);
    guests[1].send(&world, &frames[2]);
    assert_eq!(world.count(1, Event::FrameDropped), 1);
    assert_eq!(world.notified.get(), Clients::NONE);
}

#[test]
fn frames_from_outside_reach_the_ports() {
    let (world, mut guests) = started(2, true);
    let other = Address([0x52, 0x54, 0, 0, 0, 1]);
    let frames = [
        frame(address(1), other, 1514, 1),
        frame(BROADCAST, other, 60, 2),
        // Frames for addresses of no port, and their answers.
        frame(Address([0x52, 0x54, 0, 0, 0, 2]), other, 60, 3),
        frame(BROADCAST, address(0), 60, 4),
        frame(BROADCAST, BROADCAST, 60, 5),
    ];
    for frame in &frames {
        assert!(world.card_receives(frame));
    }
    world.serve();
    world.settle(&mut guests);
    assert_eq!(guests[0].received(&world), frames[1..2]);
    assert_eq!(guests[1].received(&world), frames[..2]);
    assert_eq!(world.card.served.get(), 1);
    assert_eq!(world.card.interrupts.get(), 0);
    assert_eq!(world.card.notified[0].get(), 2);
    // All buffers go round.
    for round in 0..200 {
        let frame = frame(address(0), other, 20 + round, 0);
        assert!(world.card_receives(&frame));
        world.serve();
        world.settle(&mut guests);
        assert_eq!(guests[0].received(&world), [frame]);
        guests[0].offer(&world, 1, 12);
    }
    // An interrupt with nothing behind it.
    world.serve();
    assert_eq!(world.card.served.get(), 201);
    assert_eq!(world.notified.get(), Clients::NONE);
}

#[test]
fn a_card_that_lies_is_not_believed() {
    let other = Address([0x52, 0x54, 0, 0, 0, 1]);
    for written in [0, 11, 12, 25, 1527, 4096, u32::MAX] {
        let (world, mut guests) = started(2, true);
        let (head, at, ..) = world.card_takes(0).unwrap();
        let data = [&[0; HEADER][..], &frame(BROADCAST, other, 60, 1)].concat();
        world.host.set(at, &data);
        world.card_returns(0, head.into(), written);
        world.card.interrupts.set(1);
        world.serve();
        world.settle(&mut guests);
        assert_eq!(guests[0].received(&world), [[0; 0]; 0], "{written}");
        // The buffer is the card's again, behind all others.
        let mut left = 0;
        while world.card_takes(0).is_some() {
            left += 1;
        }
        assert_eq!(left, 64);
    }
    // What it was not given: nothing more is asked of it, and the ports go on.
    for queue in [0, 1] {
        let (world, mut guests) = started(2, true);
        let unknown = frame(other, address(0), 60, 1);
        guests[0].send(&world, &unknown);
        world.card_returns(queue, 63, 100);
        world.card_returns(queue, 70_000, 100);
        world.card.interrupts.set(1);
        world.serve();
        world.serve();
        let before = world.count(0, Event::FrameSent);
        guests[0].send(&world, &unknown);
        guests[0].send(&world, &unknown);
        if queue == 1 {
            assert_eq!(world.count(0, Event::FrameSent), before);
        }
        let known = frame(address(1), address(0), 60, 1);
        guests[0].send(&world, &known);
        world.settle(&mut guests);
        assert_eq!(guests[1].received(&world), [known]);
    }
}

#[test]
fn nobody_takes_an_inbox_that_is_anothers() {
    // Two that send to the third, which has no buffers.
    let world = World::new(3, false);
    let mut guests = world.guests(3);
    for guest in &mut guests {
        guest.start(&world, true);
    }
    for _ in 0..10 * u16::from(SLOTS) {
        let flood = frame(address(2), address(0), 1514, 0);
        guests[0].send(&world, &flood);
        world.settle(&mut guests);
        assert_eq!(guests[0].in_flight(&world), 0, "nobody holds it up");
    }
    // Three quarters are the flood's, and one is kept for the other.
    let mine: Vec<_> = (0..SLOTS / 4)
        .map(|mark| frame(address(2), address(1), 60, mark))
        .collect();
    for frame in &mine {
        guests[1].send(&world, frame);
        world.settle(&mut guests);
    }
    let mut got = Vec::new();
    for _ in 0..SLOTS {
        guests[2].offer(&world, 1, 12);
        got.extend(guests[2].received(&world));
    }
    assert_eq!(got.len(), usize::from(SLOTS));
    assert_eq!(got[usize::from(SLOTS) * 3 / 4..], mine, "in their order");
    assert_eq!(world.count(2, Event::FrameDropped), 10 * 64 - 48);
    assert_eq!(world.count(0, Event::FrameDropped), 10 * 64 - 48);
    assert_eq!(world.count(1, Event::FrameDropped), 0);
}

#[test]
fn idle_cards_hold_nobody_up() {
    let (world, mut guests) = started(2, true);
    let unknown = Address([0x52, 0x54, 0, 0, 0, 1]);
    for _ in 0..200 {
        guests[0].send(&world, &frame(unknown, address(0), 1514, 7));
        assert_eq!(guests[0].in_flight(&world), 0);
    }
    guests[1].send(&world, &frame(unknown, address(1), 60, 8));
    assert_eq!(world.count(1, Event::FrameSent), 1);
    let sent = world.card_sends();
    assert_eq!(sent.len(), usize::from(SLOTS) * 3 / 4 + 1);
    // There is room again.
    guests[0].send(&world, &frame(unknown, address(0), 99, 9));
    assert_eq!(world.card_sends()[0].len(), 99);
}

#[test]
fn resets_drop_waiting_frames() {
    let world = World::new(2, false);
    let mut guests = world.guests(2);
    guests[0].start(&world, false);
    let first = frame(address(1), address(0), 60, 1);
    guests[0].send(&world, &first);
    assert_eq!(
        world.count(0, Event::FrameDropped),
        1,
        "it is not there yet"
    );
    guests[1].start(&world, false);
    guests[0].send(&world, &first);
    let view = guests[1].view(&world);
    guests[1].device.reset(&Alone(&view));
    drop(view);
    guests[1].start(&world, false);
    let second = frame(address(1), address(0), 60, 2);
    guests[0].send(&world, &second);
    guests[1].offer(&world, 8, 12);
    assert_eq!(guests[1].received(&world), [second]);
}

#[test]
fn the_guest_sees_a_network_card() {
    let (world, mut guests) = started(2, false);
    let guest = &mut guests[1];
    let word = |guest: &mut Guest, at| guest.get(&world, at, Width::Word);
    assert_eq!(word(guest, MAGIC), 0x7472_6976);
    assert_eq!(word(guest, VERSION), 2);
    assert_eq!(word(guest, DEVICE_ID), 1);
    assert_eq!(word(guest, QUEUE_SIZE_MAX), 256);
    guest.set(&world, QUEUE_SELECT, 2);
    assert_eq!(word(guest, QUEUE_SIZE_MAX), 0);
    guest.set(&world, DEVICE_FEATURES_SELECT, 0);
    assert_eq!(
        word(guest, DEVICE_FEATURES),
        1 << 3 | 1 << 5 | 1 << 16 | 3 << 28
    );
    guest.set(&world, DEVICE_FEATURES_SELECT, 1);
    assert_eq!(word(guest, DEVICE_FEATURES), 1);
    let bytes: Vec<_> = (CONFIGURATION..CONFIGURATION + 14)
        .map(|at| guest.get(&world, at, Width::Byte))
        .collect();
    assert_eq!(bytes, [6, 1, 2, 3, 7, 1, 1, 0, 0, 0, 0xdc, 5, 0, 0]);
    assert_eq!(guest.get(&world, CONFIGURATION + 10, Width::Half), 1500);
    assert_eq!(guest.get(&world, CONFIGURATION + 0xf8, Width::Double), 0);
    assert_eq!(address(1).to_string(), "06:01:02:03:07:01");
}

#[test]
fn unwanted_interrupts_are_left_out() {
    let (world, mut guests) = started(2, false);
    let frame = frame(address(1), address(0), 60, 1);
    // The index at which the guest wants to hear of a receipt lies far ahead.
    let wanted = RAM + 0x1000 + 4 + 2 * u64::from(ENTRIES);
    guests[1].write(&world, wanted, &100_u16.to_le_bytes());
    guests[0].send(&world, &frame);
    world.settle(&mut guests);
    assert_eq!(guests[1].received(&world).len(), 1);
    assert!(!guests[1].device.irq_level());
    // As long as there are buffers, the device does not want to hear of more.
    let before = guests[1].made[0];
    guests[1].offer(&world, 1, 12);
    assert!(!guests[1].notify(&world, 0, before));
    // It does when a frame has found none.
    for _ in 0..=ENTRIES {
        guests[0].send(&world, &frame);
        world.settle(&mut guests);
    }
    assert_eq!(guests[1].received(&world).len(), usize::from(ENTRIES));
    guests[1].offer(&world, 1, 12);
    assert_eq!(guests[1].received(&world).len(), 1);
}

#[test]
fn chains_before_driver_ok_are_served() {
    let world = World::new(2, false);
    let mut guests = world.guests(2);
    guests[1].start(&world, true);
    guests[0].set_up(&world, true);
    // Eight chains of 129 descriptors: more than are read in one go.
    let data = [&[0; HEADER][..], &frame(address(1), address(0), 200, 1)].concat();
    let buffer = BUFFERS[1];
    guests[0].write(&world, buffer, &data);
    let table = RAM + HALF + 0x8000;
    for number in 0..129_u16 {
        let at = buffer + u64::from(number);
        let (length, link) = match number {
            128 => (data.len() as u32 - 128, (0, 0)),
            _ => (1, (1, number + 1)),
        };
        guests[0].describe(&world, table, number, (at, length), link);
    }
    for head in 0..ENTRIES {
        guests[0].describe(&world, RAM + QUEUE, head, (table, 129 * 16), (4, 0));
        guests[0].make(&world, 1, head);
    }
    assert_eq!(guests[0].go(&world), 1, "two goes");
    assert_eq!(guests[0].in_flight(&world), 0);
    guests[1].offer(&world, 8, 12);
    let got = guests[1].received(&world);
    assert_eq!(got.len(), 8);
    assert!(got.iter().all(|frame| *frame == data[HEADER..]));
}

#[test]
fn copies_in_one_go_are_bounded() {
    let (world, mut guests) = started(16, false);
    for _ in 0..ENTRIES {
        guests[0].put(&world, &frame(BROADCAST, address(0), 60, 1), &[12]);
    }
    // 15 copies of each: three frames go at a time, and others look in between.
    let mut goes = 1;
    while guests[0].store(&world, QUEUE_NOTIFY, 1).is_err() {
        world.settle(&mut guests);
        goes += 1;
    }
    world.settle(&mut guests);
    assert_eq!(goes, 3);
    for guest in &mut guests[1..] {
        assert_eq!(guest.received(&world).len(), usize::from(ENTRIES));
    }
}

#[test]
fn storms_from_outside_take_bounded_time() {
    let (world, mut guests) = started(16, true);
    let other = Address([0x52, 0x54, 0, 0, 0, 1]);
    let frames: Vec<_> = (0..64)
        .map(|mark| frame(BROADCAST, other, 60, mark))
        .collect();
    for frame in &frames {
        assert!(world.card_receives(frame));
    }
    world.serve();
    world.settle(&mut guests);
    // 128 copies are eight frames for all, and the rest is dropped.
    for guest in &mut guests {
        assert_eq!(guest.received(&world), frames[..8]);
        guest.offer(&world, 8, 12);
        assert_eq!(guest.received(&world), [[0; 0]; 0]);
    }
    // All buffers are the card's again.
    for frame in &frames {
        assert!(world.card_receives(frame));
    }
}

#[test]
fn inboxes_count_each_senders_slots() {
    let mut inbox = Inbox::new(3);
    let (one, two) = (Sender(0), Sender(1));
    let parcel = frame::Parcel::new(60, 0);
    assert_eq!(inbox.reserve(one), None, "it is closed");
    assert_eq!(inbox.take_missed(), 0);
    inbox.open();
    let slots: Vec<_> = core::iter::from_fn(|| inbox.reserve(one)).collect();
    assert_eq!(slots.len(), 48);
    assert_eq!(inbox.take_missed(), 1);
    // What is kept for the other is the other's, however the first comes and goes.
    let kept: Vec<_> = core::iter::from_fn(|| inbox.reserve(two)).collect();
    assert_eq!(kept.len(), 16);
    kept.into_iter().for_each(|slot| inbox.free(slot));
    assert_eq!(inbox.reserve(one), None);
    assert_eq!(inbox.take_missed(), 2);
    let other = inbox.reserve(two).unwrap();
    assert!(!slots.contains(&other));
    assert!(inbox.commit(slots[3], parcel) && inbox.commit(other, parcel));
    assert_eq!(
        (inbox.waiting(), inbox.first()),
        (2, Some((slots[3], parcel)))
    );
    // A slot that is free is not freed twice.
    inbox.free(slots[0]);
    inbox.free(slots[0]);
    inbox.free(200);
    assert_eq!(inbox.reserve(one), Some(slots[0]));
    assert_eq!(inbox.reserve(one), None);
    // What is copied while the inbox is closed is freed in the end.
    inbox.close();
    assert_eq!(inbox.waiting(), 0);
    assert!(!inbox.commit(slots[1], parcel));
    inbox.open();
    assert!(inbox.reserve(one).is_some() && inbox.reserve(one).is_some());
    assert_eq!(inbox.reserve(one), None);
    assert_eq!(inbox.reserve(Sender(99)), None);
}

#[test]
fn heads_are_taken_apart() {
    let bytes: Vec<u8> = (0..14).collect();
    let head = Head(bytes.try_into().unwrap());
    assert_eq!(head.destination(), Address([0, 1, 2, 3, 4, 5]));
    assert_eq!(head.source(), Address([6, 7, 8, 9, 10, 11]));
    assert!(BROADCAST.is_group() && !address(15).is_group());
}

#[test]
fn other_devices_are_no_uplink() {
    struct Nothing(Host);
    impl Board for Nothing {
        fn load(&self, _: HostPhysical, _: Width) -> Option<u64> {
            None
        }
        fn store(&self, _: HostPhysical, _: Width, _: u64) {}
        fn resample(&self, _: SourceNumber) {}
        fn time(&self) -> u64 {
            0
        }
        fn host(&self) -> TheHost<'_> {
            TheHost::new(&self.0)
        }
    }
    let memory = OwnedRegion::for_test(0, 0);
    let none = Uplink::start(DRIVER, memory, &Nothing(Host::default()));
    assert_eq!(
        none.unwrap_err(),
        DriverError::NoDevice(DeviceKind::NetworkCard)
    );
}

/// Receive queues stop at once, and others do not wait for the port (virtio 1.2, §4.2.2, `QueueReady`).
#[test]
fn queues_of_a_port_stop_at_once() {
    let (world, mut guests) = started(2, false);
    for queue in [0, 1] {
        guests[1].set(&world, QUEUE_SELECT, queue);
        assert_eq!(guests[1].set(&world, QUEUE_READY, 0), 0);
        assert_eq!(guests[1].get(&world, QUEUE_READY, Width::Word), 0);
    }
    let lost = frame(address(1), address(0), 60, 0x11);
    guests[0].send(&world, &lost);
    world.settle(&mut guests);
    assert!(guests[1].received(&world).is_empty());
    guests[1].start(&world, true);
    guests[1].offer(&world, ENTRIES.into(), 12);
    let found = frame(address(1), address(0), 60, 0x22);
    guests[0].send(&world, &found);
    world.settle(&mut guests);
    assert_eq!(guests[1].received(&world), [found]);
}
