//! Interrupt state of one vCPU.

use alloc::vec::Vec;

use scheduler::HartId;

use super::GuestFile;
use crate::interrupts::softfile::{Identity, InterruptFile, State};

/// Place of the messages to a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Backing {
    /// In memory: no guest file was free, or the vCPU has not run yet.
    #[default]
    Memory,
    /// In this guest file of this hart.
    File { hart: HartId, file: GuestFile },
}

/// A generation of a VM's G-stage table. It grows with each change that takes a mapping away.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(pub u64);

/// Number of resets of a vCPU's interrupts. A message that was sent in an earlier epoch is dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResetEpoch(pub u32);

/// A source of the board's APLIC that a guest has routed to one of its vCPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Route {
    /// The source's number at the board's APLIC.
    pub source: u32,
    /// Identity that the guest has set for the source.
    pub identity: Identity,
}

/// A vCPU's interrupt file, and the board's sources that are wired to it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Interrupts {
    pub(super) backing: Backing,
    /// With backing in memory the whole state; otherwise the settings and pending bits of the vCPU's last departure.
    pub(super) state: State,
    pub(super) routes: Vec<Route>,
    pub(super) life: ResetEpoch,
    /// Set if the board's APLIC may have sent to the present file.
    pub(super) fed_by_sources: bool,
    /// Level of the wire of the vCPU's PLIC, on boards without interrupt files.
    pub(super) irq_level: bool,
}

impl Interrupts {
    /// Interrupts with room for the routes of so many sources. No guest has more, so that routing allocates nothing.
    #[must_use]
    pub fn with_room(sources: usize) -> Self {
        Self {
            routes: Vec::with_capacity(sources),
            ..Self::default()
        }
    }

    /// Place of the interrupts.
    #[must_use]
    pub fn backing(&self) -> Backing {
        self.backing
    }

    /// File of `hart` that holds the interrupts, if one does.
    #[must_use]
    pub fn file_on(&self, hart: HartId) -> Option<GuestFile> {
        match self.backing {
            Backing::File { hart: home, file } if home == hart => Some(file),
            Backing::File { .. } | Backing::Memory => None,
        }
    }

    /// Sets the level of the wire of the vCPU's PLIC.
    pub fn set_irq_level(&mut self, high: bool) {
        self.irq_level = high;
    }

    /// Returns true if the wire is high, or an interrupt in memory is pending, enabled and above the threshold.
    #[must_use]
    #[inline]
    pub fn memory_file_asserts(&self) -> bool {
        self.backing == Backing::Memory
            && (self.irq_level || InterruptFile::restore(self.state).interrupt())
    }

    /// Passes the file to `access`, if it is in memory.
    pub fn with_memory_file<T>(
        &mut self,
        access: impl FnOnce(&mut InterruptFile) -> T,
    ) -> Option<T> {
        if self.backing != Backing::Memory {
            return None;
        }
        let mut file = InterruptFile::restore(self.state);
        let result = access(&mut file);
        self.state = file.save();
        Some(result)
    }

    /// The source's route to this vCPU, if it has one.
    #[must_use]
    pub fn route_of(&self, source: u32) -> Option<Route> {
        self.routes
            .iter()
            .copied()
            .find(|route| route.source == source)
    }

    /// Adds a route to this vCPU. The caller makes the board's APLIC follow, under the same lock.
    pub fn add_route(&mut self, route: Route) {
        self.remove_route(route.source);
        self.routes.push(route);
        self.fed_by_sources |= self.backing != Backing::Memory;
    }

    /// Removes the route of a source to this vCPU.
    pub fn remove_route(&mut self, source: u32) {
        self.routes.retain(|route| route.source != source);
    }
}
