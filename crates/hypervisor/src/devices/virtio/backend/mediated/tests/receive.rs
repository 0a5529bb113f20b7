//! The receive queue of a network card whose driver is hostile: buffers stand ready while frames come, and the driver rewrites them meanwhile.

use proptest::prelude::*;

use super::world::*;
use super::*;
use crate::devices::testing::context::Alone;
use crate::devices::testing::device::{Buffer, Device};
use crate::devices::virtio::DeviceKind;

/// Addresses of the transmit queue's parts and of its buffer.
const SEND: [u64; 3] = [RAM + 0x8000, RAM + 0x8400, RAM + 0x8800];
const SENT: u64 = RAM + 0x9000;

/// A card with both of its queues, which are empty.
fn card(way: Way) -> Guest {
    let mut guest = Guest::new(way, 0);
    start(&mut guest);
    guest
}

/// The driver resets the card, whatever happened, and starts it.
fn start(guest: &mut Guest) {
    guest.set(STATUS, 0);
    guest.world.board = Device::new(DeviceKind::NetworkCard, REGISTERS, ENTRIES as u16, 0);
    for ring in [AVAILABLE, SEND[1]] {
        guest.world.guest_sets(ring, &[0; 6]);
    }
    guest.set(STATUS, 1 | 2);
    guest.set(DRIVER_FEATURES_SELECT, 1);
    guest.set(DRIVER_FEATURES, (VERSION_1 >> 32) as u32);
    guest.set(STATUS, 1 | 2 | status::FEATURES_OK);
    for (queue, parts) in [[TABLE, AVAILABLE, USED], SEND].into_iter().enumerate() {
        guest.set(QUEUE_SELECT, queue as u32);
        guest.set(QUEUE_SIZE, ENTRIES);
        for (register, part) in QUEUE_PARTS.into_iter().zip(parts) {
            guest.set(register, part as u32);
            guest.set(register + 4, (part >> 32) as u32);
        }
        guest.set(QUEUE_READY, 1);
    }
    guest.set(STATUS, 15);
    assert_eq!(guest.get(STATUS), 15);
}

/// The driver has a frame sent. Returns whether the card got it.
fn sends(guest: &mut Guest) -> bool {
    let [table, available, _] = SEND;
    guest.world.describe(table, 0, SENT, 60, 0, 0);
    let index = guest.world.guest_gets::<2>(available + 2);
    let index = u16::from_le_bytes(index);
    let entry = u64::from(index) % u64::from(ENTRIES);
    guest.world.guest_sets(available + 4 + 2 * entry, &[0, 0]);
    let next = index.wrapping_add(1);
    guest.world.guest_sets(available + 2, &next.to_le_bytes());
    guest.set(QUEUE_NOTIFY, 1);
    let expected = (guest.world.place(SENT), 60, false);
    let taken = guest.world.board.takes(1, &guest.world.host);
    let came = taken.as_ref().is_some_and(|(_, all)| all == &[expected]);
    if let Some((head, _)) = taken {
        guest
            .world
            .board
            .returns(1, (head.into(), 0), &guest.world.host);
        guest.device.poll(&Alone(&guest.world));
    }
    came
}

/// A frame of so many bytes comes: the card fills the next chain of its queue. The chain, if there was one.
fn receives(guest: &mut Guest, frame: usize) -> Option<Vec<Buffer>> {
    let (head, buffers) = guest.world.device_takes()?;
    let mut left = frame;
    for &(at, bytes, _) in buffers.iter().filter(|(_, _, written)| *written) {
        let part = left.min(bytes as usize);
        guest.world.host.set(at, &vec![0xa5; part]);
        left -= part;
    }
    let written = (frame - left) as u32;
    guest.world.device_returns(head.into(), written);
    guest.device.poll(&Alone(&guest.world));
    Some(buffers)
}

/// Ranges outside the guest's memory and the device's areas: start and end.
fn others(way: Way) -> Vec<(u64, u64)> {
    let mut places = match way {
        Way::Fast => vec![(0, FIRST), (FIRST + 2 * HALF, AREAS)],
        _ => vec![(0, SECOND), (SECOND + HALF, FIRST), (FIRST + HALF, AREAS)],
    };
    places.push((AREAS + BYTES, HOST_BYTES as u64));
    places
}

/// Returns true if a buffer lies in the guest's memory from its first byte to its last.
fn is_the_guests(way: Way, (at, bytes, _): Buffer) -> bool {
    let end = at + u64::from(bytes);
    let lies_in = |from, size| at >= from && end <= from + size;
    match way {
        Way::Fast => lies_in(FIRST, 2 * HALF),
        _ => lies_in(FIRST, HALF) || lies_in(SECOND, HALF),
    }
}

/// The card does not see a driver's writes after its buffer was taken: neither to the frame's address nor to its length.
#[test]
fn rewritten_buffers_stay_as_read() {
    for way in Way::ALL {
        for (address, bytes) in [(AREAS, 1526), (BUFFERS + 0x800, 1526), (BUFFERS, u32::MAX)] {
            let mut guest = card(way);
            guest.world.describe(TABLE, 0, BUFFERS, 12, 1 | 2, 1);
            guest.world.describe(TABLE, 1, BUFFERS + 0x100, 60, 2, 0);
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            for number in [0, 1] {
                guest
                    .world
                    .describe(TABLE, number, address, bytes, 1 | 2, 0);
            }
            let place = guest.world.place(BUFFERS);
            let expected = vec![(place, 12, true), (place + 0x100, 60, true)];
            assert_eq!(receives(&mut guest, 1000), Some(expected));
            assert_eq!(guest.world.guest_gets(BUFFERS + 0x100), [0xa5; 60]);
            assert_eq!(guest.world.guest_gets(BUFFERS + 0x13c), [0x5a; 64]);
            // Its own chain came back to it, with as many bytes as there was room for.
            assert_eq!(guest.world.guest_gets(USED + 4), [0, 0, 0, 0, 72, 0, 0, 0]);
            assert!(!guest.is_broken() && sends(&mut guest));
        }
    }
}

/// The card is idle with both of its queues after its driver broke the rules with one, also where frames had been under way.
#[test]
fn one_wrong_queue_stops_the_card() {
    for way in Way::ALL {
        let mut guest = card(way);
        guest.world.describe(TABLE, 0, BUFFERS, 1526, 2, 0);
        guest.world.describe(TABLE, 1, AREAS, 1526, 2, 0);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        guest.world.offer(1, &[1]);
        guest.set(QUEUE_NOTIFY, 0);
        assert!(guest.is_broken());
        // The first buffer was good, and the card has it.
        let place = guest.world.place(BUFFERS);
        assert_eq!(receives(&mut guest, 60), Some(vec![(place, 1526, true)]));
        assert!(receives(&mut guest, 60).is_none() && !sends(&mut guest));
        start(&mut guest);
        assert!(!guest.is_broken() && sends(&mut guest));
    }
}

#[derive(Clone, Debug)]
enum Step {
    /// The driver writes a descriptor of its table, or of one that may be an indirect table: which table, which descriptor, address,
    /// bytes, flags, what follows. The card may have it already.
    Describe(bool, u64, u64, u32, u16, u16),
    /// Makes chains available.
    Offer(Vec<u16>),
    /// Raises the available index by so many.
    Jump(u16),
    Notify(u32),
    /// Takes the queue back.
    Withdraw,
    /// A frame of so many bytes comes.
    Frame(usize),
    Poll,
    Restart,
}

/// Addresses for descriptors: the guest's memory and its ends, its rings, the hypervisor's memory, registers, no address at all.
fn addresses() -> impl Strategy<Value = u64> {
    let end = RAM + 2 * HALF;
    prop_oneof![
        8 => (0..0x4000_u64).prop_map(|offset| BUFFERS + offset),
        2 => (RAM + HALF - 64)..(RAM + HALF + 64),
        1 => (end - 64)..(end + 64),
        1 => (RAM - 64)..(RAM + 64),
        1 => prop::sample::select(vec![TABLE, AVAILABLE, USED, AREAS, PAGE, REGISTERS, FIRST, 0, u64::MAX - 8]),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop_oneof![8 => 1..1527_u32, 1 => prop::sample::select(vec![0, 16, 32, 0x1_0000, u32::MAX])];
    let flags = prop_oneof![6 => Just(2_u16), 3 => Just(3), 1 => 0..8_u16];
    let next = prop_oneof![8 => 0..ENTRIES as u16, 1 => any::<u16>()];
    let head = prop_oneof![16 => 0..ENTRIES as u16, 1 => any::<u16>()];
    let tables = prop_oneof![4 => Just(false), 1 => Just(true)];
    let one = prop_oneof![
        8 => (tables, 0..u64::from(ENTRIES), addresses(), bytes, flags, next)
            .prop_map(|(a, b, c, d, e, f)| Step::Describe(a, b, c, d, e, f)),
        6 => prop::collection::vec(head, 1..4).prop_map(Step::Offer),
        1 => prop_oneof![0..20_u16, any::<u16>()].prop_map(Step::Jump),
        6 => prop_oneof![8 => Just(0), 1 => any::<u32>()].prop_map(Step::Notify),
        1 => Just(Step::Withdraw),
        6 => (1..2000_usize).prop_map(Step::Frame),
        2 => Just(Step::Poll),
        1 => Just(Step::Restart),
    ];
    prop::collection::vec(one, 1..80)
}

/// Takes one step. How much was made available so far is counted in `offered`.
fn take(guest: &mut Guest, way: Way, step: &Step, offered: &mut u16) {
    match *step {
        Step::Describe(other, number, address, bytes, flags, next) => {
            let table = if other { BUFFERS } else { TABLE };
            let world = &guest.world;
            world.describe(table, number, address, bytes, flags, next);
        }
        Step::Offer(ref heads) => {
            guest.world.offer(*offered, heads);
            *offered = offered.wrapping_add(heads.len() as u16);
        }
        Step::Jump(more) => {
            *offered = offered.wrapping_add(more);
            guest
                .world
                .guest_sets(AVAILABLE + 2, &offered.to_le_bytes());
        }
        Step::Notify(queue) => {
            // It may have to notify again; a hostile driver does or does not.
            let _ = guest.store(QUEUE_NOTIFY, queue);
        }
        Step::Withdraw => {
            guest.set(QUEUE_SELECT, 0);
            for _ in 0..3 {
                let _ = guest.store(QUEUE_READY, 0);
                let later = guest.world.time.get() + 5_000 * PATIENCE;
                guest.world.time.set(later);
            }
            if guest.get(QUEUE_READY) == 0 {
                guest.world.guest_sets(AVAILABLE, &[0; 6]);
                guest.set(QUEUE_READY, 1);
                *offered = 0;
            }
        }
        Step::Frame(bytes) => {
            for buffer in receives(guest, bytes).into_iter().flatten() {
                assert!(is_the_guests(way, buffer), "{buffer:x?}");
            }
        }
        Step::Poll => guest.device.poll(&Alone(&guest.world)),
        Step::Restart => {
            start(guest);
            *offered = 0;
        }
    }
}

proptest! {
    /// Any driver: a frame goes to the guest's own memory alone, and after a reset the card works.
    #[test]
    fn frames_go_to_guest_memory_alone(steps in steps()) {
        for way in Way::ALL {
            let mut guest = card(way);
            let mut offered = 0;
            for step in &steps {
                take(&mut guest, way, step, &mut offered);
            }
            for (from, to) in others(way) {
                let bytes = guest.world.host.bytes(from, (to - from) as usize);
                prop_assert!(bytes.iter().all(|byte| *byte == 0x5a), "{way:?} {from:#x}");
            }
            start(&mut guest);
            guest.world.describe(TABLE, 0, BUFFERS, 1526, 2, 0);
            guest.world.offer(0, &[0]);
            guest.set(QUEUE_NOTIFY, 0);
            let place = guest.world.place(BUFFERS);
            prop_assert_eq!(receives(&mut guest, 100), Some(vec![(place, 1526, true)]));
            prop_assert!(!guest.is_broken() && sends(&mut guest));
        }
    }
}
