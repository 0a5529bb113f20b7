//! Configuration of a machine.

use crate::base::Clock;
use crate::base::{Paging, VectorLength};
use crate::board::{BoardConfig, BoardError, IommuConfig, Isa, PmpEntries, VmidBits, map};
use crate::code::BlockLimit;
use crate::extension::Options;
use crate::memory::RamError;
use crate::system::Limits;
use crate::timing::Profile;

/// Configuration of a machine.
#[derive(Debug, Clone)]
pub struct Config {
    /// Harts, memory, devices, frequencies.
    pub board: BoardConfig,
    /// Cycles that a hart runs before the next one's turn.
    pub quantum: u64,
    /// How many quanta a hart's turn has in the functional mode, where nothing costs time and a short turn shows
    /// nothing; at least 1.
    pub fast_turns: u64,
    /// Limits of time that software can see.
    pub limits: Limits,
    /// Where decoded blocks end, and with them the points between which harts can change.
    pub blocks: BlockLimit,
}

/// Why there is no computer.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The board cannot exist, or a file cannot be loaded on it.
    #[error(transparent)]
    Board(#[from] BoardError),
    /// There is no RAM.
    #[error(transparent)]
    Ram(#[from] RamError),
    /// The quantum is out of range.
    #[error("a quantum of {0} cycles: must be 1 to 1000000")]
    Quantum(u64),
    /// The turn of the functional mode is out of range.
    #[error("turns of {0} quanta in the functional mode: must be 1 to 1000")]
    FastTurns(u64),
}

/// Quanta of a turn in the functional mode of a machine that a profile describes.
const FAST_TURNS: u64 = 10;

/// A and D bits set by hardware, once menvcfg.ADUE asks for it, and only ever by software.
const SVADU: &str = "svadu";
const SVADE: &str = "svade";

/// The instruction set that the harts have, as the device tree tells it.
#[must_use]
pub fn isa() -> Isa {
    let extensions = [
        "i",
        "m",
        "a",
        "f",
        "d",
        "c",
        "h",
        "zicbom",
        "zicbop",
        "zicboz",
        "zicntr",
        "zicond",
        "zicsr",
        "zifencei",
        "zihintntl",
        "zihintpause",
        "zihpm",
        "zimop",
        "zabha",
        "zacas",
        "zawrs",
        "zfa",
        "zfh",
        "zca",
        "zcb",
        "zcd",
        "zcmop",
        "zba",
        "zbb",
        "zbc",
        "zbkb",
        "zbkx",
        "zbs",
        "smaia",
        "smmpm",
        "smnpm",
        "smstateen",
        "ssaia",
        "sscofpmf",
        "ssnpm",
        "sstc",
        SVADU,
        "svinval",
        "svnapot",
        "svpbmt",
    ];
    let options = Options::default();
    Isa {
        base: "rv64i".to_owned(),
        extensions: extensions
            .into_iter()
            .chain(options.names())
            .map(str::to_owned)
            .collect(),
        mmu: Paging::default().mmu_type().to_owned(),
        cache_block: 64,
        vmid_bits: VmidBits::default(),
        pmp_entries: PmpEntries::default(),
        vector_length: VectorLength::NONE,
    }
}

/// The IOMMU that a profile describes, or the usual one.
#[must_use]
pub fn iommu(profile: Option<&Profile>) -> IommuConfig {
    let own = profile.map(|profile| profile.iommu).unwrap_or_default();
    IommuConfig {
        contexts: own.contexts,
        entries: own.entries,
        message_tables: own.message_tables,
    }
}

impl Default for Config {
    /// One hart at 1 GHz with 1 GiB, seven guest interrupt files and eight virtio slots.
    fn default() -> Self {
        Self {
            board: BoardConfig {
                harts: 1,
                memory: 1 << 30,
                guest_files: 7,
                interrupt_ids: 255,
                virtio_slots: map::VIRTIO_SLOTS,
                pci: None,
                clock: Clock::new(1_000_000_000, 10_000_000),
                isa: isa(),
                bootargs: String::new(),
                seed: 0,
            },
            quantum: 1000,
            fast_turns: 1,
            limits: Limits {
                wrs_nto: 2000,
                wrs_sto: 200,
            },
            blocks: BlockLimit::default(),
        }
    }
}

impl Config {
    /// One hart with 1 GiB, and what a profile says.
    #[must_use]
    pub fn with_profile(profile: &Profile) -> Self {
        let mut config = Self::default();
        config.use_profile(profile);
        config
    }

    /// Takes over what a profile says of the computer's make-up: frequencies, guest interrupt
    /// files, extensions, and limits of time.
    pub fn use_profile(&mut self, profile: &Profile) {
        self.board.clock = Clock::new(profile.hertz, profile.timebase);
        self.board.guest_files = profile.guest_files;
        self.quantum = profile.quantum;
        self.fast_turns = FAST_TURNS;
        self.limits = Limits {
            wrs_nto: profile.wrs_nto_limit,
            wrs_sto: profile.wrs_sto_limit,
        };
        self.board.isa = isa();
        if let Some(paging) = Paging::of_bits(profile.virtual_address_bits) {
            self.board.isa.mmu = paging.mmu_type().to_owned();
        }
        self.board.isa.vmid_bits = VmidBits::new(profile.vmid_bits);
        if let Some(entries) = PmpEntries::new(profile.pmp_entries) {
            self.board.isa.pmp_entries = entries;
        }
        if let Some(vector) = profile.vector
            && let Some(length) = VectorLength::new(vector.vlen)
        {
            self.board.isa.set_vector_length(length);
        }
        let extensions = &mut self.board.isa.extensions;
        if !profile.svadu {
            let name = extensions.iter_mut().find(|name| *name == SVADU);
            name.into_iter().for_each(|name| SVADE.clone_into(name));
        }
        let absent: Vec<_> = Options::default().names().collect();
        extensions.retain(|name| !absent.contains(&name.as_str()));
        extensions.extend(profile.options.names().map(str::to_owned));
        extensions.extend(profile.extensions.names().map(str::to_owned));
    }

    /// Checks that the computer can exist.
    ///
    /// # Errors
    /// What is wrong first.
    pub fn check(&self) -> Result<(), MachineError> {
        self.board.check()?;
        if !(1..=1_000_000).contains(&self.quantum) {
            return Err(MachineError::Quantum(self.quantum));
        }
        if !(1..=1_000).contains(&self.fast_turns) {
            return Err(MachineError::FastTurns(self.fast_turns));
        }
        Ok(())
    }
}
