//! A hart: its registers and what it is doing.

mod context;
mod counters;
mod deadlines;
mod describe;
mod options;
mod saved;
mod stops;
mod stretch;
mod tags;
#[cfg(test)]
mod tests;
mod trap;
mod wait;
mod watch;

pub use crate::base::{Access, Cause, Exception, Mode, Privilege, Trapped};
pub(crate) use deadlines::Deadlines;
pub use saved::SavedHart;
pub(crate) use stops::{Reached, Stops};
pub use stretch::Stretch;
pub(crate) use stretch::Stretches;
pub use wait::{Expiry, Wait};

use crate::base::{HartId, HartIrqLevels, Space};
use crate::csr::Csrs;
use crate::trace::{Event, Happening, Place};
use crate::translation::{HostTlb, Resume, Shadow, WalkTrace};
use crate::vector::{Known, VectorUnit};

/// A reservation made by LR. It ends with the hart's turn, when the hart waits, and when a device stores to
/// memory: nothing else can store while the hart has its turn. A store by a device to another line ends
/// it too, which an implementation may do ("Load-Reserved/Store-Conditional Instructions").
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Reservation {
    /// Physical address of the bytes that were loaded.
    pub physical: u64,
    /// How many.
    pub size: u64,
    /// How many stores devices had made then.
    pub device_stores: u64,
}

/// A hart.
#[derive(Debug)]
pub struct Hart {
    /// Integer registers; [`crate::instruction::DISCARD`] takes what is written to `x0`. As large
    /// as a register index can be, so that no access needs a check.
    pub x: [u64; 256],
    /// Floating-point registers, NaN-boxed; as large as `x` for the same reason.
    pub f: [u64; 256],
    /// The vector unit.
    pub vector: VectorUnit,
    /// Knowledge of its instructions.
    pub(crate) known: Known,
    /// The program counter, up to date between blocks.
    pub pc: u64,
    /// Cycles since reset, up to date between blocks.
    pub cycles: u64,
    /// Instructions retired since reset, up to date between blocks.
    pub retired: u64,
    /// When the execution loop has to stop.
    pub(crate) deadlines: Deadlines,
    /// The least time that the other running harts have reached: the hart gives its turn away before it
    /// makes an access later than this that another hart takes part in.
    pub(crate) horizon: u64,
    /// True if it has given its turn away.
    pub(crate) yielded: bool,
    /// The privilege mode. Change it by [`Hart::set_mode`].
    mode: Mode,
    /// Tag of data accesses in the host TLB.
    pub(crate) data_tag: u64,
    /// Tag of fetches in the host TLB.
    pub(crate) fetch_tag: u64,
    /// Address space of data accesses for the timing models, and whether page tables take part in it.
    pub(crate) data_space: (Space, bool),
    /// The same of fetches.
    pub(crate) fetch_space: (Space, bool),
    /// The context of fetches, as [`Resume`] notes it.
    pub(crate) jump_tag: u32,
    /// True if floating-point instructions are illegal now.
    pub(crate) float_off: bool,
    /// True if vector instructions are illegal now.
    pub(crate) vector_off: bool,
    /// 1 if indirect jumps have to lead to landing pads in the mode.
    pub(crate) landing_pads: u64,
    /// 1 if shadow stacks are active in the mode.
    pub(crate) shadow_stacks: u64,
    /// True if debug triggers are armed in the mode.
    pub(crate) triggered: bool,
    /// True if instructions are executed one by one, and looked at.
    pub(crate) watched: bool,
    /// Which hart this is.
    pub id: HartId,
    /// The CSRs.
    pub csrs: Csrs,
    /// Why the last instruction did not complete.
    pub exception: Exception,
    /// Reservation of LR.
    pub reservation: Option<Reservation>,
    /// Cause of the hart's wait, if it waits.
    pub wait: Wait,
    /// Levels that devices drive into the hart.
    pub irq_levels: HartIrqLevels,
    /// Translations in use.
    pub tlb: HostTlb,
    /// The checker for missing fences, while it is on.
    pub shadow: Option<Box<Shadow>>,
    /// Memory references of the last page-table walk.
    pub trace: WalkTrace,
    /// The code generation that `resume` belongs to.
    pub(crate) code_generation: u64,
    /// Context tags by view, [`tags::UNKNOWN`] where not looked up since the last change.
    tags: [u64; tags::VIEWS],
    /// How many restrictions on stores this hart has seen.
    pub(crate) restrictions_seen: usize,
    /// How many fences for all harts it has carried out.
    pub(crate) broadcasts_seen: usize,
    /// Custom extensions and their registers.
    pub extension: crate::extension::ExtensionState,
    /// Where the hart goes on, if it has stopped at the end of a block alone.
    pub(crate) resume: Resume,
    /// True if an interrupt may be taken that could not be when this was last looked at: a CSR, a wire, the mode or
    /// time has changed since.
    pub(crate) look_at_interrupts: bool,
    /// Counts besides cycles and instructions.
    pub counts: crate::count::HartCounts,
    /// Where a debugger wants the hart to stop, if there is one.
    pub(crate) stops: Option<Box<Stops>>,
    /// Events not yet handed to the sink, if there is one.
    pub(crate) events: Option<Vec<Event>>,
    /// Stretches in the hypervisor, if they are watched.
    pub(crate) stretches: Option<Box<Stretches>>,
}

impl Hart {
    /// A hart as it leaves reset, in M-mode.
    #[must_use]
    pub fn new(id: HartId) -> Self {
        let mut hart = Self {
            x: [0; 256],
            f: [0; 256],
            vector: VectorUnit::default(),
            known: Known::default(),
            pc: 0,
            cycles: 0,
            retired: 0,
            deadlines: Deadlines::new(),
            horizon: u64::MAX,
            yielded: false,
            mode: Mode::MACHINE,
            data_tag: 0,
            fetch_tag: 0,
            data_space: (Space::default(), false),
            fetch_space: (Space::default(), false),
            jump_tag: 0,
            float_off: true,
            vector_off: true,
            landing_pads: 0,
            shadow_stacks: 0,
            triggered: false,
            watched: false,
            id,
            csrs: Csrs::new(),
            exception: Exception::new(Cause::IllegalInstruction, 0),
            reservation: None,
            wait: Wait::Nothing,
            irq_levels: HartIrqLevels::default(),
            tlb: HostTlb::new(),
            shadow: None,
            trace: WalkTrace::default(),
            code_generation: 0,
            tags: [tags::UNKNOWN; tags::VIEWS],
            restrictions_seen: 0,
            broadcasts_seen: 0,
            extension: crate::extension::ExtensionState::default(),
            resume: Resume::default(),
            look_at_interrupts: true,
            counts: crate::count::HartCounts::default(),
            stops: None,
            events: None,
            stretches: None,
        };
        hart.refresh_context();
        hart
    }

    /// The privilege mode.
    #[inline]
    #[must_use]
    pub const fn mode(&self) -> Mode {
        self.mode
    }

    /// hgatp.VMID.
    #[must_use]
    pub const fn vmid(&self) -> u16 {
        (self.csrs.hgatp >> 44 & 0x3fff) as u16
    }

    /// Notes an exception for the trap that follows.
    pub const fn raise(&mut self, exception: Exception) -> Trapped {
        self.exception = exception;
        Trapped
    }

    /// Counts cycles that the hart has spent waiting.
    pub(crate) fn note_wait(&mut self, cycles: u64) {
        let mode = self.mode;
        self.counts
            .of(mode)
            .add(crate::count::Event::Waited, cycles);
    }

    /// Makes the execution loop stop at the end of the block.
    #[inline]
    pub const fn stop_soon(&mut self) {
        self.deadlines.stop_soon();
    }

    /// Notes what happens on this hart now, if somebody listens.
    #[inline]
    pub(crate) fn note(&mut self, happening: impl FnOnce(&Self) -> Happening) {
        if self.events.is_some() {
            let event = Event {
                place: Place::Hart(self.id),
                cycles: self.cycles,
                retired: self.retired,
                happening: happening(self),
            };
            if let Some(events) = &mut self.events {
                events.push(event);
            }
        }
    }
}
