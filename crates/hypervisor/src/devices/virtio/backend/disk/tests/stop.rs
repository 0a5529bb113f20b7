//! Queues of slices that a driver stops (virtio 1.2, §4.2.2, `QueueReady`).

use super::*;
use crate::devices::trapped::WouldBlock;
use crate::devices::virtio::register::*;

#[test]
fn a_stopped_queue_waits_for_the_disk() {
    let (world, mut guests) = system(&[10], FLUSH);
    guests[0].store(&world, QUEUE_READY, 0).unwrap();
    assert_eq!(guests[0].load(&world, QUEUE_READY, Width::Word), 0);
    guests[0].start(&world);
    guests[0].ask(&world, 0, read(3));
    guests[0].notify(&world);
    let stop = |guest: &mut Guest| guest.store(&world, QUEUE_READY, 0);
    assert_eq!(stop(&mut guests[0]), Err(WouldBlock));
    assert_eq!(guests[0].load(&world, QUEUE_READY, Width::Word), 1);
    // Nothing new is begun.
    guests[0].ask(&world, 2, read(4));
    guests[0].notify(&world);
    assert_eq!(world.operations.borrow().len(), 1);
    world.complete(0, 0);
    serve(&world, &mut guests);
    assert_eq!(world.operations.borrow().len(), 0);
    stop(&mut guests[0]).unwrap();
    assert_eq!(guests[0].load(&world, QUEUE_READY, Width::Word), 0);
    assert_eq!(guests[0].take_completion(&world), Some((0, 513)));
    assert_eq!(guests[0].take_completion(&world), None);
    guests[0].start(&world);
    guests[0].ask(&world, 4, read(5));
    guests[0].notify(&world);
    world.complete(0, 0);
    serve(&world, &mut guests);
    assert_eq!(guests[0].take_completion(&world), Some((4, 513)));
}
