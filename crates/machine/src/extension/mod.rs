//! The papers' proposed hardware, each part of it a custom extension that is off unless the
//! instruction-set description names it: docs/reference/extensions.md. And which ratified options the harts have.

mod isa;
mod options;
mod pause;

pub use isa::{Isa, VmidBits};
pub use options::Options;
pub use pause::PauseLoop;

use riscv::csr::number;
use serde::{Deserialize, Serialize};

use crate::base::{Paging, Random};

/// The name of the global pending test in ISA strings.
pub const PENDING_TEST: &str = "xpartitaotpi";
/// The name of the purge mask in ISA strings.
pub const PURGE_MASK: &str = "xpartitatlbpcw";
/// The name of pause-loop exiting in ISA strings.
pub const PAUSE_LOOP_EXIT: &str = "xpartitaple";

/// The name of the purge at entries in ISA strings.
pub const PURGE_CHECK: &str = "xpartitapurge";
/// The name of the broadcast fence in ISA strings.
pub const BROADCAST_FENCE: &str = "xpartitasptlb";
/// The name of the question for the holder of a lock in ISA strings.
pub const LOCK_HOLDER: &str = "xpartitaholder";

/// Greatest number of harts for which a purge mask has a bit each.
pub const PURGE_MASK_HARTS: u32 = 64;

/// The encoding of the global pending test with rd and rs1 zero: opcode SYSTEM, funct3 0 and
/// bits 31:26 that the privileged specification leaves to custom hypervisor-level instructions.
pub const PENDING_TEST_MATCH: u32 = 0xac00_0073;
/// The bits of the encoding that are fixed.
pub const PENDING_TEST_MASK: u32 = 0xfff0_707f;

/// The encoding of the broadcast fence with rs1 and rs2 zero: as the pending test, funct7 = 0x57.
pub const BROADCAST_FENCE_MATCH: u32 = 0xae00_0073;
/// The bits of the encoding that are fixed.
pub const BROADCAST_FENCE_MASK: u32 = 0xfe00_7fff;

/// Which of the extensions are there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Extensions {
    /// The global pending test (OTPI of any hart's guest interrupt files).
    pub pending_test: bool,
    /// The purge mask that VS-mode's fences keep (TLBPCW).
    pub purge_mask: bool,
    /// Pause-loop exiting with gap and window.
    pub pause_loop_exit: bool,
    /// The test and purge of hpurge by hardware at each entry to a guest. It needs the purge mask.
    pub purge_check: bool,
    /// The fence of a virtual machine's translations on all harts (SPTLB).
    pub broadcast_fence: bool,
    /// The question for the holder of a lock, which no hardware could answer.
    pub lock_holder: bool,
}

impl Extensions {
    /// Extensions that an instruction-set description names.
    #[must_use]
    pub fn of(isa: &Isa) -> Self {
        let has = |name: &str| isa.extensions.iter().any(|extension| extension == name);
        Self {
            pending_test: has(PENDING_TEST),
            purge_mask: has(PURGE_MASK),
            pause_loop_exit: has(PAUSE_LOOP_EXIT),
            purge_check: has(PURGE_CHECK),
            broadcast_fence: has(BROADCAST_FENCE),
            lock_holder: has(LOCK_HOLDER),
        }
    }

    /// Their names in ISA strings.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        [
            (self.pending_test, PENDING_TEST),
            (self.pause_loop_exit, PAUSE_LOOP_EXIT),
            (self.purge_mask, PURGE_MASK),
            (self.purge_check, PURGE_CHECK),
            (self.broadcast_fence, BROADCAST_FENCE),
            (self.lock_holder, LOCK_HOLDER),
        ]
        .into_iter()
        .filter_map(|(present, name)| present.then_some(name))
    }
}

/// State of a hart for the extensions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtensionState {
    /// Which of them are there.
    pub present: Extensions,
    /// Which ratified options are there.
    pub options: Options,
    /// Next values of the seed CSR.
    pub entropy: Random,
    /// True if the hart can set A and D bits itself: Svadu.
    pub svadu: bool,
    /// How many bits of VMIDs it has.
    pub vmid_bits: VmidBits,
    /// The widest virtual-memory scheme of the hart.
    pub paging: Paging,
    /// Pause-loop exiting.
    pub pause: PauseLoop,
    /// hpurge: a bit for each hart on which the vCPU that runs here must not use old entries.
    pub purge: u64,
    /// The bits of hpurge that exist: one for each hart of the machine.
    purge_bits: u64,
    /// hlockholder: the physical address of the lock that was asked for last.
    pub lock: u64,
}

impl ExtensionState {
    /// The state after reset of a hart in a machine of `harts` harts.
    #[must_use]
    pub fn new(isa: &Isa, harts: u32) -> Self {
        Self {
            present: Extensions::of(isa),
            options: Options::of(isa),
            svadu: isa.extensions.iter().any(|name| name == "svadu"),
            vmid_bits: isa.vmid_bits,
            paging: Paging::of_mmu_type(&isa.mmu).unwrap_or_default(),
            purge_bits: u64::MAX >> (PURGE_MASK_HARTS - harts.clamp(1, PURGE_MASK_HARTS)),
            ..Self::default()
        }
    }

    /// Makes the seed CSR's values those of a hart in a run with this seed.
    pub const fn seed_entropy(&mut self, seed: u64, hart: u32) {
        // The seed's own sequence is that of what the device tree holds and devices draw.
        let mut streams = Random::new(seed ^ 0x005e_edc5_7a11_e57d);
        self.entropy = Random::new(streams.next() ^ (hart as u64) << 32);
    }

    /// Tests whether a custom CSR exists.
    #[must_use]
    pub const fn has_csr(&self, csr: u16) -> bool {
        match csr {
            number::HPLEGAP | number::HPLEWINDOW => self.present.pause_loop_exit,
            number::HPURGE => self.present.purge_mask,
            number::HLOCKHOLDER => self.present.lock_holder,
            _ => false,
        }
    }

    /// Reads a custom CSR that exists.
    #[must_use]
    pub const fn read(&self, csr: u16) -> u64 {
        match csr {
            number::HPLEGAP => self.pause.gap,
            number::HPLEWINDOW if self.pause.supervisor_only => {
                self.pause.window | PauseLoop::SUPERVISOR_ONLY
            }
            number::HPLEWINDOW => self.pause.window,
            number::HLOCKHOLDER => self.lock,
            _ => self.purge,
        }
    }

    /// Writes a custom CSR that exists.
    pub const fn write(&mut self, csr: u16, value: u64) {
        match csr {
            number::HPLEGAP => self.pause.gap = value & PauseLoop::LARGEST,
            number::HPLEWINDOW => {
                self.pause.window = value & PauseLoop::LARGEST;
                self.pause.supervisor_only = value & PauseLoop::SUPERVISOR_ONLY != 0;
            }
            number::HLOCKHOLDER => self.lock = value & !3,
            _ => self.purge = value & self.purge_bits,
        }
    }

    /// The hart enters a guest: whether its old entries must go. The bit that says so is cleared.
    pub const fn take_purge(&mut self, hart: usize) -> bool {
        if !self.present.purge_check || hart >= PURGE_MASK_HARTS as usize {
            return false;
        }
        let own = self.purge & 1 << hart;
        self.purge &= !own;
        own != 0
    }

    /// VS-mode has executed a fence of its own translations on a hart.
    pub const fn note_fence(&mut self, hart: usize) {
        if self.present.purge_mask {
            let own = if hart < PURGE_MASK_HARTS as usize {
                1 << hart
            } else {
                0
            };
            self.purge = self.purge_bits & !own;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{PmpEntries, VectorLength};

    const ALL: Extensions = Extensions {
        pending_test: true,
        purge_mask: true,
        pause_loop_exit: true,
        purge_check: true,
        broadcast_fence: true,
        lock_holder: true,
    };

    fn isa(extensions: Extensions) -> Isa {
        Isa {
            base: "rv64i".to_owned(),
            extensions: extensions.names().map(str::to_owned).collect(),
            mmu: "riscv,sv48".to_owned(),
            cache_block: 64,
            vmid_bits: VmidBits::default(),
            pmp_entries: PmpEntries::default(),
            vector_length: VectorLength::NONE,
        }
    }

    #[test]
    fn fences_set_the_bits_of_other_harts() {
        let mut state = ExtensionState::new(&isa(ALL), 4);
        state.note_fence(2);
        assert_eq!(state.read(number::HPURGE), 0b1011);
        state.note_fence(0);
        assert_eq!(state.read(number::HPURGE), 0b1110);
        state.write(number::HPURGE, u64::MAX);
        assert_eq!(state.read(number::HPURGE), 0b1111);
        assert!(state.take_purge(2) && !state.take_purge(2));
        assert_eq!(state.read(number::HPURGE), 0b1011);
        let mut none = ExtensionState::new(&isa(Extensions::default()), 4);
        none.note_fence(2);
        assert_eq!(none.purge, 0);
    }

    #[test]
    fn extension_names_lead_back() {
        assert_eq!(Extensions::of(&isa(ALL)), ALL);
        assert_eq!(Extensions::default().names().count(), 0);
    }
}
