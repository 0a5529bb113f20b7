//! Harts: the hypervisor's state of each, and interrupts between them.

use core::sync::atomic::{AtomicBool, AtomicU16, AtomicU32, AtomicU64, Ordering};

use riscv::csr::environment::PMM;
use riscv::sbi::firmware_features::{DOUBLE_TRAP, MISALIGNED_DELEGATION, SHADOW_STACK};
use scheduler::{HartId, HartSet, Ticks, VcpuNumber};
use spinwait::PollTimer;

use crate::hart::{
    self,
    capabilities::{Capabilities, Capability},
    common,
    csr::{self, number},
    debug_triggers::FirmwareTriggers,
    firmware,
};
use crate::interrupts::{GuestFile, HartFiles};
use crate::memory::physical::Physical;
use crate::system::poll_schedule::PollSchedule;
use crate::system::running::Running;
use crate::system::waiting::Waiting;
use crate::vm::accounts::Accounts;
use crate::vm::debug_triggers::HartTriggers;
use crate::vm::firmware_features::MISALIGNED;
use crate::vm::lazy_registers::{IllegalInstructions, RegisterSet};
use crate::vm::switch_cost::SwitchCost;
use crate::vm::vcpu::{Vcpu, VcpuState};
use board::{Board, BoardHart, Delivery, isa};

/// The largest number of harts that are used; the board may have more.
pub const MAX_HARTS: usize = 64;

/// Identities of the harts' own interrupt files.
pub mod identity {
    /// Kick by another hart: read the requests, and ask the scheduler.
    pub const KICK: u32 = 1;
    /// The board's UART has input.
    pub const UART: u32 = 2;
    /// All messages that the board's APLIC had sent to this hart before the synchronisation have arrived.
    pub const SYNCHRONISED: u32 = 3;
    /// Source s of the board, for a vCPU whose interrupt file is in memory, is identity `DEVICE` + s.
    pub const DEVICE: u32 = 16;
}

const _: () = assert!(core::mem::offset_of!(Hart, stack_top) == hart::STACK_TOP_OFFSET);

/// One hart. The assembly that starts it reads `stack_top`.
#[repr(C)]
#[derive(Debug)]
pub struct Hart {
    pub stack_top: u64,
    pub index: HartId,
    pub board: BoardHart,
    /// Place at which the hart receives the board's interrupts.
    pub delivery: Delivery,
    pub files: HartFiles,
    pub accounts: Accounts,
    /// VM and generation of the translations that are used here now.
    pub running: Running,
    /// 1 + the vCPU whose VS-level registers were put onto the hart last, or 0; only the hart itself uses it.
    loaded: AtomicU16,
    pub float: RegisterSet,
    pub vector: RegisterSet,
    pub illegal_instructions: IllegalInstructions,
    /// Record whose debug triggers are on the hart.
    pub triggers: HartTriggers,
    /// The policy by which hgeie was last set: see `interrupt_port::watch_as_wanted`.
    pub watches: AtomicBool,
    /// Set by the hart itself: it must ask the scheduler before it goes on.
    pub must_reschedule: AtomicBool,
    /// End of the running slice, in the board's time.
    pub slice_end: AtomicU64,
    /// Timer of the hart's polls while a vCPU has it.
    pub poll_timer: PollTimer,
    /// Time of the next poll of the hart's interrupt files, in the board's time.
    pub next_poll: AtomicU64,
    /// The vCPUs that wait for an interrupt here: see [`Hart::begin_wait`].
    pub waiting: Waiting,
    /// Set while the hart is idle.
    pub is_idle: AtomicBool,
    /// Set while the hart waits actively and polls `reschedule_requested`, so that no kick is needed.
    pub polls: AtomicBool,
    /// Set by another hart: this hart must ask the scheduler.
    reschedule_requested: AtomicBool,
    /// Measured time of a context switch on this hart.
    pub switch_cost: SwitchCost,
    /// Features that the hart was found to have when it started: [`Capabilities::bits`].
    capabilities: AtomicU32,
    /// Fields of henvcfg that the hart keeps; all before it has started.
    offered_environment: AtomicU64,
    /// henvcfg as it is, and [`MISALIGNED`]. Only the hart itself uses it.
    environment: AtomicU64,
    /// Times at which the hart polls devices.
    pub poll_schedule: PollSchedule,
    /// Ticks that the hart worked for devices of other VMs while it had its present vCPU. Only the hart itself uses it.
    for_others: AtomicU64,
    /// The accounts as the hart published them last, for a report that is being written.
    pub published: Accounts,
    /// The hart's debug triggers.
    pub firmware_triggers: FirmwareTriggers,
}

/// The scheduler's names for these harts of the board.
///
/// # Errors
/// The first that the board does not have.
pub fn of_board(
    board: &Board,
    harts: abi::system::HartSet,
) -> Result<HartSet, abi::system::HartId> {
    let mut set = HartSet::EMPTY;
    for wanted in harts.iter() {
        let id = u64::from(wanted.0);
        let index = board.harts.iter().position(|hart| hart.id == id);
        let id = index
            .and_then(|index| u16::try_from(index).ok())
            .and_then(HartId::new);
        set.insert(id.ok_or(wanted)?);
    }
    Ok(set)
}

/// Each interrupt file has a page of 4 KiB.
const PAGE_SHIFT: u32 = 12;

impl Hart {
    #[must_use]
    pub fn new(
        index: HartId,
        description: &BoardHart,
        delivery: Delivery,
        stack_top: u64,
        vms: usize,
    ) -> Self {
        Self {
            stack_top,
            index,
            board: description.clone(),
            delivery,
            files: HartFiles::default(),
            accounts: Accounts::new(vms),
            running: Running::default(),
            loaded: AtomicU16::new(0),
            float: RegisterSet::new(index),
            vector: RegisterSet::new(index),
            illegal_instructions: IllegalInstructions::default(),
            triggers: HartTriggers::new(index),
            watches: AtomicBool::new(true),
            must_reschedule: AtomicBool::new(false),
            slice_end: AtomicU64::new(u64::MAX),
            poll_timer: PollTimer::default(),
            next_poll: AtomicU64::new(0),
            poll_schedule: PollSchedule::default(),
            for_others: AtomicU64::new(0),
            published: Accounts::new(vms),
            firmware_triggers: FirmwareTriggers::default(),
            waiting: Waiting::default(),
            is_idle: AtomicBool::new(false),
            polls: AtomicBool::new(false),
            reschedule_requested: AtomicBool::new(false),
            switch_cost: SwitchCost::default(),
            capabilities: AtomicU32::new(0),
            offered_environment: AtomicU64::new(u64::MAX),
            environment: AtomicU64::new(0),
        }
    }

    /// Notes that `vcpu`, which is leaving this hart, waits here for an interrupt until `deadline`, in the board's time.
    #[inline]
    pub fn begin_wait(&self, vcpu: &Vcpu, state: &mut VcpuState, deadline: u64) {
        vcpu.deadline.store(deadline, Ordering::Relaxed);
        self.waiting.insert(vcpu.id, deadline);
        state.waits_on = Some(self.index);
    }

    /// Sets the features that the hart was found to have.
    pub fn set_capabilities(&self, found: Capabilities) {
        self.capabilities.store(found.bits(), Ordering::Relaxed);
    }

    /// Finds the fields of henvcfg that the hart keeps, of those that its extensions call for. Called by the hart itself.
    pub fn find_environment(&self) {
        let keeps = |value| {
            // SAFETY: henvcfg concerns guests alone, and none is on the hart yet.
            unsafe { csr::write::<{ number::HENVCFG }>(value) };
            csr::read::<{ number::HENVCFG }>()
        };
        // The firmware may have to permit the lower modes a feature first. Landing pads are not asked for: they would be the hypervisor's own.
        let features = [(isa::ZICFISS, SHADOW_STACK), (isa::SSDBLTRP, DOUBLE_TRAP)];
        for (name, feature) in features {
            if self.board.extensions.has(name) {
                firmware::set_feature(feature, 1);
            }
        }
        let names = self.board.extensions.names();
        // A guest must not set a timer that is not saved with its vCPU.
        let names = names.filter(|name| common::has_supervisor_timer() || *name != isa::SSTC);
        let wanted = isa::environment_wanted(names);
        // The last of the two is what stays.
        let masks_16 = wanted & PMM != 0 && keeps(wanted | PMM) & PMM == PMM;
        let kept = keeps(wanted);
        self.environment.store(kept, Ordering::Relaxed);
        let mut offered = if masks_16 { kept | PMM & !wanted } else { kept };
        if firmware::has_feature(MISALIGNED_DELEGATION) {
            offered |= MISALIGNED;
        }
        self.offered_environment.store(offered, Ordering::Relaxed);
    }

    /// Fields of henvcfg that the hart keeps, and [`MISALIGNED`]. Of PMM, the upper bit stands for 7 bits and the lower one for 16.
    #[must_use]
    pub fn offered_environment(&self) -> u64 {
        self.offered_environment.load(Ordering::Relaxed)
    }

    /// Sets henvcfg for the vCPU that comes to the hart, and where exceptions of misaligned accesses go. Called by the hart itself.
    #[inline]
    pub fn set_environment(&self, value: u64) {
        let old = self.environment.load(Ordering::Relaxed);
        if old != value {
            self.change_environment(old, value);
        }
    }

    #[cold]
    fn change_environment(&self, old: u64, value: u64) {
        self.environment.store(value, Ordering::Relaxed);
        // SAFETY: henvcfg concerns guests alone.
        unsafe { csr::write::<{ number::HENVCFG }>(value & !MISALIGNED) };
        if (old ^ value) & MISALIGNED != 0 {
            // The hypervisor makes no misaligned access. What the firmware delegates goes to the guest by hedeleg.
            let delegates = u64::from(value & MISALIGNED != 0);
            firmware::set_feature(MISALIGNED_DELEGATION, delegates);
        }
    }

    /// Returns true if the hart has `capability`; false before it has started.
    #[must_use]
    pub fn has(&self, capability: Capability) -> bool {
        Capabilities::from_bits(self.capabilities.load(Ordering::Relaxed)).has(capability)
    }

    /// Host's memory for this hart: it zeroes whole blocks if it can. Used by the hart itself alone.
    #[must_use]
    pub fn memory(&self) -> Physical {
        let block = self.board.zero_block_size.map(u64::from);
        let zero_block =
            block.filter(|size| size.is_power_of_two() && self.has(Capability::ZeroBlocks));
        Physical { zero_block }
    }

    /// The vCPU whose registers were put onto the hart last.
    #[must_use]
    pub fn last_loaded(&self) -> Option<VcpuNumber> {
        self.loaded
            .load(Ordering::Relaxed)
            .checked_sub(1)
            .and_then(VcpuNumber::new)
    }

    /// Takes the hart's own request to ask the scheduler. Called by the hart itself alone.
    #[must_use]
    pub fn take_must_reschedule(&self) -> bool {
        let ask = self.must_reschedule.load(Ordering::Relaxed);
        if ask {
            self.must_reschedule.store(false, Ordering::Relaxed);
        }
        ask
    }

    /// Notes that the hart has worked for a device of another VM than that of its present vCPU.
    pub fn note_for_others(&self, ticks: u64) {
        let all = self.for_others.load(Ordering::Relaxed);
        self.for_others
            .store(all.wrapping_add(ticks), Ordering::Relaxed);
    }

    /// Takes the time that was noted. Only the hart itself calls it.
    #[must_use]
    pub fn take_for_others(&self) -> Ticks {
        let ticks = self.for_others.load(Ordering::Relaxed);
        if ticks != 0 {
            self.for_others.store(0, Ordering::Relaxed);
        }
        Ticks::new(ticks)
    }

    /// Notes the vCPU whose registers are on the hart.
    pub fn set_last_loaded(&self, vcpu: VcpuNumber) {
        self.loaded.store(vcpu.get() + 1, Ordering::Relaxed);
    }

    /// The physical address of the page of a guest file of the hart: the pages follow the hart's own (AIA, "Arrangement of
    /// the memory regions of multiple interrupt files").
    #[must_use]
    pub fn guest_file_page(&self, file: GuestFile) -> u64 {
        self.delivery.address + (u64::from(file.number()) << PAGE_SHIFT)
    }

    /// Interrupts the hart: it leaves its guest, or wakes from idling. Out of line, so that the many places that kick stay small.
    #[inline(never)]
    pub fn kick(&self) {
        if common::has_interrupt_files() {
            send_message(self.delivery.address, identity::KICK);
        } else {
            // Stores to memory that the receiver will read come before the interrupt.
            hart::memory_before_devices();
            firmware::send_ipi(self.board.id);
        }
    }

    /// Makes the hart ask the scheduler: by a word if the hart polls, otherwise by an interrupt.
    pub fn request_reschedule(&self) {
        self.reschedule_requested.store(true, Ordering::SeqCst);
        // A hart that stops polling says so first, and asks the scheduler afterwards. The caller has changed the scheduler
        // before this, so that the hart finds the change whichever comes first.
        if !self.polls.load(Ordering::SeqCst) {
            self.kick();
        }
    }

    /// Takes the request to ask the scheduler: returns true if there was one.
    pub fn take_reschedule_request(&self) -> bool {
        self.reschedule_requested.load(Ordering::Relaxed)
            && self.reschedule_requested.swap(false, Ordering::SeqCst)
    }
}

/// Sends the message-signalled interrupt `identity` to the interrupt file at `page`.
pub fn send_message(page: u64, identity: u32) {
    // Stores to memory that the receiver will read come before the interrupt.
    hart::memory_before_devices();
    // SAFETY: `page` was computed from the board's IMSIC for one of its files; a write of seteipnum_le at offset 0 only sets
    // a pending bit (AIA, "Memory region for an interrupt file").
    unsafe { (page as *mut u32).write_volatile(identity.to_le()) };
}

/// The hart that runs this code.
#[must_use]
pub fn current() -> &'static Hart {
    let pointer: *const Hart = hart::pointer().cast();
    // SAFETY: the pointer is that of the hart's `Hart` since it started, and nothing in the hypervisor changes it; a
    // `Hart` is never freed.
    unsafe { &*pointer }
}

/// Makes `hart` the one that [`current`] returns here.
pub fn set_current(hart: &'static Hart) {
    hart::set_pointer(core::ptr::from_ref(hart).cast());
    #[cfg(feature = "lock-order")]
    crate::lock::order::begin(|| hart::pointer().addr());
}
