//! Seeds of guests' random-number generators.
//!
//! Linux credits `rng-seed` as entropy, so that a guest gets one only where the hypervisor has entropy itself: from the board's
//! device tree, or from the hart's own source. Each guest gets another seed at each start, and no seed reveals
//! another guest's or an earlier one (a one-way function makes each, and replaces its input).

use sha2::{Digest, Sha256};

/// Bytes of a seed, and the least entropy that the hypervisor must have itself.
pub const LENGTH: usize = 32;

/// The source of one VM's seeds.
#[derive(Clone)]
pub struct Seeds {
    key: [u8; LENGTH],
}

impl core::fmt::Debug for Seeds {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Seeds")
    }
}

impl Seeds {
    /// Source of VM `vm`'s seeds, from these bytes of entropy; `None` if they are too few.
    #[must_use]
    pub fn new(entropy: &[u8], vm: u16) -> Option<Self> {
        let all = (entropy.len() >= LENGTH).then(|| hash(b"partita seeds", entropy))?;
        let purpose = [b"of a VM" as &[u8], &vm.to_le_bytes()].concat();
        Some(Self {
            key: hash(&purpose, &all),
        })
    }

    /// Draws a seed that is not given again.
    #[must_use]
    pub fn draw(&mut self) -> [u8; LENGTH] {
        let seed = hash(b"for a guest", &self.key);
        self.key = hash(b"the next key", &self.key);
        seed
    }
}

fn hash(purpose: &[u8], data: &[u8]) -> [u8; LENGTH] {
    let digest = Sha256::new().chain_update(purpose).chain_update(data);
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn without_entropy_there_is_no_seed() {
        assert!(Seeds::new(&[], 0).is_none());
        assert!(Seeds::new(&[7; LENGTH - 1], 0).is_none());
    }

    #[test]
    fn seeds_are_unique_and_repeat_per_board() {
        let given: HashSet<_> = (0..4)
            .flat_map(|vm| {
                let mut seeds = Seeds::new(&[7; LENGTH], vm).unwrap();
                core::iter::repeat_with(move || seeds.draw()).take(250)
            })
            .collect();
        assert_eq!(given.len(), 1000);
        assert!(given.contains(&Seeds::new(&[7; LENGTH], 3).unwrap().draw()));
        assert!(!given.contains(&Seeds::new(&[8; LENGTH], 3).unwrap().draw()));
    }
}
