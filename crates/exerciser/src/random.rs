//! A small deterministic generator: the same seed gives the same numbers on every computer.

use splitmix::SplitMix64;

/// Draws from the numbers that a seed determines.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    /// A generator that is a function of `seed` alone.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// The generator of stream `index` of this seed: streams do not depend on each other's use.
    #[must_use]
    pub fn stream(seed: u64, index: u64) -> Self {
        let mut base = Self::new(seed ^ index.wrapping_mul(0xd134_2543_de82_ef95));
        Self::new(base.next())
    }

    /// The next 64 bits.
    // Not an iterator: there is no end.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> u64 {
        self.0.next()
    }

    /// A number below `bound`; 0 where `bound` is 0. The bias is below `bound` / 2^64.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    /// True once in `chances` on average.
    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    /// One of `choices`, each as likely; the default value where there is none.
    pub fn pick<T: Copy + Default>(&mut self, choices: &[T]) -> T {
        let index = self.below(choices.len() as u64) as usize;
        choices.get(index).copied().unwrap_or_default()
    }
}

/// The exercises that draw random numbers, and so take a `seed`.
pub const EXERCISES: [&str; 11] = [
    "descriptors",
    "free-pages",
    "fuzz",
    "hostile",
    "mixture",
    "pmu",
    "state",
    "timer",
    "translations",
    "witness",
    "work",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stay_bounded_and_are_all_reached() {
        let mut random = Random::new(1);
        let mut seen = [false; 7];
        for _ in 0..1000 {
            seen[usize::try_from(random.below(7)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 7]);
        assert_eq!(random.below(0), 0);
    }

    #[test]
    fn streams_differ() {
        assert_ne!(Random::stream(5, 0).next(), Random::stream(5, 1).next());
        assert_eq!(Random::stream(5, 1).next(), Random::stream(5, 1).next());
    }

    /// The list agrees with each exercise's source on its name and parameters.
    #[test]
    fn those_that_take_a_seed_are_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/exercises");
        let mut found = Vec::new();
        for entry in folder.read_dir().unwrap() {
            let path = entry.unwrap().path();
            let path = if path.is_dir() {
                path.join("mod.rs")
            } else {
                path
            };
            let source = std::fs::read_to_string(path).unwrap();
            let name = source
                .split("    name: \"")
                .nth(1)
                .and_then(|rest| rest.split('"').next());
            // The workload's parameters stand in its own table.
            let takes = source.contains("\"seed\"") || source.contains("parameters: &PARAMETERS");
            if let Some(name) = name.filter(|_| takes) {
                found.push(String::from(name));
            }
        }
        found.sort();
        assert_eq!(found, EXERCISES);
    }
}
