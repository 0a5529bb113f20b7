//! State of a vCPU on shadow tables beside its other registers.

use core::ops::{Deref, DerefMut};

use crate::memory::shadow::ShadowTables;

#[cfg(feature = "papers")]
type Kept = alloc::boxed::Box<Shadow>;
#[cfg(not(feature = "papers"))]
type Kept = core::convert::Infallible;

/// A vCPU's shadow tables, on the heap. In a build without the papers' methods no vCPU has any: there is no value of this type, so that
/// the compiler leaves all code for it out.
#[derive(Debug)]
pub struct OwnShadow(Kept);

#[cfg(feature = "papers")]
impl OwnShadow {
    /// State of a vCPU whose satp is Bare.
    #[must_use]
    pub fn new(tables: ShadowTables) -> Option<Self> {
        Some(Self(Kept::new(Shadow::new(tables))))
    }
}

#[cfg(not(feature = "papers"))]
impl OwnShadow {
    /// Returns none: a description that asks for shadow tables was refused.
    #[must_use]
    pub fn new(_: ShadowTables) -> Option<Self> {
        None
    }
}

impl Deref for OwnShadow {
    type Target = Shadow;

    fn deref(&self) -> &Shadow {
        #[cfg(feature = "papers")]
        {
            &self.0
        }
        #[cfg(not(feature = "papers"))]
        match self.0 {}
    }
}

impl DerefMut for OwnShadow {
    fn deref_mut(&mut self) -> &mut Shadow {
        #[cfg(feature = "papers")]
        {
            &mut self.0
        }
        #[cfg(not(feature = "papers"))]
        match self.0 {}
    }
}

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
    #[cfg(feature = "papers")]
    const fn new(tables: ShadowTables) -> Self {
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
