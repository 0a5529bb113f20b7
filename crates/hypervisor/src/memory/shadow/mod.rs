//! Shadow tables (`translation = "shadow"`): a vCPU's own tables, which lead from guest-virtual to host-physical addresses in one walk.
//!
//! Paper 001 has them for its V=V machines. While the guest's satp is not Bare, vsatp names tables that the hypervisor makes out of the
//! guest's on faults. This module manages the tables over the small port [`TableMemory`]: the spaces that are kept, new leaves, and removals at
//! a fence. `guest_walk` walks the guest's tables, `run::shadow` has the registers.
//!
//! **How a guest is confined.** While its vCPU is on shadow tables, hgatp is Bare: an identical G-stage below them would be walked at
//! each step, and the single walk is the purpose. Then nothing but the shadow tables confines, which suffices:
//! - Every leaf is made here of a translation that has been checked: the guest's entry says where in its own address space, the VM's G-stage
//!   table where that lies, and with which rights. What the G-stage does not map has no leaf, so its access faults.
//! - The tables lie in frames of the VM's that its G-stage does not map. So no leaf leads to them.
//! - The guest never writes vsatp: hstatus.VTVM is set throughout, so satp and SFENCE.VMA trap. Where its satp becomes Bare, hgatp names
//!   the G-stage table again before the guest goes on. hgatp is Bare only while vsatp is not, or no guest runs.
//!
//! **Tags.** hgatp.VMID must be 0 where hgatp is Bare (privileged architecture, "Hypervisor Guest Address Translation and Protection
//! Register"). No vCPU has tag 0 for its G-stage table, so no VMID ever changes its mode; where it is the only one, both stages are
//! dropped at each change. All shadow tables have VMID 0, and are told apart by ASIDs: each vCPU has [`SPACES`] of them, one for each
//! space that it keeps. Harts with too few ASIDs drop all of VMID 0 when another space comes.
//!
//! **Stale entries.** Only the hart that has the vCPU changes its tables, and drops what it has changed before the guest goes on. What the
//! vCPU has left on other harts is dropped when it comes there. A fence of the guest, or of a sibling by SBI, drops leaves and
//! then the hart's entries. An interrupt file that moves raises the generation of the G-stage table: leaves to its page are listed, and go
//! before the guest is entered under the new one. Pages of `paged` come where no leaf was, and go when no vCPU of the VM has a life.
//!
//! **A fence by address** covers the leaf that the guest has there, however large. Where the host's memory lies in smaller pieces, one leaf of
//! the guest's is many here. The tables that hold them are marked and go as a whole.
//!
//! **Bounds.** Each vCPU has a fixed number of frames. Where these are used up, the space that was left the longest ago goes, and in the
//! end the present one's own leaves. A guest that maps much faults more often; other VMs pay nothing.
//!
//! **A and D.** A leaf exists once A is set in the guest's entry, and is writable once D is. Where the guest's hart would set them
//! (henvcfg.ADUE), they are set by compare-and-swap; else the guest takes its page fault.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod dropped;
pub mod guest_walk;
mod leaf;
pub mod offer;
mod pool;
#[cfg(test)]
mod tests;

pub use dropped::{Dropped, SPACES};
pub use leaf::{LARGEST, Leaf, size};

use alloc::vec::Vec;

use riscv::csr::address_translation::{ASID_SHIFT, MODE_SHIFT};

use crate::memory::address::{GuestPhysical, HostPhysical, HostRegion};
use crate::memory::translations::remote::Operands;
use leaf::Entry;
use pool::{Frame, List, Pool};

/// Leaves to pages that move which are kept at a time.
const MAX_MOVING_LEAVES: usize = 128;
const PAGE_SHIFT: u32 = 12;
const ENTRY_SIZE: u64 = 8;

/// The memory that the tables lie in.
pub trait TableMemory {
    /// The entry at `at`.
    fn read(&self, at: HostPhysical) -> u64;
    /// Sets it, in one store.
    fn write(&mut self, at: HostPhysical, value: u64);
    /// Makes the page at `at` zero.
    fn clear(&mut self, at: HostPhysical);
}

/// Levels of tables that a satp asks for; `None` where it is Bare or reserved.
#[must_use]
pub const fn levels(satp: u64) -> Option<u32> {
    match satp >> MODE_SHIFT {
        8 => Some(3),
        9 => Some(4),
        10 => Some(5),
        _ => None,
    }
}

/// One of the guest's address spaces.
#[derive(Debug)]
struct Space {
    /// The guest's satp for this space.
    satp: u64,
    levels: u32,
    root: Frame,
    frames: List,
    /// Time of the last entry.
    used: u64,
}

impl Space {
    fn has_asid(&self, asid: Option<u16>) -> bool {
        asid.is_none_or(|asid| (self.satp >> ASID_SHIFT) as u16 == asid)
    }
}

/// A leaf to a page that moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Moving {
    space: usize,
    address: u64,
    page: u64,
}

/// One vCPU's shadow tables.
#[derive(Debug)]
pub struct ShadowTables {
    pool: Pool,
    spaces: [Option<Space>; SPACES],
    /// The space that the vCPU is in, one of `spaces`; none while its satp is Bare.
    current: Option<usize>,
    clock: u64,
    /// No space has ever had this number, or a higher one.
    reached: usize,
    moving: Vec<Moving>,
}

impl ShadowTables {
    /// The fewest frames that do: a root and a table for each level below it.
    pub const FEWEST: u64 = 5;

    /// Tables in these frames, [`FEWEST`](Self::FEWEST) at least.
    #[must_use]
    pub fn new(region: HostRegion) -> Self {
        Self {
            pool: Pool::new(region),
            spaces: [const { None }; SPACES],
            current: None,
            clock: 0,
            reached: 0,
            moving: Vec::with_capacity(MAX_MOVING_LEAVES),
        }
    }

    /// The numbers that spaces have had: harts may keep entries of these.
    #[must_use]
    pub const fn numbers(&self) -> core::ops::Range<usize> {
        0..self.reached
    }

    /// The number of the present space, and its root.
    #[must_use]
    pub fn present(&self) -> Option<(usize, HostPhysical)> {
        let number = self.current?;
        let space = self.space(number)?;
        Some((number, self.pool.address(space.root)))
    }

    /// Sets the guest's satp. Leaves that are kept of that space are used again.
    pub fn enter(&mut self, satp: u64, memory: &mut impl TableMemory) -> Dropped {
        let mut dropped = Dropped::default();
        self.clock = self.clock.wrapping_add(1);
        self.current = None;
        let Some(levels) = levels(satp) else {
            return dropped;
        };
        let known = self
            .numbered()
            .find(|(_, space)| space.satp == satp)
            .map(|(number, _)| number);
        let number = known.or_else(|| self.make(satp, levels, memory, &mut dropped));
        if let Some(number) = number {
            if let Some(space) = self.spaces.get_mut(number).and_then(Option::as_mut) {
                space.used = self.clock;
            }
            self.current = Some(number);
        }
        dropped
    }

    /// Puts a leaf into the present space, in place of an older one.
    pub fn fill(&mut self, leaf: &Leaf, memory: &mut impl TableMemory) -> Dropped {
        let mut dropped = Dropped::default();
        let Some(number) = self.current else {
            return dropped;
        };
        if leaf.moves.is_some() && self.moving.len() >= MAX_MOVING_LEAVES {
            dropped.add(self.forget(Operands::default(), memory));
        }
        // At the last try the space is empty, and the pool has a frame for each level.
        for _ in 0..=SPACES {
            if self.put(number, leaf, memory, &mut dropped) {
                break;
            }
            match self.eldest(Some(number)) {
                Some(other) => self.remove(other, &mut dropped),
                None => self.empty(number, memory, &mut dropped),
            }
        }
        // Hardware may have cached that nothing was mapped there.
        dropped.add_page(number, leaf.address);
        if let Some(page) = leaf.moves {
            self.note(Moving {
                space: number,
                address: leaf.address >> PAGE_SHIFT << PAGE_SHIFT,
                page,
            });
        }
        dropped
    }

    /// Drops the leaves that a fence of the guest covers.
    pub fn forget(&mut self, operands: Operands, memory: &mut impl TableMemory) -> Dropped {
        let mut dropped = Dropped::default();
        for number in 0..SPACES {
            let covered = |space: &Space| space.has_asid(operands.asid);
            if !self.space(number).is_some_and(covered) {
                continue;
            }
            match operands.pages {
                Some((first, count)) => {
                    for page in 0..count {
                        let address = first.wrapping_add(page << PAGE_SHIFT);
                        self.cut(number, address, memory, &mut dropped);
                    }
                }
                None if self.current == Some(number) => self.empty(number, memory, &mut dropped),
                None => self.remove(number, &mut dropped),
            }
        }
        dropped
    }

    /// Forgets the leaves of guest-physical pages that were moved; `None` for all that can be moved.
    pub fn forget_moved(
        &mut self,
        pages: Option<impl Iterator<Item = GuestPhysical>>,
        memory: &mut impl TableMemory,
    ) -> Dropped {
        let mut dropped = Dropped::default();
        match pages {
            None => self.forget_moving(|_| true, memory, &mut dropped),
            Some(pages) => {
                for page in pages {
                    self.forget_moving(|leaf| leaf.page == page.raw(), memory, &mut dropped);
                }
            }
        }
        dropped
    }

    /// Forgets everything; satp is Bare.
    pub fn clear(&mut self) {
        self.current = None;
        let mut dropped = Dropped::default();
        for number in 0..SPACES {
            self.remove(number, &mut dropped);
        }
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &Space)> {
        let numbered = self.spaces.iter().enumerate();
        numbered.filter_map(|(number, space)| Some((number, space.as_ref()?)))
    }

    fn space(&self, number: usize) -> Option<&Space> {
        self.spaces.get(number)?.as_ref()
    }

    /// The space that was entered the longest ago, besides `but`.
    fn eldest(&self, but: Option<usize>) -> Option<usize> {
        let others = self.numbered().filter(|(number, _)| Some(*number) != but);
        let eldest = others.max_by_key(|(_, space)| self.clock.wrapping_sub(space.used))?;
        Some(eldest.0)
    }

    /// Adds a space, for which others are dropped if necessary.
    fn make(
        &mut self,
        satp: u64,
        levels: u32,
        memory: &mut impl TableMemory,
        dropped: &mut Dropped,
    ) -> Option<usize> {
        let number = match self.spaces.iter().position(Option::is_none) {
            Some(number) => number,
            None => {
                let eldest = self.eldest(None)?;
                self.remove(eldest, dropped);
                eldest
            }
        };
        self.reached = self.reached.max(number.saturating_add(1));
        let mut frames = List::default();
        let root = loop {
            if let Some(root) = self.pool.take(&mut frames) {
                break root;
            }
            let eldest = self.eldest(None)?;
            self.remove(eldest, dropped);
        };
        memory.clear(self.pool.address(root));
        // Translations of the number's former space are dropped on this hart; translations on other harts are dropped when the vCPU comes there.
        *self.spaces.get_mut(number)? = Some(Space {
            satp,
            levels,
            root,
            frames,
            used: self.clock,
        });
        Some(number)
    }

    /// Drops a space.
    fn remove(&mut self, number: usize, dropped: &mut Dropped) {
        let Some(mut space) = self.spaces.get_mut(number).and_then(Option::take) else {
            return;
        };
        self.pool.give_all_back(&mut space.frames);
        self.moving.retain(|leaf| leaf.space != number);
        dropped.add_space(number);
    }

    /// Drops the leaves of a space. Its root stays: vsatp may name it.
    fn empty(&mut self, number: usize, memory: &mut impl TableMemory, dropped: &mut Dropped) {
        let Some(space) = self.spaces.get_mut(number).and_then(Option::as_mut) else {
            return;
        };
        self.pool.give_others_back(&mut space.frames, space.root);
        memory.clear(self.pool.address(space.root));
        self.moving.retain(|leaf| leaf.space != number);
        dropped.add_space(number);
    }

    /// The address of the entry for `address` in a table of `level`.
    const fn slot(table: HostPhysical, address: u64, level: u32) -> HostPhysical {
        let index = address >> (PAGE_SHIFT + 9 * level) & 0x1ff;
        HostPhysical::new(table.raw() + index * ENTRY_SIZE)
    }

    /// Puts a leaf into a space. Returns false if there is no frame for a table.
    fn put(
        &mut self,
        number: usize,
        leaf: &Leaf,
        memory: &mut impl TableMemory,
        dropped: &mut Dropped,
    ) -> bool {
        let Some(space) = self.space(number) else {
            return true;
        };
        let mut table = self.pool.address(space.root);
        let mut level = space.levels.saturating_sub(1);
        while level > leaf.level {
            let slot = Self::slot(table, leaf.address, level);
            let one_leaf = level <= leaf.whole;
            match Entry::of(memory.read(slot)) {
                Entry::Table(next, marked) => {
                    if one_leaf && !marked {
                        memory.write(slot, Entry::to_table(next, true));
                    }
                    table = next;
                }
                before => {
                    let Some(next) = self.table(number, memory) else {
                        return false;
                    };
                    if before == Entry::Leaf {
                        // The rest of the larger leaf's range faults again.
                        dropped.add_space(number);
                    }
                    memory.write(slot, Entry::to_table(next, one_leaf));
                    table = next;
                }
            }
            level = level.saturating_sub(1);
        }
        let slot = Self::slot(table, leaf.address, level);
        if let Entry::Table(below, _) = Entry::of(memory.read(slot)) {
            self.give_tables_back(number, below, level, memory);
            dropped.add_space(number);
        }
        memory.write(slot, leaf.bits());
        true
    }

    /// Empty table of the space.
    fn table(&mut self, number: usize, memory: &mut impl TableMemory) -> Option<HostPhysical> {
        let space = self.spaces.get_mut(number)?.as_mut()?;
        let frame = self.pool.take(&mut space.frames)?;
        let table = self.pool.address(frame);
        memory.clear(table);
        Some(table)
    }

    /// Drops the leaf at `address`, with all pieces of the same leaf of the guest.
    fn cut(
        &mut self,
        number: usize,
        address: u64,
        memory: &mut impl TableMemory,
        dropped: &mut Dropped,
    ) {
        let Some(space) = self.space(number) else {
            return;
        };
        let mut table = self.pool.address(space.root);
        for level in (0..space.levels).rev() {
            let slot = Self::slot(table, address, level);
            match Entry::of(memory.read(slot)) {
                Entry::Nothing => return,
                // Tables of tables of tables may be all that there are: not each is looked for.
                Entry::Table(_, true) if level > LARGEST => {
                    return self.empty(number, memory, dropped);
                }
                Entry::Table(below, true) => {
                    memory.write(slot, 0);
                    self.give_tables_back(number, below, level, memory);
                    dropped.add_space(number);
                    return;
                }
                Entry::Table(below, false) => table = below,
                Entry::Leaf => {
                    memory.write(slot, 0);
                    dropped.add_page(number, address);
                    return;
                }
            }
        }
    }

    /// Frees the table `below` an entry of `level`, and the tables that it leads to.
    fn give_tables_back(
        &mut self,
        number: usize,
        below: HostPhysical,
        level: u32,
        memory: &impl TableMemory,
    ) {
        // Tables of the lowest level lead to none.
        if level > 1 {
            for index in 0..1 << 9 {
                let slot = HostPhysical::new(below.raw().wrapping_add(index * ENTRY_SIZE));
                if let Entry::Table(next, _) = Entry::of(memory.read(slot)) {
                    self.give_tables_back(number, next, level.saturating_sub(1), memory);
                }
            }
        }
        if let Some(frame) = self.pool.frame(below)
            && let Some(space) = self.spaces.get_mut(number).and_then(Option::as_mut)
        {
            self.pool.give_back(&mut space.frames, frame);
        }
    }

    fn note(&mut self, leaf: Moving) {
        let same = |other: &&mut Moving| (other.space, other.address) == (leaf.space, leaf.address);
        match self.moving.iter_mut().find(same) {
            Some(other) => other.page = leaf.page,
            None => self.moving.push(leaf),
        }
    }

    fn forget_moving(
        &mut self,
        moved: impl Fn(&Moving) -> bool,
        memory: &mut impl TableMemory,
        dropped: &mut Dropped,
    ) {
        let mut index = 0;
        while let Some(leaf) = self.moving.get(index).copied() {
            if moved(&leaf) {
                self.moving.swap_remove(index);
                self.cut(leaf.space, leaf.address, memory, dropped);
            } else {
                index = index.saturating_add(1);
            }
        }
    }

    /// Entry of `address` in the present space, and the entry's level.
    #[cfg(test)]
    fn find(&self, address: u64, memory: &impl TableMemory) -> Option<(u64, u32)> {
        let space = self.space(self.current?)?;
        let mut table = self.pool.address(space.root);
        for level in (0..space.levels).rev() {
            let bits = memory.read(Self::slot(table, address, level));
            match Entry::of(bits) {
                Entry::Nothing => return None,
                Entry::Table(below, _) => table = below,
                Entry::Leaf => return Some((bits, level)),
            }
        }
        None
    }
}
