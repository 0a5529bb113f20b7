//! The whole system: board, harts, VMs and vCPUs, and operations on several of them.

pub mod allocation;
pub mod awaited_harts;
pub mod board_interrupts;
pub mod confinement;
pub mod costs;
pub mod devices;
pub mod features;
pub mod generations;
pub mod groups;
pub mod harts;
pub mod interrupt_port;
pub mod lifecycle;
pub mod loader;
pub mod monitor;
pub mod pages;
pub mod policy;
pub mod poll_schedule;
pub mod reclaim;
pub mod report_space;
pub mod running;
pub mod scheduling;
pub mod sharing;
pub mod slots;
pub mod sources;
pub mod turn;
pub mod waiting;
pub mod work_for_vm;

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use crate::lock::{Mutex, place};
use abi::system::{Purging, RemoteFences, SpinMethod, TlbPurge, WhenIdle};
use scheduler::groups::Access;
use scheduler::{HartId, HartSet, Kicks, Ticks, VcpuNumber, VmId};
use spin::Once;

use crate::devices::board_controller::BoardController;
use crate::devices::interrupt_affinity::InterruptAffinity;
use crate::devices::iommu::Iommu;
use crate::devices::iommu::board::BoardPort;
use crate::devices::trapped_devices::DeviceNumber;
use crate::devices::virtio::backend::disk::Disk;
use crate::devices::virtio::backend::switch::Switch;
use crate::hart;
use crate::hart::counters::hart_counters::{self, MODES_AND_OVERFLOW};
use crate::memory::frames::pool::PagePool;
use crate::memory::gstage::offer::{HartRegister, Offer};
use crate::memory::shadow::offer::{SpaceOffer, VirtualSpace};
use crate::system::awaited_harts::AwaitedHarts;
use crate::system::board_interrupts::{Receivers, ServedDevice, by_client, by_source};
use crate::system::costs::Costs;
use crate::system::groups::Groups;
use crate::system::harts::Hart;
use crate::system::report_space::ReportSpace;
use crate::vm::Vm;
use crate::vm::vcpu::{Vcpu, VcpuState};
use board::Board;

/// The system. Harts, VMs and vCPUs are numbered from 0 without gaps, as in the scheduler.
#[derive(Debug)]
// In this order, so that the fields that every exit needs are near the beginning, within an instruction's offset.
#[repr(C)]
pub struct Hypervisor {
    pub harts: Vec<Hart>,
    pub vms: Vec<Vm>,
    pub vcpus: Vec<Vcpu>,
    /// Costs of the hypervisor's work beside the guests.
    pub costs: Costs,
    /// Method of dropping cached translations: an index of [`TlbPurge::ALL`].
    translations: AtomicUsize,
    /// Method for spinning vCPUs: an index of [`SpinMethod::ALL`].
    spin: AtomicUsize,
    /// Set if interrupts of waiting vCPUs interrupt the hypervisor (hgeie); otherwise they are found by polling.
    host_interrupts: AtomicBool,
    /// Idle harts, a bit each.
    idle_harts: AtomicU64,
    /// Time of the next poll of the devices' interrupt lines.
    next_poll: AtomicU64,
    /// Harts that a requested report waits for.
    pub report: AwaitedHarts,
    /// Room for a report.
    pub report_space: Mutex<ReportSpace, { place::REPORT }>,
    pub scheduler: Groups,
    pub board: Board,
    /// Capabilities of the first hart's hgatp; the others' must not be less.
    pub guest_translation: Offer,
    /// Capabilities of the first hart's vsatp.
    pub spaces: SpaceOffer,
    /// Host's memory, by owner.
    pub pages: Mutex<PagePool, { place::FRAMES }>,
    /// The board's interrupt controller.
    pub controller: BoardController,
    /// Harts that take interrupts of the board.
    pub interrupt_affinity: InterruptAffinity,
    /// Devices that the hypervisor serves, by their sources at the board's APLIC.
    pub served: Vec<Option<ServedDevice>>,
    /// vCPU that receives a source's messages that the board sends to the hypervisor.
    pub receivers: Receivers,
    /// The disks that VMs share.
    pub disks: Vec<Mutex<Disk, { place::SHARED }>>,
    /// The switches between VMs.
    pub switches: Vec<Arc<Switch>>,
    /// The devices that share something with those of other VMs, by [`Client`](crate::devices::virtio::client::Client).
    pub shared: Vec<(VmId, DeviceNumber)>,
    /// The counters that guests are offered.
    pub counters: hart_counters::Offer,
    /// Action when the last running VM ends.
    pub when_idle: WhenIdle,
    /// Way of dropping cached translations when a vCPU comes to a hart.
    pub purging: Purging,
    /// Extent of the fences that guests ask for on other vCPUs.
    pub remote_fences: RemoteFences,
    /// The time of entry, in ticks of the timebase.
    pub started: u64,
    /// IOMMUs that confine devices of VMs.
    pub iommus: Vec<&'static Iommu<BoardPort>>,
}

/// Rate at which the devices' interrupt lines are polled.
const POLLS_PER_SECOND: u64 = 20;

static SYSTEM: Once<Hypervisor> = Once::new();

/// Makes `system` the one that [`system`] returns.
pub fn install(system: Hypervisor) -> &'static Hypervisor {
    SYSTEM.call_once(|| system)
}

/// The system, once [`install`] has been called.
#[must_use]
pub fn system() -> Option<&'static Hypervisor> {
    SYSTEM.get()
}

impl Hypervisor {
    #[must_use]
    pub fn new(
        (board, pages): (Board, PagePool),
        harts: Vec<Hart>,
        vms: Vec<Vm>,
        (vcpus, disks, switches): (Vec<Vcpu>, Vec<Disk>, Vec<Arc<Switch>>),
        scheduler: Groups,
        when_idle: WhenIdle,
        started: u64,
    ) -> Self {
        let host_interrupts = AtomicBool::new(!scheduler.config().wait.tests());
        let controller = BoardController::new(&board.controller);
        let online = harts.iter().map(|hart| hart.index).collect();
        let interrupt_affinity = InterruptAffinity::new(online, vms.len());
        let served = by_source(&vms, &disks, &switches);
        let shared = by_client(&vms);
        let report_space = ReportSpace::new(vms.len());
        let receivers = Receivers::new(board.controller.sources());
        let counters = hart_counters::Offer::find(
            harts
                .iter()
                .all(|hart| hart.board.extensions.has(MODES_AND_OVERFLOW)),
        );
        Self {
            board,
            pages: Mutex::new(pages),
            harts,
            vms,
            vcpus,
            scheduler,
            controller,
            interrupt_affinity,
            served,
            receivers,
            disks: disks.into_iter().map(Mutex::new).collect(),
            switches,
            shared,
            counters,
            guest_translation: Offer::find(&mut HartRegister),
            spaces: SpaceOffer::find(&mut VirtualSpace),
            host_interrupts,
            spin: AtomicUsize::new(0),
            translations: AtomicUsize::new(0),
            purging: Purging::Fence,
            remote_fences: RemoteFences::Precise,
            costs: Costs::default(),
            idle_harts: AtomicU64::new(0),
            next_poll: AtomicU64::new(0),
            report: AwaitedHarts::default(),
            report_space: Mutex::new(report_space),
            when_idle,
            started,
            iommus: Vec::new(),
        }
    }

    /// Adds costs of the hypervisor's work.
    #[must_use]
    pub fn with_costs(self, costs: Costs) -> Self {
        Self { costs, ..self }
    }

    /// Sets the method of dropping cached translations.
    #[must_use]
    pub fn with_translations(
        self,
        method: TlbPurge,
        purging: Purging,
        remote_fences: RemoteFences,
    ) -> Self {
        self.set_translations(method);
        Self {
            purging,
            remote_fences,
            ..self
        }
    }

    /// Lets the board's UART interrupt again, if it still wants attention.
    #[inline(never)]
    pub fn resample_uart(&self) {
        if let Some(source) = self.uart_source() {
            self.controller.resample(source);
            self.controller.complete(source);
        }
    }

    /// Interrupt source of the board's UART.
    fn uart_source(&self) -> Option<u32> {
        self.board.uart.as_ref().and_then(|uart| uart.source)
    }

    /// Tests whether `source` is that of the board's UART.
    #[must_use]
    pub fn is_uart(&self, source: u32) -> bool {
        self.uart_source() == Some(source)
    }

    /// Tests whether the console's input has to be polled for want of an interrupt.
    #[must_use]
    pub fn console_is_polled(&self) -> bool {
        self.uart_source().is_none()
    }

    /// Method of dropping a vCPU's cached translations.
    #[must_use]
    pub fn translations(&self) -> TlbPurge {
        let place = self.translations.load(Ordering::Relaxed);
        match TlbPurge::ALL.get(place).copied() {
            Some(method @ (TlbPurge::LastHost | TlbPurge::OneShot)) => method,
            Some(method) if cfg!(feature = "papers") => method,
            _ => TlbPurge::LastHost,
        }
    }

    /// Changes the method of dropping cached translations, from the next dispatch of each vCPU on: each method leaves a state that is
    /// right for every other. The harts must have the features that it needs.
    pub fn set_translations(&self, method: TlbPurge) {
        let place = TlbPurge::ALL.iter().position(|known| *known == method);
        self.translations
            .store(place.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// Method for spinning vCPUs.
    #[must_use]
    pub fn spin(&self) -> SpinMethod {
        let place = self.spin.load(Ordering::Relaxed);
        SpinMethod::ALL
            .get(place)
            .copied()
            .unwrap_or(SpinMethod::None)
    }

    /// Notes the method that the scheduler was told, or was made with.
    pub fn note_spin(&self, method: SpinMethod) {
        let place = SpinMethod::ALL.iter().position(|known| *known == method);
        self.spin.store(place.unwrap_or(0), Ordering::Relaxed);
    }

    /// Returns true if a waiting vCPU's interrupt interrupts the hypervisor.
    #[must_use]
    pub fn host_interrupts(&self) -> bool {
        self.host_interrupts.load(Ordering::Acquire)
    }

    /// Lets interrupts of waiting vCPUs interrupt the hypervisor from now on, or be found by tests.
    fn use_host_interrupts(&self, on: bool) {
        self.host_interrupts.store(on, Ordering::SeqCst);
    }

    /// Longest time, in ticks of the timebase, that a missed edge or a missing bit of hgeip may go unnoticed.
    #[must_use]
    pub fn poll_interval(&self) -> u64 {
        u64::from(self.board.timebase_hertz) / POLLS_PER_SECOND
    }

    /// Claims the next poll of the devices' interrupt lines: true if it is due and the caller is first.
    fn claim_poll(&self, time: u64) -> bool {
        let next = self.next_poll.load(Ordering::Relaxed);
        time >= next
            && self
                .next_poll
                .compare_exchange(
                    next,
                    time + self.poll_interval(),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                )
                .is_ok()
    }

    /// The VM with this id. Ids come only from the scheduler and from VMs, which are never removed.
    #[must_use]
    pub fn vm(&self, vm: VmId) -> &Vm {
        &self.vms[vm.index()]
    }

    /// The vCPU with this id; as for [`Hypervisor::vm`].
    #[must_use]
    pub fn vcpu(&self, vcpu: VcpuNumber) -> &Vcpu {
        &self.vcpus[vcpu.index()]
    }

    /// The hart with this id; as for [`Hypervisor::vm`].
    #[must_use]
    pub fn hart(&self, hart: HartId) -> &Hart {
        &self.harts[hart.index()]
    }

    /// Applies a function to each vCPU that waits for an interrupt on `hart`.
    pub fn for_each_waiting_on(&self, hart: &Hart, mut what: impl FnMut(&Vcpu)) {
        hart.waiting.for_each(self.vcpus.len(), |vcpu| {
            if let Some(vcpu) = self.vcpus.get(vcpu) {
                what(vcpu);
            }
        });
    }

    /// Ends the wait of `vcpu`, which is about to run, if it waited.
    #[inline]
    pub fn end_wait(&self, vcpu: &Vcpu, state: &mut VcpuState) {
        if let Some(hart) = state.waits_on.take() {
            // The scheduler's lock, by which the vCPU has come here, orders this behind the beginning of its wait.
            let deadline = vcpu.deadline.load(Ordering::Relaxed);
            vcpu.deadline.store(u64::MAX, Ordering::Relaxed);
            self.hart(hart).waiting.remove(vcpu.id, deadline);
        }
    }

    /// Notes that `hart` is idle.
    pub fn begin_idle(&self, hart: &Hart) {
        let own = HartSet::only(hart.index).bits();
        self.idle_harts.fetch_or(own, Ordering::Relaxed);
    }

    /// Notes that `hart` is no longer idle.
    pub fn end_idle(&self, hart: &Hart) {
        let own = HartSet::only(hart.index).bits();
        self.idle_harts.fetch_and(!own, Ordering::Relaxed);
    }

    /// Returns true if another hart than `hart` seems idle: a hint, which may be stale.
    #[must_use]
    pub fn others_idle(&self, hart: &Hart) -> bool {
        let own = HartSet::only(hart.index).bits();
        self.idle_harts.load(Ordering::Relaxed) & !own != 0
    }

    /// The vCPUs of a VM, in the order of their numbers.
    #[must_use]
    pub fn vcpus_of(&self, vm: VmId) -> &[Vcpu] {
        let vm = self.vm(vm);
        self.vcpus.get(vm.vcpus.clone()).unwrap_or(&[])
    }

    /// Interrupts the harts that the scheduler named.
    #[inline]
    pub fn kick(&self, kicks: Kicks) {
        if !kicks.harts().is_empty() {
            self.interrupt(kicks);
        }
    }

    /// Interrupts these harts. One copy of the code serves all events: an interrupt costs far more than a call.
    #[inline(never)]
    fn interrupt(&self, kicks: Kicks) {
        let own = harts::current();
        for hart in kicks.harts().iter() {
            if hart == own.index {
                own.must_reschedule.store(true, Ordering::Relaxed);
            } else {
                self.hart(hart).request_reschedule();
            }
        }
    }
}

/// The time, as the scheduler counts it.
#[must_use]
pub fn now() -> Ticks {
    Ticks::new(hart::time())
}

/// Tells the scheduler that an interrupt for `vcpu`, which waits, has interrupted the hypervisor.
pub fn interrupt_waiter(system: &Hypervisor, vcpu: VcpuNumber) {
    let now = now();
    system.notify_scheduler(vcpu, |scheduler, vcpu| {
        scheduler.interrupt_waiter(vcpu, now)
    });
}

/// Tells the scheduler that devices of the VM of `vcpu` have work for its time. False where the vCPU is stopped.
pub fn wake_for_devices(system: &Hypervisor, vcpu: VcpuNumber) -> bool {
    let now = now();
    let kicks = system.with_vcpu(vcpu, |group, vcpu| {
        group.scheduler_mut().wake_for_devices(vcpu, now)
    });
    let kicks = kicks.flatten();
    system.kick(kicks.unwrap_or_default());
    kicks.is_some()
}

/// Tells the scheduler that there is an interrupt or a deadline for `vcpu`.
pub fn wake(system: &Hypervisor, vcpu: VcpuNumber) {
    let now = now();
    system.notify_scheduler(vcpu, |scheduler, vcpu| scheduler.wake(vcpu, now));
}
