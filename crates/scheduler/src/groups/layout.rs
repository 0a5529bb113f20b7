//! Division of a computer's harts into groups.

use crate::base::id::{HartId, HartSet, MAX_NUMBERS, MAX_VCPUS};
use crate::config::ConfigError;

use super::directory::{Directory, GroupId};

/// Harts in groups, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    harts: HartSet,
    groups: usize,
}

impl Layout {
    /// One group for all harts.
    ///
    /// # Errors
    /// `TooManyVcpus` if one scheduler has too few places.
    pub const fn single(harts: HartSet, vcpus: usize) -> Result<Self, ConfigError> {
        if vcpus > MAX_VCPUS {
            return Err(ConfigError::TooManyVcpus);
        }
        Ok(Self { harts, groups: 1 })
    }

    /// One group for each hart.
    ///
    /// # Errors
    /// `TooManyVcpus` if the groups have too few places.
    pub fn sharded(harts: HartSet, vcpus: usize) -> Result<Self, ConfigError> {
        let groups = (harts.count() as usize).max(1);
        if vcpus > MAX_NUMBERS || vcpus > groups * MAX_VCPUS {
            return Err(ConfigError::TooManyVcpus);
        }
        Ok(Self { harts, groups })
    }

    /// Number of groups.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Harts of a group: as many as the others have, or one more.
    #[must_use]
    pub fn harts_of(&self, group: GroupId) -> HartSet {
        let count = self.harts.count() as usize;
        let bound = |group: usize| group * count / self.groups;
        let (first, behind) = (bound(group.index()), bound(group.index() + 1));
        self.harts
            .iter()
            .enumerate()
            .filter(|(place, _)| (first..behind).contains(place))
            .map(|(_, hart)| hart)
            .collect()
    }

    /// Directory of these groups' harts.
    #[must_use]
    pub fn directory(&self) -> Directory {
        let mut directory = Directory::new();
        for group in (0..self.groups).map_while(GroupId::new) {
            for hart in self.harts_of(group).iter() {
                let hart: HartId = hart;
                directory.assign(hart, group);
            }
        }
        directory
    }
}
