//! Queues that a driver stops and makes ready again (virtio 1.2, §4.2.2, `QueueReady`).

use super::world::*;
use super::*;
use crate::devices::testing::context::Alone;

/// Another place for a queue.
const ELSEWHERE: [u64; 3] = [RAM + 0x8000, RAM + 0x8400, RAM + 0x8800];
/// Longer than what is in flight is waited for.
const LONG: u64 = 5_000 * PATIENCE + 1;

/// Makes a queue ready, which is empty.
fn make_ready(guest: &mut Guest, queue: u32, parts: [u64; 3]) {
    guest.world.guest_sets(parts[1], &[0; 6]);
    guest.world.guest_sets(parts[2], &[0; 6]);
    guest.set(QUEUE_SELECT, queue);
    guest.set(QUEUE_SIZE, ENTRIES);
    for (register, part) in QUEUE_PARTS.into_iter().zip(parts) {
        guest.set(register, part as u32);
        guest.set(register + 4, (part >> 32) as u32);
    }
    guest.set(QUEUE_READY, 1);
    assert_eq!(guest.get(QUEUE_READY), 1);
}

/// Makes the chain of descriptor 0 available in a queue, as the first of it, and notifies.
fn offer_first(guest: &mut Guest, queue: u32, parts: [u64; 3], buffer: u64) {
    guest.world.describe(parts[0], 0, buffer, 64, 2, 0);
    guest.world.guest_sets(parts[1] + 4, &[0, 0]);
    guest.world.guest_sets(parts[1] + 2, &[1, 0]);
    guest.set(QUEUE_NOTIFY, queue);
}

fn taken(guest: &Guest, queue: usize) -> Option<(u64, u32, bool)> {
    let (_, buffers) = guest.world.board.takes(queue, &guest.world.host)?;
    Some(buffers[0])
}

#[test]
fn stopping_waits_for_chains_in_flight() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        guest.world.describe(TABLE, 0, BUFFERS, 16, 2, 0);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        assert_eq!(guest.store(QUEUE_READY, 0), Err(WouldBlock));
        assert_eq!(guest.get(QUEUE_READY), 1);
        // Nothing new is begun meanwhile.
        guest.world.describe(TABLE, 1, BUFFERS + 0x100, 16, 2, 0);
        guest.world.offer(1, &[1]);
        guest.set(QUEUE_NOTIFY, 0);
        let (head, _) = guest.world.device_takes().unwrap();
        assert_eq!(guest.world.device_takes(), None);
        guest.world.device_returns(head.into(), 16);
        guest.device.poll(&Alone(&guest.world));
        assert_eq!(guest.get(INTERRUPT_STATUS), 1);
        guest.set(QUEUE_READY, 0);
        assert_eq!(guest.get(QUEUE_READY), 0);
        assert_eq!(guest.world.guest_gets::<4>(USED), [0, 0, 1, 0]);
        assert_eq!(guest.world.device_takes(), None);
        make_ready(&mut guest, 0, ELSEWHERE);
        offer_first(&mut guest, 0, ELSEWHERE, BUFFERS);
        let place = guest.world.place(BUFFERS);
        assert_eq!(taken(&guest, 0), Some((place, 64, true)));
        assert!(!guest.is_broken());
    }
}

#[test]
fn stopping_before_the_driver_is_ready() {
    for way in Way::ALL {
        let mut guest = Guest::new(way, 0);
        guest.set(STATUS, 3);
        guest.set(DRIVER_FEATURES_SELECT, 1);
        guest.set(DRIVER_FEATURES, (VERSION_1 >> 32) as u32);
        guest.set(STATUS, 11);
        make_ready(&mut guest, 0, [TABLE, AVAILABLE, USED]);
        guest.set(QUEUE_READY, 0);
        assert_eq!(guest.get(QUEUE_READY), 0);
        make_ready(&mut guest, 0, ELSEWHERE);
        guest.set(STATUS, 15);
        offer_first(&mut guest, 0, ELSEWHERE, BUFFERS);
        assert!(taken(&guest, 0).is_some());
    }
}

/// A device that is reset late may still write to memory: what it has is the VM's until it says that it is done.
#[test]
fn late_resets_keep_the_memory() {
    for way in Way::ALL {
        let mut guest = Guest::started(way);
        guest.world.describe(TABLE, 0, BUFFERS, 16, 2, 0);
        guest.world.offer(0, &[0]);
        guest.set(QUEUE_NOTIFY, 0);
        guest.world.board.slow_resets.set(3);
        guest.device.reset(&Alone(&guest.world));
        let mut asks = || guest.device.is_quiescent(&Alone(&guest.world));
        assert_eq!([asks(), asks(), asks()], [false, false, true]);
    }
}

/// Buffers for what may never come are taken back by a reset of the device, which other queues do not notice.
#[test]
fn stopping_takes_receive_buffers_back() {
    for way in Way::ALL {
        let other = [RAM + 0x9000, RAM + 0x9400, RAM + 0x9800];
        let mut guest = Guest::started(way);
        make_ready(&mut guest, 1, other);
        guest.world.guest_sets(AVAILABLE, &[0; 6]);
        offer_first(&mut guest, 0, [TABLE, AVAILABLE, USED], BUFFERS);
        offer_first(&mut guest, 1, other, BUFFERS + 0x400);
        assert!(taken(&guest, 0).is_some() && taken(&guest, 1).is_some());
        guest.set(QUEUE_SELECT, 0);
        assert_eq!(guest.store(QUEUE_READY, 0), Err(WouldBlock));
        guest.world.time.set(LONG / 2);
        assert_eq!(guest.store(QUEUE_READY, 0), Err(WouldBlock));
        guest.world.time.set(LONG);
        // The device takes its time for the reset; nothing reaches it meanwhile.
        guest.world.board.slow_resets.set(2);
        for _ in 0..2 {
            assert_eq!(guest.store(QUEUE_READY, 0), Err(WouldBlock));
            guest.set(QUEUE_NOTIFY, 1);
        }
        guest.set(QUEUE_READY, 0);
        assert_eq!(guest.get(QUEUE_READY), 0);
        assert_eq!(guest.get(STATUS), 15);
        assert_eq!(guest.world.board.status.get(), 15);
        assert_eq!(taken(&guest, 0), None, "its buffer is the guest's again");
        let place = guest.world.place(BUFFERS + 0x400);
        assert_eq!(taken(&guest, 1), Some((place, 64, true)));
        guest.world.board.returns(1, (0, 64), &guest.world.host);
        guest.world.board.interrupts.set(1);
        guest.device.poll(&Alone(&guest.world));
        assert_eq!(guest.world.guest_gets::<4>(other[2]), [0, 0, 1, 0]);
        make_ready(&mut guest, 0, ELSEWHERE);
        offer_first(&mut guest, 0, ELSEWHERE, BUFFERS + 0x200);
        let place = guest.world.place(BUFFERS + 0x200);
        assert_eq!(taken(&guest, 0), Some((place, 64, true)));
        assert!(!guest.is_broken());
    }
}
