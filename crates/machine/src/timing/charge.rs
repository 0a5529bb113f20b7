//! Accesses, as the models are told of them.

use super::filter::PageName;
use super::{LINE_SHIFT, Space};
use crate::base::Access;
use crate::base::PAGE_SHIFT;
use crate::base::Reference;
use crate::count::Event;

/// An access as the caches see it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineAccess {
    /// Fetch of instructions.
    Fetch,
    /// Load.
    Load,
    /// Store.
    Store,
    /// Load and store that nothing comes between: SC and the AMOs.
    Modify,
    /// Store of the whole line, whose old bytes nobody needs: CBO.ZERO.
    Overwrite,
    /// CBO.CLEAN: memory gets the line's bytes.
    Clean,
    /// CBO.FLUSH: memory gets the line's bytes, and the caches lose it.
    Flush,
    /// CBO.INVAL: the caches lose the line.
    Invalidate,
}

impl LineAccess {
    /// Kind of access for page tables and TLBs.
    #[must_use]
    pub const fn access(self) -> Access {
        match self {
            Self::Fetch => Access::Fetch,
            Self::Load | Self::Clean | Self::Flush | Self::Invalidate => Access::Load,
            Self::Store | Self::Modify | Self::Overwrite => Access::Store,
        }
    }

    /// Tests whether it changes the line's bytes.
    #[must_use]
    pub const fn is_store(self) -> bool {
        matches!(self.access(), Access::Store)
    }

    /// Tests whether it manages the line in all caches.
    #[must_use]
    pub const fn is_management(self) -> bool {
        matches!(self, Self::Clean | Self::Flush | Self::Invalidate)
    }
}

/// An access to charge for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charge {
    /// Kind of access.
    pub access: LineAccess,
    /// The address that the program gave.
    pub address: u64,
    /// Physical address.
    pub physical: u64,
    /// The address space.
    pub space: Space,
    /// True if page tables take part at all.
    pub translated: bool,
    /// How the filter of pages is to know the page, if it is to.
    pub name: Option<PageName>,
    /// True if other address spaces know their pages by the same names.
    pub shared: bool,
}

impl Charge {
    /// Tests whether it is a fetch.
    #[must_use]
    pub const fn is_fetch(self) -> bool {
        matches!(self.access, LineAccess::Fetch)
    }

    pub(super) const fn page(self) -> u64 {
        self.address >> PAGE_SHIFT
    }

    pub(super) const fn line(self) -> u64 {
        self.physical >> LINE_SHIFT
    }

    /// Event of a miss of the first-level TLB.
    pub(super) const fn tlb_miss(self) -> Event {
        match self.access.access() {
            Access::Fetch => Event::FetchTlbMisses,
            Access::Load => Event::LoadTlbMisses,
            Access::Store => Event::StoreTlbMisses,
        }
    }
}

/// Result of a page-table walk, with the entries that it read.
#[derive(Debug, Clone, Copy)]
pub struct Walked<'a> {
    /// log2 of the bytes that both stages map together.
    pub shift: u32,
    /// True if the first stage's mapping is global.
    pub global: bool,
    /// The guest physical address that the first stage gives.
    pub guest_physical: u64,
    /// The entries that were read, in their order.
    pub references: &'a [Reference],
}
