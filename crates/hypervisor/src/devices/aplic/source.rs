//! One interrupt source: its configuration and, where it is virtual, its wire and pending bit.

/// What counts as an interrupt on a source's wire: field SM of `sourcecfg` (AIA table of §4.5.2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SourceMode {
    /// Not active.
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
    pub(super) fn from_field(value: u32) -> Self {
        if value & 1 << 10 != 0 {
            return Self::Inactive;
        }
        match value & 7 {
            1 => Self::Detached,
            4 => Self::EdgeRising,
            5 => Self::EdgeFalling,
            6 => Self::LevelHigh,
            7 => Self::LevelLow,
            _ => Self::Inactive,
        }
    }

    /// The value of `sourcecfg`.
    pub fn field(self) -> u32 {
        match self {
            Self::Inactive => 0,
            Self::Detached => 1,
            Self::EdgeRising => 4,
            Self::EdgeFalling => 5,
            Self::LevelHigh => 6,
            Self::LevelLow => 7,
        }
    }

    /// Whether the source can be pending at all.
    pub fn is_active(self) -> bool {
        self != Self::Inactive
    }

    /// Whether the wire is looked at.
    pub(super) fn has_wire(self) -> bool {
        !matches!(self, Self::Inactive | Self::Detached)
    }

    pub(super) fn is_edge(self) -> bool {
        matches!(self, Self::EdgeRising | Self::EdgeFalling)
    }

    fn is_level(self) -> bool {
        matches!(self, Self::LevelHigh | Self::LevelLow)
    }

    fn is_inverted(self) -> bool {
        matches!(self, Self::EdgeFalling | Self::LevelLow)
    }
}

/// Who stands behind a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// Nobody: the source is not implemented.
    #[default]
    Absent,
    /// The hypervisor.
    Virtual,
    /// The board's source of the same number.
    Physical,
}

/// A source's state. The pending bit of a physical one is the board's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Source {
    pub kind: Kind,
    mode: SourceMode,
    wire: bool,
    pub pending: bool,
    pub enabled: bool,
    pub target: u32,
    /// The input of a physical source was high, and not pending, when it was last looked at.
    pub suspected: bool,
}

impl Source {
    pub fn mode(&self) -> SourceMode {
        self.mode
    }

    /// The wire's value, inverted where the mode says so; zero without a wire.
    pub fn rectified_input(&self) -> bool {
        self.mode.has_wire() && self.wire != self.mode.is_inverted()
    }

    pub fn set_wire(&mut self, high: bool) {
        let before = self.rectified_input();
        self.wire = high;
        let now = self.rectified_input();
        if now && !before {
            self.pending = true;
        } else if !now && self.mode.is_level() {
            self.pending = false;
        }
    }

    /// Sets the mode. An inactive source's other registers are read-only zeros. A source that finds
    /// its input high becomes pending, which the specification permits and no guest can lose by.
    pub fn set_mode(&mut self, mode: SourceMode) {
        self.mode = mode;
        if !mode.is_active() {
            self.pending = false;
            self.enabled = false;
            self.target = 0;
        } else if self.kind == Kind::Virtual {
            if self.rectified_input() {
                self.pending = true;
            } else if mode.is_level() {
                self.pending = false;
            }
        }
    }

    /// A write to `setip` or `setipnum` (AIA §4.7).
    pub fn pend(&mut self) {
        if !self.mode.is_level() || self.rectified_input() {
            self.pending = true;
        }
    }

    /// The state of reset; the wire stays as it is.
    pub fn reset(&mut self) {
        *self = Self {
            kind: self.kind,
            wire: self.wire,
            ..Self::default()
        };
    }
}
