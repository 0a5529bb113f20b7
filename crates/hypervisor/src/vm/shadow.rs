//! State of a vCPU on shadow tables beside its other registers.

use crate::memory::shadow::ShadowTables;

/// A vCPU's shadow tables, and the registers that they stand for.
#[derive(Debug)]
pub struct Shadow {
    /// satp as its guest has set it.
    pub satp: u64,
    pub tables: ShadowTables,
    /// hgatp for the time when satp is Bare, with the tag that it has on the hart where it runs.
    pub own_stage: u64,
    /// Number of siblings' fences that have been carried out on the tables.
    pub fenced: u64,
    /// Generation of the G-stage table that the tables follow.
    pub generation: u64,
}

impl Shadow {
    /// State of a vCPU whose satp is Bare.
    #[must_use]
    pub const fn new(tables: ShadowTables) -> Self {
        Self {
            satp: 0,
            tables,
            own_stage: 0,
            fenced: 0,
            generation: 0,
        }
    }

    /// Resets the state: satp is Bare, and the tables are empty. Harts drop their translations when the vCPU comes to them.
    pub fn reset(&mut self) {
        self.satp = 0;
        self.tables.clear();
        self.fenced = 0;
        self.generation = 0;
    }

    /// Returns true if the guest's satp is not Bare, so that the shadow tables translate.
    #[must_use]
    pub fn translates(&self) -> bool {
        self.tables.present().is_some()
    }
}
