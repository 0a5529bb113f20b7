//! Requests of any length on a disk that does one operation after the other: how its time is divided, and how long a short read takes.

use super::*;

/// Ticks of an operation, besides a tick for each sector, and of a flush.
const FIXED: u64 = 40;
const FLUSH_TICKS: u64 = 5_000;

/// A write of 256 KiB from the first half of the guest's memory, over and over.
fn ask_long(guest: &mut Guest, world: &World, request: u16) {
    let own = BUFFERS + 0x400 * u64::from(request);
    let table = own + 0x40;
    guest.write(world, own, &1_u32.to_le_bytes());
    guest.write(world, own + 8, &0_u64.to_le_bytes());
    guest.describe(world, table, own, 16, 1, 1);
    for number in 1..=4 {
        let at = table + 16 * u64::from(number);
        guest.describe(world, at, RAM, HALF as u32, 1, number + 1);
    }
    guest.describe(world, table + 16 * 5, own + 0x10, 1, 2, 0);
    let head = 192 + request;
    guest.describe(world, TABLE + 16 * u64::from(head), table, 96, 4, 0);
    guest.offer(world, head);
}

/// The disk does its first operation. Returns the guest's number and the ticks that it took.
fn one(world: &World) -> Option<(usize, u64)> {
    let given = world.operations.borrow().first().cloned()?;
    let bytes: u64 = given
        .data
        .iter()
        .map(|(_, bytes, _)| u64::from(*bytes))
        .sum();
    let ticks = match given.kind {
        4 => FLUSH_TICKS,
        _ => FIXED + bytes / 512,
    };
    world.time.set(world.time.get() + ticks);
    world.complete(0, 0);
    Some((given.guest, ticks))
}

#[derive(Clone, Copy)]
enum Load {
    Long,
    Short,
    Flushes,
}

fn ask(guest: &mut Guest, world: &World, load: Load, request: u16) {
    match load {
        Load::Long => ask_long(guest, world, request),
        Load::Short => guest.ask(world, request, read(u64::from(request))),
        Load::Flushes => {
            let flush = BlockRequest {
                kind: 4,
                bytes: 0,
                ..write(0)
            };
            guest.ask(world, request, flush);
        }
    }
}

/// Thousandths of the disk's time that the first guest got.
fn division(shares: [u32; 2], loads: [Load; 2]) -> u64 {
    let (world, mut guests) = system(&shares, FLUSH);
    for (guest, load) in guests.iter_mut().zip(loads) {
        for request in 0..32 {
            ask(guest, &world, load, request);
        }
        guest.notify(&world);
    }
    let mut took = [0; 2];
    for step in 0..2_400 {
        let (guest, ticks) = one(&world).expect("nobody is idle");
        if step >= 800 {
            took[guest] += ticks;
        }
        serve(&world, &mut guests);
        for (guest, load) in guests.iter_mut().zip(loads) {
            while let Some((request, _)) = guest.take_completion(&world) {
                ask(guest, &world, load, request);
            }
            guest.notify(&world);
        }
    }
    1000 * took[0] / (took[0] + took[1])
}

#[test]
fn shares_hold_whatever_is_asked_for() {
    use Load::{Flushes, Long, Short};
    for loads in [
        [Short, Short],
        [Long, Long],
        [Long, Short],
        [Short, Long],
        [Short, Flushes],
        [Flushes, Long],
    ] {
        for (shares, wanted) in [([10, 10], 500), ([30, 10], 750)] {
            let got = division(shares, loads);
            let kinds = loads.map(|load| load as u8);
            assert!(got.abs_diff(wanted) <= 50, "{kinds:?} {shares:?}: {got}");
        }
    }
}

#[test]
fn short_reads_wait_for_bounded_bytes() {
    let (world, mut guests) = system(&[10, 10, 10], 0);
    for long in [0, 2] {
        for request in 0..32 {
            ask_long(&mut guests[long], &world, request);
        }
        guests[long].notify(&world);
    }
    let mut longest = 0;
    let (mut began, mut found) = (0, true);
    for step in 0..2_000 {
        if found && step % 7 == 0 {
            guests[1].ask(&world, 0, read(1));
            guests[1].notify(&world);
            (began, found) = (world.time.get(), false);
        }
        one(&world).unwrap();
        serve(&world, &mut guests);
        for long in [0, 2] {
            while let Some((request, _)) = guests[long].take_completion(&world) {
                ask_long(&mut guests[long], &world, request);
            }
            guests[long].notify(&world);
        }
        if guests[1].take_completion(&world).is_some() {
            longest = longest.max(world.time.get() - began);
            found = true;
        }
    }
    // What the disk has at a time, and its own.
    let bound = (FIXED + MAX_SECTORS) * (MAX_SECTORS_IN_FLIGHT / MAX_SECTORS + 1) + FIXED + 1;
    assert!(longest > 0 && longest <= bound, "{longest} of {bound}");
}

#[test]
fn long_requests_end_once_and_whole() {
    for failing in [None, Some(0), Some(1)] {
        let (world, mut guests) = system(&[10], 0);
        let guest = &mut guests[0];
        guest.write(&world, RAM + 0xf000, &[0x42; 512]);
        ask_long(guest, &world, 5);
        guest.notify(&world);
        let given = world.operations.borrow().clone();
        let first = first_of(0);
        let sectors = given.iter().map(|given| given.sector);
        assert!(sectors.eq((0..2).map(|part| first + MAX_SECTORS * part)));
        for number in 0..2 {
            assert_eq!(guests[0].take_completion(&world), None);
            let outcome = u8::from(failing == Some(number));
            world.complete(0, outcome);
            serve(&world, &mut guests);
        }
        assert_eq!(guests[0].take_completion(&world), Some((5, 1)));
        assert_eq!(guests[0].take_completion(&world), None);
        let expected = if failing.is_some() {
            outcome::ERROR
        } else {
            outcome::OK
        };
        assert_eq!(guests[0].status(&world, 5), expected);
        if failing.is_none() {
            let sectors = world.sectors.borrow();
            assert_eq!(sectors[first as usize + 0x78], [0x42; 512]);
            assert_eq!(sectors[first as usize + 0x80 + 0x78], [0x42; 512]);
        }
    }
}

#[test]
fn long_requests_are_stopped_and_reset() {
    let (world, mut guests) = system(&[10], 0);
    for request in 0..32 {
        ask_long(&mut guests[0], &world, request);
    }
    guests[0].notify(&world);
    assert!(guests[0].store(&world, register::QUEUE_READY, 0).is_err());
    let mut ended = 0;
    while one(&world).is_some() {
        ended += 1;
        serve(&world, &mut guests);
        let _ = guests[0].store(&world, register::QUEUE_READY, 0);
    }
    assert_eq!(
        guests[0].load(&world, register::QUEUE_READY, Width::Word),
        0
    );
    let whole = std::iter::from_fn(|| guests[0].take_completion(&world)).count();
    assert_eq!(whole * 2, ended, "only whole requests end");
    guests[0].start(&world);
    ask_long(&mut guests[0], &world, 0);
    guests[0].notify(&world);
    assert!(!guests[0].reset(&world));
    while one(&world).is_some() {
        serve(&world, &mut guests);
    }
    assert!(guests[0].reset(&world));
}
