//! The scheduler's tables.

use crate::base::id::{
    HartId, HartSet, MAX_HARTS, MAX_VCPUS, MAX_VMS, VcpuId, VcpuSet, VmId, VmSet,
};
use crate::base::ticks::Ticks;
use crate::config::{Config, ConfigError, Migration, Placement};
use crate::decision::VcpuState;
use crate::dispatch::hart::{Doing, Hart, Run};
use crate::dispatch::vcpu::{Phase, Vcpu, Vm};
use crate::policies::queues::{Queue, Queues};
use crate::policies::spin_waits::SpinWaits;
use crate::policies::vm_boost::VmBoost;
use crate::policies::wait::rules::Rules;

/// All harts, virtual machines and vCPUs, and who runs where.
///
/// One value serves one computer. Its methods are not to be called at once by two harts: the caller
/// holds a lock and keeps interrupts closed.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
// In this order, so that what every decision needs is near the beginning, where an instruction reaches it.
#[repr(C)]
pub struct Scheduler {
    /// Those of the wait policy.
    pub(crate) rules: Rules,
    pub(crate) config: Config,
    /// Each vCPU that shares harts has an account of service of its own.
    pub(crate) per_vcpu_accounts: bool,
    pub(crate) online: HartSet,
    /// Online and not dedicated.
    pub(crate) shared: HartSet,
    pub(crate) searching: HartSet,
    pub(crate) idle: HartSet,
    /// Their vCPUs wait in place, and they were not told of other work.
    pub(crate) in_place: HartSet,
    /// Running without a slice or without trapping waits: to be told when there is other work.
    pub(crate) relaxed: HartSet,
    /// Another group has work for a hart whose vCPU only waits.
    pub(crate) others_have_surplus: bool,
    /// The machine that comes first on every hart.
    pub(crate) vm_boost: VmBoost,
    /// Harts on which a vCPU does not wait for the end of the slice.
    pub(crate) preempted_harts: HartSet,
    /// Self-waiting, and known to have a reason to run ("self-wait ready", paper 002 §3.3).
    pub(crate) self_wait_ready: VcpuSet,
    /// Self-waiting for a word.
    pub(crate) word_waiters: VcpuSet,
    /// Those of them for which no interrupt is a reason to run.
    pub(crate) uninterruptible: VcpuSet,
    /// On a hart, and not waiting there.
    pub(crate) executing: VcpuSet,
    /// In their supervisors when they were preempted, and not dispatched since.
    pub(crate) preempted_in_supervisor: VcpuSet,
    /// Those of them that had their interrupts closed.
    pub(crate) preempted_interrupts_off: VcpuSet,
    /// In their supervisors when they gave their harts to a partner at a spin, and not dispatched since.
    pub(crate) yielded_in_supervisor: VcpuSet,
    /// Those that may not run in this round any more: their account is overdrawn.
    pub(crate) out_of_service: VcpuSet,
    pub(crate) spin_waits: SpinWaits,
    pub(crate) queues: Queues,
    /// For each hart, the vCPUs that may run there.
    pub(crate) may_run: [VcpuSet; MAX_HARTS],
    /// For each hart, the vCPUs that ran there last, or run there now.
    pub(crate) last_on: [VcpuSet; MAX_HARTS],
    /// The places of vCPUs that are taken.
    pub(crate) occupied: VcpuSet,
    /// The virtual machines that have vCPUs here: one of several schedulers knows all machines, and has vCPUs of a few.
    pub(crate) present: VmSet,
    /// All virtual machines have places below this one.
    pub(crate) vms_end: usize,
    pub(crate) harts: [Hart; MAX_HARTS],
    /// For each of those that are `preempted_harts`, the vCPU.
    pub(crate) preempting: [Option<VcpuId>; MAX_HARTS],
    pub(crate) vcpus: [Option<Vcpu>; MAX_VCPUS],
    pub(crate) vms: [Option<Vm>; MAX_VMS],
}

impl Scheduler {
    /// A scheduler for these harts, with no virtual machine yet. Each hart is expected to call
    /// [`Scheduler::dispatch`] when it is ready to work.
    ///
    /// # Errors
    /// A parameter out of its range, or no hart.
    pub fn new(config: Config, harts: HartSet) -> Result<Self, ConfigError> {
        config.check()?;
        if harts.is_empty() {
            return Err(ConfigError::NoHarts);
        }
        if config.migration == Migration::Always && harts.count() < 2 {
            return Err(ConfigError::Migration);
        }
        let mut table = [Hart::new(false); MAX_HARTS];
        for hart in harts.iter() {
            table[hart.index()] = Hart::new(true);
        }
        Ok(Self {
            config,
            rules: config.wait.rules(),
            vm_boost: VmBoost::default(),
            preempted_harts: HartSet::EMPTY,
            preempting: [None; MAX_HARTS],
            per_vcpu_accounts: config.placement == Placement::Fixed,
            occupied: VcpuSet::EMPTY,
            present: VmSet::EMPTY,
            vms_end: 0,
            vms: [None; MAX_VMS],
            vcpus: [None; MAX_VCPUS],
            harts: table,
            queues: Queues::new(),
            spin_waits: SpinWaits::new(),
            self_wait_ready: VcpuSet::EMPTY,
            online: harts,
            shared: harts,
            may_run: [VcpuSet::EMPTY; MAX_HARTS],
            last_on: [VcpuSet::EMPTY; MAX_HARTS],
            word_waiters: VcpuSet::EMPTY,
            uninterruptible: VcpuSet::EMPTY,
            executing: VcpuSet::EMPTY,
            preempted_in_supervisor: VcpuSet::EMPTY,
            preempted_interrupts_off: VcpuSet::EMPTY,
            yielded_in_supervisor: VcpuSet::EMPTY,
            out_of_service: VcpuSet::EMPTY,
            searching: harts,
            idle: HartSet::EMPTY,
            in_place: HartSet::EMPTY,
            relaxed: HartSet::EMPTY,
            others_have_surplus: false,
        })
    }

    /// The configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The share of a virtual machine, also of one that does not share now; 1 if there is no such machine.
    #[must_use]
    pub fn share(&self, vm: VmId) -> u32 {
        self.vms[vm.index()].map_or(1, |vm| vm.share)
    }

    /// True if the spin policy uses what a spinning vCPU waits for.
    #[must_use]
    pub fn waits_for_words(&self) -> bool {
        self.config.spin.rule().waits_for_words()
    }

    /// The `number`th vCPU of a virtual machine.
    #[must_use]
    pub fn vcpu(&self, vm: VmId, number: u16) -> Option<VcpuId> {
        let vm = self.vms[vm.index()]?;
        let vcpu = VcpuId::new(vm.first.get().checked_add(number)?)?;
        vm.vcpus.contains(vcpu).then_some(vcpu)
    }

    /// The vCPUs of a virtual machine; none if there is no such machine.
    #[must_use]
    pub fn vcpus(&self, vm: VmId) -> VcpuSet {
        self.vms[vm.index()].map_or(VcpuSet::EMPTY, |vm| vm.vcpus)
    }

    /// The virtual machine of a vCPU.
    #[must_use]
    pub fn vm_of(&self, vcpu: VcpuId) -> Option<VmId> {
        self.vcpus[vcpu.index()].map(|vcpu| vcpu.vm)
    }

    /// The state of a vCPU.
    #[must_use]
    pub fn state(&self, vcpu: VcpuId) -> VcpuState {
        let Some(entry) = self.vcpus[vcpu.index()] else {
            return VcpuState::Absent;
        };
        match entry.phase {
            Phase::Running(hart) if entry.stopping => VcpuState::Stopping(hart),
            Phase::Running(hart) if entry.paused => VcpuState::Pausing(hart),
            Phase::Running(hart) => VcpuState::Running(hart),
            Phase::Stopped => VcpuState::Stopped,
            _ if entry.paused => VcpuState::Paused,
            Phase::Ready if self.spin_waits.waits(vcpu) => VcpuState::SpinWait,
            Phase::Ready => VcpuState::Ready,
            Phase::SelfWait => VcpuState::SelfWait,
        }
    }

    /// The queue that holds a vCPU.
    #[must_use]
    pub fn queue_of(&self, vcpu: VcpuId) -> Option<Queue> {
        self.queues.queue_of(vcpu)
    }

    /// The hart that a vCPU is on.
    #[must_use]
    pub fn running_on(&self, vcpu: VcpuId) -> Option<HartId> {
        match self.vcpus[vcpu.index()]?.phase {
            Phase::Running(hart) => Some(hart),
            _ => None,
        }
    }

    /// The hart that a vCPU is on, or ran on last: its interrupt file is there.
    #[must_use]
    pub fn last_hart(&self, vcpu: VcpuId) -> Option<HartId> {
        self.vcpus[vcpu.index()]?.last
    }

    /// The vCPU on a hart.
    #[must_use]
    pub fn running(&self, hart: HartId) -> Option<VcpuId> {
        self.harts[hart.index()].run().map(|run| run.vcpu)
    }

    /// All time that the vCPUs of a virtual machine have run.
    #[must_use]
    pub fn used(&self, vm: VmId) -> Ticks {
        let used = |vcpu: VcpuId| self.vcpus[vcpu.index()].map_or(Ticks::ZERO, |vcpu| vcpu.used);
        self.vcpus(vm)
            .iter()
            .map(used)
            .fold(Ticks::ZERO, |sum, used| sum + used)
    }

    /// All time that a vCPU has run, with its stay on a hart that has not ended yet.
    pub(crate) fn used_by(&self, vcpu: VcpuId, now: Ticks) -> Ticks {
        let used = self.vcpus[vcpu.index()].map_or(Ticks::ZERO, |vcpu| vcpu.used);
        let hart = self.running_on(vcpu);
        let run = hart.and_then(|hart| self.harts[hart.index()].run());
        used + run.map_or(Ticks::ZERO, |run| now - run.since)
    }

    /// Whether each vCPU of the virtual machine has a hart of its own: the flag *f* of paper 000
    /// §3.1, with which a guest may spin as on a real computer.
    #[must_use]
    pub fn is_dedicated(&self, vm: VmId) -> bool {
        self.vms[vm.index()].is_some_and(|vm| vm.dedicated)
    }

    /// The harts that virtual machines share.
    #[must_use]
    pub const fn shared_harts(&self) -> HartSet {
        self.shared
    }

    /// The harts on which a vCPU may run.
    #[must_use]
    pub fn allowed(&self, vcpu: VcpuId) -> HartSet {
        match self.vcpus[vcpu.index()] {
            Some(Vcpu {
                home: Some(home), ..
            }) => HartSet::only(home),
            Some(_) => self.shared,
            None => HartSet::EMPTY,
        }
    }

    /// Whether vCPUs that share harts move at every dispatch.
    pub(crate) fn always_moves(&self) -> bool {
        self.config.migration == Migration::Always && self.shared.count() > 1
    }

    /// The harts that may dispatch a vCPU next.
    #[must_use]
    pub fn may_dispatch(&self, vcpu: VcpuId) -> HartSet {
        let allowed = self.allowed(vcpu);
        match self.last_hart(vcpu) {
            Some(last) if self.always_moves() && allowed.count() > 1 => {
                allowed.without(HartSet::only(last))
            }
            _ => allowed,
        }
    }

    /// The vCPUs that a hart may dispatch next, once they are ready: those for which [`Scheduler::may_dispatch`] names it.
    pub(crate) fn candidates(&self, hart: HartId) -> VcpuSet {
        let here = self.may_run[hart.index()];
        if self.always_moves() && self.shared.contains(hart) {
            self.candidates_moving(hart)
        } else {
            here
        }
    }

    /// The same where vCPUs move at each dispatch: none that ran here last, but those that have this hart alone.
    #[cold]
    #[inline(never)]
    fn candidates_moving(&self, hart: HartId) -> VcpuSet {
        let at_home =
            |vcpu: &VcpuId| self.vcpus[vcpu.index()].is_some_and(|vcpu| vcpu.home.is_some());
        let moved = self.last_on[hart.index()].iter();
        let moved = moved.filter(|vcpu| !at_home(vcpu)).collect();
        self.may_run[hart.index()].without(moved)
    }

    /// The virtual machines that have vCPUs here, and share harts.
    pub(crate) fn sharing(&self) -> impl Iterator<Item = &Vm> {
        let machines = self.present.iter();
        let machines = machines.filter_map(|vm| self.vms[vm.index()].as_ref());
        machines.filter(|vm| !vm.dedicated)
    }

    /// Does something with the account of each of them.
    pub(crate) fn for_each_sharing(&mut self, mut what: impl FnMut(&mut Vm)) {
        for vm in self.present.iter() {
            if let Some(vm) = self.vms[vm.index()].as_mut().filter(|vm| !vm.dedicated) {
                what(vm);
            }
        }
    }

    pub(crate) fn vm(&self, vcpu: VcpuId) -> Option<&Vm> {
        self.vms[self.vcpus[vcpu.index()]?.vm.index()].as_ref()
    }

    pub(crate) fn vm_mut(&mut self, vcpu: VcpuId) -> Option<&mut Vm> {
        self.vms[self.vcpus[vcpu.index()]?.vm.index()].as_mut()
    }

    pub(crate) fn vcpu_mut(&mut self, vcpu: VcpuId) -> Option<&mut Vcpu> {
        self.vcpus[vcpu.index()].as_mut()
    }

    /// The vCPUs of the virtual machine of `vcpu`.
    #[inline]
    pub(crate) fn partners(&self, vcpu: VcpuId) -> VcpuSet {
        let entry = self.vcpus[vcpu.index()].as_ref();
        entry.map_or(VcpuSet::EMPTY, |entry| entry.partners)
    }

    /// Whether `vcpu` has a hart of its own.
    #[inline]
    pub(crate) fn has_own_hart(&self, vcpu: VcpuId) -> bool {
        let entry = self.vcpus[vcpu.index()].as_ref();
        entry.is_some_and(|entry| entry.dedicated)
    }

    /// Notes what a hart does, and keeps the sets of harts in step with it.
    #[inline]
    pub(crate) fn set_doing(&mut self, hart: HartId, doing: Doing) {
        let only = HartSet::only(hart);
        let none = HartSet::EMPTY;
        let [searching, idle, in_place, relaxed] = match doing {
            Doing::Searching => [only, none, none, none],
            Doing::Idle => [none, only, none, none],
            Doing::Running(Run { in_place: true, .. }) => [none, none, only, none],
            Doing::Running(Run {
                end, trap_waits, ..
            }) if end.is_none() || !trap_waits => [none, none, none, only],
            Doing::Running(_) | Doing::Offline => [none; 4],
        };
        self.searching = self.searching.without(only).union(searching);
        self.idle = self.idle.without(only).union(idle);
        self.in_place = self.in_place.without(only).union(in_place);
        self.relaxed = self.relaxed.without(only).union(relaxed);
        self.harts[hart.index()].doing = doing;
    }
}
