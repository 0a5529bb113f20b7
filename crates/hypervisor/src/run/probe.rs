//! Tests of waiting vCPUs by a dispatching hart: paper 002's pending-interrupt test, by hgeip, and the test of a watched word.

use core::sync::atomic::Ordering;

use scheduler::groups::NumberSet;
use scheduler::{Probe, Ticks, VcpuNumber};

use crate::hart::capabilities::Capability;
use crate::hart::csr::{self, number};
use crate::hart::{self, custom, wait_for_interrupt};
use crate::interrupts::{self, Backing};
use crate::system::Hypervisor;
use crate::system::harts::Hart;
use crate::system::interrupt_port::{self, InterruptPort};
use crate::vm::vcpu::Vcpu;
use crate::vm::word::{self, Word};

/// Tests made on `hart`.
#[derive(Clone, Copy, Debug)]
pub struct Tests<'a> {
    pub system: &'a Hypervisor,
    pub hart: &'a Hart,
}

impl Probe<VcpuNumber> for Tests<'_> {
    fn pending(&mut self, vcpu: VcpuNumber) -> bool {
        let vcpu = self.system.vcpu(vcpu);
        if vcpu.deadline.load(Ordering::Relaxed) <= hart::time() {
            return true;
        }
        if vcpu.has_device_work() {
            return true;
        }
        let interrupts = vcpu.interrupts.lock();
        match interrupts.backing() {
            Backing::Memory => interrupts.memory_file_asserts(),
            // hgeip is valid on the hart that holds the file, and cannot be read from another (AIA, "hgeip").
            Backing::File { hart, file } => {
                let pending = if hart == self.hart.index {
                    csr::read::<{ number::HGEIP }>()
                } else if self.hart.has(Capability::PendingTest) {
                    // SAFETY: the hart has the extension.
                    unsafe { custom::guest_files_pending(self.system.hart(hart).board.id) }
                } else {
                    0
                };
                pending & file.bit() != 0
            }
        }
    }

    fn reaches_every_file(&self) -> bool {
        self.hart.has(Capability::PendingTest)
    }

    fn changed(&mut self, vcpu: VcpuNumber) -> bool {
        let waits = self.system.vcpu(vcpu);
        let mut word = waits.word.lock();
        word.as_mut()
            .is_none_or(|word| word.poll(|| waits.conditions.lock().hold()))
    }
}

/// Polls the word of `vcpu`, which is on this hart, for `max` at most. Returns true if the wait is over.
pub fn poll_word(hart: &Hart, vcpu: &Vcpu, word: Word, max: Ticks) -> bool {
    let end = hart::time() + max.get();
    let by_reservation = hart.has(Capability::WaitOnReservation);
    let mut over = false;
    while !over && hart::time() < end {
        // SAFETY: the hart has Zawrs if it is told to use it.
        unsafe { word::stall(word, by_reservation) };
        over = word.is_over(|| vcpu.conditions.lock().hold());
    }
    over
}

/// Polls of words by an idle hart before it asks the scheduler again.
const MAX_POLLS: u32 = 512;

/// Waits on a hart that must test the vCPUs `watch` itself, until one of them may go on or an interrupt is pending.
///
/// One wait covers work, interrupts and timers, and takes no interrupt: sstatus.SIE is 0, hgeie has the files of the vCPUs that wait here, and
/// the timer has their earliest deadline. If some wait for words, WRS.STO stalls on the first of these for a short time, and the others are polled
/// in between; otherwise WFI waits.
pub fn wait_with_tests(system: &Hypervisor, hart: &Hart, watch: &NumberSet) {
    let words = || {
        watch.iter().filter_map(|vcpu| {
            let waits = system.vcpu(vcpu);
            waits.word.lock().map(|word| (waits, word))
        })
    };
    let by_reservation = hart.has(Capability::WaitOnReservation);
    // Under host interrupts hgeie has these files already, and keeps them.
    let arm = !system.host_interrupts();
    for vcpu in watch.iter().filter(|_| arm) {
        watch_file(system, hart, vcpu, true);
    }
    if words().next().is_none() {
        // The hart asks the scheduler after any end of the wait.
        let _ = wait_idle(system, hart);
    } else {
        for _ in 0..MAX_POLLS {
            let is_over =
                |(waits, word): (&Vcpu, Word)| word.is_over(|| waits.conditions.lock().hold());
            if interrupt_is_pending() || words().any(is_over) {
                break;
            }
            if let Some((_, word)) = words().next() {
                // SAFETY: the hart has Zawrs if it is told to use it.
                unsafe { word::stall(word, by_reservation) };
            }
        }
    }
    for vcpu in watch.iter().filter(|_| arm) {
        watch_file(system, hart, vcpu, false);
    }
}

/// Tests a second of an idle hart of the files of busy harts. A vCPU that two tests in a row find pending is migrated: a migration costs up to
/// 100 us on a slow computer, and the vCPU's own hart may be free sooner.
const TESTS_A_SECOND: u32 = 20_000;

/// Waits until an interrupt is pending for this hart or for the vCPU whose registers are on it. If any hart's files can be tested, a pending
/// interrupt of a vCPU that waits on a busy hart ends the wait too, and true is returned: paper 002's active wait.
pub fn wait_idle(system: &Hypervisor, hart: &Hart) -> bool {
    if !hart.has(Capability::PendingTest) || system.host_interrupts() {
        wait_for_interrupt();
        return false;
    }
    hart.is_idle.store(true, Ordering::Relaxed);
    let interval = u64::from((system.board.timebase_hertz / TESTS_A_SECOND).max(1));
    let mut before = false;
    let found = loop {
        if anything_is_pending() {
            break false;
        }
        let pending = busy_hart_has_pending(system, hart);
        if before && pending {
            break true;
        }
        before = pending;
        hart.poll_schedule.wait_until(hart::time() + interval);
    };
    hart.is_idle.store(false, Ordering::Relaxed);
    found
}

/// Waits in a loop until the hart is kicked or an interrupt is pending: the active wait of paper 002 §3.5, with all interrupts enabled. A hart
/// that has work for this one sets its word, and need not interrupt it.
pub fn wait_actively(system: &Hypervisor, hart: &Hart) {
    hart.polls.store(true, Ordering::SeqCst);
    while !hart.take_reschedule_request() && !anything_is_pending() {
        core::hint::spin_loop();
    }
    hart.polls.store(false, Ordering::SeqCst);
    // A kick would have had the same effect.
    interrupts::serve(&InterruptPort::new(system, hart));
    interrupt_port::watch_as_wanted(system, hart);
}

/// Returns true if WFI would not wait.
fn anything_is_pending() -> bool {
    csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
        || csr::read::<{ number::HIP }>() & csr::read::<{ number::HIE }>() != 0
}

/// Returns true if a vCPU that waits on a busy hart has an interrupt. One of the idle harts tests for all.
fn busy_hart_has_pending(system: &Hypervisor, hart: &Hart) -> bool {
    let is_idle = |other: &&Hart| other.is_idle.load(Ordering::Relaxed);
    if system.harts.iter().find(is_idle).map(|first| first.index) != Some(hart.index) {
        return false;
    }
    system.harts.iter().any(|other| {
        let files = other.files.waiting();
        // SAFETY: the caller has seen that the hart has the extension.
        let pending = || unsafe { custom::guest_files_pending(other.board.id) };
        files != 0 && !is_idle(&other) && pending() & files != 0
    })
}

/// Lets an interrupt of one of `vcpus`, which wait here, interrupt the hypervisor while another vCPU has the hart. Returns the bits of their
/// interrupt files.
pub fn watch_waiters(system: &Hypervisor, hart: &Hart, vcpus: &NumberSet) -> u64 {
    let port = InterruptPort::new(system, hart);
    let watch = |bits, vcpu| bits | interrupts::watch_waiter(&port, vcpu);
    vcpus.iter().fold(0, watch)
}

/// Undoes [`watch_waiters`].
pub fn unwatch_waiters(system: &Hypervisor, hart: &Hart, watched: u64) {
    // The operator may have chosen a wait policy meanwhile that watches the files of all waiters.
    if !system.host_interrupts() {
        interrupts::unwatch_files(&InterruptPort::new(system, hart), watched);
    }
}

#[inline]
fn watch_file(system: &Hypervisor, hart: &Hart, vcpu: VcpuNumber, on: bool) {
    if let Some(file) = system.vcpu(vcpu).interrupts.lock().file_on(hart.index) {
        interrupt_port::watch(file, on);
    }
}

fn interrupt_is_pending() -> bool {
    csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
        || csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0
}
