//! Cause of a page fault of a vCPU on shadow tables: the guest's own, or one of the shadow tables.

use riscv::page_table::{READ, WRITE};

use super::leaf::{LARGEST, Leaf, size};
use crate::memory::address::{GuestPhysical, HostPhysical};
use crate::memory::walk::{self, Access, Features, NoLeaf, Reader};

/// Tries to read an entry that the guest changes meanwhile. Then the guest makes its access again.
const TRIES: usize = 4;
/// The level of the tables whose leaves are pages.
const TABLES_OF_PAGES: u32 = 1;

/// The guest's memory, in which its tables lie.
pub trait GuestTables {
    /// The doubleword at `at`, where that is the guest's memory.
    fn read(&self, at: GuestPhysical) -> Option<u64>;
    /// Sets the doubleword at `at` to `new` if it is still `old`, in one access. Returns whether it was.
    fn exchange(&self, at: GuestPhysical, old: u64, new: u64) -> bool;
}

/// Settings of the guest's translation.
#[derive(Clone, Copy, Debug)]
pub struct WalkSettings {
    /// The guest's satp, which is not Bare.
    pub satp: u64,
    /// Optional bits that the guest may use in its entries.
    pub features: Features,
    /// Set if the hart sets A and D (henvcfg.ADUE); otherwise the guest takes a fault and sets them itself.
    pub sets_marks: bool,
}

/// Outcome of an access of the guest by its own tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WalkResult {
    /// The guest takes a page fault.
    PageFault,
    /// The guest takes an access fault: its tables are not in its memory.
    AccessFault,
    /// The guest's tables change all the time: the guest repeats the access.
    Again,
    /// The access is allowed.
    Allowed(walk::Leaf),
}

/// Walks the guest's tables to `address` for an access on behalf of `reader`.
pub fn walk(
    settings: WalkSettings,
    address: u64,
    (access, reader): (Access, Reader),
    tables: &impl GuestTables,
) -> WalkResult {
    let needed = walk::marks(access);
    for _ in 0..TRIES {
        let found = walk::find_leaf(settings.satp, address, settings.features, |at| {
            tables.read(at)
        });
        let leaf = match found {
            Ok(leaf) => leaf,
            Err(NoLeaf::Fault) => return WalkResult::PageFault,
            Err(NoLeaf::NotMemory) => return WalkResult::AccessFault,
        };
        if !reader.may(access, leaf.entry) {
            return WalkResult::PageFault;
        }
        if leaf.entry & needed == needed {
            return WalkResult::Allowed(leaf);
        }
        if !settings.sets_marks {
            return WalkResult::PageFault;
        }
        let marked = leaf.entry | needed;
        if tables.exchange(leaf.at, leaf.entry, marked) {
            return WalkResult::Allowed(walk::Leaf {
                entry: marked,
                ..leaf
            });
        }
    }
    WalkResult::Again
}

/// Place of a guest-physical address, by the G-stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub host: HostPhysical,
    /// Size of the contiguous piece, and its alignment.
    pub size: u64,
    /// R, W and X.
    pub rights: u64,
    /// Set if the page may be moved while the guest runs.
    pub moves: bool,
}

/// The leaf that the shadow tables need for this access of `reader`, which the guest's entry allows; `None` if the
/// G-stage does not allow it, or allows only what no leaf can say.
#[must_use]
pub fn leaf(
    address: u64,
    (access, reader): (Access, Reader),
    guest: &walk::Leaf,
    place: Place,
) -> Option<Leaf> {
    // A clean page is not writable, so that the first store comes here.
    let clean = guest.entry & walk::marks(Access::Store) != walk::marks(Access::Store);
    let most = if clean {
        place.rights & !WRITE
    } else {
        place.rights
    };
    let rights = Leaf::rights_of(guest.entry, most);
    // An entry without R, W and X would be a table to the hart, and W without R is reserved. Neither is ever made: a leaf lets the
    // access through that it is for.
    if rights & (READ | WRITE) == WRITE || !reader.may(access, rights) {
        return None;
    }
    let fits = |level: &u32| !guest.contiguous && size(*level) <= place.size;
    let level = (0..=guest.level.min(LARGEST)).rev();
    let level = level.into_iter().find(fits).unwrap_or(0);
    Some(Leaf {
        address,
        host: place.host,
        level,
        whole: if guest.contiguous {
            TABLES_OF_PAGES
        } else {
            guest.level
        },
        rights,
        moves: place.moves.then(|| guest.to.raw() & !(size(0) - 1)),
    })
}
