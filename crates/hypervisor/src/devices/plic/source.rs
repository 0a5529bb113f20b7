//! One source of a guest's PLIC, and its gateway.

/// Wire of a source.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceKind {
    /// None: its registers are read-only zeros.
    #[default]
    Absent,
    /// A line whose level the hypervisor sets.
    Virtual,
    /// A line of the board.
    Physical,
}

/// A source.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    pub kind: SourceKind,
    /// 0 never interrupts.
    pub priority: u32,
    pub pending: bool,
    /// Claimed and not completed yet: the gateway sends no further request.
    pub in_service: bool,
    /// Level of a virtual source's line.
    pub level: bool,
    /// Set while the board waits for the completion of a physical source.
    pub claimed_at_board: bool,
}

impl Source {
    /// Sends a virtual source's request, unless the last one is not completed yet. A request stays if its line falls ("Interrupt Gateways").
    pub const fn request(&mut self) {
        self.pending |= self.level && !self.in_service;
    }

    /// Resets the source, its wire and the level of the wire kept. Returns true if the board waits for its completion.
    pub fn reset(&mut self) -> bool {
        let waits = self.claimed_at_board;
        *self = Self {
            kind: self.kind,
            level: self.level,
            ..Self::default()
        };
        self.request();
        waits
    }
}
