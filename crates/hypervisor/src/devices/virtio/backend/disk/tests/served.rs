//! Disks that a program serves: what it is granted, what its answers do, and what its ends and its clients' ends leave behind.

use abi::serve::{SLOTS, ring};

use super::program::*;
use super::*;
use crate::devices::virtio::register::QUEUE_READY;

fn ask(world: &World, guest: &mut Guest, number: u16, request: BlockRequest) {
    guest.ask(world, number, request);
    guest.notify(world);
}

/// One guest whose disk is served.
fn one() -> (World, Vec<Guest>, Program) {
    let (world, mut guests) = served_system(&[10]);
    assert!(start(&world, &mut guests));
    (world, guests, Program::default())
}

#[test]
fn requests_go_there_and_back() {
    let (world, mut guests, mut program) = one();
    guests[0].write(&world, Guest::data(0), &[7; 512]);
    ask(&world, &mut guests[0], 0, write(3));
    ask(&world, &mut guests[0], 1, read(4));
    let flush = BlockRequest {
        kind: 4,
        sector: 0,
        bytes: 0,
        written: false,
    };
    ask(&world, &mut guests[0], 2, flush);
    assert!(is_pending(&world));
    let asked = program.all(&world);
    let shape = |one: &Asked| (one.kind, one.sector, one.bytes, one.pieces.len());
    let first = first_of(0);
    assert_eq!(
        asked.iter().map(shape).collect::<Vec<_>>(),
        [(1, first + 3, 512, 1), (0, first + 4, 512, 1), (4, 0, 0, 0)]
    );
    for one in &asked {
        Program::carry_out(&world, one);
        program.answer(&world, one);
    }
    assert_eq!(guests[0].take_completion(&world), None, "no doorbell");
    assert!(ring_doorbell(&world, &mut guests));
    let ended: Vec<_> = core::iter::from_fn(|| guests[0].take_completion(&world)).collect();
    assert_eq!(ended, [(0, 1), (1, 513), (2, 1)]);
    assert_eq!(
        [0, 1, 2].map(|number| guests[0].status(&world, number)),
        [0; 3]
    );
    assert_eq!(world.sectors.borrow()[first as usize + 3], [7; 512]);
    let [byte] = guests[0].read(&world, Guest::data(1));
    assert_eq!(byte, first as u8 + 4);
    assert_eq!(refused(&world), 0);
}

#[test]
fn slots_serve_again_and_again() {
    let (world, mut guests, mut program) = one();
    for _ in 0..10 * SLOTS {
        ask(&world, &mut guests[0], 0, read(3));
        let asked = program.next(&world).unwrap();
        program.answer(&world, &asked);
        assert!(ring_doorbell(&world, &mut guests));
        assert_eq!(guests[0].take_completion(&world), Some((0, 513)));
    }
}

#[test]
fn pieces_in_one_page_share_it() {
    let (world, mut guests, mut program) = one();
    // Two pieces with a gap between them, and a third in the next page.
    let pieces = [(0x6100, 256), (0x6300, 128), (0x7000, 128)];
    offer_write(&world, &mut guests[0], &pieces);
    let asked = program.next(&world).unwrap();
    assert_eq!(asked.pieces, [(0x100, 256), (0x300, 128), (0x1000, 128)]);
    let first = guests[0].place(RAM + 0x6000);
    let page = asked.slot as usize * abi::serve::SLOT_PAGES;
    let expected = [(page, first, false), (page + 1, first + 0x1000, false)];
    assert_eq!(granted(&world), expected);
}

#[test]
fn grants_are_the_request_alone() {
    let (world, mut guests, mut program) = one();
    ask(&world, &mut guests[0], 0, write(3));
    ask(&world, &mut guests[0], 1, read(4));
    let pages = [0, 1].map(|number| guests[0].place(Guest::data(number)) & !0xfff);
    let slots = program.all(&world);
    let place = |number: usize| slots[number].slot as usize * abi::serve::SLOT_PAGES;
    // What the disk only reads cannot be written.
    let expected = [(place(0), pages[0], false), (place(1), pages[1], true)];
    assert_eq!(granted(&world), expected);
    program.answer(&world, &slots[0]);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(granted(&world), expected[1..]);
    program.answer(&world, &slots[1]);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(granted(&world), []);
}

#[test]
fn lies_change_nothing() {
    let (world, mut guests, mut program) = one();
    ask(&world, &mut guests[0], 0, read(3));
    let asked = program.next(&world).unwrap();
    let Asked {
        slot, id, bytes, ..
    } = asked;
    let before = granted(&world);
    let lies = [
        [slot + 1, id, 0, bytes],
        [SLOTS as u32, id, 0, bytes],
        [u32::MAX, id, 0, bytes],
        [slot, id + 1, 0, bytes],
        [slot, id.wrapping_sub(1), 0, bytes],
    ];
    for (number, lie) in (1..).zip(lies) {
        program.put(&world, lie);
        assert!(ring_doorbell(&world, &mut guests));
        assert_eq!(refused(&world), number);
        assert_eq!(guests[0].take_completion(&world), None);
        assert_eq!(granted(&world), before);
    }
    // An index too far ahead names no answers.
    let answered = lies.len() as u32;
    for index in [answered + SLOTS as u32 + 1, answered.wrapping_sub(1)] {
        Program::set_word(&world, ring::ANSWERED, index);
        let _ = ring_doorbell(&world, &mut guests);
        assert_eq!(guests[0].take_completion(&world), None);
    }
    Program::set_word(&world, ring::ANSWERED, answered);
    program.answer(&world, &asked);
    program.answer(&world, &asked);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(guests[0].take_completion(&world), Some((0, 513)));
    assert_eq!(guests[0].take_completion(&world), None, "answered twice");
    assert_eq!(refused(&world), answered + 3);
}

#[test]
fn partial_success_is_an_error() {
    let (world, mut guests, mut program) = one();
    let answers = [
        (0, 511),
        (0, 513),
        (0, 0),
        (3, 512),
        (256, 512),
        (1, 512),
        (2, 512),
    ];
    for (number, (status, bytes)) in (0..).zip(answers) {
        ask(&world, &mut guests[0], number, read(1));
        let asked = program.next(&world).unwrap();
        program.put(&world, [asked.slot, asked.id, status, bytes]);
        assert!(ring_doorbell(&world, &mut guests));
        assert_eq!(guests[0].take_completion(&world), Some((number, 1)));
        let expected = if status == 2 { 2 } else { 1 };
        assert_eq!(
            guests[0].status(&world, number),
            expected,
            "{status} {bytes}"
        );
    }
}

#[test]
fn completion_waits_for_every_hart() {
    let (world, mut guests, mut program) = one();
    ask(&world, &mut guests[0], 0, read(3));
    let asked = program.next(&world).unwrap();
    program.answer(&world, &asked);
    // Another hart of the serving VM may have the page in its TLB.
    world.used_generation.set(Some(world.generation.get()));
    for _ in 0..3 {
        assert!(!ring_doorbell(&world, &mut guests));
        assert_eq!(granted(&world), []);
        assert_eq!(guests[0].take_completion(&world), None);
    }
    world.used_generation.set(Some(world.generation.get()));
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(guests[0].take_completion(&world), Some((0, 513)));
}

#[test]
fn next_life_is_asked_in_order() {
    let (world, mut guests, mut program) = one();
    for number in 0..5 {
        ask(&world, &mut guests[0], number, read(number.into()));
    }
    let first_life = program.all(&world);
    program.answer(&world, &first_life[3]);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(guests[0].take_completion(&world), Some((3, 513)));
    // Answered, and not seen by the hypervisor before the end.
    program.answer(&world, &first_life[0]);
    world.used_generation.set(Some(world.generation.get()));
    stop(&world);
    assert_eq!(granted(&world), []);
    // A program that has no life has nothing to answer.
    assert!(!ring_doorbell(&world, &mut guests));
    assert!(!is_pending(&world));
    assert!(!start(&world, &mut guests), "a hart has yet to leave");
    ask(&world, &mut guests[0], 5, read(5));
    world.used_generation.set(None);
    assert!(start(&world, &mut guests));
    let mut program = Program::default();
    let second_life = program.all(&world);
    let sectors = |life: &[Asked]| life.iter().map(|one| one.sector).collect::<Vec<_>>();
    let expected = [0, 1, 2, 4, 5].map(|sector| first_of(0) + sector);
    assert_eq!(sectors(&second_life), expected);
    // What the first life was asked is known no more.
    program.answer(&world, &first_life[1]);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(guests[0].take_completion(&world), None);
    for one in &second_life {
        program.answer(&world, one);
    }
    assert!(ring_doorbell(&world, &mut guests));
    let ended: Vec<_> = core::iter::from_fn(|| guests[0].take_completion(&world)).collect();
    assert_eq!(ended, [0, 1, 2, 4, 5].map(|number| (number, 513)));
}

#[test]
fn reset_takes_pages_back_at_once() {
    let (world, mut guests, mut program) = one();
    ask(&world, &mut guests[0], 0, read(3));
    ask(&world, &mut guests[0], 1, write(4));
    let asked = program.all(&world);
    program.answer(&world, &asked[1]);
    world.used_generation.set(Some(world.generation.get()));
    assert!(!ring_doorbell(&world, &mut guests));
    assert!(!guests[0].reset(&world), "a hart may still reach the pages");
    assert_eq!(granted(&world), []);
    world.used_generation.set(None);
    assert!(guests[0].reset(&world));
    guests[0].start(&world);
    // The program may still work on what it was asked: the slot is not another request's.
    ask(&world, &mut guests[0], 0, read(7));
    let next = program.next(&world).unwrap();
    assert_ne!(next.slot, asked[0].slot);
    program.answer(&world, &asked[0]);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(
        guests[0].take_completion(&world),
        None,
        "asked before the reset"
    );
    assert_eq!(granted(&world).len(), 1);
    program.answer(&world, &next);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(guests[0].take_completion(&world), Some((0, 513)));
    assert_eq!(refused(&world), 0);
}

#[test]
fn resets_do_not_exhaust_others() {
    let (world, mut guests) = served_system(&[10, 10]);
    assert!(start(&world, &mut guests));
    let mut program = Program::default();
    // A guest that asks and resets, while nothing is answered.
    for _ in 0..8 {
        for number in 0..20 {
            guests[0].ask(&world, number, read(number.into()));
        }
        guests[0].notify(&world);
        assert!(guests[0].reset(&world));
        guests[0].start(&world);
    }
    assert!(program.all(&world).len() <= SLOTS);
    ask(&world, &mut guests[1], 0, read(0));
    // One answer is room for the other guest.
    let asked = Program::read(&world, 0);
    program.answer(&world, &asked);
    assert!(ring_doorbell(&world, &mut guests));
    let next = program.next(&world).unwrap();
    assert_eq!(next.sector, first_of(1));
}

#[test]
fn stopped_queue_waits_for_the_program() {
    let (world, mut guests, mut program) = one();
    ask(&world, &mut guests[0], 0, read(3));
    assert!(guests[0].store(&world, QUEUE_READY, 0).is_err());
    let asked = program.next(&world).unwrap();
    program.answer(&world, &asked);
    assert!(ring_doorbell(&world, &mut guests));
    guests[0].store(&world, QUEUE_READY, 0).unwrap();
}

#[test]
fn nothing_is_asked_between_lives() {
    let (world, mut guests) = served_system(&[10]);
    ask(&world, &mut guests[0], 0, read(3));
    assert_eq!(granted(&world), []);
    assert!(!is_pending(&world));
    assert!(start(&world, &mut guests));
    assert!(is_pending(&world));
    // By its own account the program has seen it.
    Program::set_word(&world, ring::WAKE_AT, 1);
    assert!(!is_pending(&world));
    ask(&world, &mut guests[0], 1, read(4));
    assert!(is_pending(&world));
}

/// Asks for a write of the first sector, whose data lies in these pieces: offsets in the memory, and bytes.
fn offer_write(world: &World, guest: &mut Guest, pieces: &[(u64, u32)]) {
    let own = BUFFERS;
    guest.write(world, own, &1u32.to_le_bytes());
    guest.write(world, own + 8, &0u64.to_le_bytes());
    let table = RAM + 0x8000;
    guest.describe(world, table, own, 16, 1, 1);
    for (number, (offset, bytes)) in (1..).zip(pieces) {
        let at = table + 16 * u64::from(number);
        guest.describe(world, at, RAM + offset, *bytes, 1, number + 1);
    }
    let behind = table + 16 * (pieces.len() as u64 + 1);
    guest.describe(world, behind, own + 0x10, 1, 2, 0);
    let bytes = 16 * (pieces.len() as u32 + 2);
    guest.describe(world, TABLE + 16 * 192, table, bytes, 4, 0);
    guest.offer(world, 192);
    guest.notify(world);
    let told = |_: &mut Disk, world: &World| (world.notified.take(), ());
    with_disk(world, std::slice::from_mut(guest), told);
}

/// So many pieces on both sides of a page's end, none of which goes on where the one before ends: the first two of these lengths.
fn straddling(count: usize, firsts: [u32; 2]) -> Vec<(u64, u32)> {
    let piece = |number: usize| {
        let end = [0x6000, 0xa000][number % 2];
        let bytes = firsts.get(number).copied().unwrap_or(4);
        (end - u64::from(bytes / 2), bytes)
    };
    (0..count).map(piece).collect()
}

#[test]
fn requests_of_too_many_pages_fail() {
    let (world, mut guests, mut program) = one();
    offer_write(&world, &mut guests[0], &straddling(128, [4, 4]));
    let asked = program.next(&world).unwrap();
    assert_eq!((asked.bytes, granted(&world).len()), (512, 256));
    program.answer(&world, &asked);
    assert!(ring_doorbell(&world, &mut guests));
    assert_eq!(guests[0].take_completion(&world), Some((0, 1)));
    assert_eq!(guests[0].status(&world, 0), 0);
    offer_write(&world, &mut guests[0], &straddling(129, [2, 2]));
    assert_eq!(program.next(&world), None);
    assert_eq!(granted(&world), []);
    assert_eq!(guests[0].take_completion(&world), Some((0, 1)));
    assert_eq!(guests[0].status(&world, 0), 1);
}

mod random;
