//! The locks that are measured: ticket and queue locks, both first come, first served.

use core::sync::atomic::{AtomicU32, Ordering};

use exerciser::workload::LockKind;

use super::Totals;
use super::spins::Spinner;
use crate::arch::csr;
use crate::board::{MAX_HARTS, board};
use crate::harts::Hart;

/// A lock of either kind. Each queue node belongs to a hart and is used for one lock at a time, as a hart
/// holds or awaits one lock at a time.
#[derive(Debug)]
#[repr(align(64))]
pub struct MeasuredLock {
    /// Ticket: next << 16 | owner, as Linux's `arch_spinlock_t`. Swap: 1 while it is held. Queue: index of the last
    /// waiter + 1.
    word: AtomicU32,
    /// How often it was taken; read and written by its holder alone, so it must equal the ticket.
    taken: AtomicU32,
}

/// A hart's place in a queue lock's queue.
#[derive(Debug)]
#[repr(align(64))]
pub struct Node {
    /// 1 while its hart must wait.
    waits: AtomicU32,
    /// Index of the hart behind + 1.
    next: AtomicU32,
}

impl Node {
    pub const fn new() -> Self {
        Self {
            waits: AtomicU32::new(0),
            next: AtomicU32::new(0),
        }
    }
}

impl MeasuredLock {
    pub const fn new() -> Self {
        Self {
            word: AtomicU32::new(0),
            taken: AtomicU32::new(0),
        }
    }

    /// Takes the lock, runs `work`, gives it back; counts wait and hold time.
    pub fn with(
        &self,
        kind: LockKind,
        nodes: &[Node; MAX_HARTS],
        hart: &Hart,
        spinner: &mut Spinner<'_>,
        totals: &mut Totals,
        work: impl FnOnce(),
    ) {
        let asked = csr::time();
        match kind {
            LockKind::Ticket => self.take_ticket(spinner, totals),
            LockKind::Swap => self.swap(spinner, totals),
            LockKind::Queue => self.queue_up(nodes, hart, spinner, totals),
        }
        let got = csr::time();
        work();
        let done = csr::time();
        match kind {
            LockKind::Ticket => self.give_ticket_back(),
            LockKind::Swap => self.word.store(0, Ordering::Release),
            LockKind::Queue => self.pass_on(nodes, hart, spinner, totals),
        }
        totals.wait[0].add(board().nanoseconds(got - asked));
        totals.hold.add(board().nanoseconds(done - got));
    }

    fn take_ticket(&self, spinner: &mut Spinner<'_>, totals: &mut Totals) {
        let before = self.word.fetch_add(1 << 16, Ordering::Acquire);
        let ticket = before >> 16;
        if before & 0xffff != ticket {
            spinner.wait_for_ticket(&self.word, ticket, totals);
        }
        // Whoever is served out of turn finds another's number here.
        let served = self.taken.load(Ordering::Relaxed);
        totals.overtaken += u64::from(served & 0xffff != ticket);
        self.taken.store(served.wrapping_add(1), Ordering::Relaxed);
    }

    /// Takes the lock when it is free. One wait is counted, however often another is faster.
    fn swap(&self, spinner: &mut Spinner<'_>, totals: &mut Totals) {
        let try_once = || {
            self.word
                .compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        };
        if !try_once() {
            spinner.wait(&self.word, totals, |word| word == 0 && try_once());
        }
    }

    fn give_ticket_back(&self) {
        // Only the owner half changes, without a carry into the other: a 16-bit store in Linux.
        let mut word = self.word.load(Ordering::Relaxed);
        loop {
            let next = word & 0xffff_0000 | word.wrapping_add(1) & 0xffff;
            match self
                .word
                .compare_exchange_weak(word, next, Ordering::Release, Ordering::Relaxed)
            {
                Ok(_) => return,
                Err(found) => word = found,
            }
        }
    }

    fn queue_up(
        &self,
        nodes: &[Node; MAX_HARTS],
        hart: &Hart,
        spinner: &mut Spinner<'_>,
        totals: &mut Totals,
    ) {
        let me = hart.index() as u32 + 1;
        let Some(node) = nodes.get(hart.index()) else {
            return;
        };
        node.next.store(0, Ordering::Relaxed);
        node.waits.store(1, Ordering::Relaxed);
        let before = self.word.swap(me, Ordering::AcqRel);
        if before != 0 {
            if let Some(previous) = nodes.get(before as usize - 1) {
                previous.next.store(me, Ordering::Release);
            }
            spinner.wait(&node.waits, totals, |word| word == 0);
        }
    }

    fn pass_on(
        &self,
        nodes: &[Node; MAX_HARTS],
        hart: &Hart,
        spinner: &mut Spinner<'_>,
        totals: &mut Totals,
    ) {
        let me = hart.index() as u32 + 1;
        let Some(node) = nodes.get(hart.index()) else {
            return;
        };
        if node.next.load(Ordering::Acquire) == 0 {
            if self
                .word
                .compare_exchange(me, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_ok()
            {
                return;
            }
            // Somebody is between the swap and the link.
            spinner.wait(&node.next, totals, |word| word != 0);
        }
        if let Some(next) = nodes.get(node.next.load(Ordering::Acquire) as usize - 1) {
            next.waits.store(0, Ordering::Release);
        }
    }
}
