//! Into which groups a computer's harts are divided.

use crate::config::ConfigError;
use crate::id::{HartId, HartSet, MAX_NUMBERS, MAX_VCPUS};

use super::{Directory, GroupId};

/// Harts in groups, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    harts: HartSet,
    groups: usize,
}

impl Layout {
    /// One group for all.
    ///
    /// # Errors
    /// `TooManyVcpus` where one scheduler has no places for so many.
    pub const fn single(harts: HartSet, vcpus: usize) -> Result<Self, ConfigError> {
        if vcpus > MAX_VCPUS {
            return Err(ConfigError::TooManyVcpus);
        }
        Ok(Self { harts, groups: 1 })
    }

    /// A group has at most so many harts, unless it is said otherwise.
    pub const USUAL_HARTS: usize = 4;

    /// Groups of `most` harts at most, for so many vCPUs: half of the places stay free where there are several groups, as long as there are
    /// harts for more groups, so that vCPUs can go where harts are.
    ///
    /// # Errors
    /// `TooManyVcpus` where the groups have no places for so many.
    pub fn sharded(harts: HartSet, most: usize, vcpus: usize) -> Result<Self, ConfigError> {
        let count = harts.count() as usize;
        let fits = |groups: usize| match groups {
            1 => vcpus <= MAX_VCPUS,
            _ => vcpus <= groups * MAX_VCPUS / 2,
        };
        let least = count.div_ceil(most.max(1)).max(1);
        let groups = (least..=count).find(|&groups| fits(groups));
        let groups = groups.unwrap_or(count.max(1));
        if vcpus > MAX_NUMBERS || vcpus > groups * MAX_VCPUS {
            return Err(ConfigError::TooManyVcpus);
        }
        Ok(Self { harts, groups })
    }

    /// The number of groups.
    #[must_use]
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// The harts of a group: as many as the others have, or one more.
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

    /// A directory of these groups' harts.
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
