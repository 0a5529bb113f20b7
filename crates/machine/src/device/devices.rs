//! All devices of one machine behind one physical address map.

use serde::{Deserialize, Serialize};

use super::{AccessFault, Clock, Cycles, Effects, HartId, HartWires, Memory, Power, Wires};

/// One of a hart's interrupt files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum InterruptFile {
    /// The machine-level file: miselect, mireg, mtopei.
    Machine,
    /// The supervisor-level file: siselect, sireg, stopei.
    Supervisor,
    /// Guest interrupt file 1..=63: vsiselect, vsireg, vstopei with that hstatus.VGEIN.
    Guest(u8),
}

/// The file or the register asked for does not exist. Which exception that is depends on the
/// privilege mode and is the hart's to decide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no such interrupt file or register")]
pub struct NoSuchRegister;

/// How many of what the machine has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DevicesConfig {
    /// Number of harts.
    pub harts: u32,
    /// Guest interrupt files a hart, 0..=63 (GEILEN).
    pub guest_files: u8,
    /// Highest interrupt identity of a file: 63, 127, ... 2047.
    pub interrupt_ids: u16,
    /// How cycles relate to ticks and nanoseconds.
    pub clock: Clock,
}

/// All devices of one machine.
#[derive(Debug)]
pub struct Devices {
    config: DevicesConfig,
    effects: Effects,
}

impl Devices {
    /// The devices as they are after reset.
    #[must_use]
    pub fn new(config: DevicesConfig) -> Self {
        let effects = Effects {
            wires: Wires::new(config.harts),
            ..Effects::default()
        };
        Self { config, effects }
    }

    /// Reads `size` bytes (1, 2, 4 or 8) at a physical address outside RAM.
    ///
    /// # Errors
    /// [`AccessFault`] when nothing answers.
    pub fn read(
        &mut self,
        _address: u64,
        _size: u8,
        _now: Cycles,
        _memory: &mut dyn Memory,
    ) -> Result<u64, AccessFault> {
        Err(AccessFault)
    }

    /// Writes `size` bytes (1, 2, 4 or 8) at a physical address outside RAM.
    ///
    /// # Errors
    /// [`AccessFault`] when nothing answers.
    pub fn write(
        &mut self,
        _address: u64,
        _size: u8,
        _value: u64,
        _now: Cycles,
        _memory: &mut dyn Memory,
    ) -> Result<(), AccessFault> {
        Err(AccessFault)
    }

    /// Lets every device do what has become due by `now`, and takes input from the host's side.
    pub fn tick(&mut self, _now: Cycles, _memory: &mut dyn Memory) {}

    /// When [`Devices::tick`] has something to do next; [`Cycles::NEVER`] if nothing is planned.
    /// Valid until the next access or tick. A field read: cheap enough for the inner loop.
    #[must_use]
    pub fn next_event(&self) -> Cycles {
        Cycles::NEVER
    }

    /// The levels driven into one hart.
    #[must_use]
    pub fn wires(&self, hart: HartId) -> HartWires {
        self.effects.wires.hart(hart)
    }

    /// Whether any hart's wires changed since the note of changes was last emptied.
    #[must_use]
    pub fn any_wires_changed(&self) -> bool {
        self.effects.wires.any_changed()
    }

    /// Takes one hart whose wires changed off the note of changes, oldest first.
    pub fn take_changed(&mut self) -> Option<HartId> {
        self.effects.wires.take_changed()
    }

    /// The hart has set mip.SSIP for the edge in its wires: forget the edge.
    pub fn acknowledge_software_edge(&mut self, hart: HartId) {
        self.effects
            .wires
            .update(hart, |wires| wires.supervisor_software_edge = false);
    }

    /// The `time` CSR: MTIMER's mtime at `now`.
    #[must_use]
    pub fn time(&self, now: Cycles) -> u64 {
        self.config.clock.ticks(now)
    }

    /// The first machine time at which [`Devices::time`] is at least `time`: for stimecmp and
    /// vstimecmp deadlines.
    #[must_use]
    pub fn cycles_at_time(&self, time: u64) -> Cycles {
        self.config.clock.cycles_at(time)
    }

    /// Reads a file's register: `select` is the value of *iselect, 0x70..=0xff.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if the hart has no such file or the file no such register (the odd
    /// numbered eip and eie registers do not exist on RV64).
    pub fn imsic_read(
        &mut self,
        _hart: HartId,
        _file: InterruptFile,
        _select: u64,
    ) -> Result<u64, NoSuchRegister> {
        Err(NoSuchRegister)
    }

    /// Writes a file's register: `select` is the value of *iselect, 0x70..=0xff.
    ///
    /// # Errors
    /// As [`Devices::imsic_read`].
    pub fn imsic_write(
        &mut self,
        _hart: HartId,
        _file: InterruptFile,
        _select: u64,
        _value: u64,
    ) -> Result<(), NoSuchRegister> {
        Err(NoSuchRegister)
    }

    /// The value of *topei: identity in bits 26:16 and again in bits 10:0, or zero.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if the hart has no such file.
    pub fn imsic_top(&self, _hart: HartId, _file: InterruptFile) -> Result<u64, NoSuchRegister> {
        Err(NoSuchRegister)
    }

    /// A write to *topei: claims the interrupt that [`Devices::imsic_top`] reports.
    ///
    /// # Errors
    /// [`NoSuchRegister`] if the hart has no such file.
    pub fn imsic_claim(
        &mut self,
        _hart: HartId,
        _file: InterruptFile,
    ) -> Result<(), NoSuchRegister> {
        Err(NoSuchRegister)
    }

    /// What the test finisher asked for, if it did.
    #[must_use]
    pub fn power(&self) -> Option<Power> {
        self.effects.power
    }
}
