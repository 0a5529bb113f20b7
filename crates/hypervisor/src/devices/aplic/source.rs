//! One interrupt source: its configuration and, where it is virtual, its wire and pending bit.

use crate::devices::irq::SourceMode;

/// Origin of a source's interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum SourceKind {
    /// Source that is not implemented.
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
    pub kind: SourceKind,
    mode: SourceMode,
    wire: bool,
    pub pending: bool,
    pub enabled: bool,
    pub target: u32,
    /// Set if the input of a physical source was high, and the source not pending, at the last poll.
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
        } else if self.kind == SourceKind::Virtual {
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

    /// Resets the source; the wire stays as it is.
    pub fn reset(&mut self) {
        *self = Self {
            kind: self.kind,
            wire: self.wire,
            ..Self::default()
        };
    }
}
