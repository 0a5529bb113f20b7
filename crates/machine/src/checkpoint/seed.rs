//! A new seed for a machine that has already run.

use crate::base::Random;
use crate::machine::Machine;

/// The longest delay of a hart by a new seed, in nanoseconds of machine time.
pub const START_PHASE_NANOSECONDS: u64 = 1_000_000;

impl Machine {
    /// Makes the rest of the run one of many: experiments start one checkpoint with many seeds.
    ///
    /// A new seed changes exactly this: every hart is held up once, from now on, for a time drawn
    /// evenly from below [`START_PHASE_NANOSECONDS`] (the start phases); every virtio device draws
    /// seeks, faults and entropy, and every hart its seed CSR's values, from a new sequence from now on. It does not change anything in
    /// memory: what software has drawn from the old seed, such as `rng-seed` in the device tree,
    /// it has drawn.
    pub fn reseed(&mut self, seed: u64) {
        let mut random = Random::new(seed);
        let clock = self.config.board.clock;
        let longest = clock.cycles_in_nanoseconds(START_PHASE_NANOSECONDS).0;
        for hart in 0..self.harts.len() {
            self.hold_up(hart, random.below(longest));
        }
        self.system.devices.reseed(random.next());
        for hart in &mut self.harts {
            let id = hart.id.0;
            hart.extension.seed_entropy(seed, id);
        }
        self.config.board.seed = seed;
    }

    /// Holds a hart up once, from now on, for so many cycles, as something that the processor does by itself might. A hart that is
    /// not there is left alone.
    pub fn hold_up(&mut self, hart: usize, cycles: u64) {
        if let Some(hart) = self.harts.get_mut(hart) {
            hart.cycles = hart.cycles.max(self.now).saturating_add(cycles);
            hart.note_wait(cycles);
        }
    }
}
