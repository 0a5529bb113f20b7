//! Waiting in place: a vCPU that waits for its own interrupts stays on a hart that no other vCPU wants.
//!
//! All of its registers stay on the hart, so its own interrupts end the wait as they end its own WFI: those in its guest file by hstatus.VGEIN,
//! its timer by vstimecmp, those that the hypervisor holds for it by hvip (privileged architecture, "Wait for Interrupt": WFI tests hie and vsie
//! in any mode). No interrupt is taken, nothing is dispatched, saved or restored.

use core::sync::atomic::Ordering;

use scheduler::groups::{Access, Group};
use scheduler::{Continue, InPlace as Answer, Kicks, Leave, Ticks, VcpuNumber, VcpuSet};

use crate::hart::{
    self,
    counters::hart_counters::HartCounters,
    csr::{self, number},
};
use crate::interrupts::GuestFile;
use crate::run::host_interrupts::handle_host_interrupts;
use crate::run::probe;
use crate::run::software_events;
use crate::run::terms;
use crate::run::timer::set_timer;
use crate::system::harts::Hart;
use crate::system::monitor;
use crate::system::{Hypervisor, now};
use crate::vm::Vm;
use crate::vm::vcpu::{Vcpu, VcpuState};

/// vCPU that has begun to wait for its own interrupts, on its hart.
#[derive(Debug)]
pub struct InPlace<'a> {
    pub system: &'a Hypervisor,
    pub hart: &'a Hart,
    pub vm: &'a Vm,
    pub vcpu: &'a Vcpu,
    /// Time of its dispatch.
    pub began: Ticks,
}

/// Interrupts of other vCPUs that ended a wait.
#[derive(Clone, Copy, Debug)]
struct Found {
    /// Guest files of this hart, a bit each.
    here: u64,
    /// A vCPU that waits on another hart.
    elsewhere: bool,
}

/// Returns true if another vCPU that waits here has an interrupt and no other hart is idle for it. A vCPU that is about to wait in place leaves then,
/// which costs less.
pub fn would_leave_at_once(system: &Hypervisor, hart: &Hart) -> bool {
    let files = hart.files.waiting();
    files != 0 && csr::read::<{ number::HGEIP }>() & files != 0 && !system.others_idle(hart)
}

impl InPlace<'_> {
    /// Waits on the hart if the scheduler allows it. Returns the reason if the vCPU has to leave.
    #[inline(never)]
    pub fn wait(self, state: &mut VcpuState) -> Option<Leave> {
        let Self {
            system, hart, vm, ..
        } = self;
        if system.host_interrupts() || system.scheduler.others_have_surplus(hart.index) {
            return Some(Leave::SelfWait);
        }
        let ran = now() - self.began;
        let (answer, files) = system.with_hart(hart.index, |group| {
            let answer = group.scheduler_mut().wait_in_place(hart.index, ran, now());
            let files = match answer {
                Answer::With(others) => self.files_of(group, others),
                Answer::No | Answer::Woken => 0,
            };
            (answer, files)
        });
        let others = match answer {
            Answer::No => return Some(Leave::SelfWait),
            Answer::Woken => return None,
            Answer::With(others) => others,
        };
        if system.count() > 1 && hart.take_must_reschedule() {
            // A vCPU was migrated here from another group.
            return terms::reconsider(system, hart, self.began, state);
        }
        // The guest uses no translation while it waits, so a change of its tables need not wait for this hart.
        hart.running.clear();
        let found = self.stall(files);
        hart.accounts.charge_idle();
        let poll = hart::time() >= hart.next_poll.load(Ordering::Relaxed);
        let interrupted = csr::read::<{ number::SIP }>() & csr::read::<{ number::SIE }>() != 0
            || csr::read::<{ number::HIP }>() & csr::interrupt::SGEI != 0;
        if interrupted {
            if state.counters.note_overflows(&mut HartCounters) {
                software_events::note_overflow(vm, self.vcpu);
            }
            handle_host_interrupts(system, hart);
            monitor::publish(system, hart);
        }
        let asked = hart.take_must_reschedule();
        let leaves = if interrupted || asked {
            terms::reconsider(system, hart, self.began, state)
        } else if found.elsewhere || found.here != 0 && !self.spread(others, found.here) {
            Some(Leave::SelfWait)
        } else {
            self.go_on(state)
        };
        hart.accounts.of(vm.id).charge_scheduling();
        // The periodic test of files covers vCPUs that have left.
        leaves.or_else(|| (poll && interrupted).then_some(Leave::SelfWait))
    }

    /// Guest files on this hart of `others`, which are in `group`, a bit each.
    #[inline]
    fn files_of(&self, group: &Group, others: VcpuSet) -> u64 {
        let mut files = 0;
        for place in others.iter() {
            files |= group.number(place).map_or(0, |vcpu| self.file_of(vcpu));
        }
        files
    }

    /// Bit of the guest file of `vcpu` on this hart.
    #[inline]
    fn file_of(&self, vcpu: VcpuNumber) -> u64 {
        let interrupts = self.system.vcpu(vcpu).interrupts.lock();
        let file = interrupts.file_on(self.hart.index);
        file.map_or(0, GuestFile::bit)
    }

    /// Waits until an interrupt comes for the vCPU, for the hypervisor, or into one of `files`.
    fn stall(&self, files: u64) -> Found {
        let Self {
            system, hart, vcpu, ..
        } = self;
        // SAFETY: the files are those of vCPUs that wait here; the bits are taken back below, and with sstatus.SIE = 0
        // no interrupt is taken meanwhile.
        unsafe { csr::set::<{ number::HGEIE }>(files) };
        hart.poll_timer.stop();
        let poll = hart.next_poll.load(Ordering::Relaxed);
        hart.slice_end.store(poll, Ordering::Relaxed);
        set_timer(system, hart);
        hart.accounts.of(self.vm.id).charge_scheduling();
        let mut elsewhere = false;
        // A request for the vCPU interrupts this hart from here on.
        if vcpu.enter_guest(hart.index) {
            system.begin_idle(hart);
            elsewhere = probe::wait_idle(system, hart);
            system.end_idle(hart);
            vcpu.leave_guest();
        }
        // SAFETY: as above.
        unsafe { csr::clear::<{ number::HGEIE }>(files) };
        Found {
            here: csr::read::<{ number::HGEIP }>() & files,
            elsewhere,
        }
    }

    /// Sends the vCPUs of `others` whose files are in `found` to idle harts. Returns false if there are too few idle harts.
    fn spread(&self, others: VcpuSet, found: u64) -> bool {
        // Without an idle hart the scheduler need not be asked.
        if !self.system.others_idle(self.hart) {
            return false;
        }
        let hart = self.hart.index;
        others.iter().all(|place| {
            let kicks = self.system.with_hart(hart, |group| {
                // A vCPU that was migrated meanwhile has no file here any more.
                let found = |&vcpu: &VcpuNumber| self.file_of(vcpu) & found != 0;
                match group.number(place).filter(found) {
                    Some(_) => group.scheduler_mut().spread(hart, place, now()),
                    None => Some(Kicks::NONE),
                }
            });
            kicks.is_some_and(|kicks| {
                self.system.kick(kicks);
                true
            })
        })
    }

    fn go_on(&self, state: &mut VcpuState) -> Option<Leave> {
        let ran = now() - self.began;
        let decision: Continue = self.system.with_hart(self.hart.index, |group| {
            group
                .scheduler_mut()
                .end_wait_in_place(self.hart.index, ran)
        });
        terms::follow(self.system, self.hart, decision, state)
    }
}
