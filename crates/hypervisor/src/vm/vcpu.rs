//! A virtual CPU: its state, its interrupts, and requests of others to it.
//!
//! `state` is locked by the hart that runs the vCPU, for as long as the vCPU runs. Others never wait for that lock on
//! a vCPU that may be running: they leave a request and, where it is in the guest, interrupt its hart.

use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering, fence};

use crate::lock::{Mutex, place};
use scheduler::{HartId, VcpuNumber, VmId};
use spinwait::{Conditions, KnownLoop, LastPosition, PauseWindow, PollHistory, SpinHistory};

use crate::hart::common;
use crate::hart::context::GuestContext;
use crate::hart::counters::{Counters, EventList};
use crate::hart::csr::{self, number, status};
use crate::interrupts::{Interrupts, StaleFiles};
use crate::memory::address::HostPhysical;
use crate::memory::shadow::ShadowTables;
use crate::memory::translations::Cached;
use crate::memory::translations::backoff::Backoff;
use crate::memory::translations::remote::Fenced;
use crate::vm::counter_snapshot::SnapshotArea;
use crate::vm::debug_triggers::{DebugTriggers, Place, TriggerArea};
use crate::vm::fault_streak::FaultStreak;
use crate::vm::firmware_features::FirmwareFeatures;
use crate::vm::lazy_registers::{Float, Vector};
use crate::vm::shadow::OwnShadow;
use crate::vm::steal_time::StealTime;
use crate::vm::word::{GuestWord, WaitConditions, Word};

/// Requests to a vCPU, carried out by the hart that runs it before it next enters the guest.
pub mod request {
    /// Carry out the fences that siblings have asked for ([`super::Vcpu::fences`]).
    pub const FENCE_VIRTUAL: u32 = 1 << 0;
    /// Make stored instructions visible to its fetches.
    pub const FENCE_INSTRUCTIONS: u32 = 1 << 1;
    /// Its interrupt file in memory, or its software interrupt, has changed.
    pub const INTERRUPT: u32 = 1 << 2;
    /// The form of its VM's allocation has changed.
    pub const NOTIFICATION: u32 = 1 << 3;
    /// Devices of its VM have work that is done in its time.
    pub const DEVICES: u32 = 1 << 4;
    /// A supervisor software event may be due.
    pub const SOFTWARE_EVENT: u32 = 1 << 5;
}

/// scounteren as firmware leaves it for a kernel that does not set it: users read cycle, time and instret.
const COUNTERS_FOR_USERS: u64 = 0b111;

/// VS-level registers of a vCPU while it is on no hart.
#[derive(Clone, Copy, Debug, Default)]
pub struct SupervisorState {
    pub status: u64,
    pub enabled: u64,
    pub vector: u64,
    pub scratch: u64,
    pub program_counter: u64,
    pub cause: u64,
    pub vstval: u64,
    pub vsatp: u64,
    pub vsiselect: u64,
    /// stimecmp as the guest wrote it, or its SBI deadline on harts without Sstc, in its own time.
    pub deadline: u64,
    pub counters: u64,
    pub environment: u64,
    /// The injected pending bits (hvip).
    pub injected: u64,
    /// ssp, for a vCPU with shadow stacks.
    pub shadow_stack: u64,
}

impl SupervisorState {
    /// State of a hart out of reset: no translation, no interrupts, no deadline.
    #[must_use]
    pub fn at_reset() -> Self {
        Self {
            deadline: u64::MAX,
            status: status::FS_INITIAL,
            counters: COUNTERS_FOR_USERS,
            ..Self::default()
        }
    }

    /// Loads the state. hgatp must be this vCPU's already, with vsatp = 0 while it was changed.
    #[inline(always)]
    pub fn load(&self) {
        // SAFETY: VS-level registers have no effect on HS-mode; senvcfg and scounteren only on user modes.
        unsafe {
            csr::write::<{ number::VSSTATUS }>(self.status);
            csr::write::<{ number::VSIE }>(self.enabled);
            csr::write::<{ number::VSTVEC }>(self.vector);
            csr::write::<{ number::VSSCRATCH }>(self.scratch);
            csr::write::<{ number::VSEPC }>(self.program_counter);
            csr::write::<{ number::VSCAUSE }>(self.cause);
            csr::write::<{ number::VSTVAL }>(self.vstval);
            csr::write::<{ number::VSATP }>(self.vsatp);
            if common::has_interrupt_files() {
                csr::write::<{ number::VSISELECT }>(self.vsiselect);
            }
            if common::has_supervisor_timer() {
                csr::write::<{ number::VSTIMECMP }>(self.deadline);
            }
            csr::write::<{ number::SCOUNTEREN }>(self.counters);
            csr::write::<{ number::SENVCFG }>(self.environment);
            csr::write::<{ number::HVIP }>(self.injected);
        }
    }

    /// Loads ssp. The vCPU must have shadow stacks.
    pub fn load_shadow_stack(&self) {
        // SAFETY: the hypervisor has no shadow stack of its own.
        unsafe { csr::write::<{ number::SSP }>(self.shadow_stack) };
    }

    /// Saves ssp. The vCPU must have shadow stacks.
    pub fn save_shadow_stack(&mut self) {
        self.shadow_stack = csr::read::<{ number::SSP }>();
    }

    /// Restores translation and timer of a vCPU whose other registers are still on the hart.
    pub fn arm(&self) {
        // SAFETY: as for `load`.
        unsafe {
            csr::write::<{ number::VSATP }>(self.vsatp);
            if common::has_supervisor_timer() {
                csr::write::<{ number::VSTIMECMP }>(self.deadline);
            }
        }
    }

    /// Saves the state and leaves vsatp = 0, so that the hart translates for no vCPU.
    #[inline(always)]
    pub fn save(&mut self) {
        self.status = csr::read::<{ number::VSSTATUS }>();
        self.enabled = csr::read::<{ number::VSIE }>();
        self.vector = csr::read::<{ number::VSTVEC }>();
        self.scratch = csr::read::<{ number::VSSCRATCH }>();
        self.program_counter = csr::read::<{ number::VSEPC }>();
        self.cause = csr::read::<{ number::VSCAUSE }>();
        self.vstval = csr::read::<{ number::VSTVAL }>();
        if common::has_interrupt_files() {
            self.vsiselect = csr::read::<{ number::VSISELECT }>();
        }
        if common::has_supervisor_timer() {
            self.deadline = csr::read::<{ number::VSTIMECMP }>();
        }
        self.counters = csr::read::<{ number::SCOUNTEREN }>();
        self.environment = csr::read::<{ number::SENVCFG }>();
        self.injected = csr::read::<{ number::HVIP }>();
        // SAFETY: as for `load`.
        unsafe {
            self.vsatp = csr::swap::<{ number::VSATP }>(0);
            if common::has_supervisor_timer() {
                csr::write::<{ number::VSTIMECMP }>(u64::MAX);
            }
        }
    }
}

/// State of a vCPU that only the hart running it accesses.
#[derive(Debug)]
// In this order, so that the fields of every dispatch are near the beginning, within an instruction's offset.
#[repr(C)]
pub struct VcpuState {
    pub context: GuestContext,
    pub supervisor: SupervisorState,
    /// Hart on which it waits for an interrupt: `Hart::begin_wait`.
    pub waits_on: Option<HartId>,
    /// Set if it has left its hart to wait for the word in [`Vcpu::word`].
    pub waits_for_word: bool,
    /// Features that its guest has switched.
    pub features: FirmwareFeatures,
    /// Set if [`VcpuState::steal_time`] is on: a copy, for each dispatch.
    pub reports_steal_time: bool,
    /// Place of its debug triggers.
    pub trigger_place: Place,
    /// Set if the last poll of the running vCPU found it spinning without a trap.
    pub spins_undetected: bool,
    /// Sibling that held the lock at the last spin exit, if known.
    pub holder: Option<VcpuNumber>,
    /// Its shadow tables, if its VM is translated by them.
    pub shadow: Option<OwnShadow>,
    /// Gap and window of its pause-loop exits since its dispatch.
    pub pauses: PauseWindow,
    /// Wait that its last spin exits belong to.
    pub spinning: SpinHistory,
    /// Success of its short polls.
    pub poll_history: PollHistory,
    /// Loop of its last spin.
    pub known_loop: KnownLoop,
    /// Its guest page faults in a row.
    pub faults: FaultStreak,
    pub float: Float,
    /// Its vector registers, if its VM has vectors.
    pub vector: Option<Vector>,
    pub counters: Counters,
    /// Backoff of watching its fences: beside the beginning of `cached`, since each change of hart needs both, and another
    /// hart's cache has them.
    pub backoff: Backoff,
    /// Harts that may cache its translations.
    pub cached: Cached,
    /// Steal time that its guest reads.
    pub steal_time: StealTime,
    /// Area for the values of its counters.
    pub counter_snapshot: SnapshotArea,
    /// List of events that a call has not gone through yet.
    pub events: EventList,
    /// Its debug triggers.
    pub triggers: DebugTriggers,
    /// Area for the configurations of its debug triggers.
    pub trigger_area: TriggerArea,
}

impl VcpuState {
    /// State of a hart out of reset, at `entry` with `a0` and `a1`.
    #[must_use]
    pub fn starting_at(entry: u64, a0: u64, a1: u64) -> Self {
        Self {
            context: GuestContext::starting_at(entry, a0, a1),
            float: Float::default(),
            vector: None,
            supervisor: SupervisorState::at_reset(),
            counters: Counters::default(),
            cached: Cached::default(),
            backoff: Backoff::default(),
            known_loop: KnownLoop::default(),
            pauses: PauseWindow::default(),
            spinning: SpinHistory::default(),
            poll_history: PollHistory::default(),
            waits_on: None,
            waits_for_word: false,
            reports_steal_time: false,
            steal_time: StealTime::default(),
            counter_snapshot: SnapshotArea::default(),
            events: EventList::default(),
            triggers: DebugTriggers::default(),
            trigger_place: Place::default(),
            trigger_area: TriggerArea::default(),
            features: FirmwareFeatures::default(),
            spins_undetected: false,
            holder: None,
            faults: FaultStreak::default(),
            shadow: None,
        }
    }

    /// satp as the guest has set it; without shadow tables `read` gives vsatp.
    #[must_use]
    pub fn address_space(&self, read: impl FnOnce() -> u64) -> u64 {
        match &self.shadow {
            Some(shadow) => shadow.satp,
            None => read(),
        }
    }
}

/// A virtual CPU.
#[derive(Debug)]
// In this order, so that the fields of every dispatch are near the beginning, within an instruction's offset.
#[repr(C)]
pub struct Vcpu {
    pub id: VcpuNumber,
    pub vm: VmId,
    /// Its number in its VM, which is the hart id that the guest sees.
    pub index: u16,
    /// 1 + the hart that runs its guest, or 0.
    in_guest: AtomicU16,
    requests: AtomicU32,
    /// Set if the VM's life cycle is to be asked before the vCPU next enters its guest: `system::lifecycle::dispatched`.
    pub has_dispatch_check: AtomicBool,
    /// Set while a software interrupt (SBI IPI) is not yet in hvip.
    software_interrupt: AtomicBool,
    /// Deadline of its wait, in the board's time.
    pub deadline: AtomicU64,
    pub interrupts: Mutex<Interrupts, { place::INTERRUPTS }>,
    /// Harts on which it has left files that may hold messages to it.
    pub stale_files: StaleFiles,
    /// The word whose change it waits for, after a spin.
    pub word: Mutex<Option<Word>, { place::WORD }>,
    /// Ticket of its last wait: while the lock serves this ticket, this vCPU holds the lock.
    pub position: LastPosition,
    pub state: Mutex<VcpuState, { place::VCPU_STATE }>,
    /// The fences that siblings have asked for.
    pub fences: Fenced,
    /// Conditions of a wait for several words: the wait goes on while they hold.
    pub conditions: WaitConditions,
}

impl Vcpu {
    #[must_use]
    pub fn new(
        (id, vm, index): (VcpuNumber, VmId, u16),
        (shadow, vector): (Option<ShadowTables>, Option<Vector>),
        sources: usize,
    ) -> Self {
        let state = VcpuState {
            shadow: shadow.and_then(OwnShadow::new),
            vector,
            ..VcpuState::starting_at(0, 0, 0)
        };
        Self {
            id,
            vm,
            index,
            state: Mutex::new(state),
            has_dispatch_check: AtomicBool::new(true),
            interrupts: Mutex::new(Interrupts::with_room(sources)),
            stale_files: StaleFiles::default(),
            word: Mutex::new(None),
            position: LastPosition::default(),
            conditions: Mutex::new(Conditions::default()),
            requests: AtomicU32::new(0),
            software_interrupt: AtomicBool::new(false),
            fences: Fenced::default(),
            in_guest: AtomicU16::new(0),
            deadline: AtomicU64::new(u64::MAX),
        }
    }

    /// Addresses of the words that it waits for, the first of which is `word`.
    #[inline]
    pub fn words(&self, word: Word) -> impl Iterator<Item = HostPhysical> {
        let others = word
            .is_one_of_several()
            .then(|| self.conditions.lock().clone());
        let several = others.into_iter().flat_map(Conditions::into_addresses);
        core::iter::once(word.address())
            .chain(several)
            .map(GuestWord::host)
    }

    /// Leaves a request. Returns the hart to interrupt so that the request is carried out now.
    ///
    /// The store and the load are sequentially consistent, and there is a fence between those of [`Vcpu::enter_guest`]: either
    /// the hart sees the request before it enters, or the requester sees it in the guest.
    pub fn post_request(&self, what: u32) -> Option<HartId> {
        self.requests.fetch_or(what, Ordering::SeqCst);
        self.guest_hart()
    }

    /// Hart that runs the vCPU's guest now, if there is one.
    #[must_use]
    pub fn guest_hart(&self) -> Option<HartId> {
        let value = self.in_guest.load(Ordering::SeqCst);
        value.checked_sub(1).and_then(HartId::new)
    }

    /// Tests for work of its VM's devices that waits for this vCPU, in one load. The scheduler's lock orders this after the request.
    #[inline]
    #[must_use]
    pub fn has_device_work(&self) -> bool {
        self.requests.load(Ordering::Relaxed) & request::DEVICES != 0
    }

    /// Takes the request for work of devices alone. Returns true if there was one.
    #[must_use]
    pub fn take_device_work(&self) -> bool {
        self.has_device_work()
            && self.requests.fetch_and(!request::DEVICES, Ordering::SeqCst) & request::DEVICES != 0
    }

    /// Returns true while the guest runs and one of the requests `what` has not been taken. A vCPU outside its guest is not awaited, whatever its
    /// hart does: it takes all requests before it enters.
    #[must_use]
    pub fn is_awaited(&self, what: u32) -> bool {
        self.guest_hart().is_some() && self.requests.load(Ordering::SeqCst) & what != 0
    }

    /// Makes a software interrupt pending; [`request::INTERRUPT`] makes the vCPU see it.
    pub fn raise_software_interrupt(&self) {
        self.software_interrupt.store(true, Ordering::SeqCst);
    }

    /// Takes the software interrupt that is not yet in hvip, if there is one.
    #[must_use]
    pub fn take_software_interrupt(&self) -> bool {
        // A load first: an exchange costs more, and there hardly ever is one.
        self.software_interrupt.load(Ordering::SeqCst)
            && self.software_interrupt.swap(false, Ordering::SeqCst)
    }

    /// Takes all requests.
    pub fn take_requests(&self) -> u32 {
        if self.requests.load(Ordering::Relaxed) == 0 {
            0
        } else {
            self.requests.swap(0, Ordering::SeqCst)
        }
    }

    /// Declares that `hart` is about to enter the guest. Returns false if a request came first.
    #[must_use]
    pub fn enter_guest(&self, hart: HartId) -> bool {
        self.in_guest.store(hart.get() + 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.requests.load(Ordering::Relaxed) == 0 {
            return true;
        }
        self.in_guest.store(0, Ordering::Release);
        false
    }

    /// Declares that the guest has been left. A requester that does not see this yet interrupts the hart needlessly.
    pub fn leave_guest(&self) {
        self.in_guest.store(0, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn device_work_is_taken_alone() {
        let ids = (VcpuNumber::new(0).unwrap(), VmId::new(0).unwrap(), 0);
        let vcpu = Vcpu::new(ids, (None, None), 0);
        assert!(!vcpu.has_device_work() && !vcpu.take_device_work());
        let _ = vcpu.post_request(request::DEVICES | request::FENCE_INSTRUCTIONS);
        assert!(vcpu.has_device_work());
        assert!(vcpu.take_device_work());
        assert!(!vcpu.has_device_work() && !vcpu.take_device_work());
        assert_eq!(vcpu.take_requests(), request::FENCE_INSTRUCTIONS);
    }

    #[test]
    fn exit_of_sibling_is_not_awaited() {
        let ids = (VcpuNumber::new(0).unwrap(), VmId::new(0).unwrap(), 0);
        let vcpu = Vcpu::new(ids, (None, None), 0);
        let hart = HartId::new(3).unwrap();
        assert!(vcpu.enter_guest(hart));
        assert_eq!(vcpu.post_request(request::FENCE_VIRTUAL), Some(hart));
        assert!(vcpu.is_awaited(request::FENCE_VIRTUAL));
        assert!(!vcpu.is_awaited(request::FENCE_INSTRUCTIONS));
        // The request is taken when the exit has been handled, which may take long.
        vcpu.leave_guest();
        assert!(!vcpu.is_awaited(request::FENCE_VIRTUAL));
        assert!(!vcpu.enter_guest(hart), "the request comes first");
        assert!(!vcpu.is_awaited(request::FENCE_VIRTUAL));
    }
}
