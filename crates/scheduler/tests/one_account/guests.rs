//! Guests: vCPUs that compute, take a ticket lock of their VM, and think.

/// SplitMix64.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(splitmix::GOLDEN_GAMMA);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound.max(1)
    }
}

/// Work of a VM: means in ticks; a job is one of each.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub computes: u64,
    /// Time under the lock; 0 is without a lock.
    pub holds: u64,
    /// Time asleep.
    pub thinks: u64,
}

/// A VM.
#[derive(Clone, Copy, Debug)]
pub struct Vm {
    pub vcpus: usize,
    pub share: u32,
    pub work: Work,
}

/// Harts and VMs, drawn from a seed as `partita compare --random` draws them: two to four harts, and two to four VMs.
pub fn draw(seed: u64) -> (usize, Vec<Vm>) {
    let mut random = Random::new(seed);
    let harts = 2 + random.below(3);
    let vms = 2 + random.below(3);
    let equal = random.below(3) > 0;
    let vm = |_| Vm {
        vcpus: 2 + random.below(harts.min(3)) as usize,
        share: match equal {
            true => 100,
            false => 50 << random.below(3),
        },
        work: Work {
            computes: 20 << random.below(7),
            holds: match random.below(4) {
                0 => 0,
                _ => 6 << random.below(7),
            },
            thinks: match random.below(4) {
                0 => 50 << random.below(5),
                _ => 0,
            },
        },
    };
    (harts as usize, (0..vms).map(vm).collect())
}
