//! The tests that a dispatching hart makes of vCPUs that wait: paper 002's pending-interrupt test, by hgeip, and the
//! test of the word that a spinning vCPU watches.

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
use crate::vm::word::Word;

/// The tests, made on `hart`.
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
        word.as_mut().is_none_or(|word| word.test(&waits.beside))
    }
}

/// Looks at the word that `vcpu` waits for, which is on this hart, for `longest` at most. Whether what it waits for has come.
pub fn comes_within(hart: &Hart, vcpu: &Vcpu, word: Word, longest: Ticks) -> bool {
    let end = hart::time() + longest.get();
    let by_reservation = hart.has(Capability::WaitOnReservation);
    let mut has_come = false;
    while !has_come && hart::time() < end {
        // SAFETY: the hart has what it is asked for.
        unsafe { word.stall(by_reservation) };
        has_come = word.has_come(&vcpu.beside);
    }
    has_come
}

/// How often an idle hart looks at words before it asks the scheduler again.
const LOOKS: u32 = 512;

/// Waits while a hart must test the vCPUs `watch` itself, until one of them may go on or an interrupt is pending.
///
/// It is one wait for work, interrupts and timers, in which no interrupt is taken: sstatus.SIE is 0, hgeie has the files
/// of those that wait here, and the timer has their earliest deadline. Where some of them wait for words, WRS.STO stalls on the
/// first of these for a short time, and the others are looked at in between; else WFI waits.
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
        // Whatever it was, the hart asks.
        let _ = rest(system, hart);
    } else {
        for _ in 0..LOOKS {
            let goes_on = |(waits, word): (&Vcpu, Word)| word.has_come(&waits.beside);
            if interrupt_is_pending() || words().any(goes_on) {
                break;
            }
            if let Some((_, word)) = words().next() {
                // SAFETY: the hart has what it is asked for.
                unsafe { word.stall(by_reservation) };
            }
        }
    }
    for vcpu in watch.iter().filter(|_| arm) {
        watch_file(system, hart, vcpu, false);
    }
}

/// How often a hart that rests tests the files of harts that do not, a second. What two tests in a row find is taken over:
/// to move costs as much as a hundred microseconds on a slow computer, and until then its own hart may be free.
const TESTS_A_SECOND: u32 = 20_000;

/// Waits until an interrupt is pending for this hart or for the vCPU whose registers are on it. Where any hart's files can be
/// tested, also until a vCPU that waits on a hart that is busy has one, and then says so: it is paper 002's active wait.
pub fn rest(system: &Hypervisor, hart: &Hart) -> bool {
    if !hart.has(Capability::PendingTest) || system.host_interrupts() {
        wait_for_interrupt();
        return false;
    }
    hart.rests.store(true, Ordering::Relaxed);
    let deadline = csr::read::<{ number::STIMECMP }>();
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
        // SAFETY: as in `due::Due`; the deadline is put back before anybody asks what is pending.
        unsafe { csr::write::<{ number::STIMECMP }>(deadline.min(hart::time() + interval)) };
        wait_for_interrupt();
        // SAFETY: the same.
        unsafe { csr::write::<{ number::STIMECMP }>(deadline) };
    };
    hart.rests.store(false, Ordering::Relaxed);
    found
}

/// Waits in a loop until the hart is told of something, or an interrupt is pending: the active wait of paper 002 §3.5, with all
/// interrupts open. Whoever has work for the hart sets its word, and need not interrupt it.
pub fn wait_actively(system: &Hypervisor, hart: &Hart) {
    hart.polls.store(true, Ordering::SeqCst);
    while !hart.was_told() && !anything_is_pending() {
        core::hint::spin_loop();
    }
    hart.polls.store(false, Ordering::SeqCst);
    // What a kick would have made the hart do.
    interrupts::serve(&InterruptPort::new(system, hart));
    interrupt_port::watch_as_wanted(system, hart);
}

/// Whether WFI would not wait.
fn anything_is_pending() -> bool {
    csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
        || csr::read::<{ number::HIP }>() & csr::read::<{ number::HIE }>() != 0
}

/// Whether a vCPU that waits on a hart that is busy has an interrupt. One of the harts that rest looks for all.
fn busy_hart_has_pending(system: &Hypervisor, hart: &Hart) -> bool {
    let rests = |other: &&Hart| other.rests.load(Ordering::Relaxed);
    if system.harts.iter().find(rests).map(|first| first.index) != Some(hart.index) {
        return false;
    }
    system.harts.iter().any(|other| {
        let files = other.files.waiting();
        // SAFETY: the caller has seen that the hart has the extension.
        let pending = || unsafe { custom::guest_files_pending(other.board.id) };
        files != 0 && !rests(&other) && pending() & files != 0
    })
}

/// Lets an interrupt for one of `vcpus`, which wait here, interrupt the hypervisor while another vCPU has the hart. The bits of their files.
pub fn begin_to_hear(system: &Hypervisor, hart: &Hart, vcpus: &NumberSet) -> u64 {
    let port = InterruptPort::new(system, hart);
    let hear = |bits, vcpu| bits | interrupts::begin_to_hear(&port, vcpu);
    vcpus.iter().fold(0, hear)
}

/// The end of [`begin_to_hear`].
pub fn end_hearing(system: &Hypervisor, hart: &Hart, heard: u64) {
    // The operator may have chosen a policy meanwhile under which all files of those that wait are watched.
    if !system.host_interrupts() {
        interrupts::end_hearing(&InterruptPort::new(system, hart), heard);
    }
}

fn watch_file(system: &Hypervisor, hart: &Hart, vcpu: VcpuNumber, on: bool) {
    if let Some(file) = system.vcpu(vcpu).interrupts.lock().file_on(hart.index) {
        interrupt_port::watch(file, on);
    }
}

fn interrupt_is_pending() -> bool {
    csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
        || csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0
}
