//! Terminals and their jobs, and the harts that carry them out.

use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};

use exerciser::random::Random;
use exerciser::workload::{MAX_LOCKS, MAX_TERMINALS, Workload, think_time};

use super::Totals;
use super::events;
use super::locks::{MeasuredLock, Node};
use super::spaces::Spaces;
use super::spins::Spinner;
use crate::arch::{csr, locks, vector};
use crate::block::Disk;
use crate::board::{MAX_HARTS, board};
use crate::harts::{self, Hart};
use crate::interrupts::{BLOCK, WAKE};

/// A terminal's states.
const READY: u64 = 0;
const RUNNING: u64 = 1;
/// It thinks until `until`.
const THINKING: u64 = 2;
/// It waits for its read.
const READING: u64 = 3;

/// A terminal and the job that it asked for.
#[derive(Debug)]
struct Terminal {
    state: AtomicU64,
    until: AtomicU64,
    arrived: AtomicU64,
    steps: AtomicU64,
    reads: AtomicU64,
    ends: AtomicU64,
}

impl Terminal {
    const fn new() -> Self {
        Self {
            state: AtomicU64::new(READY),
            until: AtomicU64::new(0),
            arrived: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            reads: AtomicU64::new(0),
            ends: AtomicU64::new(0),
        }
    }
}

static TERMINALS: [Terminal; MAX_TERMINALS as usize] =
    [const { Terminal::new() }; MAX_TERMINALS as usize];
static LOCKS: [MeasuredLock; MAX_LOCKS as usize] =
    [const { MeasuredLock::new() }; MAX_LOCKS as usize];
static NODES: [Node; MAX_HARTS] = [const { Node::new() }; MAX_HARTS];

/// How often each hart has come to the start of its loop.
static PASSES: [AtomicU64; MAX_HARTS] = [const { AtomicU64::new(0) }; MAX_HARTS];

/// Where the work is done.
#[derive(Debug)]
pub struct Floor {
    workload: Workload,
    harts: usize,
    disk: Option<Disk>,
    spaces: Spaces,
    start: u64,
    over: AtomicBool,
    ready: AtomicUsize,
    /// Harts that have not come to the end. A count of its own: while one that met the others has not seen it yet, another one may have
    /// come to the end already.
    working: AtomicUsize,
    ends: AtomicU64,
    /// When a hart last had nothing more to do.
    end: AtomicU64,
    pub reads: AtomicU64,
    /// Harts that sleep for want of work, and those that are off-line, as bits.
    idle: AtomicU64,
    off_line: AtomicU64,
}

impl Floor {
    pub fn new(workload: &Workload, harts: usize, disk: Option<Disk>, spaces: Spaces) -> Self {
        let mut random = Random::stream(workload.seed, u64::MAX);
        let now = csr::time();
        for terminal in terminals(workload) {
            let think = board().ticks(think_time(workload.think_us, random.next()));
            terminal.until.store(now + think, Ordering::Relaxed);
            terminal
                .state
                .store(if think == 0 { READY } else { THINKING }, Ordering::Relaxed);
            terminal.arrived.store(now, Ordering::Relaxed);
        }
        Self {
            workload: *workload,
            harts,
            disk,
            spaces,
            start: now,
            over: AtomicBool::new(false),
            ready: AtomicUsize::new(0),
            working: AtomicUsize::new(harts),
            ends: AtomicU64::new(0),
            end: AtomicU64::new(now),
            reads: AtomicU64::new(0),
            idle: AtomicU64::new(0),
            off_line: AtomicU64::new(0),
        }
    }

    pub fn ends(&self) -> u64 {
        self.ends.load(Ordering::Relaxed)
    }

    /// When the last hart had done its last job.
    pub fn end(&self) -> u64 {
        self.end.load(Ordering::Relaxed)
    }

    /// How many harts are off-line.
    pub fn off_line(&self) -> u32 {
        self.off_line.load(Ordering::Relaxed).count_ones()
    }

    fn is_over(&self) -> bool {
        let workload = &self.workload;
        let is_time_up = workload.duration_ms != 0
            && csr::time() - self.start >= board().ticks(workload.duration_ms * 1000);
        if is_time_up || workload.jobs != 0 && self.ends() >= workload.jobs {
            self.over.store(true, Ordering::Relaxed);
        }
        self.over.load(Ordering::Relaxed)
    }

    /// One hart's work until the end, or until it goes off-line.
    pub fn work(&self, hart: &'static Hart, totals: &mut Totals) {
        if self.workload.vectors > 0 {
            vector::set_status(1);
        }
        harts::meet(&self.ready, self.harts);
        let expired = AtomicBool::new(false);
        let mut spinner = Spinner::new(&self.workload, hart, &expired);
        let mut random = Random::stream(self.workload.seed, hart.index() as u64);
        // The first hart takes the disk's interrupts and stays.
        let may_leave = hart.index() != 0;
        if let (0, Some(disk)) = (hart.index(), &self.disk) {
            disk.route(hart, BLOCK);
        }
        let mut from = hart.index();
        while !self.is_over() {
            if let Some(passes) = PASSES.get(hart.index()) {
                passes.fetch_add(1, Ordering::AcqRel);
            }
            csr::take_interrupts();
            self.collect();
            match self.take(&mut from) {
                Some(number) => self.step(number, hart, &mut spinner, &mut random, totals),
                None => self.rest(hart),
            }
            if may_leave && expired.load(Ordering::Relaxed) {
                self.off_line.fetch_or(1 << hart.index(), Ordering::AcqRel);
                break;
            }
        }
        // Harts look only now and then whether the others have ended: the work's end is not when they notice.
        self.end.fetch_max(csr::time(), Ordering::Relaxed);
        if self.off_line.load(Ordering::Relaxed) >> hart.index() & 1 == 1 && self.leave(hart) {
            self.working.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        // Wake whoever sleeps, so that it sees the end; and serve whoever still waits.
        for other in harts::all(self.harts) {
            other.send(WAKE);
        }
        self.working.fetch_sub(1, Ordering::AcqRel);
        while self.working.load(Ordering::Acquire) > 0 {
            harts::sleep_until(csr::time() + board().ticks(1000));
        }
    }

    /// Waits, serving, until no hart can ask this one for anything any more: each has come to the start of its
    /// loop after our bit was set. False where the run ends first.
    fn leave(&self, hart: &Hart) -> bool {
        let others = || {
            PASSES
                .iter()
                .enumerate()
                .take(self.harts)
                .filter(|(index, _)| *index != hart.index())
        };
        let mut before = [0; MAX_HARTS];
        for (seen, (index, passes)) in before.iter_mut().zip(others()) {
            *seen = passes.load(Ordering::Acquire);
            harts::all(self.harts)[index].send(WAKE);
        }
        let is_gone = |index: usize| self.off_line.load(Ordering::Acquire) >> index & 1 == 1;
        harts::wait_until(|| {
            let mut all = others().zip(before);
            self.over.load(Ordering::Acquire)
                || all.all(|((index, passes), seen)| {
                    passes.load(Ordering::Acquire) != seen || is_gone(index)
                })
        });
        !self.over.load(Ordering::Acquire)
    }

    /// Finds work: the next ready terminal after the last one that was looked at, or one that has thought.
    fn take(&self, from: &mut usize) -> Option<usize> {
        let count = self.workload.terminals as usize;
        let now = csr::time();
        for offset in 0..count {
            let number = (*from + 1 + offset) % count;
            let Some(terminal) = TERMINALS.get(number) else {
                continue;
            };
            let state = terminal.state.load(Ordering::Acquire);
            let has_thought = state == THINKING && terminal.until.load(Ordering::Relaxed) <= now;
            let is_ready = state == READY || has_thought;
            if is_ready
                && terminal
                    .state
                    .compare_exchange(state, RUNNING, Ordering::AcqRel, Ordering::Relaxed)
                    .is_ok()
            {
                if has_thought {
                    terminal
                        .arrived
                        .store(terminal.until.load(Ordering::Relaxed), Ordering::Relaxed);
                }
                *from = number;
                return Some(number);
            }
        }
        None
    }

    /// Sleeps until a terminal has thought, a read ends, or somebody wakes us.
    fn rest(&self, hart: &Hart) {
        self.idle.fetch_or(1 << hart.index(), Ordering::AcqRel);
        let earliest = terminals(&self.workload)
            .filter(|terminal| terminal.state.load(Ordering::Acquire) == THINKING)
            .map(|terminal| terminal.until.load(Ordering::Relaxed))
            .min()
            .unwrap_or(u64::MAX);
        let end = match self.workload.duration_ms {
            0 => u64::MAX,
            duration => self.start + board().ticks(duration * 1000),
        };
        // What became ready before our bit was set woke nobody for us.
        fence(Ordering::SeqCst);
        let is_ready = |terminal: &Terminal| terminal.state.load(Ordering::Acquire) == READY;
        let anything = terminals(&self.workload).any(is_ready);
        if !anything && !self.over.load(Ordering::Acquire) {
            harts::sleep_until(earliest.min(end));
        }
        self.idle.fetch_and(!(1 << hart.index()), Ordering::AcqRel);
    }

    /// Wakes one hart that sleeps, if there is one.
    fn wake_one(&self) {
        // What is ready is so before the sleepers' bits are read.
        fence(Ordering::SeqCst);
        let idle = self.idle.load(Ordering::Acquire);
        if idle != 0
            && let Some(hart) = harts::all(self.harts).get(idle.trailing_zeros() as usize)
        {
            hart.send(WAKE);
        }
    }

    /// Makes ready whose reads have ended.
    fn collect(&self) {
        let Some(disk) = &self.disk else { return };
        // The first hart takes them.
        let taken = harts::all(self.harts).first();
        let taken = taken.and_then(|hart| hart.received.get(BLOCK as usize));
        let interrupts = taken.map_or(0, |taken| taken.load(Ordering::Acquire));
        disk.collect(interrupts, |number| {
            self.reads.fetch_add(1, Ordering::Relaxed);
            if let Some(terminal) = TERMINALS.get(number) {
                terminal.state.store(READY, Ordering::Release);
                self.wake_one();
            }
        });
    }

    /// One step of a job, or the rest of one whose read has ended.
    fn step(
        &self,
        number: usize,
        hart: &'static Hart,
        spinner: &mut Spinner<'_>,
        random: &mut Random,
        totals: &mut Totals,
    ) {
        let Some(terminal) = TERMINALS.get(number) else {
            return;
        };
        let workload = &self.workload;
        let reads = terminal.reads.load(Ordering::Relaxed);
        if reads == 0 {
            self.compute(number, hart, spinner, random, totals);
        }
        if let Some(disk) = self.disk.as_ref().filter(|_| reads < workload.reads) {
            terminal.reads.store(reads + 1, Ordering::Relaxed);
            terminal.state.store(READING, Ordering::Release);
            if !disk.read(number, random.next(), workload.sectors) {
                // The queue is full: it is tried again.
                terminal.reads.store(reads, Ordering::Relaxed);
                terminal.state.store(READY, Ordering::Release);
            }
            return;
        }
        terminal.reads.store(0, Ordering::Relaxed);
        let steps = terminal.steps.load(Ordering::Relaxed) + 1;
        if steps < workload.steps {
            terminal.steps.store(steps, Ordering::Relaxed);
            terminal.state.store(READY, Ordering::Release);
            return;
        }
        let now = csr::time();
        totals
            .response
            .add(board().nanoseconds(now.saturating_sub(terminal.arrived.load(Ordering::Relaxed))));
        terminal.steps.store(0, Ordering::Relaxed);
        terminal.ends.fetch_add(1, Ordering::Relaxed);
        self.ends.fetch_add(1, Ordering::Relaxed);
        let think = board().ticks(think_time(workload.think_us, random.next()));
        terminal.until.store(now + think, Ordering::Relaxed);
        terminal.arrived.store(now, Ordering::Relaxed);
        terminal
            .state
            .store(if think == 0 { READY } else { THINKING }, Ordering::Release);
    }

    fn compute(
        &self,
        number: usize,
        hart: &'static Hart,
        spinner: &mut Spinner<'_>,
        random: &mut Random,
        totals: &mut Totals,
    ) {
        let workload = &self.workload;
        for _ in 0..workload.vectors {
            vector::write(random.next());
        }
        csr::open_interrupts();
        locks::turn(workload.compute);
        self.spaces.touch(number, hart.index(), random);
        csr::close_interrupts();
        if workload.events > 0 {
            let (event, disk) = (workload.event, self.disk.as_ref());
            totals.events += events::repeat(event, workload.events, hart, &self.spaces, disk);
        }
        for _ in 0..workload.calls {
            locks::user_call();
            self.locked(hart, spinner, random, totals);
        }
        for _ in 0..workload.locks {
            self.locked(hart, spinner, random, totals);
        }
        if self.harts < 2 {
            return;
        }
        let away = 1 + random.below(self.harts as u64 - 1) as usize;
        let other = harts::all(self.harts).get((hart.index() + away) % self.harts);
        let is_there =
            |other: &&Hart| self.off_line.load(Ordering::Acquire) >> other.index() & 1 == 0;
        let Some(other) = other.filter(is_there) else {
            return;
        };
        if workload.partner_one_in != 0 {
            spinner.run_process(workload.process);
            if random.one_in(workload.partner_one_in) {
                spinner.wait_for_process(other, totals);
            }
        }
        if workload.request_one_in != 0 && random.one_in(workload.request_one_in) {
            spinner.request(other, totals);
        }
    }

    fn locked(
        &self,
        hart: &Hart,
        spinner: &mut Spinner<'_>,
        random: &mut Random,
        totals: &mut Totals,
    ) {
        let chosen = random.below(self.workload.lock_count) as usize;
        if let Some(lock) = LOCKS.get(chosen) {
            lock.with(self.workload.kind, &NODES, hart, spinner, totals, || {
                locks::turn(self.workload.hold)
            });
        }
    }
}

fn terminals(workload: &Workload) -> impl Iterator<Item = &'static Terminal> + use<> {
    TERMINALS.iter().take(workload.terminals as usize)
}
