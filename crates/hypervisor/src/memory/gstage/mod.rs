//! G-stage tables: translation of a guest's physical addresses.
//!
//! Sv39x4 and Sv48x4 of the privileged architecture ("Guest Physical Address Translation" of the
//! hypervisor extension): as Sv39 and Sv48, but the root has four times the entries and fills
//! 16 KiB. Tables live in the host's memory, which is reached through [`TableMemory`], so that
//! everything here runs on any computer.
//!
//! Nothing here fences. The caller fences after an unmap or a remap, before the old page is used for another purpose.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod entry;
pub mod offer;
#[cfg(test)]
mod tests;

pub use entry::{Permissions, leaf};

use crate::memory::address::{GuestPhysical, GuestRegion, HostPhysical, PAGE_SIZE};
use entry::Entry;

/// Bytes of the root table, which are also its alignment.
pub const ROOT_SIZE: u64 = 16 << 10;
/// Entries of a table other than the root.
const ENTRIES: u64 = 512;
/// Entries of the root.
const ROOT_ENTRIES: u64 = 4 * ENTRIES;
/// Bytes of an entry.
const ENTRY_SIZE: u64 = 8;
/// The level whose entries map a gibibyte.
const GIBIBYTE_LEVEL: u32 = 2;
/// Host addresses have 56 bits: a PPN of 44 and an offset of 12.
const HOST_LIMIT: u64 = 1 << 56;

/// The memory that holds tables.
pub trait TableMemory {
    /// The 64-bit word at `address`, which lies in a table.
    fn read(&self, address: HostPhysical) -> u64;
    /// Sets the 64-bit word at `address`, which lies in a table, in one store.
    fn write(&mut self, address: HostPhysical, value: u64);
    /// A table of `size` zeroed bytes, [`PAGE_SIZE`] or [`ROOT_SIZE`], at a multiple of its size.
    fn allocate(&mut self, size: u64) -> Option<HostPhysical>;
}

/// Number of levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Three levels, 41 bits of guest-physical address.
    Sv39x4,
    /// Four levels, 50 bits.
    Sv48x4,
}

impl Mode {
    /// The value of `hgatp`.MODE.
    pub const fn field(self) -> u64 {
        match self {
            Self::Sv39x4 => 8,
            Self::Sv48x4 => 9,
        }
    }

    /// The root's level; leaves of it cover 1 GiB or 512 GiB.
    const fn root_level(self) -> u32 {
        match self {
            Self::Sv39x4 => 2,
            Self::Sv48x4 => 3,
        }
    }

    /// The first guest-physical address that cannot be mapped.
    pub const fn limit(self) -> u64 {
        leaf_size(self.root_level()) * ROOT_ENTRIES
    }
}

/// Bytes that a leaf at `level` maps.
const fn leaf_size(level: u32) -> u64 {
    PAGE_SIZE << (9 * level)
}

/// Reason why a mapping could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MapError {
    /// An address or a size is not a multiple of a page.
    #[error("a mapping is made of whole pages")]
    NotPages,
    /// An address lies beyond what the tables can express.
    #[error("the address is beyond the reach of the tables")]
    OutOfReach,
    /// The address is mapped already.
    #[error("{0} is mapped already")]
    Mapped(GuestPhysical),
    /// The address is not mapped.
    #[error("{0} is not mapped")]
    NotMapped(GuestPhysical),
    /// No memory for a table.
    #[error("there is no memory left for tables")]
    OutOfMemory,
}

/// Translation of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translation {
    /// The host address of the byte that was asked for.
    pub host: HostPhysical,
    /// Bytes that the leaf maps: 4 KiB, 2 MiB, 1 GiB or 512 GiB.
    pub leaf_size: u64,
    /// Permissions of the guest there.
    pub permissions: Permissions,
}

/// The G-stage tables of a VM.
///
/// Dropping one does not give its tables back: they are frames of the VM, and go with all of them.
#[derive(Debug, PartialEq, Eq)]
pub struct GStage {
    mode: Mode,
    root: HostPhysical,
}

impl GStage {
    /// Tables that map nothing.
    ///
    /// # Errors
    /// [`MapError::OutOfMemory`].
    pub fn new(mode: Mode, memory: &mut dyn TableMemory) -> Result<Self, MapError> {
        let root = memory.allocate(ROOT_SIZE).ok_or(MapError::OutOfMemory)?;
        Ok(Self { mode, root })
    }

    /// The value of `hgatp` for these tables and a VMID, of 14 bits.
    pub fn hgatp(&self, vmid: u16) -> u64 {
        let number = self.root.raw() / PAGE_SIZE;
        self.mode.field() << 60 | (u64::from(vmid) & 0x3fff) << 44 | number
    }

    /// Maps the pages of `guest` to those that begin at `host`, in the largest leaves that fit.
    ///
    /// # Errors
    /// Nothing changes on [`MapError::NotPages`] and [`MapError::OutOfReach`]; on the others what
    /// comes before the obstacle stays mapped.
    pub fn map(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestRegion,
        host: HostPhysical,
        permissions: Permissions,
    ) -> Result<(), MapError> {
        self.check(guest)?;
        if !host.is_aligned(PAGE_SIZE) {
            return Err(MapError::NotPages);
        }
        host.checked_add(guest.size())
            .filter(|end| end.raw() <= HOST_LIMIT)
            .ok_or(MapError::OutOfReach)?;
        let mut done = 0;
        while done < guest.size() {
            // `check` and the test above saw to it that neither sum leaves 64 bits.
            let at = GuestPhysical::new(guest.base().raw().wrapping_add(done));
            let to = HostPhysical::new(host.raw().wrapping_add(done));
            let left = guest.size().wrapping_sub(done);
            done = done.saturating_add(self.map_leaf(memory, at, to, left, permissions)?);
        }
        Ok(())
    }

    /// Makes the tables down to the leaves of 2 MiB for `guest`, which is made of such leaves and not mapped. Mapping these leaves then needs no
    /// memory.
    ///
    /// # Errors
    /// As [`map`](Self::map) says.
    pub fn reserve(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestRegion,
    ) -> Result<(), MapError> {
        let mut at = guest.base();
        while at < guest.end() {
            let leaf = leaf_size(GIBIBYTE_LEVEL - 1);
            let first = GuestRegion::new(at, leaf).ok_or(MapError::OutOfReach)?;
            self.map(memory, first, HostPhysical::new(0), Permissions::MEMORY)?;
            self.unmap(memory, first)?;
            let next = at.raw() / leaf_size(GIBIBYTE_LEVEL) + 1;
            at = GuestPhysical::new(next.saturating_mul(leaf_size(GIBIBYTE_LEVEL)));
        }
        Ok(())
    }

    /// Hangs `table`, a page of entries, in for the 2 MiB from `guest` on, where nothing is mapped. Its entries are the caller's to change.
    ///
    /// # Errors
    /// As [`map`](Self::map) says.
    pub fn attach(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestPhysical,
        table: HostPhysical,
    ) -> Result<(), MapError> {
        let size = leaf_size(GIBIBYTE_LEVEL - 1);
        let region = GuestRegion::new(guest, size).filter(|_| guest.is_aligned(size));
        let region = region.ok_or(MapError::NotPages)?;
        // The tables above it are made by a leaf, in whose place the table stands then.
        self.map(memory, region, HostPhysical::new(0), Permissions::READ_ONLY)?;
        let (slot, ..) = self.leaf_within(memory, guest, size)?;
        memory.write(slot, Entry::Table(table).bits());
        Ok(())
    }

    /// Maps one leaf of at most `left` bytes; gives its size.
    fn map_leaf(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestPhysical,
        host: HostPhysical,
        left: u64,
        permissions: Permissions,
    ) -> Result<u64, MapError> {
        let mut level = self.mode.root_level();
        let mut table = self.root;
        loop {
            let slot = self.slot(table, guest, level);
            let size = leaf_size(level);
            let fits = guest.is_aligned(size) && host.is_aligned(size) && size <= left;
            match Entry::from_bits(memory.read(slot)) {
                Entry::Table(next) => table = next,
                Entry::Leaf(..) => return Err(MapError::Mapped(guest)),
                Entry::Nothing if fits => {
                    memory.write(slot, Entry::Leaf(host, permissions).bits());
                    return Ok(size);
                }
                Entry::Nothing => {
                    let next = memory.allocate(PAGE_SIZE).ok_or(MapError::OutOfMemory)?;
                    memory.write(slot, Entry::Table(next).bits());
                    table = next;
                }
            }
            // At level 0 a page always fits, and no entry leads further down.
            level = level.checked_sub(1).ok_or(MapError::Mapped(guest))?;
        }
    }

    /// Unmaps pages. Larger leaves that reach beyond them are split first.
    ///
    /// # Errors
    /// [`MapError::NotMapped`] at the first page that is not mapped; those before it are gone.
    pub fn unmap(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestRegion,
    ) -> Result<(), MapError> {
        self.check(guest)?;
        let mut done = 0;
        while done < guest.size() {
            let at = GuestPhysical::new(guest.base().raw().wrapping_add(done));
            let left = guest.size().wrapping_sub(done);
            let (slot, size, ..) = self.leaf_within(memory, at, left)?;
            memory.write(slot, Entry::Nothing.bits());
            done = done.saturating_add(size);
        }
        Ok(())
    }

    /// Unmaps the gibibytes that `guest` touches, in one store for each, with the tables below, which are
    /// the caller's to give back. All of `guest` lies in the first 512 GiB, where the tables that this needs stand once anything
    /// is mapped there.
    ///
    /// # Errors
    /// [`MapError::OutOfReach`] if it does not, and nothing changes.
    pub fn cut(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestRegion,
    ) -> Result<(), MapError> {
        let gibibyte = leaf_size(GIBIBYTE_LEVEL);
        if guest.end().raw() > leaf_size(GIBIBYTE_LEVEL + 1) {
            return Err(MapError::OutOfReach);
        }
        let mut table = self.root;
        if self.mode.root_level() > GIBIBYTE_LEVEL {
            let slot = self.slot(table, guest.base(), self.mode.root_level());
            match Entry::from_bits(memory.read(slot)) {
                Entry::Table(next) => table = next,
                // Nothing is mapped there, and no leaf of 512 GiB is ever made for what is cut.
                Entry::Nothing | Entry::Leaf(..) => return Ok(()),
            }
        }
        let mut at = guest.base().raw() / gibibyte * gibibyte;
        while at < guest.end().raw() {
            let slot = self.slot(table, GuestPhysical::new(at), GIBIBYTE_LEVEL);
            memory.write(slot, Entry::Nothing.bits());
            at = at.saturating_add(gibibyte);
        }
        Ok(())
    }

    /// Maps a mapped page to another host page, in one store; returns the former one.
    /// A larger leaf around it is split first.
    ///
    /// # Errors
    /// [`MapError::NotMapped`] where it is not mapped.
    pub fn remap_page(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestPhysical,
        host: HostPhysical,
        permissions: Permissions,
    ) -> Result<HostPhysical, MapError> {
        self.check(GuestRegion::new(guest, PAGE_SIZE).ok_or(MapError::OutOfReach)?)?;
        if !host.is_aligned(PAGE_SIZE) {
            return Err(MapError::NotPages);
        }
        if host.raw() >= HOST_LIMIT {
            return Err(MapError::OutOfReach);
        }
        let (slot, _, before) = self.leaf_within(memory, guest, PAGE_SIZE)?;
        memory.write(slot, Entry::Leaf(host, permissions).bits());
        Ok(before)
    }

    /// Maps a page to `host`, wherever it was mapped to before, or to nothing; each in one store at
    /// most. For pages that come and go, such as that of a guest interrupt file. Once it has been
    /// mapped as a single page this needs no memory and cannot fail for want of it.
    ///
    /// # Errors
    /// As [`map`](Self::map) and [`remap_page`](Self::remap_page) say.
    pub fn set_page(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestPhysical,
        host: Option<HostPhysical>,
        permissions: Permissions,
    ) -> Result<(), MapError> {
        let page = GuestRegion::new(guest, PAGE_SIZE).ok_or(MapError::OutOfReach)?;
        let mapped = self.translate(memory, guest).is_some();
        match host {
            Some(host) if mapped => self
                .remap_page(memory, guest, host, permissions)
                .map(|_before| ()),
            Some(host) => self.map(memory, page, host, permissions),
            None if mapped => self.unmap(memory, page),
            None => self.check(page),
        }
    }

    /// The leaf that maps `guest`, split until it covers at most `left` bytes from there: its
    /// entry's address, its size, and the host address that it maps to.
    fn leaf_within(
        &mut self,
        memory: &mut dyn TableMemory,
        guest: GuestPhysical,
        left: u64,
    ) -> Result<(HostPhysical, u64, HostPhysical), MapError> {
        let mut level = self.mode.root_level();
        let mut table = self.root;
        loop {
            let slot = self.slot(table, guest, level);
            let size = leaf_size(level);
            match Entry::from_bits(memory.read(slot)) {
                Entry::Nothing => return Err(MapError::NotMapped(guest)),
                Entry::Leaf(host, _) if guest.is_aligned(size) && size <= left => {
                    return Ok((slot, size, host));
                }
                Entry::Leaf(host, permissions) => {
                    let lower = level.checked_sub(1).ok_or(MapError::NotMapped(guest))?;
                    table = split(memory, host, permissions, lower)?;
                    // The new table maps as the leaf did, so that no access sees a difference.
                    memory.write(slot, Entry::Table(table).bits());
                }
                Entry::Table(next) => table = next,
            }
            level = level.checked_sub(1).ok_or(MapError::NotMapped(guest))?;
        }
    }

    /// Translates `guest`; `None` where `guest` is not mapped.
    #[inline]
    pub fn translate(&self, memory: &dyn TableMemory, guest: GuestPhysical) -> Option<Translation> {
        if guest.raw() >= self.mode.limit() {
            return None;
        }
        let mut level = self.mode.root_level();
        let mut table = self.root;
        loop {
            match Entry::from_bits(memory.read(self.slot(table, guest, level))) {
                Entry::Nothing => return None,
                Entry::Leaf(base, permissions) => {
                    let leaf_size = leaf_size(level);
                    let offset = guest.raw() & leaf_size.wrapping_sub(1);
                    let host = base.checked_add(offset)?;
                    return Some(Translation {
                        host,
                        leaf_size,
                        permissions,
                    });
                }
                Entry::Table(next) => table = next,
            }
            level = level.checked_sub(1)?;
        }
    }

    fn check(&self, guest: GuestRegion) -> Result<(), MapError> {
        if !guest.base().is_aligned(PAGE_SIZE) || !guest.size().is_multiple_of(PAGE_SIZE) {
            return Err(MapError::NotPages);
        }
        if guest.end().raw() > self.mode.limit() {
            return Err(MapError::OutOfReach);
        }
        Ok(())
    }

    /// The address of the entry for `guest` in a table of `level`.
    #[inline]
    fn slot(&self, table: HostPhysical, guest: GuestPhysical, level: u32) -> HostPhysical {
        let entries = if level == self.mode.root_level() {
            ROOT_ENTRIES
        } else {
            ENTRIES
        };
        let index = guest.raw() / leaf_size(level) % entries;
        HostPhysical::new(table.raw().wrapping_add(index * ENTRY_SIZE))
    }
}

/// Table of leaves at `level` that together map as one leaf above them.
fn split(
    memory: &mut dyn TableMemory,
    host: HostPhysical,
    permissions: Permissions,
    level: u32,
) -> Result<HostPhysical, MapError> {
    let table = memory.allocate(PAGE_SIZE).ok_or(MapError::OutOfMemory)?;
    for index in 0..ENTRIES {
        let part = HostPhysical::new(host.raw().wrapping_add(index * leaf_size(level)));
        let slot = HostPhysical::new(table.raw().wrapping_add(index * ENTRY_SIZE));
        memory.write(slot, Entry::Leaf(part, permissions).bits());
    }
    Ok(table)
}
