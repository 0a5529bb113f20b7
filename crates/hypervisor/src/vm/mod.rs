//! A virtual machine: its memory, its devices and its state.

pub mod accounts;
pub mod counter_snapshot;
pub mod debug_triggers;
pub mod device_work;
pub mod fault_streak;
pub mod firmware_features;
pub mod hardware;
pub mod image;
pub mod lazy_registers;
pub mod lifecycle;
pub mod loading;
pub mod rate_limit;
pub mod reported_allocation;
pub mod seed;
pub mod shadow;
pub mod software_events;
pub mod steal_time;
pub mod switch_cost;
pub mod vcpu;
pub mod word;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use abi::system::{Hidden, MAX_VCPUS_PER_VM, OnFailure, PauseLoops, VmName, VmTranslation};
use riscv::csr::address_translation::VMID_SHIFT;
use scheduler::VmId;
use spinwait::PauseTerms;

use crate::console;
use crate::devices::bus::Bus;
use crate::devices::iommu::board::Confinement;
use crate::devices::trapped_devices::TrappedDevices;
use crate::hart;
use crate::lock::{Mutex, place};
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::gstage::{Permissions, Translation};
use crate::memory::guest::GuestMemory;
use crate::memory::reclaim::Reclaim;
use crate::memory::tables::PhysicalTables;
use crate::memory::touched::SharedTable;
use crate::memory::translations::Tag;
use crate::memory::translations::changes::Changes;
use crate::vm::device_work::DeviceWork;
use crate::vm::hardware::{AssignedDevice, EmulatedDevice, ServingFunction, imsic_file};
use crate::vm::lifecycle::life::LifeCycle;
use crate::vm::loading::Loading;
use crate::vm::rate_limit::RateLimit;
use crate::vm::reported_allocation::ReportedAllocation;
use crate::vm::software_events::SoftwareEvents;
use crate::vm::vcpu::SupervisorState;
use board::{Board, GivenDevices};

/// Settings of a VM by the system's description, checked against the board.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: VmName,
    pub kernel: &'static [u8],
    pub initrd: Option<&'static [u8]>,
    pub bootargs: &'static str,
    pub devices: Vec<AssignedDevice>,
    /// Devices of other kinds that it was given by their paths.
    pub given: GivenDevices<'static>,
    /// Its devices of shared disks and switches.
    pub emulated: Vec<EmulatedDevice>,
    /// Its device by which its guest serves disks to others, if it does.
    pub serving: Option<ServingFunction>,
    /// Devices by guest-physical address.
    pub bus: Bus,
    pub autostart: bool,
    pub on_failure: OnFailure,
    /// Guest page faults of a vCPU in a row after which it has failed; 0 is never.
    pub fault_limit: u32,
    /// Set if it has a balloon.
    pub has_balloon: bool,
    /// Number of harts of its own; none if it shares.
    pub dedicated: Option<u32>,
    /// Features that are hidden from its guest.
    pub hidden: Hidden,
    /// Bytes of a vector register, if its guest has vectors.
    pub vectors: Option<usize>,
    /// Tables that translate its guest.
    pub translation: VmTranslation,
    /// Exits of its pause loops, as far as it or its system sets them.
    pub pause_loops: PauseLoops,
}

/// Typed input that is kept for a guest.
const INPUT_LIMIT: usize = 256;

/// A virtual machine.
#[derive(Debug)]
pub struct Vm {
    pub id: VmId,
    pub settings: Settings,
    /// Indices of its vCPUs in the system's list.
    pub vcpus: Range<usize>,
    pub memory: GuestMemory,
    table: SharedTable,
    /// hgatp without a VMID.
    table_register: u64,
    generation: AtomicU64,
    /// Pages of the table that have changed, with their generations.
    pub table_changes: Changes<MAX_VCPUS_PER_VM>,
    /// The guest's time less the board's.
    time_offset: AtomicU64,
    /// Its trapped devices.
    pub trapped_devices: Mutex<TrappedDevices, { place::TRAPPED_DEVICES }>,
    /// Work of its devices that waits for its own time.
    pub device_work: DeviceWork,
    /// Typed bytes that neither the UART nor the debug console has taken yet.
    typed: Mutex<VecDeque<u8>, { place::TYPED }>,
    /// State of its life cycle: see `vm::lifecycle`.
    pub life_cycle: Mutex<LifeCycle, { place::LIFE_CYCLE }>,
    /// Progress of its loading; locked by the hart that loads it.
    pub loading: Mutex<Loading, { place::LOADING }>,
    /// Set if its guest has asked for a warm reboot: its next start keeps the contents of its memory, unless the operator has a say meanwhile.
    pub keeps_memory: AtomicBool,
    heartbeat: AtomicU64,
    /// Pages that its guest is asked to give away by its balloon, and has given away by its own account.
    pub asked_pages: AtomicU32,
    pub given_pages: AtomicU32,
    /// Set while it has stopped and its pages could not be reclaimed yet.
    pub reclaim_pending: AtomicBool,
    /// Set once its guest has given pages back.
    reclaims_pages: AtomicBool,
    /// The pages that its guest is giving back.
    pub reclaim: Mutex<Reclaim, { place::RECLAIM }>,
    /// Allocation as its guest reads it.
    pub reported_allocation: Mutex<ReportedAllocation, { place::REPORTED_ALLOCATION }>,
    /// Its supervisor software events.
    pub software_events: Mutex<SoftwareEvents, { place::SOFTWARE_EVENTS }>,
    /// Exits of its pause loops.
    pub pauses: PauseTerms,
    /// Limit on the printed lines of the guest's report.
    reports: RateLimit,
    /// IOMMUs through which its devices reach memory, if they do.
    pub confinement: Option<Confinement>,
}

/// Lines of a guest's report that are printed in a second at most.
const REPORTS_A_SECOND: u32 = 100;

impl Vm {
    #[must_use]
    pub fn new(
        id: VmId,
        settings: Settings,
        vcpus: Range<usize>,
        memory: GuestMemory,
        table: SharedTable,
        trapped_devices: TrappedDevices,
        board: &Board,
    ) -> Self {
        let table_register = table.lock().hgatp(0);
        let life_cycle = LifeCycle::new(vcpus.len(), settings.on_failure);
        let reported_allocation = Mutex::new(ReportedAllocation::new(settings.dedicated));
        let software_events = Mutex::new(SoftwareEvents::new(vcpus.len()));
        let loops = settings.pause_loops;
        let pauses = PauseTerms::new(loops.gap, loops.window, loops.window_max);
        let reclaim = match memory.is_demand_paged() {
            true => Reclaim::new(),
            false => Reclaim::default(),
        };
        Self {
            id,
            settings,
            vcpus,
            memory,
            table,
            table_register,
            pauses,
            generation: AtomicU64::new(1),
            table_changes: Changes::new(imsic_file),
            time_offset: AtomicU64::new(0),
            trapped_devices: Mutex::new(trapped_devices),
            device_work: DeviceWork::default(),
            typed: Mutex::new(VecDeque::with_capacity(INPUT_LIMIT)),
            life_cycle: Mutex::new(life_cycle),
            loading: Mutex::new(Loading::default()),
            keeps_memory: AtomicBool::new(false),
            heartbeat: AtomicU64::new(0),
            asked_pages: AtomicU32::new(0),
            given_pages: AtomicU32::new(0),
            reclaim_pending: AtomicBool::new(false),
            reclaims_pages: AtomicBool::new(false),
            reclaim: Mutex::new(reclaim),
            reported_allocation,
            software_events,
            reports: RateLimit::new(board.timebase_hertz, REPORTS_A_SECOND),
            confinement: None,
        }
    }

    /// hgatp for a vCPU with this tag.
    #[must_use]
    pub fn table_register(&self, tag: Tag) -> u64 {
        self.table_register | u64::from(tag.number()) << VMID_SHIFT
    }

    /// hgatp without a VMID, which is `iohgatp` without a GSCID.
    #[must_use]
    pub const fn untagged_table(&self) -> u64 {
        self.table_register
    }

    /// The generation of the G-stage table; it grows with each change that takes a mapping away. To be sure that a change is
    /// seen, or its maker sees this hart's declaration, a fence comes before: see `system::running`.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Translates an address by the G-stage table.
    #[must_use]
    #[inline]
    pub fn translate(&self, at: GuestPhysical) -> Option<Translation> {
        let table = self.table.lock();
        // SAFETY: the VM's own table, which was made when the system was assembled.
        table.translate(&unsafe { PhysicalTables::standing() }, at)
    }

    /// Maps the interrupt file of vCPU `index` to the page at `host`, or to nothing. Returns the new generation.
    pub fn set_interrupt_page(&self, index: u16, host: Option<u64>) -> u64 {
        let page = imsic_file(u32::from(index));
        let mut table = self.table.lock();
        // The tables down to the page exist since the VM was made, so this neither needs memory nor fails.
        // SAFETY: as for `translate`.
        let mut tables = unsafe { PhysicalTables::standing() };
        let _ = table.set_page(
            &mut tables,
            page,
            host.map(HostPhysical::new),
            Permissions::DEVICE,
        );
        // The generation changes only under the table's lock.
        let generation = self.generation() + 1;
        self.table_changes.note(index, generation);
        self.generation.store(generation, Ordering::SeqCst);
        // Devices, too, have translations of the page. They are gone before anybody reads the file that the page led to.
        if let Some(confinement) = &self.confinement {
            confinement.page_changed(page);
        }
        generation
    }

    /// Begins or ends the accesses of confined devices to memory.
    pub fn admit_devices(&self, admitted: bool) {
        if let Some(confinement) = &self.confinement {
            confinement.admit(admitted);
        }
    }

    /// Notes that pages of the guest's memory are about to leave the table. A hart that finds a page gone, under the table's lock, sees this.
    pub fn begin_unmapping(&self) {
        self.reclaims_pages.store(true, Ordering::Relaxed);
    }

    /// Returns true if a page that is mapped may have had another frame before. A hart may have that one cached until the table's generation has grown.
    #[must_use]
    pub fn reclaims_pages(&self) -> bool {
        self.reclaims_pages.load(Ordering::Relaxed)
    }

    /// Advances the generation after pages of the guest's memory have left the table, and returns it.
    pub fn end_unmapping(&self) -> u64 {
        let _table = self.table.lock();
        // The generation changes only under the table's lock.
        let generation = self.generation() + 1;
        self.table_changes.note_all(generation);
        self.generation.store(generation, Ordering::SeqCst);
        if let Some(confinement) = &self.confinement {
            confinement.table_changed();
        }
        generation
    }

    /// Offset of the guest's time from the board's, in ticks.
    #[must_use]
    pub fn time_offset(&self) -> u64 {
        self.time_offset.load(Ordering::Relaxed)
    }

    /// Restarts the guest's clock at 0.
    pub fn restart_time(&self) {
        self.time_offset
            .store(0u64.wrapping_sub(hart::time()), Ordering::Relaxed);
    }

    /// Time of a waiting vCPU's timer interrupt, in the board's time.
    #[must_use]
    pub fn host_deadline(&self, state: &SupervisorState) -> u64 {
        if state.enabled & hart::csr::interrupt::STI == 0 {
            return u64::MAX;
        }
        if state.injected & hart::csr::interrupt::VSTI != 0 {
            // The interrupt of a deadline that has come is still pending.
            return hart::time();
        }
        self.timer_deadline(state)
    }

    /// Time at which a vCPU's timer expires, in the board's time.
    #[must_use]
    pub fn timer_deadline(&self, state: &SupervisorState) -> u64 {
        if state.deadline == u64::MAX {
            return u64::MAX;
        }
        // The comparator fires when time + offset, as an unsigned number, has reached the deadline.
        let now = hart::time();
        let remaining = state
            .deadline
            .saturating_sub(now.wrapping_add(self.time_offset()));
        now.saturating_add(remaining)
    }

    /// Prints a line of the guest's report, unless the last one was a moment ago.
    pub fn report(&self, key: u64, value: u64) {
        if let Some(refused) = self.reports.admit(hart::time()) {
            self.say_left_out(refused);
            console::say!("{}: report {key:#x} = {value:#x}", self.settings.name);
        }
    }

    /// Prints how many of the guest's reports were left out since the last one, if any were.
    pub fn print_suppressed_reports(&self) {
        self.say_left_out(self.reports.take_refused());
    }

    fn say_left_out(&self, reports: u64) {
        if reports > 0 {
            console::say!("{}: {reports} reports left out", self.settings.name);
        }
    }

    /// Notes a heartbeat of the guest.
    pub fn heartbeat(&self, count: u64) {
        self.heartbeat.store(count, Ordering::Relaxed);
    }

    /// Count of the guest's last heartbeat; 0 if there was none since its start.
    #[must_use]
    pub fn last_heartbeat(&self) -> u64 {
        self.heartbeat.load(Ordering::Relaxed)
    }

    /// Resets the state of the last guest: heartbeat, typed bytes, software events, and the clock.
    pub fn reset_guest(&self) {
        self.typed.lock().clear();
        self.restart_time();
        self.heartbeat(0);
        self.reported_allocation.lock().restart();
        self.software_events.lock().reset();
    }

    /// The VM's number in the system's description.
    #[must_use]
    pub fn number(&self) -> abi::system::VmId {
        // The scheduler has at most 16 VMs.
        abi::system::VmId(self.id.get() as u8)
    }

    /// Bytes that the guest can send to its console now.
    #[must_use]
    pub fn console_room(&self) -> usize {
        console::room(self.number())
    }

    /// Prints bytes on the guest's console.
    pub fn print(&self, bytes: &[u8]) {
        console::guest_bytes(self.number(), bytes);
    }

    /// Prints a byte on the guest's console. Returns false if the console has no room for it.
    #[must_use]
    pub fn print_byte(&self, byte: u8) -> bool {
        console::guest_byte(self.number(), byte)
    }

    /// Keeps a byte typed for this guest. A byte without room is lost, as on a real line.
    pub fn keep_typed(&self, byte: u8) {
        let mut typed = self.typed.lock();
        if typed.len() < INPUT_LIMIT {
            typed.push_back(byte);
        }
    }

    /// Takes the oldest byte that was typed for this guest.
    #[must_use]
    pub fn typed(&self) -> Option<u8> {
        self.typed.lock().pop_front()
    }
}
