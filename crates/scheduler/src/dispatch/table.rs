//! Tables of the scheduler.

use crate::base::id::{
    HartId, HartSet, MAX_HARTS, MAX_VCPUS, MAX_VMS, VcpuId, VcpuSet, VmId, VmSet,
};
use crate::base::ticks::Ticks;
use crate::config::{Config, ConfigError, Migration, Placement};
use crate::decision::VcpuState;
use crate::dispatch::hart::{Doing, Hart, Run};
use crate::dispatch::vcpu::{Phase, Vcpu, Vm};
use crate::policies::gang::Slots;
use crate::policies::queues::{Queue, Queues};
use crate::policies::spin::SpinPolicy;
use crate::policies::spin_waits::SpinWaits;
use crate::policies::vm_boost::VmBoost;
use crate::policies::wait::rules::Rules;

/// Harts, VMs and vCPUs of one scheduler.
///
/// One value serves one computer. The caller holds a lock and keeps interrupts disabled: two harts must not call its methods at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
// In this order, so that the fields of every decision are near the beginning, where an instruction reaches them.
#[repr(C)]
pub struct Scheduler {
    /// Rules of the wait policy.
    pub(crate) rules: Rules,
    pub(crate) config: Config,
    /// A millisecond, rounded up: for each dispatch.
    pub(crate) millisecond: Ticks,
    /// Each vCPU that shares harts has a service account of its own.
    pub(crate) per_vcpu_accounts: bool,
    /// Other schedulers serve other vCPUs of the same VMs.
    pub(crate) is_one_of_several: bool,
    /// The slots of a matrix say which vCPU runs: a copy, for each dispatch ([`Scheduler::note_spin_policy`]).
    pub(crate) has_matrix: bool,
    /// The spin policy uses what a spinning vCPU waits for: a copy too.
    pub(crate) watches_words: bool,
    pub(crate) online: HartSet,
    /// Online and not dedicated.
    pub(crate) shared: HartSet,
    pub(crate) searching: HartSet,
    pub(crate) idle: HartSet,
    /// Harts whose vCPUs wait in place, and that were not kicked for other work.
    pub(crate) in_place: HartSet,
    /// Harts that run without a slice or with untrapped waits: to be kicked for other work.
    pub(crate) relaxed: HartSet,
    /// Another group has a surplus for a hart whose vCPU only waits.
    pub(crate) others_have_surplus: bool,
    /// VM that comes first on every hart.
    pub(crate) vm_boost: VmBoost,
    /// Harts whose vCPU is to be preempted on a wake-up.
    pub(crate) preempted_harts: HartSet,
    /// Self-waiting vCPUs with a known interrupt ("self-wait ready", paper 002 §3.3).
    pub(crate) self_wait_ready: VcpuSet,
    /// Self-waiting for a word.
    pub(crate) word_waiters: VcpuSet,
    /// Word waiters whose wait no interrupt ends.
    pub(crate) uninterruptible: VcpuSet,
    /// On a hart, and not waiting there.
    pub(crate) executing: VcpuSet,
    /// Preempted in VS-mode, and not dispatched since.
    pub(crate) preempted_in_supervisor: VcpuSet,
    /// Preempted in VS-mode with interrupts disabled.
    pub(crate) preempted_interrupts_off: VcpuSet,
    /// Yielded to a partner at a spin in VS-mode, and not dispatched since.
    pub(crate) yielded_in_supervisor: VcpuSet,
    /// Out of service in this round: their account is overdrawn.
    pub(crate) out_of_service: VcpuSet,
    pub(crate) spin_waits: SpinWaits,
    pub(crate) queues: Queues,
    /// vCPUs that may run on each hart.
    pub(crate) may_run: [VcpuSet; MAX_HARTS],
    /// vCPUs that ran on each hart last, or run there now.
    pub(crate) last_on: [VcpuSet; MAX_HARTS],
    /// Places of vCPUs in use.
    pub(crate) occupied: VcpuSet,
    /// VMs with vCPUs here: one of several schedulers knows all VMs and has vCPUs of a few.
    pub(crate) present: VmSet,
    /// Bound on the places of VMs.
    pub(crate) vms_end: usize,
    pub(crate) harts: [Hart; MAX_HARTS],
    /// Preempting vCPU of each of `preempted_harts`.
    pub(crate) preempting: [Option<VcpuId>; MAX_HARTS],
    pub(crate) vcpus: [Option<Vcpu>; MAX_VCPUS],
    pub(crate) vms: [Option<Vm>; MAX_VMS],
    /// Slots of the policy `gang`.
    pub(crate) slots: Slots,
}

impl Scheduler {
    /// Scheduler for these harts, without VMs. Each hart calls [`Scheduler::dispatch`] when it is ready to work.
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
        let mut scheduler = Self {
            config,
            millisecond: Ticks::new(config.frequency.div_ceil(1000)),
            rules: config.wait.rules(),
            vm_boost: VmBoost::default(),
            preempted_harts: HartSet::EMPTY,
            preempting: [None; MAX_HARTS],
            per_vcpu_accounts: config.placement == Placement::Fixed,
            is_one_of_several: false,
            has_matrix: false,
            watches_words: false,
            slots: Slots::new(),
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
        };
        scheduler.note_spin_policy();
        Ok(scheduler)
    }

    /// Updates what follows from the spin policy.
    pub(crate) fn note_spin_policy(&mut self) {
        let spin = self.config.spin;
        self.has_matrix =
            cfg!(feature = "papers") && spin == SpinPolicy::Gang && !self.is_one_of_several;
        self.watches_words = spin.rule().waits_for_words();
    }

    /// Configuration in force.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// Share of a VM, also while it does not share; 1 if there is no such VM.
    #[must_use]
    pub fn share(&self, vm: VmId) -> u32 {
        self.vms[vm.index()].as_ref().map_or(1, |vm| vm.share)
    }

    /// Returns true if the spin policy uses what a spinning vCPU waits for.
    #[must_use]
    pub const fn waits_for_words(&self) -> bool {
        self.watches_words
    }

    /// vCPU `number` of a VM.
    #[must_use]
    pub fn vcpu(&self, vm: VmId, number: u16) -> Option<VcpuId> {
        let vm = self.vms[vm.index()]?;
        let vcpu = VcpuId::new(vm.first.get().checked_add(number)?)?;
        vm.vcpus.contains(vcpu).then_some(vcpu)
    }

    /// vCPUs of a VM; none if there is no such VM.
    #[must_use]
    pub fn vcpus(&self, vm: VmId) -> VcpuSet {
        self.vms[vm.index()].map_or(VcpuSet::EMPTY, |vm| vm.vcpus)
    }

    /// VM of a vCPU.
    #[must_use]
    pub fn vm_of(&self, vcpu: VcpuId) -> Option<VmId> {
        self.vcpus[vcpu.index()].map(|vcpu| vcpu.vm)
    }

    /// State of a vCPU.
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

    /// Queue that holds a vCPU.
    #[must_use]
    pub fn queue_of(&self, vcpu: VcpuId) -> Option<Queue> {
        self.queues.queue_of(vcpu)
    }

    /// Hart that a vCPU is on.
    #[must_use]
    pub fn running_on(&self, vcpu: VcpuId) -> Option<HartId> {
        match self.vcpus[vcpu.index()]?.phase {
            Phase::Running(hart) => Some(hart),
            _ => None,
        }
    }

    /// Hart that a vCPU is on, or ran on last: its interrupt file is there.
    #[must_use]
    pub fn last_hart(&self, vcpu: VcpuId) -> Option<HartId> {
        self.vcpus[vcpu.index()]?.last
    }

    /// vCPU on a hart.
    #[must_use]
    pub fn running(&self, hart: HartId) -> Option<VcpuId> {
        self.harts[hart.index()].run().map(|run| run.vcpu)
    }

    /// Time that the vCPUs of a VM have run.
    #[must_use]
    pub fn used(&self, vm: VmId) -> Ticks {
        let used = |vcpu: VcpuId| self.vcpus[vcpu.index()].map_or(Ticks::ZERO, |vcpu| vcpu.used);
        self.vcpus(vm)
            .iter()
            .map(used)
            .fold(Ticks::ZERO, |sum, used| sum + used)
    }

    /// Time that a vCPU has run, with its current run.
    pub(crate) fn used_by(&self, vcpu: VcpuId, now: Ticks) -> Ticks {
        let used = self.vcpus[vcpu.index()].map_or(Ticks::ZERO, |vcpu| vcpu.used);
        let hart = self.running_on(vcpu);
        let run = hart.and_then(|hart| self.harts[hart.index()].run());
        used + run.map_or(Ticks::ZERO, |run| now - run.since)
    }

    /// Returns true if each vCPU of the VM has a hart of its own: the flag *f* of paper 000 §3.1, with which a guest may spin as on a real computer.
    #[must_use]
    pub fn is_dedicated(&self, vm: VmId) -> bool {
        self.vms[vm.index()].is_some_and(|vm| vm.dedicated)
    }

    /// Harts that VMs share.
    #[must_use]
    pub const fn shared_harts(&self) -> HartSet {
        self.shared
    }

    /// Harts on which a vCPU may run.
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

    /// Returns true if vCPUs that share harts migrate at every dispatch.
    pub(crate) fn always_moves(&self) -> bool {
        self.config.migration == Migration::Always && self.shared.count() > 1
    }

    /// Harts that may dispatch a vCPU next.
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

    /// vCPUs that a hart may dispatch next, once they are ready: those for which [`Scheduler::may_dispatch`] names it.
    #[inline]
    pub(crate) fn candidates(&self, hart: HartId) -> VcpuSet {
        let here = self.may_run[hart.index()];
        if self.always_moves() && self.shared.contains(hart) {
            self.candidates_moving(hart)
        } else {
            here
        }
    }

    /// Candidates where vCPUs migrate at each dispatch: none that ran here last, except those that have only this hart.
    #[cold]
    #[inline(never)]
    fn candidates_moving(&self, hart: HartId) -> VcpuSet {
        let at_home =
            |vcpu: &VcpuId| self.vcpus[vcpu.index()].is_some_and(|vcpu| vcpu.home.is_some());
        let moved = self.last_on[hart.index()].iter();
        let moved = moved.filter(|vcpu| !at_home(vcpu)).collect();
        self.may_run[hart.index()].without(moved)
    }

    /// VMs with vCPUs here that share harts.
    pub(crate) fn sharing(&self) -> impl Iterator<Item = &Vm> {
        let vms = self.present.iter();
        let vms = vms.filter_map(|vm| self.vms[vm.index()].as_ref());
        vms.filter(|vm| !vm.dedicated)
    }

    /// Applies a function to each VM that shares harts.
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

    /// vCPUs of the VM of `vcpu`.
    #[inline]
    pub(crate) fn partners(&self, vcpu: VcpuId) -> VcpuSet {
        let entry = self.vcpus[vcpu.index()].as_ref();
        entry.map_or(VcpuSet::EMPTY, |entry| entry.partners)
    }

    /// Returns true if `vcpu` has a dedicated hart.
    #[inline]
    pub(crate) fn has_own_hart(&self, vcpu: VcpuId) -> bool {
        let entry = self.vcpus[vcpu.index()].as_ref();
        entry.is_some_and(|entry| entry.dedicated)
    }

    /// Sets the state of a hart, and updates the sets of harts.
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
