//! Frames of one vCPU's shadow tables: a fixed number, each free or a space's.

use alloc::vec::Vec;

use crate::memory::address::{HostPhysical, HostRegion, PAGE_SIZE};

/// A frame, by its number in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Frame(u16);

/// No frame.
const NONE: u16 = u16::MAX;

/// Frames that follow each other in a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct List(u16);

impl Default for List {
    fn default() -> Self {
        Self(NONE)
    }
}

/// Neighbours of a frame in its list.
#[derive(Clone, Copy, Debug)]
struct Links {
    before: u16,
    behind: u16,
}

/// The frames. Each is in one list: the free ones in that of the pool, the others in their space's.
#[derive(Debug)]
pub struct Pool {
    base: HostPhysical,
    links: Vec<Links>,
    free: List,
    left: usize,
}

impl Pool {
    /// The pages of `region`, all of them free.
    pub fn new(region: HostRegion) -> Self {
        let count = (region.size() / PAGE_SIZE).min(u64::from(NONE)) as u16;
        let mut pool = Self {
            base: region.base(),
            links: (0..count)
                .map(|_| Links {
                    before: NONE,
                    behind: NONE,
                })
                .collect(),
            free: List::default(),
            left: 0,
        };
        for number in (0..count).rev() {
            pool.give(Frame(number));
        }
        pool
    }

    /// Number of free frames.
    #[cfg(test)]
    pub const fn left(&self) -> usize {
        self.left
    }

    /// Host address of a frame.
    pub const fn address(&self, frame: Frame) -> HostPhysical {
        HostPhysical::new(self.base.raw() + frame.0 as u64 * PAGE_SIZE)
    }

    /// The frame that lies at `address`.
    pub fn frame(&self, address: HostPhysical) -> Option<Frame> {
        let number = address.raw().checked_sub(self.base.raw())? / PAGE_SIZE;
        let number = u16::try_from(number).ok()?;
        (usize::from(number) < self.links.len()).then_some(Frame(number))
    }

    /// Takes a free frame into `list`.
    pub fn take(&mut self, list: &mut List) -> Option<Frame> {
        let frame = self.first(self.free)?;
        let mut free = self.free;
        self.unlink(&mut free, frame);
        self.free = free;
        self.left = self.left.saturating_sub(1);
        self.link(list, frame);
        Some(frame)
    }

    /// Frees a frame of `list`.
    pub fn give_back(&mut self, list: &mut List, frame: Frame) {
        self.unlink(list, frame);
        self.give(frame);
    }

    /// Frees all frames of `list`.
    pub fn give_all_back(&mut self, list: &mut List) {
        while let Some(frame) = self.first(*list) {
            self.give_back(list, frame);
        }
    }

    /// Frees all frames of `list` except `kept`, which is one of them.
    pub fn give_others_back(&mut self, list: &mut List, kept: Frame) {
        self.unlink(list, kept);
        self.give_all_back(list);
        self.link(list, kept);
    }

    fn first(&self, list: List) -> Option<Frame> {
        (usize::from(list.0) < self.links.len()).then_some(Frame(list.0))
    }

    fn give(&mut self, frame: Frame) {
        let mut free = self.free;
        self.link(&mut free, frame);
        self.free = free;
        self.left = self.left.saturating_add(1);
    }

    /// Puts a frame of no list at the beginning of `list`.
    fn link(&mut self, list: &mut List, frame: Frame) {
        let behind = list.0;
        if let Some(links) = self.links.get_mut(usize::from(behind)) {
            links.before = frame.0;
        }
        if let Some(links) = self.links.get_mut(usize::from(frame.0)) {
            *links = Links {
                before: NONE,
                behind,
            };
        }
        list.0 = frame.0;
    }

    /// Takes a frame out of `list`, which has it.
    fn unlink(&mut self, list: &mut List, frame: Frame) {
        let Some(Links { before, behind }) = self.links.get(usize::from(frame.0)).copied() else {
            return;
        };
        match self.links.get_mut(usize::from(before)) {
            Some(links) => links.behind = behind,
            None => list.0 = behind,
        }
        if let Some(links) = self.links.get_mut(usize::from(behind)) {
            links.before = before;
        }
    }
}
