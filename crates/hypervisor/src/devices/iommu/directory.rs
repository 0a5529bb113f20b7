//! Device directory: from a device's id to its context (RISC-V IOMMU Architecture, chapter "Device-Directory-Table").
//!
//! All devices of a VM have the same context, and a host bridge has 65,536 ids. So whole tables that hold nothing but this context stand once, and
//! many entries lead to them.

use alloc::vec::Vec;
use core::ops::RangeInclusive;

use riscv::iommu::{PPN_MASK, PPN_SHIFT, TC_DTF, VALID};

use super::error::IommuError;
use crate::memory::address::{HostPhysical, PAGE_SIZE};
use crate::memory::gstage::TableMemory;

/// Bits of an id that an entry above the contexts tells apart.
const TABLE_BITS: u32 = 9;
/// Bytes of an entry above the contexts.
const ENTRY_BYTES: u64 = 8;
/// Bits of an id at most.
const ID_BITS: u32 = 24;

/// Context of the devices of a VM, and the tables that hold it.
#[derive(Debug)]
pub struct Domain {
    /// Number of the VM at the IOMMU (GSCID).
    pub number: u16,
    /// `iohgatp`: the VM's G-stage table.
    pub table: u64,
    /// Ids of its devices.
    pub ids: Vec<RangeInclusive<u32>>,
    /// Tables of each level that hold nothing but this context.
    whole: [Option<HostPhysical>; 3],
    /// Tables of contexts, with the first and the last of them that are the VM's.
    contexts: Vec<(HostPhysical, u32, u32)>,
}

impl Domain {
    /// A domain without devices.
    #[must_use]
    pub const fn new(number: u16, table: u64) -> Self {
        Self {
            number,
            table,
            ids: Vec::new(),
            whole: [None; 3],
            contexts: Vec::new(),
        }
    }

    /// Tests whether a device is one of the domain's.
    #[must_use]
    pub fn has(&self, id: u32) -> bool {
        self.ids.iter().any(|ids| ids.contains(&id))
    }
}

/// The directory.
#[derive(Clone, Copy, Debug)]
pub struct Directory {
    pub root: HostPhysical,
    /// Number of levels.
    pub levels: u32,
    /// Set if contexts have 64 bytes.
    pub extended: bool,
}

impl Directory {
    /// Bits of an id that the contexts of a table tell apart.
    const fn context_bits(self) -> u32 {
        if self.extended { 6 } else { 7 }
    }

    const fn context_bytes(self) -> u64 {
        PAGE_SIZE >> self.context_bits()
    }

    /// Number of ids behind an entry of a table at `level`; 0 is that of contexts.
    const fn span(self, level: u32) -> u32 {
        match level {
            0 => 1,
            _ => 1 << (self.context_bits() + TABLE_BITS * (level - 1)),
        }
    }

    /// Levels that ids up to `highest` need; none if they need too many.
    #[must_use]
    pub fn needed(extended: bool, highest: u32) -> Option<u32> {
        let context_bits = if extended { 6 } else { 7 };
        let bits = u32::BITS - highest.leading_zeros();
        (1..=3).find(|level| bits <= (context_bits + TABLE_BITS * (level - 1)).min(ID_BITS))
    }

    /// Adds the ids to a domain.
    ///
    /// # Errors
    /// [`IommuError`], if another entry stands there or there is no memory.
    pub fn add(
        self,
        domain: &mut Domain,
        ids: RangeInclusive<u32>,
        memory: &mut dyn TableMemory,
    ) -> Result<(), IommuError> {
        let (first, last) = (*ids.start(), *ids.end());
        let top = self.levels - 1;
        if first > last || last >> ID_BITS != 0 || last / self.span(top) >= self.entries(top) {
            return Err(IommuError::ID);
        }
        self.fill((self.root, top), (first, last), domain, memory)?;
        domain.ids.push(ids);
        Ok(())
    }

    /// Entries of a table at `level`.
    const fn entries(self, level: u32) -> u32 {
        match level {
            0 => 1 << self.context_bits(),
            _ => 1 << TABLE_BITS,
        }
    }

    /// Sets the contexts of the ids below a table; the ids count from its first one.
    fn fill(
        self,
        (table, level): (HostPhysical, u32),
        (first, last): (u32, u32),
        domain: &mut Domain,
        memory: &mut dyn TableMemory,
    ) -> Result<(), IommuError> {
        if level == 0 {
            for index in first..=last {
                if memory.read(self.context(table, index)) & VALID != 0 {
                    return Err(IommuError::OVERLAP);
                }
                self.write_context(table, index, domain.table, memory);
            }
            domain.contexts.push((table, first, last));
            return Ok(());
        }
        let span = self.span(level);
        for entry in first / span..=last / span {
            let base = entry * span;
            let part = (first.saturating_sub(base), (last - base).min(span - 1));
            let slot = offset(table, u64::from(entry) * ENTRY_BYTES);
            let current = memory.read(slot);
            let next = if current & VALID != 0 {
                let next = HostPhysical::new((current >> PPN_SHIFT & PPN_MASK) * PAGE_SIZE);
                // A whole table stands for other ids, too.
                if part == (0, span - 1) || domain.whole.contains(&Some(next)) {
                    return Err(IommuError::OVERLAP);
                }
                next
            } else if part == (0, span - 1) {
                let next = self.whole(level - 1, domain, memory)?;
                memory.write(slot, entry_of(next));
                continue;
            } else {
                let next = memory.allocate(PAGE_SIZE).ok_or(IommuError::MEMORY)?;
                memory.write(slot, entry_of(next));
                next
            };
            self.fill((next, level - 1), part, domain, memory)?;
        }
        Ok(())
    }

    /// The table of `level` that holds nothing but the domain's context.
    fn whole(
        self,
        level: u32,
        domain: &mut Domain,
        memory: &mut dyn TableMemory,
    ) -> Result<HostPhysical, IommuError> {
        if let Some(Some(table)) = domain.whole.get(level as usize) {
            return Ok(*table);
        }
        let table = memory.allocate(PAGE_SIZE).ok_or(IommuError::MEMORY)?;
        match level.checked_sub(1) {
            None => self.fill((table, 0), (0, self.entries(0) - 1), domain, memory)?,
            Some(below) => {
                let next = self.whole(below, domain, memory)?;
                for entry in 0..self.entries(level) {
                    memory.write(
                        offset(table, u64::from(entry) * ENTRY_BYTES),
                        entry_of(next),
                    );
                }
            }
        }
        if let Some(place) = domain.whole.get_mut(level as usize) {
            *place = Some(table);
        }
        Ok(table)
    }

    const fn context(self, table: HostPhysical, index: u32) -> HostPhysical {
        offset(table, index as u64 * self.context_bytes())
    }

    /// The first stage is bare, and neither ATS nor page requests nor messages are allowed. The word with V comes last.
    fn write_context(
        self,
        table: HostPhysical,
        index: u32,
        guest_table: u64,
        memory: &mut dyn TableMemory,
    ) {
        let at = self.context(table, index);
        for word in 2..self.context_bytes() / 8 {
            memory.write(offset(at, word * 8), 0);
        }
        memory.write(offset(at, 8), guest_table);
        memory.write(at, VALID);
    }

    /// Sets `tc` of all contexts of a domain: faults are reported, or not; or nothing is allowed.
    pub fn control(self, domain: &Domain, control: Control, memory: &mut dyn TableMemory) {
        for (table, first, last) in &domain.contexts {
            for index in *first..=*last {
                memory.write(self.context(*table, index), control.bits());
            }
        }
    }
}

/// Rights of a domain's devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// They reach the VM's memory.
    Open,
    /// The same, and their faults are not reported.
    Quiet,
    /// They reach nothing.
    Closed,
}

impl Control {
    const fn bits(self) -> u64 {
        match self {
            Self::Open => VALID,
            Self::Quiet => VALID | TC_DTF,
            Self::Closed => 0,
        }
    }
}

const fn offset(at: HostPhysical, bytes: u64) -> HostPhysical {
    HostPhysical::new(at.raw().wrapping_add(bytes))
}

const fn entry_of(table: HostPhysical) -> u64 {
    (table.raw() / PAGE_SIZE) << PPN_SHIFT | VALID
}
