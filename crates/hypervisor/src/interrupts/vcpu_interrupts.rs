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

/// One life of a vCPU, from one reset of its interrupts to the next. What was sent to an earlier life is dropped.
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
    /// With backing in memory the whole state; else the settings, and what was pending, as the vCPU last left a hart.
    pub(super) state: State,
    pub(super) routes: Vec<Route>,
    pub(super) life: ResetEpoch,
    /// The board's APLIC may have sent to the file that is the backing.
    pub(super) fed_by_sources: bool,
}

impl Interrupts {
    /// Interrupts of a vCPU whose VM has so many of the board's sources. No guest routes more, so that routing allocates nothing.
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

    /// The file of `hart` that they are kept in, if they are.
    #[must_use]
    pub fn file_on(&self, hart: HartId) -> Option<GuestFile> {
        match self.backing {
            Backing::File { hart: home, file } if home == hart => Some(file),
            Backing::File { .. } | Backing::Memory => None,
        }
    }

    /// Returns true if an interrupt in memory is pending, enabled and above the threshold.
    #[must_use]
    pub fn memory_file_asserts(&self) -> bool {
        self.backing == Backing::Memory && InterruptFile::restore(self.state).interrupt()
    }

    /// Lets `access` read and change the file, where it is in memory.
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

    /// Notes that a source sends to this vCPU from now on; the caller makes the board's APLIC do so, under the lock of
    /// this.
    pub fn add_route(&mut self, route: Route) {
        self.remove_route(route.source);
        self.routes.push(route);
        self.fed_by_sources |= self.backing != Backing::Memory;
    }

    /// Notes that a source sends to this vCPU no more.
    pub fn remove_route(&mut self, source: u32) {
        self.routes.retain(|route| route.source != source);
    }
}
