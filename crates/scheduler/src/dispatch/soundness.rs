//! Agreement of the tables with each other.

use core::fmt;

use crate::base::id::{HartId, HartSet, VcpuId};
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::Phase;
use crate::policies::gang::NO_ROW;
use crate::policies::queues::Queue;
use crate::policies::service::Service;

/// Contradiction in the tables: never found in a correct scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unsound {
    /// Links, ends and member sets of the queues disagree.
    Queues,
    /// A vCPU is in a queue that does not fit its state, or in none though it should be.
    Misplaced(VcpuId),
    /// A hart and a vCPU disagree about each other.
    Running(HartId),
    /// A spin wait names a vCPU that cannot be dispatched, or none.
    SpinWait(VcpuId),
    /// A hart is in none of the sets of harts, in two, or in the wrong one.
    Hart(HartId),
    /// A hart is idle, waits or runs on relaxed terms, and was not kicked for this vCPU.
    Forgotten(VcpuId),
}

impl fmt::Display for Unsound {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Queues => formatter.write_str("the queues are corrupt"),
            Self::Misplaced(vcpu) => write!(formatter, "{vcpu} is in the wrong queue"),
            Self::Running(hart) => write!(formatter, "{hart} and its vCPU disagree"),
            Self::SpinWait(vcpu) => write!(formatter, "{vcpu} waits for no vCPU that can run"),
            Self::Hart(hart) => write!(formatter, "{hart} is in the wrong set"),
            Self::Forgotten(vcpu) => write!(formatter, "{vcpu} is ready and no hart was kicked"),
        }
    }
}

impl core::error::Error for Unsound {}

impl Scheduler {
    /// Checks everything that must hold between calls. For tests, and for a hypervisor that suspects its memory; it reads everything and is slow.
    ///
    /// # Errors
    /// The first contradiction.
    pub fn check(&self) -> Result<(), Unsound> {
        if !self.queues.is_sound() {
            return Err(Unsound::Queues);
        }
        for vcpu in (0..).map_while(VcpuId::new) {
            self.check_vcpu(vcpu)?;
        }
        for hart in (0..).map_while(HartId::new) {
            self.check_hart(hart)?;
        }
        for vcpu in self.dispatchable().iter() {
            let asleep = self
                .idle
                .union(self.relaxed)
                .union(self.in_place)
                .intersection(self.may_dispatch(vcpu));
            // A searching hart will take this vCPU, or another ready one.
            let searching = self.searching.intersection(self.may_dispatch(vcpu));
            if !asleep.is_empty() && searching.is_empty() {
                return Err(Unsound::Forgotten(vcpu));
            }
        }
        Ok(())
    }

    fn check_vcpu(&self, vcpu: VcpuId) -> Result<(), Unsound> {
        let queue = self.queues.queue_of(vcpu);
        let Some(entry) = &self.vcpus[vcpu.index()] else {
            return if queue.is_none() {
                Ok(())
            } else {
                Err(Unsound::Misplaced(vcpu))
            };
        };
        let fits = match (entry.phase, entry.paused) {
            (Phase::Ready, false) => {
                queue.is_some_and(|queue| queue != Queue::SelfWait) && entry.word.is_none()
            }
            (Phase::SelfWait, false) => queue == Some(Queue::SelfWait),
            (Phase::Running(hart), _) => {
                queue.is_none() && self.running(hart) == Some(vcpu) && entry.last == Some(hart)
            }
            (_, _) => queue.is_none(),
        };
        let vm = self.vms[entry.vm.index()];
        let of_vm = vm.is_some_and(|vm| {
            vm.vcpus == entry.partners && vm.vcpus.contains(vcpu) && vm.dedicated == entry.dedicated
        });
        let run = match entry.phase {
            Phase::Running(hart) => self.harts[hart.index()].run(),
            _ => None,
        };
        let works = run.is_some_and(|run| !run.in_place);
        let preempted = self.preempted_in_supervisor.contains(vcpu);
        let gave_way = self.yielded_in_supervisor.contains(vcpu);
        let sets = [
            self.executing.contains(vcpu) == works,
            self.out_of_service.contains(vcpu) == self.service(vcpu).is_some_and(Service::is_out),
            !self.uninterruptible.contains(vcpu) || self.word_waiters.contains(vcpu),
            !preempted || matches!(entry.phase, Phase::Ready | Phase::Stopped),
            !self.preempted_interrupts_off.contains(vcpu) || preempted,
            !gave_way || !preempted && matches!(entry.phase, Phase::Ready | Phase::Stopped),
        ];
        if !of_vm || sets != [true; 6] || !self.has_own_place(vcpu) {
            return Err(Unsound::Misplaced(vcpu));
        }
        let words = self.word_waiters.contains(vcpu) == entry.word.is_some();
        let harts = (0..).map_while(HartId::new);
        let last = harts.filter(|hart| self.last_on[hart.index()].contains(vcpu));
        if !words || !last.eq(entry.last) {
            return Err(Unsound::Misplaced(vcpu));
        }
        let known = !self.self_wait_ready.contains(vcpu) || queue == Some(Queue::SelfWait);
        if !fits || !known {
            return Err(Unsound::Misplaced(vcpu));
        }
        let mask = self.spin_waits.mask(vcpu);
        let partners = self.vm(vcpu).map(|vm| vm.vcpus).unwrap_or_default();
        let can_run = self
            .queues
            .ready()
            .without(self.spin_waits.waiting())
            .intersection(partners);
        let sound = if self.spin_waits.waits(vcpu) {
            !mask.is_empty()
                && mask.without(can_run).is_empty()
                && self.queues.ready().contains(vcpu)
        } else {
            mask.is_empty()
        };
        if sound {
            Ok(())
        } else {
            Err(Unsound::SpinWait(vcpu))
        }
    }

    /// Returns true if no other vCPU has the row and the column of `vcpu` in the matrix, which has a place for each vCPU that shares harts.
    fn has_own_place(&self, vcpu: VcpuId) -> bool {
        let Some(entry) = self.vcpus[vcpu.index()].as_ref() else {
            return true;
        };
        if !self.co_schedules() || entry.dedicated {
            return entry.row == NO_ROW;
        }
        let others = self.vcpus.iter().flatten();
        let there = others.filter(|other| other.row == entry.row && other.home == entry.home);
        let column = entry.home.is_some_and(|home| self.shared.contains(home));
        column && entry.row != NO_ROW && there.count() == 1
    }

    fn check_hart(&self, hart: HartId) -> Result<(), Unsound> {
        let sets = [self.searching, self.idle, self.relaxed, self.in_place];
        let sets = sets.map(|set: HartSet| set.contains(hart));
        let fits = match self.harts[hart.index()].doing {
            Doing::Offline => sets == [false; 4],
            Doing::Searching => sets == [true, false, false, false],
            Doing::Idle => sets == [false, true, false, false],
            Doing::Running(run) => {
                let here = self.running_on(run.vcpu) == Some(hart);
                if !here {
                    return Err(Unsound::Running(hart));
                }
                let [searching, idle, relaxed, in_place] = sets;
                if run.in_place {
                    // Kicked for other work, it counts as searching.
                    !idle && !relaxed && searching != in_place
                } else {
                    !searching && !idle && !in_place
                }
            }
        };
        if fits {
            Ok(())
        } else {
            Err(Unsound::Hart(hart))
        }
    }
}
