//! Physical memory protection: privileged specification, "Physical Memory Protection".

use serde::{Deserialize, Serialize};

use crate::base::{Access, PmpEntries, Privilege};

const READ: u8 = 1;
const WRITE: u8 = 2;
const EXECUTE: u8 = 4;
const MODE: u8 = 0x18;
const LOCKED: u8 = 0x80;
/// pmpaddr holds bits 55:2 of an address.
const ADDRESS_BITS: u64 = (1 << 54) - 1;

/// The answer to an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PmpCheck {
    /// True if the access may go on.
    pub allowed: bool,
    /// True if the answer holds for every address of the 4 KiB page.
    pub whole_page: bool,
}

/// Addresses for which one entry decides, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Segment {
    first: u64,
    last: u64,
    /// The configuration of the entry that decides; `None` where none matches.
    configuration: Option<u8>,
}

impl Segment {
    /// Tests whether an access by a privilege is allowed, if all of it lies in this segment.
    const fn allows(&self, access: Access, privilege: Privilege) -> bool {
        let machine = matches!(privilege, Privilege::Machine);
        match self.configuration {
            Some(configuration) => permits(configuration, access, machine),
            None => machine,
        }
    }
}

/// Tests whether an entry lets an access that it matches go on.
const fn permits(configuration: u8, access: Access, machine: bool) -> bool {
    let needed = match access {
        Access::Fetch => EXECUTE,
        Access::Load => READ,
        Access::Store => WRITE,
    };
    machine && configuration & LOCKED == 0 || configuration & needed != 0
}

/// The registers, which are all that a checkpoint keeps.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Registers {
    /// One for each entry, and so is `address`.
    configuration: Vec<u8>,
    address: Vec<u64>,
}

/// The PMP entries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Registers", into = "Registers")]
pub struct Pmp {
    configuration: Vec<u8>,
    address: Vec<u64>,
    /// All addresses, lowest first: what the registers come to, found once when they are written.
    segments: Vec<Segment>,
}

impl TryFrom<Registers> for Pmp {
    type Error = &'static str;

    /// Refuses numbers of entries that cannot be.
    fn try_from(registers: Registers) -> Result<Self, Self::Error> {
        let entries = registers.address.len();
        let possible =
            u8::try_from(entries).is_ok_and(|entries| PmpEntries::new(entries).is_some());
        if !possible || registers.configuration.len() != entries {
            return Err("a hart has 16 or 64 PMP entries");
        }
        Ok(Self::of(registers))
    }
}

impl From<Pmp> for Registers {
    fn from(pmp: Pmp) -> Self {
        Self {
            configuration: pmp.configuration,
            address: pmp.address,
        }
    }
}

impl Default for Pmp {
    fn default() -> Self {
        Self::new(PmpEntries::default())
    }
}

impl Pmp {
    /// So many entries, all off.
    #[must_use]
    pub fn new(entries: PmpEntries) -> Self {
        Self::of(Registers {
            configuration: vec![0; entries.count()],
            address: vec![0; entries.count()],
        })
    }

    /// The entries with these registers.
    fn of(registers: Registers) -> Self {
        let mut pmp = Self {
            configuration: registers.configuration,
            address: registers.address,
            segments: Vec::new(),
        };
        pmp.compile();
        pmp
    }

    /// How many entries there are.
    #[must_use]
    pub const fn entries(&self) -> usize {
        self.address.len()
    }

    /// pmpcfg with an even number, its `register`; zero where there is none.
    #[must_use]
    pub fn configuration(&self, register: usize) -> u64 {
        let bytes = self.configuration.iter().skip(register * 4).take(8);
        bytes
            .rev()
            .fold(0, |value, &byte| value << 8 | u64::from(byte))
    }

    /// Writes pmpcfg with an even number. Locked entries keep their value, and so does one that would get
    /// the reserved combination W = 1 with R = 0.
    pub fn set_configuration(&mut self, register: usize, value: u64) {
        let entries = self.configuration.iter_mut().skip(register * 4).take(8);
        for (entry, byte) in entries.zip(value.to_le_bytes()) {
            let byte = byte & (READ | WRITE | EXECUTE | MODE | LOCKED);
            if *entry & LOCKED == 0 && byte & (READ | WRITE) != WRITE {
                *entry = byte;
            }
        }
        self.compile();
    }

    /// pmpaddr.
    #[must_use]
    pub fn address(&self, entry: usize) -> u64 {
        self.address.get(entry).copied().unwrap_or(0)
    }

    /// Writes pmpaddr, unless the entry is locked or the bottom of a locked TOR range.
    pub fn set_address(&mut self, entry: usize, value: u64) {
        let locked = |entry: usize| {
            self.configuration
                .get(entry)
                .is_some_and(|c| c & LOCKED != 0)
        };
        let tor = |entry: usize| {
            self.configuration
                .get(entry)
                .is_some_and(|c| c & MODE == 0x08)
        };
        if locked(entry) || (locked(entry + 1) && tor(entry + 1)) {
            return;
        }
        if let Some(address) = self.address.get_mut(entry) {
            *address = value & ADDRESS_BITS;
        }
        self.compile();
    }

    /// First and last byte of an entry's range, `None` if it is off or empty.
    fn range(&self, entry: usize) -> Option<(u64, u64)> {
        let address = self.address(entry);
        match self.configuration.get(entry)? & MODE {
            0x08 => {
                let bottom = entry.checked_sub(1).map_or(0, |below| self.address(below));
                (bottom < address).then(|| (bottom << 2, (address << 2) - 1))
            }
            0x10 => Some((address << 2, (address << 2) + 3)),
            0x18 => {
                let size_mask = address ^ (address + 1);
                let start = (address & !size_mask) << 2;
                Some((start, start | size_mask << 2 | 3))
            }
            _ => None,
        }
    }

    /// Finds the segments that the registers come to.
    fn compile(&mut self) {
        let ranges: Vec<_> = (0..self.entries()).map(|entry| self.range(entry)).collect();
        let mut starts = vec![0];
        for &(low, high) in ranges.iter().flatten() {
            starts.push(low);
            starts.extend(high.checked_add(1));
        }
        starts.sort_unstable();
        starts.dedup();
        self.segments.clear();
        let mut decider = None;
        for (index, &first) in starts.iter().enumerate() {
            let last = starts.get(index + 1).map_or(u64::MAX, |next| next - 1);
            let decides = |range: &Option<(u64, u64)>| {
                range.is_some_and(|(low, high)| low <= first && last <= high)
            };
            let entry = ranges.iter().position(decides);
            match self.segments.last_mut() {
                Some(before) if entry == decider => before.last = last,
                _ => self.segments.push(Segment {
                    first,
                    last,
                    configuration: entry
                        .and_then(|entry| self.configuration.get(entry))
                        .copied(),
                }),
            }
            decider = entry;
        }
    }

    /// Checks `length` bytes at a physical address for an access with a privilege.
    #[inline]
    #[must_use]
    pub fn check(
        &self,
        physical: u64,
        length: u64,
        access: Access,
        privilege: Privilege,
    ) -> PmpCheck {
        let place = self.segments.partition_point(|s| s.last < physical);
        if let Some(segment) = self.segments.get(place)
            && segment.first <= physical & !0xfff
            && physical | 0xfff <= segment.last
            && (physical & 0xfff) + length <= 0x1000
        {
            return PmpCheck {
                allowed: segment.allows(access, privilege),
                whole_page: true,
            };
        }
        self.check_parts(physical, length, access, privilege)
    }

    /// The same entry by entry, for pages in which not one entry decides for every address.
    fn check_parts(
        &self,
        physical: u64,
        length: u64,
        access: Access,
        privilege: Privilege,
    ) -> PmpCheck {
        let (first, last) = (physical, physical.saturating_add(length - 1));
        let (page_first, page_last) = (physical & !0xfff, physical | 0xfff);
        let mut whole_page = true;
        for (entry, &configuration) in self.configuration.iter().enumerate() {
            let Some((low, high)) = self.range(entry) else {
                continue;
            };
            if high < page_first || page_last < low {
                continue;
            }
            whole_page &= low <= page_first && page_last <= high;
            if high < first || last < low {
                continue;
            }
            if !(low <= first && last <= high) {
                return PmpCheck {
                    allowed: false,
                    whole_page: false,
                };
            }
            return PmpCheck {
                allowed: permits(configuration, access, privilege == Privilege::Machine),
                whole_page,
            };
        }
        PmpCheck {
            allowed: privilege == Privilege::Machine,
            whole_page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: Privilege = Privilege::User;

    #[test]
    fn without_a_match_only_machine_mode_passes() {
        let pmp = Pmp::default();
        assert!(
            pmp.check(0x1000, 8, Access::Load, Privilege::Machine)
                .allowed
        );
        assert!(!pmp.check(0x1000, 8, Access::Load, USER).allowed);
    }

    #[test]
    fn the_lowest_matching_entry_decides() {
        let mut pmp = Pmp::default();
        pmp.set_address(0, 0x8000_0000 >> 2 | 0x1ff); // NAPOT, 4 KiB
        pmp.set_address(1, u64::MAX); // NAPOT, everything
        pmp.set_configuration(0, 0x1f18);
        assert!(!pmp.check(0x8000_0ff8, 8, Access::Load, USER).allowed);
        assert!(pmp.check(0x8000_1000, 8, Access::Load, USER).allowed);
        assert!(
            pmp.check(0x8000_0000, 8, Access::Store, Privilege::Machine)
                .allowed
        );
    }

    #[test]
    fn small_ranges_do_not_cover_their_page() {
        let mut pmp = Pmp::default();
        pmp.set_address(0, 0x8000_0100 >> 2);
        pmp.set_address(1, 0x8000_0200 >> 2);
        pmp.set_configuration(0, 0x0900); // entry 1: TOR, read
        let inside = pmp.check(0x8000_0100, 8, Access::Load, USER);
        assert_eq!(
            inside,
            PmpCheck {
                allowed: true,
                whole_page: false
            }
        );
        assert!(!pmp.check(0x8000_01fc, 8, Access::Load, USER).allowed);
    }

    proptest::proptest! {
        /// The segments answer as the entries do one after another.
        #[test]
        fn segments_agree_with_entries(
            configuration in proptest::array::uniform16(0_u8..),
            pages in proptest::array::uniform16((0_u64..16, 0_u64..4, 0_u64..1024)),
            probes in proptest::collection::vec((0_u64..20, 0_u64..4096, 0_u8..6), 32),
        ) {
            // Ranges from a word to several pages, many of which overlap.
            let address = pages.map(|(page, size, word)| match size {
                0 => page << 10 | word,
                1 => page << 10,
                2 => page << 10 | 0x1ff,
                _ => page << 10 | 0xfff,
            });
            let pmp = Pmp::of(Registers {
                configuration: configuration.to_vec(),
                address: address.to_vec(),
            });
            for (page, offset, kind) in probes {
                let access = [Access::Load, Access::Store, Access::Fetch][usize::from(kind % 3)];
                let privilege = if kind < 3 { Privilege::Machine } else { USER };
                let physical = page << 12 | offset & !7;
                proptest::prop_assert_eq!(
                    pmp.check(physical, 8, access, privilege),
                    pmp.check_parts(physical, 8, access, privilege)
                );
            }
        }
    }

    #[test]
    fn the_last_of_64_entries_decides_alone() {
        let mut pmp = Pmp::new(PmpEntries::new(64).expect("a number of entries"));
        pmp.set_address(62, 0x8000_0000 >> 2);
        pmp.set_address(63, 0x8000_2000 >> 2);
        pmp.set_configuration(14, 0x09 << 56); // entry 63: TOR, read
        assert_eq!(pmp.configuration(14), 0x09 << 56);
        assert!(pmp.check(0x8000_1000, 8, Access::Load, USER).allowed);
        assert!(!pmp.check(0x8000_1000, 8, Access::Store, USER).allowed);
        assert!(!pmp.check(0x8000_2000, 8, Access::Load, USER).allowed);
        pmp.set_configuration(14, 0x89 << 56);
        pmp.set_address(62, 0); // the bottom of a locked range
        assert_eq!(pmp.address(62), 0x8000_0000 >> 2);
    }

    #[test]
    fn locked_entries_do_not_change() {
        let mut pmp = Pmp::default();
        pmp.set_address(0, 0x100);
        pmp.set_configuration(0, 0x88);
        pmp.set_address(0, 0x200);
        pmp.set_configuration(0, 0);
        assert_eq!((pmp.address(0), pmp.configuration(0)), (0x100, 0x88));
    }
}
