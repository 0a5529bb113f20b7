//! A hart as a checkpoint keeps it.

use serde::{Deserialize, Serialize};

use super::{Hart, Mode, Reservation, Wait};
use crate::base::HartIrqLevels;
use crate::count::HartCounts;
use crate::csr::Csrs;
use crate::extension::ExtensionState;
use crate::translation::{Kept, Resume, SavedTlb};
use crate::vector::VectorUnit;

/// Registers of a kind.
const REGISTERS: usize = 32;

/// Everything of a hart that its future depends on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SavedHart {
    x: [u64; REGISTERS],
    f: [u64; REGISTERS],
    vector: VectorUnit,
    pc: u64,
    cycles: u64,
    retired: u64,
    mode: Mode,
    csrs: Csrs,
    reservation: Option<Reservation>,
    wait: Wait,
    irq_levels: HartIrqLevels,
    /// The jump in its page that has led to `pc`, 0 if it is not known.
    resume: u32,
    timer_deadline: u64,
    tlb: SavedTlb,
    extension: ExtensionState,
    counts: HartCounts,
}

impl Hart {
    /// The hart as a checkpoint keeps it.
    #[must_use]
    pub fn save(&self, memory: &impl Kept) -> SavedHart {
        let (mut x, mut f) = ([0; REGISTERS], [0; REGISTERS]);
        for (to, from) in x.iter_mut().zip(self.x) {
            *to = from;
        }
        for (to, from) in f.iter_mut().zip(self.f) {
            *to = from;
        }
        SavedHart {
            x,
            f,
            vector: self.vector.clone(),
            pc: self.pc,
            cycles: self.cycles,
            retired: self.retired,
            mode: self.mode,
            csrs: self.csrs.clone(),
            reservation: self.reservation,
            wait: self.wait,
            irq_levels: self.irq_levels,
            resume: Some(self.resumed(memory.generation()).from)
                .filter(|&from| memory.is_decoded(from))
                .unwrap_or(0),
            timer_deadline: self.deadlines.timer(),
            tlb: self.tlb.save(),
            extension: self.extension.clone(),
            counts: self.counts.clone(),
        }
    }

    /// Makes the hart what was saved. `None` if there can be no such hart.
    #[must_use]
    pub fn restore(&mut self, saved: SavedHart, memory: &mut impl Kept) -> Option<()> {
        for (to, from) in self.x.iter_mut().zip(saved.x) {
            *to = from;
        }
        self.x[0] = 0;
        for (to, from) in self.f.iter_mut().zip(saved.f) {
            *to = from;
        }
        // The unit is as long as the board's harts have it.
        if !saved.vector.is_possible(self.vector.length()) {
            return None;
        }
        self.vector = saved.vector;
        self.tlb.restore(&saved.tlb, memory)?;
        self.code_generation = memory.generation();
        self.pc = saved.pc;
        self.cycles = saved.cycles;
        self.retired = saved.retired;
        self.mode = Mode::new(saved.mode.privilege, saved.mode.virtualized);
        self.csrs = saved.csrs;
        self.reservation = saved.reservation;
        self.wait = saved.wait;
        self.irq_levels = saved.irq_levels;
        self.deadlines.set_timer(saved.timer_deadline);
        self.extension = saved.extension;
        self.counts = saved.counts;
        self.translation_changed();
        self.refresh_overflow();
        if saved.resume != 0 && !memory.is_decoded(saved.resume) {
            return None;
        }
        self.resume = Resume {
            pc: self.pc,
            tag: self.jump_tag,
            from: saved.resume,
            site: None,
        };
        self.look_at_interrupts = true;
        Some(())
    }
}
