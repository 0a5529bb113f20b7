//! Queues with much under way, which are looked at from time to time: no completion is lost, no guest waits for long, and few exits are made.

use std::collections::BTreeMap;

use super::*;
use crate::devices::testing::context::Alone;
use crate::devices::virtio::queue::rings::is_passed;

const ENTRIES: u16 = 64;
/// Ticks that an operation takes.
const TAKES: u64 = 1600;

/// A guest and a device that both keep to the rules, and the time that goes on between them.
struct Run {
    guest: Guest,
    event_indices: bool,
    random: u64,
    /// Ticks that an operation takes.
    takes: u64,
    /// Time at which each chain was made available that the device has not got, and of each that it has, its own name and completion time.
    offered: BTreeMap<u16, u64>,
    at_device: BTreeMap<u16, (u16, u64)>,
    /// Completion time of each chain whose completion the guest has not seen.
    ended: BTreeMap<u16, u64>,
    available: u16,
    used: u16,
    done: u32,
    /// Exits that were made: notifications, interrupts of the device, and looks.
    notifications: u32,
    interrupts: u32,
    looks: u32,
    /// The longest that a chain waited to be begun, and to be returned.
    longest: [u64; 2],
}

impl Run {
    fn new(way: Way, event_indices: bool, takes: u64) -> Self {
        let mut guest = Guest::with_entries(way, 0, ENTRIES);
        guest.world.guest_sets(AVAILABLE, &[0; 6 + 2 * 64]);
        guest.world.guest_sets(USED, &[0; 6 + 8 * 64]);
        let features = if event_indices { EVENT_INDEX } else { 0 };
        let parts = [TABLE, AVAILABLE, USED];
        guest.start(VERSION_1 | features, ENTRIES.into(), parts);
        Self {
            guest,
            event_indices,
            random: 88_172_645_463_325_252,
            takes,
            offered: BTreeMap::new(),
            at_device: BTreeMap::new(),
            ended: BTreeMap::new(),
            available: 0,
            used: 0,
            done: 0,
            notifications: 0,
            interrupts: 0,
            looks: 0,
            longest: [0; 2],
        }
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % limit
    }

    fn now(&self) -> u64 {
        self.guest.world.time.get()
    }

    fn half(&self, at: u64) -> u16 {
        u16::from_le_bytes(self.guest.world.guest_gets(at))
    }

    /// The guest makes a chain available, and tells of it if it is asked to.
    fn offer(&mut self) {
        let is_free = |head: &u16| {
            !self.offered.contains_key(head)
                && !self.at_device.contains_key(head)
                && !self.ended.contains_key(head)
        };
        let head = (0..ENTRIES).find(is_free).unwrap();
        let world = &self.guest.world;
        let buffer = BUFFERS + 0x10 * u64::from(head);
        world.describe(TABLE, head.into(), buffer, 16, 2, 0);
        world.offer(self.available, &[head]);
        let before = self.available;
        self.available = before.wrapping_add(1);
        self.offered.insert(head, self.now());
        let is_asked = if self.event_indices {
            let event = self.half(USED + 4 + 8 * u64::from(ENTRIES));
            is_passed(event, before, self.available)
        } else {
            self.half(USED) & 1 == 0
        };
        if is_asked {
            self.notifications += 1;
            self.guest.set(QUEUE_NOTIFY, 0);
        }
        self.settle();
    }

    /// The device takes what it was told of, and the guest what was returned.
    fn settle(&mut self) {
        let now = self.now();
        let told = self.guest.world.board.notified[0].replace(0);
        while told > 0
            && let Some((own, buffers)) = self.guest.world.device_takes()
        {
            let [(at, ..)] = buffers[..] else {
                panic!("one buffer")
            };
            let head = ((at - self.guest.world.place(BUFFERS)) / 0x10) as u16;
            let since = self.offered.remove(&head).expect("it was offered");
            self.longest[0] = self.longest[0].max(now - since);
            let takes = self.takes * 9 / 10 + self.below(self.takes / 5);
            let taken = self.at_device.insert(head, (own, now + takes));
            assert_eq!(taken, None);
        }
        if !self.guest.device.irq_level() {
            return;
        }
        self.guest.set(INTERRUPT_ACKNOWLEDGE, 1);
        loop {
            while self.used != self.half(USED + 2) {
                let at = USED + 4 + 8 * u64::from(self.used % ENTRIES);
                let since = self
                    .ended
                    .remove(&self.half(at))
                    .expect("it was ended once");
                self.longest[1] = self.longest[1].max(now - since);
                self.used = self.used.wrapping_add(1);
                self.done += 1;
            }
            let event = AVAILABLE + 4 + 2 * u64::from(ENTRIES);
            let used = self.used.to_le_bytes();
            self.guest.world.guest_sets(event, &used);
            if self.used == self.half(USED + 2) {
                return;
            }
        }
    }

    /// A tick goes by: the device ends what it is the time for, and what is due is looked at.
    fn tick(&mut self) {
        let now = self.now() + 1;
        self.guest.world.time.set(now);
        let over = self.at_device.iter().filter(|(_, (_, end))| *end <= now);
        let over: Vec<_> = over.map(|(head, (own, _))| (*head, *own)).collect();
        for (head, own) in over {
            self.at_device.remove(&head);
            self.ended.insert(head, now);
            let [_, available, _] = self.guest.world.board.parts.borrow()[0];
            let host = &self.guest.world.host;
            let wants_interrupt = host.half(available) & 1 == 0;
            self.guest.world.device_returns(own.into(), 16);
            if wants_interrupt {
                self.interrupts += 1;
                self.guest.device.poll(&Alone(&self.guest.world));
            } else {
                self.guest.world.board.interrupts.set(0);
            }
            self.settle();
        }
        if self.guest.world.poll_by.get().is_some_and(|at| at <= now) {
            self.guest.world.poll_by.set(None);
            self.looks += 1;
            self.guest.device.timer_expired(&Alone(&self.guest.world));
            self.settle();
        }
    }

    fn under_way(&self) -> usize {
        self.offered.len() + self.at_device.len() + self.ended.len()
    }

    /// Runs so many ticks with so many operations in flight at a time.
    fn keep(&mut self, depth: usize, ticks: u64) {
        // A guest is not at once there with the next one.
        self.keep_one_in(40, depth, ticks);
    }

    /// Runs a guest that needs so many ticks for an operation.
    fn keep_one_in(&mut self, needs: u64, depth: usize, ticks: u64) {
        for _ in 0..ticks {
            if self.under_way() < depth && self.below(needs) == 0 {
                self.offer();
            }
            self.tick();
        }
    }

    fn drain(&mut self) {
        for _ in 0..10 * self.takes {
            self.tick();
        }
        assert_eq!(self.under_way(), 0);
    }

    fn exits(&self) -> u32 {
        self.notifications + self.interrupts + self.looks
    }
}

#[test]
fn deep_queues_take_few_exits() {
    for way in Way::ALL {
        for event_indices in [true, false] {
            let mut run = Run::new(way, event_indices, TAKES);
            run.keep(48, 100 * TAKES);
            run.drain();
            let exits_each = f64::from(run.exits()) / f64::from(run.done);
            assert!(run.done > 2000, "{}", run.done);
            assert!(exits_each < 1.0, "{exits_each}, of two without looks");
            // An eighth of an operation that takes a tenth more than others.
            let most = TAKES / 7;
            assert!(
                run.longest.iter().all(|one| *one <= most),
                "{:?}",
                run.longest
            );
        }
    }
}

#[test]
fn shallow_queues_notify_at_once() {
    for event_indices in [true, false] {
        let mut run = Run::new(Way::Fast, event_indices, TAKES);
        run.keep(8, 20 * TAKES);
        run.drain();
        assert_eq!((run.looks, run.longest), (0, [0; 2]));
        assert_eq!((run.notifications, run.interrupts), (run.done, run.done));
    }
}

/// A guest that has no time for more than a few operations is told of several at once, as long as it has other work. It never waits for longer than an
/// operation takes.
#[test]
fn busy_guests_get_several_completions_together() {
    for way in Way::ALL {
        for event_indices in [true, false] {
            let mut run = Run::new(way, event_indices, TAKES);
            run.guest.world.is_at_work.set(true);
            run.keep_one_in(TAKES / 6, 32, 400 * TAKES);
            let exits_each = f64::from(run.exits()) / f64::from(run.done);
            assert!(run.done > 2000, "{}", run.done);
            assert!(exits_each < 1.0, "{exits_each}, of two without looks");
            let most = TAKES * 11 / 10;
            assert!(
                run.longest.iter().all(|one| *one <= most),
                "{:?}",
                run.longest
            );
            // It waits from here on, and the look that finds that is the last.
            run.guest.world.is_at_work.set(false);
            run.keep(6, TAKES);
            run.drain();
            (run.looks, run.notifications, run.interrupts) = (0, 0, 0);
            (run.done, run.longest) = (0, [0; 2]);
            run.keep(6, 20 * TAKES);
            run.drain();
            assert_eq!((run.looks, run.longest), (0, [0; 2]));
            assert_eq!((run.notifications, run.interrupts), (run.done, run.done));
        }
    }
}

/// With two operations under way, or at a slow disk, a guest at work is told of each at once.
#[test]
fn busy_guests_get_rare_completions_at_once() {
    for (depth, takes) in [(2, TAKES), (6, 20 * PATIENCE)] {
        let mut run = Run::new(Way::Fast, true, takes);
        run.guest.world.is_at_work.set(true);
        run.keep(depth, 100 * takes);
        assert!(run.done > 100, "{}", run.done);
        assert_eq!((run.looks, run.longest), (0, [0; 2]));
    }
}

/// A guest that waits now and then is told of each at once.
#[test]
fn guests_that_wait_are_not_busy() {
    let mut run = Run::new(Way::Fast, true, TAKES);
    for _ in 0..200 {
        run.guest.world.is_at_work.set(true);
        run.keep(4, 2 * TAKES);
        run.guest.world.is_at_work.set(false);
        run.keep(4, TAKES);
    }
    assert!(run.done > 1000, "{}", run.done);
    assert_eq!((run.looks, run.longest), (0, [0; 2]));
}

/// No operation completes between two polls: an exit costs little beside an operation.
#[test]
fn slow_disks_are_notified_at_once() {
    let mut run = Run::new(Way::Fast, true, 48 * 10 * PATIENCE);
    run.keep(48, 5 * 48 * 10 * PATIENCE);
    assert!(run.done > 100);
    assert_eq!((run.looks, run.longest), (0, [0; 2]));
}

/// Guests and devices stop and begin again as they like: nothing stays behind, and the first of what comes next is told of.
#[test]
fn nothing_is_lost_in_empty_queues() {
    for way in Way::ALL {
        for event_indices in [true, false] {
            let mut run = Run::new(way, event_indices, TAKES);
            for round in 0..40 {
                let depth = 1 + run.below(60) as usize;
                let ticks = run.below(4 * TAKES);
                run.keep(depth, ticks);
                if round % 3 == 0 {
                    run.drain();
                    let before = run.notifications;
                    run.offer();
                    assert_eq!(run.notifications, before + 1);
                    assert_eq!(run.offered.len(), 0);
                }
            }
            run.drain();
            assert!(run.longest.iter().all(|one| *one <= PATIENCE));
        }
    }
}

/// A device that waits for its driver's reset is not polled.
#[test]
fn broken_queues_are_not_polled() {
    let mut run = Run::new(Way::Fast, true, TAKES);
    run.keep(48, 20 * TAKES);
    assert!(run.looks > 0 && run.guest.world.poll_by.get().is_some());
    run.guest.world.guest_sets(AVAILABLE + 2, &[0xff; 2]);
    for _ in 0..PATIENCE {
        run.tick();
    }
    assert!(run.guest.is_broken());
    assert_eq!(run.guest.world.poll_by.get(), None);
}

/// A disk that does nothing more for a while is not looked at all the time.
#[test]
fn polling_ends_after_a_miss() {
    for event_indices in [true, false] {
        let mut run = Run::new(Way::Fast, event_indices, TAKES);
        run.keep(48, 20 * TAKES);
        assert!(run.looks > 0 && run.guest.world.poll_by.get().is_some());
        for _ in 0..PATIENCE {
            run.tick();
        }
        // All that is under way ends much later.
        assert!(run.offered.is_empty() && run.at_device.len() > 20);
        let later = run.now() + 100 * TAKES;
        let ends = run.at_device.values_mut();
        ends.for_each(|(_, end)| *end = later);
        for _ in 0..2 * PATIENCE {
            run.tick();
        }
        let looks = run.looks;
        for _ in 0..50 * TAKES {
            run.tick();
        }
        assert_eq!(run.looks, looks);
        // What the guest makes available then is told of.
        run.offer();
        assert_eq!(run.offered.len(), 0);
        for _ in 0..60 * TAKES {
            run.tick();
        }
        assert_eq!(run.under_way(), 0);
    }
}
