//! Changes by an operator.

use crate::base::id::{VcpuSet, VmId};
use crate::base::ticks::Ticks;
use crate::config::{Allocation, Config, ConfigError, Placement, VmConfig};
use crate::decision::Kicks;
use crate::dispatch::hart::Doing;
use crate::dispatch::table::Scheduler;
use crate::dispatch::vcpu::{Phase, Vcpu, Vm};
use crate::policies::gang::NO_ROW;
use crate::policies::queues::Queue;
use crate::policies::service::Service;
use crate::policies::spin::SpinPolicy;
use crate::policies::virtual_time::{InverseWeight, VirtualTime};
use crate::policies::wait::WaitPolicy;

impl Scheduler {
    /// Adds a VM. Its vCPUs have consecutive ids and are stopped.
    ///
    /// vCPUs of other VMs on its dedicated harts are asked to leave.
    ///
    /// # Errors
    /// No room, or an allocation that cannot be had; nothing has changed then.
    pub fn add_vm(&mut self, config: VmConfig) -> Result<(VmId, Kicks), ConfigError> {
        self.add_placed_vm(config, self.config.placement)
    }

    /// Adds a VM whose vCPUs, while they share harts, have another placement than [`Config::placement`].
    ///
    /// # Errors
    /// Those of [`Scheduler::add_vm`].
    pub fn add_placed_vm(
        &mut self,
        config: VmConfig,
        placement: Placement,
    ) -> Result<(VmId, Kicks), ConfigError> {
        if config.vcpus == 0 {
            return Err(ConfigError::NoVcpus);
        }
        let free = (0..)
            .map_while(VmId::new)
            .find(|vm| self.vms[vm.index()].is_none());
        let vm = free.ok_or(ConfigError::TooManyVms)?;
        let vcpus = self
            .free_vcpus(config.vcpus)
            .ok_or(ConfigError::TooManyVcpus)?;
        self.check_allocation(vm, config.vcpus, config.allocation)?;
        let first = vcpus.first().ok_or(ConfigError::NoVcpus)?;
        let (dedicated, share) = match config.allocation {
            Allocation::Shared { share } => (false, share),
            Allocation::Dedicated { .. } => (true, 1),
        };
        self.vms[vm.index()] = Some(Vm {
            first,
            vcpus,
            dedicated,
            share,
            part: (1, 1),
            placement,
            service: Service::new(),
            last_yielded_to: None,
            wakeup_vruntime: VirtualTime::START,
            boost_vruntime: self.vruntime_of_others(),
            inverse_weight: InverseWeight::of(share),
        });
        self.vms_end = self.vms_end.max(vm.index() + 1);
        self.present.insert(vm);
        self.occupied = self.occupied.union(vcpus);
        for vcpu in vcpus.iter() {
            self.vcpus[vcpu.index()] = Some(Vcpu {
                vm,
                partners: vcpus,
                dedicated,
                phase: Phase::Stopped,
                stopping: false,
                paused: false,
                woken: false,
                word: None,
                last: None,
                home: None,
                row: NO_ROW,
                since: Ticks::ZERO,
                slice: self.config.slice,
                service: Service::new(),
                passed_over: 0,
                used: Ticks::ZERO,
            });
        }
        self.allocate(vm, config.allocation);
        Ok((vm, self.revise()))
    }

    /// Removes a VM none of whose vCPUs is on a hart. Waiting vCPUs are stopped.
    ///
    /// # Errors
    /// `NoSuchVm`, or `StillRunning`: stop its vCPUs and wait until they have left.
    pub fn remove_vm(&mut self, vm: VmId) -> Result<Kicks, ConfigError> {
        let vcpus = self.vms[vm.index()].ok_or(ConfigError::NoSuchVm)?.vcpus;
        if vcpus.iter().any(|vcpu| self.running_on(vcpu).is_some()) {
            return Err(ConfigError::StillRunning);
        }
        let mut kicks = Kicks::NONE;
        for vcpu in vcpus.iter() {
            kicks = kicks.and(self.stop(vcpu));
            self.vcpus[vcpu.index()] = None;
        }
        self.occupied = self.occupied.without(vcpus);
        self.present.remove(vm);
        self.preempted_in_supervisor = self.preempted_in_supervisor.without(vcpus);
        self.preempted_interrupts_off = self.preempted_interrupts_off.without(vcpus);
        self.yielded_in_supervisor = self.yielded_in_supervisor.without(vcpus);
        self.forget_preemptions(vcpus);
        for hart in self.online.iter() {
            let last_on = &mut self.last_on[hart.index()];
            *last_on = last_on.without(vcpus);
            let hart = &mut self.harts[hart.index()];
            hart.skip = hart.skip.filter(|&vcpu| !vcpus.contains(vcpu));
            hart.next = hart.next.filter(|&vcpu| !vcpus.contains(vcpu));
        }
        self.vms[vm.index()] = None;
        Ok(kicks.and(self.revise()))
    }

    /// Changes the share of a VM, from the next round on.
    ///
    /// # Errors
    /// `NoSuchVm`, or `Share` if it is out of its range. It has no effect on dedicated harts.
    pub fn set_share(&mut self, vm: VmId, share: u32) -> Result<(), ConfigError> {
        if !(1..=10_000).contains(&share) {
            return Err(ConfigError::Share);
        }
        self.vms[vm.index()]
            .as_mut()
            .ok_or(ConfigError::NoSuchVm)?
            .share = share;
        self.set_quantities();
        Ok(())
    }

    /// Changes the allocation of a VM while it runs (paper 000 §3.1). Its spin waits end, because the partners that they name may be dispatched by
    /// other rules now.
    ///
    /// # Errors
    /// An allocation that cannot be had; nothing has changed then.
    pub fn set_allocation(&mut self, vm: VmId, to: Allocation) -> Result<Kicks, ConfigError> {
        let old = self.vms[vm.index()].ok_or(ConfigError::NoSuchVm)?;
        let count = u16::try_from(old.vcpus.count()).unwrap_or(u16::MAX);
        self.check_allocation(vm, count, to)?;
        let dedicated = matches!(to, Allocation::Dedicated { .. });
        for vcpu in old.vcpus.iter() {
            if let Some(entry) = self.vcpu_mut(vcpu) {
                entry.dedicated = dedicated;
            }
        }
        if let Some(changed) = self.vms[vm.index()].as_mut() {
            changed.dedicated = dedicated;
            if let Allocation::Shared { share } = to {
                changed.share = share;
            }
        }
        self.spin_waits.release_all(old.vcpus);
        self.allocate(vm, to);
        let running = old
            .vcpus
            .iter()
            .filter_map(|vcpu| self.running_on(vcpu))
            .collect();
        Ok(Kicks(running).and(self.revise()))
    }

    /// Changes the spin policy while vCPUs run. All spin waits end.
    pub fn set_spin(&mut self, policy: SpinPolicy, now: Ticks) -> Kicks {
        let had_matrix = self.co_schedules();
        self.config.spin = policy;
        self.note_spin_policy();
        self.spin_waits.release_all(VcpuSet::from_bits(u64::MAX));
        for hart in self.online.iter() {
            self.harts[hart.index()].skip = None;
            self.harts[hart.index()].next = None;
        }
        // Only this policy's polls would find the waiters at words.
        for vcpu in self.queues.members(Queue::SelfWait).iter() {
            if self.waits_for_word(vcpu) {
                self.make_ready(vcpu, now);
            }
        }
        // The matrix says where a vCPU may run.
        let revised = match had_matrix != self.co_schedules() {
            true => self.revise(),
            false => self.assign_harts(),
        };
        revised.and(self.kick_all())
    }

    /// Changes the wait policy while vCPUs run. Every hart is kicked, because idle harts sleep under one policy and test under the other.
    pub fn set_wait(&mut self, policy: WaitPolicy) -> Kicks {
        self.config.wait = policy;
        self.rules = policy.rules();
        self.assign_harts().and(self.kick_all())
    }

    /// Changes the time slice, from the next dispatch on.
    ///
    /// # Errors
    /// `Slice` if it is not between 1 ms and 10 ms, `ReservationLimit` if it exceeds that limit.
    pub fn set_slice(&mut self, slice: Ticks) -> Result<(), ConfigError> {
        let changed = Config {
            slice,
            ..self.config
        };
        changed.check()?;
        self.config = changed;
        self.set_quantities();
        Ok(())
    }

    /// Kicks every hart, also those that search: they take note of the change.
    fn kick_all(&mut self) -> Kicks {
        for hart in self.idle.iter() {
            self.set_doing(hart, Doing::Searching);
        }
        Kicks(self.online)
    }
}
