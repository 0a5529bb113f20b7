//! The computer.

mod config;
mod host;
mod listen;
mod schedule;
mod stall;
mod stuck;
mod waiting;

pub use config::{Config, MachineError, iommu};
pub use schedule::{Limit, Stop};

use crate::base::Memory;
use serde::{Deserialize, Serialize};

use crate::board::{self, Boot, Images};
use crate::csr::Pmp;
use crate::device::iommu::IommuCosts;
use crate::device::{Devices, DevicesConfig, Marker};
use crate::extension::ExtensionState;
use crate::hart::Hart;
use crate::memory::{PhysicalMemory, Ram};
use crate::system::System;
use crate::timing::{Profile, Timing};
use crate::trace::Sink;
use crate::trace::locks::Holders;
use crate::translation::StaleUse;
use crate::vector::VectorUnit;
pub(crate) use host::HostInterface;
use stall::Stall;

/// Which disk was in a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DiskIdentity {
    pub slot: usize,
    /// XXH3 of all sectors, 128 bits.
    pub hash: u128,
}

/// A RISC-V computer: harts, memory, devices. What it does is a function of its configuration and
/// of what its consoles and files give it.
#[derive(Debug)]
pub struct Machine {
    pub(crate) config: Config,
    pub(crate) harts: Vec<Hart>,
    pub(crate) system: System,
    /// Start of the present quantum, in cycles.
    pub(crate) now: u64,
    pub(crate) host: HostInterface,
    /// Profile of the timing models, in the timing mode.
    pub(crate) profile: Option<Profile>,
    /// The disks that a restored machine still waits for.
    pub(crate) missing_disks: Vec<DiskIdentity>,
    /// The text that a run stops at.
    marker: Option<Marker>,
    /// The hart that a debugger has stopped in the middle of its turn.
    interrupted: Option<usize>,
    /// The hart whose turn comes first in the next quantum.
    pub(crate) first: usize,
    /// Since when there has been no progress, if there is none.
    stall: Option<Stall>,
    /// How far the harts have come in the present quantum.
    horizons: waiting::Horizons,
    /// Sink of events.
    pub(crate) sink: Option<Box<dyn Sink>>,
}

impl Machine {
    /// A computer after reset, with nothing in memory.
    ///
    /// # Errors
    /// [`MachineError`] when it cannot exist or the host has no room for its memory.
    pub fn new(config: Config) -> Result<Self, MachineError> {
        config.check()?;
        let board = &config.board;
        let ram = Ram::new(board::map::RAM, board.memory)?;
        let devices = Devices::new(DevicesConfig::of(board));
        let system = System {
            memory: PhysicalMemory::new(ram),
            devices,
            limits: config.limits,
            timing: None,
            broadcasts: Vec::new(),
            holders: Holders::default(),
            watchful: None,
            tells_bare_locks: false,
        };
        let extension = ExtensionState::new(&board.isa, board.harts);
        let harts = (0..board.harts as usize).map(|index| {
            let mut hart = Hart::new(System::hart_id(index));
            hart.extension = extension.clone();
            hart.extension.seed_entropy(board.seed, hart.id.0);
            hart.reset_options();
            hart.vector = VectorUnit::new(board.isa.vector_length);
            hart.csrs.pmp = Pmp::new(board.isa.pmp_entries);
            hart
        });
        Ok(Self {
            harts: harts.collect(),
            system,
            now: 0,
            host: HostInterface::default(),
            profile: None,
            missing_disks: Vec::new(),
            marker: None,
            interrupted: None,
            first: 0,
            stall: None,
            horizons: waiting::Horizons::default(),
            sink: None,
            config,
        })
    }

    /// Loads firmware, kernel and initrd, and makes the harts start in the firmware.
    ///
    /// # Errors
    /// [`MachineError`] when a file is damaged or does not fit.
    pub fn load(&mut self, images: &Images<'_>) -> Result<(), MachineError> {
        let boot = board::load(&self.config.board, images, &mut self.system.memory)?;
        self.start(boot);
        Ok(())
    }

    /// Loads a program that runs in M-mode without firmware.
    ///
    /// # Errors
    /// [`MachineError`] when the file is damaged or does not fit.
    pub fn load_bare(&mut self, program: &[u8]) -> Result<(), MachineError> {
        let boot = board::load_bare(&self.config.board, program, &mut self.system.memory)?;
        self.host = HostInterface::new(&boot.program);
        if let Some(word) = boot.program.tohost {
            self.system.memory.set_host_word(word);
        }
        self.start(boot);
        Ok(())
    }

    /// Carries out the reset vector without running it.
    fn start(&mut self, boot: Boot) {
        for (hart, id) in self.harts.iter_mut().zip(0_u64..) {
            hart.pc = boot.entry;
            hart.x[10] = id;
            hart.x[11] = boot.device_tree;
            hart.x[12] = boot.dynamic_info;
        }
        self.system.devices.set_rom(boot.rom);
    }

    /// Changes the mode: with a profile instructions cost what its models say from now on, without
    /// one every instruction costs a cycle.
    pub fn set_profile(&mut self, profile: Option<&Profile>) {
        let harts = self.harts.len();
        self.system.timing = profile.map(|profile| Box::new(Timing::new(profile, harts)));
        self.profile = profile.cloned();
        let iommu = profile.map(|profile| profile.iommu).unwrap_or_default();
        self.system.devices.set_iommu_costs(IommuCosts {
            hit: iommu.hit,
            step: iommu.step,
            command: iommu.command,
        });
    }

    /// The profile of the timing mode, `None` in the functional mode.
    #[must_use]
    pub const fn profile(&self) -> Option<&Profile> {
        self.profile.as_ref()
    }

    /// Makes runs end with [`Stop::Marker`] at the end of the quantum in which a text has been
    /// seen, once, on any of the consoles that the machine has now.
    pub fn stop_at(&mut self, marker: Marker) {
        self.system.devices.watch_consoles(&marker);
        self.marker = Some(marker);
    }

    /// Executes everything by the interpreter from now on. It changes no figure: translations of blocks to
    /// the host's instructions do what the interpreter does.
    pub fn interpret_all(&mut self) {
        self.system.memory.code.interpret_all();
    }

    /// Looks for fences that software leaves out, from now on. Every access is translated anew, which
    /// is slow, and blocks are single instructions, so other figures are not those of a plain run.
    pub fn check_translations(&mut self) {
        self.config.blocks.instructions = 1;
        for hart in &mut self.harts {
            hart.tlb.clear();
            hart.translation_changed();
            hart.shadow = Some(Box::default());
        }
    }

    /// The uses of translations that a fence should have removed, and how many there were.
    #[must_use]
    pub fn stale_uses(&self) -> (Vec<StaleUse>, u64) {
        let shadows = || self.harts.iter().filter_map(|hart| hart.shadow.as_ref());
        let found = shadows().flat_map(|shadow| shadow.found().to_vec());
        (
            found.collect(),
            shadows().map(|shadow| shadow.count()).sum(),
        )
    }

    /// Watches for the longest stretch of each hart in the hypervisor, from now on: see [`Report`](crate::monitor::Report).
    pub fn watch_stretches(&mut self) {
        for hart in &mut self.harts {
            hart.stretches = Some(Box::default());
        }
    }

    /// Configuration of the machine.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The harts.
    #[must_use]
    pub fn harts(&self) -> &[Hart] {
        &self.harts
    }

    /// Memory and devices.
    #[must_use]
    pub const fn system(&self) -> &System {
        &self.system
    }

    /// Memory and devices, for attaching consoles and the like before a run.
    pub const fn system_mut(&mut self) -> &mut System {
        &mut self.system
    }

    /// Instructions retired by all harts since reset.
    #[must_use]
    pub fn retired(&self) -> u64 {
        self.harts.iter().map(|hart| hart.retired).sum()
    }

    /// Exceptions that all harts together have raised since reset.
    #[must_use]
    pub fn exceptions(&self) -> u64 {
        let causes = self.harts.iter().flat_map(|hart| &hart.counts.traps);
        causes.flat_map(|cause| &cause.exceptions).sum()
    }

    /// Machine time in cycles: the start of the present quantum.
    #[must_use]
    pub const fn now(&self) -> u64 {
        self.now
    }

    /// Bytes of RAM between two physical addresses, `None` unless all of them are RAM.
    #[must_use]
    pub fn read_memory(&mut self, from: u64, to: u64) -> Option<Vec<u8>> {
        let length = usize::try_from(to.checked_sub(from)?).ok()?;
        if !self.system.memory.contains(from, length as u64) {
            return None;
        }
        let mut bytes = vec![0; length];
        self.system.memory.load(from, &mut bytes).ok()?;
        Some(bytes)
    }

    /// The memory that the architecture tests compare, if the program has such.
    #[must_use]
    pub fn signature(&mut self) -> Option<Vec<u8>> {
        let (begin, end) = self.host.signature?;
        self.read_memory(begin, end)
    }

    /// Tests whether a debugger wants instructions to be executed one by one.
    pub(crate) fn is_stepped(&self) -> bool {
        let close = |hart: &Hart| hart.stops.as_ref().is_some_and(|stops| stops.are_close());
        self.harts.iter().any(close)
    }
}
