mod guest;
mod hostile;
mod program;
mod random_load;
mod served;
mod shares;
mod stop;
mod world;

use splitmix::SplitMix64;

use self::guest::*;
use self::world::*;
use super::*;
use crate::devices::trapped::TrappedDevice;
use crate::devices::virtio::{VERSION_1, register};
use crate::hart::decode::Width;

/// A sequence of numbers below what is asked for.
fn random(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut random = SplitMix64::new(seed);
    move |below| random.next() % below.max(1)
}

#[test]
fn slices_look_like_disks() {
    let (world, mut guests) = system(&[10, 10], FLUSH);
    let guest = &mut guests[1];
    let mut get = |register, width| guest.load(&world, register, width);
    assert_eq!(get(register::MAGIC, Width::Word), 0x7472_6976);
    assert_eq!(get(register::DEVICE_ID, Width::Word), 2);
    assert_eq!(get(register::CONFIGURATION, Width::Double), SECTORS);
    assert_eq!(get(register::CONFIGURATION + 4, Width::Word), 0);
    assert_eq!(get(register::CONFIGURATION + 12, Width::Word), 126);
    assert_eq!(get(register::CONFIGURATION + 20, Width::Word), 512);
    assert_ne!(get(register::DEVICE_FEATURES, Width::Word) & FLUSH, 0);
    guest.ask(&world, 0, read(3));
    guest.ask(&world, 47, write(5));
    guest.write(&world, Guest::data(47), &[0x77; 512]);
    guest.notify(&world);
    assert_eq!(world.operations.borrow().len(), 2);
    world.complete(1, 0);
    world.complete(0, 0);
    assert!(!guests[1].device.irq_level());
    serve(&world, &mut guests);
    assert!(guests[1].device.irq_level() && !guests[0].device.irq_level());
    assert_eq!(guests[1].take_completion(&world), Some((47, 1)));
    assert_eq!(guests[1].take_completion(&world), Some((0, 513)));
    assert_eq!(guests[1].take_completion(&world), None);
    let first = first_of(1) as usize;
    assert_eq!(
        guests[1].read::<512>(&world, Guest::data(0)),
        [first as u8 + 3; 512]
    );
    assert_eq!(world.sectors.borrow()[first + 5], [0x77; 512]);
    assert_eq!(guests[1].status(&world, 0), outcome::OK);
    assert_eq!(guests[1].status(&world, 47), outcome::OK);
}

const FLUSH_REQUEST: BlockRequest = BlockRequest {
    kind: 4,
    bytes: 0,
    ..write(0)
};

/// Requests that a slice refuses, each with the status that it has to report.
fn wrong_requests() -> [(BlockRequest, u8); 11] {
    [
        (read(SECTORS), outcome::ERROR),
        (
            BlockRequest {
                bytes: 1024,
                ..read(SECTORS - 1)
            },
            outcome::ERROR,
        ),
        (read(u64::MAX), outcome::ERROR),
        (write(1 << 55), outcome::ERROR),
        (
            BlockRequest {
                bytes: 500,
                ..read(0)
            },
            outcome::ERROR,
        ),
        (
            BlockRequest {
                bytes: 0,
                ..read(0)
            },
            outcome::ERROR,
        ),
        (
            BlockRequest {
                written: true,
                ..write(0)
            },
            outcome::ERROR,
        ),
        (
            BlockRequest {
                written: false,
                ..read(0)
            },
            outcome::ERROR,
        ),
        (
            BlockRequest {
                kind: 11,
                ..write(0)
            },
            outcome::UNSUPPORTED,
        ),
        (
            BlockRequest {
                kind: 0x8000_0000,
                ..read(0)
            },
            outcome::UNSUPPORTED,
        ),
        (
            BlockRequest {
                bytes: 512,
                ..FLUSH_REQUEST
            },
            outcome::UNSUPPORTED,
        ),
    ]
}

#[test]
fn wrong_requests_never_reach_the_disk() {
    let (world, mut guests) = system(&[10, 10], FLUSH);
    let guest = &mut guests[0];
    let cases = wrong_requests();
    for (number, (asked, _)) in (0..).zip(cases) {
        guest.ask(&world, number, asked);
    }
    guest.notify(&world);
    for (number, (asked, outcome)) in (0..).zip(cases) {
        assert_eq!(
            guest.take_completion(&world).map(|(request, _)| request),
            Some(number)
        );
        assert_eq!(guest.status(&world, number), outcome, "{asked:?}");
    }
    assert!(world.operations.borrow().is_empty());
    assert!(guest.device.irq_level() && !guest.is_broken(&world));
    // The disk is not needed for the identity.
    guest.ask(
        &world,
        20,
        BlockRequest {
            kind: 8,
            bytes: IDENTITY_BYTES as u32,
            ..read(0)
        },
    );
    guest.ask(&world, 21, FLUSH_REQUEST);
    guest.notify(&world);
    assert_eq!(guest.take_completion(&world), Some((20, 21)));
    assert_eq!(
        &guest.read::<15>(&world, Guest::data(20)),
        b"partita-slice-1"
    );
    assert_eq!(world.operations.borrow()[0].kind, 4);
}

#[test]
fn requests_beyond_the_slots_wait() {
    let (world, mut guests) = system(&[10], 0);
    for request in 0..REQUESTS {
        guests[0].ask(&world, request, read(u64::from(request)));
    }
    guests[0].notify(&world);
    let mut done = 0;
    while !world.operations.borrow().is_empty() {
        assert!(world.operations.borrow().len() <= DEPTH);
        world.complete(0, 0);
        serve(&world, &mut guests);
        while let Some((request, 513)) = guests[0].take_completion(&world) {
            assert_eq!(request, done);
            done += 1;
        }
    }
    assert_eq!(done, REQUESTS);
}

/// Two slices that always have something to do, one with three times the other's share, then both alike; a third that seldom has.
#[test]
fn shares_divide_the_disk() {
    for (shares, wanted) in [([30, 10, 10], 750), ([10, 10, 10], 500)] {
        let (world, mut guests) = system(&shares, 0);
        let mut begun = [0_u64; 3];
        let mut next = [0_u16; 3];
        let mut seldom_waits = None;
        for guest in &mut guests[..2] {
            for request in 0..REQUESTS {
                guest.ask(&world, request, read(u64::from(request)));
            }
            guest.notify(&world);
        }
        for step in 0..4000_u64 {
            if step % 100 == 99 {
                guests[2].ask(&world, 0, read(0));
                guests[2].notify(&world);
                seldom_waits = Some(step);
            }
            let sector = world.operations.borrow()[0].sector;
            world.complete(0, 0);
            let whose = (0..3)
                .rev()
                .find(|guest| first_of(*guest) <= sector)
                .unwrap();
            begun[whose] += 1;
            if whose == 2 {
                // What the device had already, and one of each other slice.
                let waited = step - seldom_waits.take().unwrap();
                assert!(waited <= DEPTH as u64 + 2, "{waited}");
            }
            serve(&world, &mut guests);
            for (guest, next) in guests[..2].iter_mut().zip(&mut next) {
                while let Some((request, _)) = guest.take_completion(&world) {
                    *next += 1;
                    guest.ask(&world, request, read(u64::from(*next) % SECTORS));
                }
                guest.notify(&world);
            }
            while guests[2].take_completion(&world).is_some() {}
        }
        let share = 1000 * begun[0] / (begun[0] + begun[1]);
        assert!(share.abs_diff(wanted) <= 10, "{begun:?}");
    }
}

#[test]
fn resets_wait_for_operations_in_flight() {
    let (world, mut guests) = system(&[10, 10], 0);
    for request in 0..REQUESTS {
        guests[0].ask(&world, request, write(u64::from(request)));
        guests[1].ask(&world, request, read(u64::from(request)));
    }
    guests[0].notify(&world);
    guests[1].notify(&world);
    let of_first = |world: &World| {
        let given = world.operations.borrow();
        given.iter().filter(|given| given.kind == 1).count()
    };
    let had = of_first(&world);
    assert!(had > 0);
    assert!(guests[0].store(&world, register::STATUS, 0).is_err());
    assert!(!guests[0].reset(&world));
    let mut quiet = false;
    while !world.operations.borrow().is_empty() {
        quiet = guests[0].reset(&world);
        assert_eq!(
            quiet,
            of_first(&world) == 0,
            "never while its memory is used"
        );
        world.complete(0, 0);
        serve(&world, &mut guests);
    }
    assert!(quiet || guests[0].reset(&world));
    // The other's are all done, and the first begins anew with all that it can have.
    assert_eq!(
        std::iter::from_fn(|| guests[1].take_completion(&world)).count(),
        usize::from(REQUESTS)
    );
    guests[0].start(&world);
    for request in 0..SLOTS as u16 {
        guests[0].ask(&world, request, read(0));
    }
    guests[0].notify(&world);
    assert_eq!(world.operations.borrow().len(), SLOTS);
    assert_eq!(guests[0].take_completion(&world), None);
}

#[test]
fn failed_disks_end_everything_with_errors() {
    for by_itself in [true, false] {
        let (world, mut guests) = system(&[10, 10], 0);
        for request in 0..REQUESTS {
            guests[0].ask(&world, request, read(0));
            guests[1].ask(&world, request, write(0));
        }
        guests[0].notify(&world);
        guests[1].notify(&world);
        match by_itself {
            true => world.fail(),
            // It returns what it was never given.
            false => world.put_used(255, 1),
        }
        for _ in 0..4 {
            serve(&world, &mut guests);
            for guest in &mut guests {
                guest.poll(&world);
            }
        }
        assert!(world.is_stopped());
        for guest in &mut guests {
            let ended = std::iter::from_fn(|| guest.take_completion(&world)).count();
            assert_eq!(ended, usize::from(REQUESTS));
            assert!((0..REQUESTS).all(|request| guest.status(&world, request) == outcome::ERROR));
            assert!(!guest.is_broken(&world), "the guest has done nothing wrong");
            // What comes later fails too, at once.
            guest.ask(&world, 0, read(1));
            guest.notify(&world);
        }
        for guest in &mut guests {
            guest.poll(&world);
            assert_eq!(guest.take_completion(&world), Some((0, 1)));
        }
    }
}

/// Requests beyond the end of the slice, whose buffers lie in as many pages as they may.
#[test]
fn one_notification_reads_few_pages() {
    const PAGES: u64 = 250;
    let (world, mut guests) = system(&[1], 0);
    let guest = &mut guests[0];
    let pages = guest.add_pages(PAGES);
    let requests = (0..64).step_by(2);
    for request in requests.clone() {
        guest.ask(&world, request, read(SECTORS));
        let data = TABLE + 16 * u64::from(3 * request + 1);
        let bytes = (PAGES * PAGE_SIZE) as u32;
        guest.describe(&world, data, pages, bytes, 1 | 2, 3 * request + 2);
    }
    let mut notifications = 0;
    let mut ended = 0;
    loop {
        let is_done = guest.store(&world, register::QUEUE_NOTIFY, 0).is_ok();
        notifications += 1;
        let before = ended;
        while guest.take_completion(&world).is_some() {
            ended += 1;
        }
        assert!(ended - before <= 3, "{ended} after {before}");
        if is_done {
            break;
        }
    }
    assert_eq!(ended, requests.clone().count());
    assert!(notifications > 10);
    for request in requests {
        assert_eq!(guest.status(&world, request), outcome::ERROR);
    }
}

#[test]
fn disks_without_needed_features_are_refused() {
    let (world, _) = system(&[10], 0);
    world.device.features.set(VERSION_1);
    let error =
        Disk::start(DRIVER, OwnedRegion::for_test(0x2000, QUEUE_BYTES), &world).unwrap_err();
    let missing = INDIRECT_DESCRIPTORS;
    let kind = DeviceKind::Disk;
    assert_eq!(error, DriverError::NotOffered { kind, missing });
    assert!(world.is_stopped());
}

/// A guest that breaks every rule harms itself: the disk checks all that it is given, and the neighbour's requests are done.
#[test]
fn hostile_drivers_reach_their_own_alone() {
    let mut broken = 0;
    let mut passed = 0;
    for seed in 0..400 {
        let mut random = random(seed);
        let (world, mut guests) = system(&[10, 10], FLUSH);
        for round in 0..20 {
            let [hostile, neighbour] = &mut guests[..] else {
                unreachable!()
            };
            hostile.scribble(&world, &mut random);
            hostile.notify(&world);
            passed += world.operations.borrow().len();
            if hostile.is_broken(&world) {
                broken += 1;
            }
            neighbour.ask(&world, round, read(round.into()));
            neighbour.notify(&world);
            while !world.operations.borrow().is_empty() {
                world.complete(0, 0);
                serve(&world, &mut guests);
            }
            while guests[0].take_completion(&world).is_some() {}
            assert_eq!(guests[1].take_completion(&world), Some((round, 513)));
            assert_eq!(guests[1].status(&world, round), outcome::OK);
            if guests[0].is_broken(&world) {
                assert!(guests[0].reset(&world));
                guests[0].start(&world);
            }
        }
    }
    assert!(broken > 100 && passed > 8000, "{broken} {passed}");
}

#[test]
fn busy_guests_notify_rarely() {
    let (world, mut guests) = system(&[10], 0);
    world.at_work.set(true);
    let mut requests = (0..48).cycle();
    let mut ask = |guest: &mut Guest| guest.ask(&world, requests.next().unwrap(), read(1));
    (0..6).for_each(|_| ask(&mut guests[0]));
    guests[0].notify(&world);
    let under_way = || world.operations.borrow().len();
    assert_eq!(under_way(), 6);
    let end_one = |guests: &mut [Guest]| {
        world.time.set(world.time.get() + 100);
        world.complete(0, 0);
        serve(&world, guests);
    };
    let mut notified = 0;
    for _ in 0..40 {
        ask(&mut guests[0]);
        end_one(&mut guests);
        if under_way() == 5 {
            notified += 1;
            guests[0].notify(&world);
        }
        assert_eq!(under_way(), 6);
    }
    assert!((16..=18).contains(&notified), "{notified}");
    // The guest waits: it tells of each again, but of what is there already.
    world.at_work.set(false);
    ask(&mut guests[0]);
    end_one(&mut guests);
    assert_eq!(under_way(), 6);
    ask(&mut guests[0]);
    end_one(&mut guests);
    assert_eq!(under_way(), 5);
    guests[0].notify(&world);
    // Nothing is left behind where too little is under way to wait for.
    world.at_work.set(true);
    for _ in 0..20 {
        end_one(&mut guests);
        ask(&mut guests[0]);
        guests[0].notify(&world);
    }
    for left in (0..under_way()).rev() {
        ask(&mut guests[0]);
        end_one(&mut guests);
        guests[0].notify(&world);
        assert!(under_way() > left);
        world.complete(0, 0);
        serve(&world, &mut guests);
    }
}
