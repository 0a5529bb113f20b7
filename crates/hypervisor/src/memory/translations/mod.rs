//! Cached translations: which tag (VMID) marks those of a vCPU, and when a hart must drop some before the vCPU runs.
//!
//! Each vCPU has a tag of its own where the harts have enough of them: with one tag for each VM, two vCPUs that take turns on
//! one hart would see each other's stale entries. Where there are too few tags, several vCPUs have the same tag, and
//! whatever is marked with it is dropped when another one of them comes to a hart. With no VMID bits at all
//! (VMIDLEN = 0 is allowed: privileged architecture, "Hypervisor Guest Address Translation and Protection Register") that
//! means at each change of the vCPU.
//!
//! This module alone decides about tags and purges. It is pure: what a hart has to do is told by [`Purge`], and carried
//! out by [`Fences`]. `model` explores all that harts, vCPUs and tables can do, and looks for a use of a stale entry.
//!
//! The argument, for a vCPU V that is about to run on a hart H. An entry on H with V's tag may be stale because
//! - another vCPU made it: then that vCPU had the tag on H later than V, and `VmidTable` knows ([`Purge::others`]);
//! - V changed its tables and fenced on another hart since it left H: then H is not one of V's good harts ([`Purge::stale`]; below);
//! - V's life began anew: a new [`Cached`] leads to the same purge;
//! - a sibling asked V for a fence: then H has carried out fewer of these than there were ([`Purge::fences`], [`remote`]);
//! - the G-stage table changed: then the generation under which V last ran on H is an older one ([`Purge::older`]). What changes is the
//!   page of a sibling's interrupt file, and of V's own at each change of hart, so those pages are dropped alone ([`changes::Changes`]).
//!
//! V's *good* harts are those where whatever is cached for V is right: it is the complement of paper 003's TLB purge control
//! word. A fence of V leaves the hart that it runs on as the only good one. The methods differ in how the hypervisor comes to
//! know of that fence ([`Watch`]): where it cannot, every hart but V's own counts as fenced for ([`TlbPurge::LastHost`]);
//! the harts remember it ([`TlbPurge::PurgeMask`], [`TlbPurge::PurgeCheck`]); or the first fence after a change of hart
//! traps ([`TlbPurge::OneShot`]), as long as there is another good hart that it would make a bad one. So a fence that does not trap
//! changes nothing that the hypervisor believes, and one that traps is known before it is carried out.

pub mod backoff;
pub mod changes;
mod fences;
#[cfg(test)]
mod model;
pub mod remote;
#[cfg(test)]
mod remote_model;
#[cfg(test)]
mod renaming;
mod tags;
#[cfg(test)]
mod tests;
pub mod vmid_table;

pub use fences::Fences;
pub use tags::{MAX_TAG_BITS, Tag, Tags};

use crate::hart::capabilities::Capability;
use crate::memory::address::GuestPhysical;
use abi::system::TlbPurge;
use changes::Changed;
use remote::Outstanding;
use scheduler::{HartId, HartSet, MAX_HARTS, VcpuNumber};
use vmid_table::VmidTable;

/// Number of changes of its address space that the hypervisor carries out for a guest while the guest's fences trap, after each change of hart; at
/// the next one they stop trapping, as if it had fenced. Both trap together (hstatus.VTVM), and a guest that changes its address
/// space all the time would pay more for that than its entries on other harts are worth.
pub const CHANGES_WHILE_ARMED: u8 = 2;

/// Extension that a hart needs for `method`, if any.
#[must_use]
pub const fn needed(method: TlbPurge) -> Option<Capability> {
    match method {
        TlbPurge::PurgeMask => Some(Capability::PurgeMask),
        TlbPurge::PurgeCheck => Some(Capability::PurgeCheck),
        TlbPurge::Clear | TlbPurge::Keep | TlbPurge::LastHost | TlbPurge::OneShot => None,
    }
}

/// Way in which the hypervisor learns that a vCPU has fenced, while it is on a hart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Watch {
    /// No watch: no other hart has current entries.
    #[default]
    Nothing,
    /// The next fence traps, and so does each access to satp (hstatus.VTVM).
    Trap,
    /// The hart records the fence (docs/reference/extensions.md, "Purge mask").
    Mask,
}

/// State that a hart with a purge mask keeps when a vCPU leaves it (docs/reference/extensions.md); nothing on others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// Set once the vCPU has fenced.
    pub fenced: bool,
    /// Set while the hart is to purge when it next enters the guest.
    pub due: bool,
}

/// Harts that may cache translations of one vCPU. Used by the hart that has the vCPU alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
// The large parts last.
#[repr(C)]
pub struct Cached {
    last: Option<HartId>,
    /// The harts where no entry of the vCPU is older than its last fence.
    good: HartSet,
    watch: Watch,
    /// Changes of the address space that are still carried out while fences trap.
    changes_left: u8,
    /// Valid state on each hart.
    on: [OnHart; MAX_HARTS],
}

/// Purges of one vCPU on one hart. Together, so that an arrival touches one line of the cache for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct OnHart {
    /// Generation of the G-stage table that the cached translations follow. 0: none yet.
    seen: u64,
    /// Number of siblings' fences that have been carried out there.
    fenced: u64,
}

impl Default for Cached {
    fn default() -> Self {
        Self {
            last: None,
            good: HartSet::EMPTY,
            watch: Watch::Nothing,
            changes_left: 0,
            on: [OnHart { seen: 0, fenced: 0 }; MAX_HARTS],
        }
    }
}

impl Cached {
    /// The hart where the vCPU ran last.
    #[must_use]
    pub const fn last_hart(&self) -> Option<HartId> {
        self.last
    }

    /// Decides about a vCPU that comes to `hart`, whose hgatp has the vCPU's tag of `vmids`; the G-stage table has `generation`, from 1, and siblings
    /// have asked for so many `fences`.
    /// Carry out every field before entering the guest. The vCPU's fences are watched by [`Cached::watch`] from then on.
    #[must_use]
    pub fn arrive(
        &mut self,
        method: TlbPurge,
        vcpu: VcpuNumber,
        hart: HartId,
        vmids: &mut VmidTable,
        (generation, fences): (u64, u64),
    ) -> Purge {
        let others = vmids.take(vcpu);
        let moved = self.last.replace(hart) != Some(hart);
        let stale = !self.good.contains(hart);
        self.good.insert(hart);
        if moved && method == TlbPurge::OneShot {
            self.changes_left = CHANGES_WHILE_ARMED;
        }
        let alone = self.good == HartSet::only(hart);
        self.watch = match method {
            _ if alone => Watch::Nothing,
            TlbPurge::PurgeMask | TlbPurge::PurgeCheck => Watch::Mask,
            TlbPurge::OneShot => Watch::Trap,
            TlbPurge::Clear | TlbPurge::Keep | TlbPurge::LastHost => {
                self.good = HartSet::only(hart);
                Watch::Nothing
            }
        };
        Purge {
            others,
            moved,
            stale,
            older: self.renew(hart, generation).older,
            fences: self.asked(hart, fences).fences,
        }
    }

    /// Tests whether the vCPU comes back to `hart` as it left it, so that [`Cached::arrive`] would change nothing, and may be left out: it ran
    /// nowhere else, no other vCPU has had its tag, the G-stage table is the same, and its fences are watched as the method wants it.
    #[inline]
    #[must_use]
    pub fn comes_back(
        &self,
        vcpu: VcpuNumber,
        hart: HartId,
        vmids: &VmidTable,
        generation: u64,
        method: impl FnOnce() -> TlbPurge,
    ) -> bool {
        self.last == Some(hart)
            && self.good.contains(hart)
            && self.on[hart.index()].seen == generation
            && vmids.has(vcpu)
            && match self.watch {
                // No other hart counts as current, which is right under each method.
                Watch::Nothing => true,
                Watch::Trap => method() == TlbPurge::OneShot,
                // The hart has recorded fences of others since.
                Watch::Mask => false,
            }
    }

    /// Watch of the vCPU's fences; between two stays, the watch at the end of the first one.
    #[inline]
    #[must_use]
    pub const fn watch(&self) -> Watch {
        self.watch
    }

    /// Tests whether a change of the address space has been carried out since the vCPU's last change of hart, while its fences trapped.
    #[must_use]
    pub const fn has_changed_address_space(&self) -> bool {
        self.changes_left < CHANGES_WHILE_ARMED
    }

    /// Notes that the vCPU, which is on `hart`, has fenced, or is about to: its translations on other harts are stale.
    pub const fn fenced(&mut self, hart: HartId) {
        self.good = HartSet::only(hart);
        self.watch = Watch::Nothing;
    }

    /// Notes a change of the address space while the vCPU's fences trap. Returns true if it is to be carried out for the vCPU, and
    /// the fences go on trapping.
    #[must_use]
    pub const fn changes_address_space(&mut self, hart: HartId) -> bool {
        match self.changes_left.checked_sub(1) {
            Some(left) if matches!(self.watch, Watch::Trap) => {
                self.changes_left = left;
                true
            }
            _ => {
                self.fenced(hart);
                false
            }
        }
    }

    /// Notes that the vCPU leaves `hart`.
    pub const fn leave(&mut self, hart: HartId, remembered: Remembered) {
        if matches!(self.watch, Watch::Mask) && remembered.fenced {
            self.fenced(hart);
        }
        if remembered.due {
            self.good.remove(hart);
        }
    }

    /// Decides about siblings' `fences`; the vCPU is on `hart`, and about to enter its guest. Translations on other harts
    /// stay: they are fenced when the vCPU comes there.
    #[must_use]
    pub const fn asked(&mut self, hart: HartId, fences: u64) -> Purge {
        let fenced = &mut self.on[hart.index()].fenced;
        let since = if *fenced == fences {
            None
        } else {
            Some(*fenced)
        };
        *fenced = fences;
        Purge {
            others: false,
            moved: false,
            stale: false,
            older: None,
            fences: since,
        }
    }

    /// Decides about the table's new `generation`; the vCPU is on `hart`, and about to enter its guest.
    #[must_use]
    pub const fn renew(&mut self, hart: HartId, generation: u64) -> Purge {
        let seen = &mut self.on[hart.index()].seen;
        let older = if *seen == generation {
            None
        } else {
            Some(*seen)
        };
        *seen = generation;
        Purge {
            older,
            others: false,
            moved: false,
            stale: false,
            fences: None,
        }
    }
}

/// Translations that a hart must drop before a vCPU enters its guest, by the reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Purge {
    /// Another vCPU's entries may have the tag.
    pub others: bool,
    /// The vCPU comes from another hart: it may have made stores to code visible to that one alone.
    pub moved: bool,
    /// The vCPU may have fenced since it was here.
    pub stale: bool,
    /// The G-stage table may have changed since it had this generation; 0 is before the first.
    pub older: Option<u64>,
    /// Siblings have asked for fences after the one with this number.
    pub fences: Option<u64>,
}

impl Purge {
    /// Drops the stale translations, or renames the tag; vsatp is 0, and hgatp has the tag that `vmids` has for the vCPU. `changes` are those of
    /// its table, `asked` the fences of its siblings. Returns true if the vCPU has a new tag.
    #[inline(never)]
    pub fn carry_out_at_arrival(
        self,
        vcpu: VcpuNumber,
        vmids: &mut VmidTable,
        (changes, asked): (&impl Changed, &impl Outstanding),
        fences: &mut impl Fences,
    ) -> bool {
        let pages = self.older.map(|since| changes.since(since));
        let everything = self.others || self.stale || matches!(pages, Some(None));
        if everything && vmids.rename(vcpu, fences).is_some() {
            // The new tag marks nothing.
            if self.moved {
                fences.instructions();
            }
            return true;
        }
        self.drop_entries(vmids.tag(vcpu), pages, asked, fences);
        false
    }

    /// Drops the stale translations by fences. hgatp has `tag`.
    #[inline(never)]
    pub fn carry_out(
        self,
        tag: Tag,
        (changes, asked): (&impl Changed, &impl Outstanding),
        fences: &mut impl Fences,
    ) {
        let pages = self.older.map(|since| changes.since(since));
        self.drop_entries(tag, pages, asked, fences);
    }

    /// Drops entries where it is known which `pages` of the table have changed since [`Purge::older`]: `Some(None)` is all of them.
    fn drop_entries(
        self,
        tag: Tag,
        pages: Option<Option<impl Iterator<Item = GuestPhysical>>>,
        asked: &impl Outstanding,
        fences: &mut impl Fences,
    ) {
        let all = self.others || matches!(pages, Some(None));
        if all {
            fences.guest_physical(tag);
        } else if let Some(Some(pages)) = pages {
            pages.for_each(|page| fences.guest_page(tag, page));
        }
        let operands = self.fences.map(|since| asked.since(since));
        if all || self.stale || matches!(operands, Some(None)) {
            fences.guest_virtual();
        } else if let Some(Some(operands)) = operands {
            operands.for_each(|operands| fences.guest_virtual_of(operands));
        }
        if self.moved {
            fences.instructions();
        }
    }
}

#[cfg(test)]
impl Cached {
    /// Number of siblings' fences that have been carried out on `hart`.
    const fn fenced_to(&self, hart: HartId) -> u64 {
        self.on[hart.index()].fenced
    }

    const fn set_fenced_to(&mut self, hart: HartId, fences: u64) {
        self.on[hart.index()].fenced = fences;
    }
}
