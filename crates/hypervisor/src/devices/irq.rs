//! Interrupt sources: numbers, modes, destinations, and the effects of a guest's interrupt controller.

use riscv::aplic::{SOURCECFG_D, SOURCECFG_SM, source_mode};

use crate::interrupts::softfile::Identity;

/// Trigger mode of an interrupt source: field SM of `sourcecfg` (AIA table of §4.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceMode {
    /// Inactive.
    #[default]
    Inactive,
    /// Active, the wire ignored.
    Detached,
    /// A rising edge.
    EdgeRising,
    /// A falling edge.
    EdgeFalling,
    /// A high level.
    LevelHigh,
    /// A low level.
    LevelLow,
}

impl SourceMode {
    /// The mode that a write of `value` to `sourcecfg` sets. In a leaf domain a delegation (bit 10)
    /// sets the register to zero; the reserved values do the same here (WARL).
    pub fn from_field(value: u32) -> Self {
        if value & SOURCECFG_D != 0 {
            return Self::Inactive;
        }
        match value & SOURCECFG_SM {
            source_mode::DETACHED => Self::Detached,
            source_mode::EDGE1 => Self::EdgeRising,
            source_mode::EDGE0 => Self::EdgeFalling,
            source_mode::LEVEL1 => Self::LevelHigh,
            source_mode::LEVEL0 => Self::LevelLow,
            _ => Self::Inactive,
        }
    }

    /// The value of `sourcecfg`.
    pub fn field(self) -> u32 {
        match self {
            Self::Inactive => source_mode::INACTIVE,
            Self::Detached => source_mode::DETACHED,
            Self::EdgeRising => source_mode::EDGE1,
            Self::EdgeFalling => source_mode::EDGE0,
            Self::LevelHigh => source_mode::LEVEL1,
            Self::LevelLow => source_mode::LEVEL0,
        }
    }

    /// Returns true if the source can be pending at all.
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }

    /// Returns true if the source follows its wire.
    pub fn has_wire(self) -> bool {
        !matches!(self, Self::Inactive | Self::Detached)
    }

    pub fn is_edge(self) -> bool {
        matches!(self, Self::EdgeRising | Self::EdgeFalling)
    }

    pub fn is_level(self) -> bool {
        matches!(self, Self::LevelHigh | Self::LevelLow)
    }

    pub fn is_inverted(self) -> bool {
        matches!(self, Self::EdgeFalling | Self::LevelLow)
    }
}

/// The highest source number that an APLIC can have.
pub const SOURCES_LIMIT: u32 = riscv::aplic::MAX_SOURCE;

/// A source's number at the APLIC, 1 to [`SOURCES_LIMIT`]. The guest's and the board's agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SourceNumber(pub u32);

/// Hart as the guest numbers them: the vCPU's index in its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HartIndex(pub u32);

/// Destination of a source's interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Destination {
    /// The vCPU; it exists.
    pub hart: HartIndex,
    /// The identity at its interrupt file.
    pub identity: Identity,
}

/// Setting of a physical source on the board.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SourceSetting {
    /// Number of the source.
    pub source: SourceNumber,
    /// Trigger mode of the source.
    pub mode: SourceMode,
    /// Destination; `None` if the guest has the source disabled, or sends it nowhere. The source must then be
    /// disabled at the board, where it stays pending if it was.
    pub destination: Option<Destination>,
}

/// Action that a guest's access asks of the hypervisor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Set the board's source so.
    Set(SourceSetting),
    /// Write the physical source to the board's `setipnum`.
    SetPending(SourceNumber),
    /// Write the physical source to the board's `clripnum`.
    ClearPending(SourceNumber),
    /// Send this message to a vCPU's interrupt file.
    Message(Destination),
    /// Set the level of a vCPU's external interrupt.
    External {
        /// The vCPU; it exists.
        hart: HartIndex,
        /// The new level.
        high: bool,
    },
    /// Complete the physical source at the board, which has sent it to the hypervisor and waits.
    Complete(SourceNumber),
}

/// Sources of the board's interrupt controller, as far as a guest's registers show them.
pub trait Sources {
    /// Returns true if the source is pending at the board's controller.
    fn pending(&self, source: SourceNumber) -> bool;
    /// Returns true if the source's wire, as its mode sees it, is high (`in_clrip`).
    fn rectified_input(&self, source: SourceNumber) -> bool;
}
