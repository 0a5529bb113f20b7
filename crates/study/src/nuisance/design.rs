//! Which level each factor has in which phase.
//!
//! The design is Plackett's and Burman's for a number of phases that is a power of two (R. L. Plackett, J. P. Burman, The Design of
//! Optimum Multifactorial Experiments, 1946), from Sylvester's matrix: each factor has each level in half of the phases, and each
//! pair of levels of two factors comes equally often. So one factor's effect is estimated from all phases, and no other factor's is in
//! it. What two factors do only together may appear as a third's effect: the price of so few phases.

/// How many phases a design for so many factors has: a power of two above their number.
pub fn phases(factors: usize) -> usize {
    (factors + 1).next_power_of_two()
}

/// Returns whether factor number `factor` has its second level in a phase of the design for `factors`. In phase 0 each has its first. Phases
/// beyond the design begin it again.
pub fn is_second(factors: usize, factor: usize, phase: u64) -> bool {
    let row = phase % phases(factors) as u64;
    let column = factor as u64 + 1;
    (row & column).count_ones() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_balanced_singly_and_pairwise() {
        for factors in [1, 3, 7, 12, 26, 31] {
            let all = phases(factors) as u64;
            let column = |factor| -> Vec<bool> {
                (0..all)
                    .map(|phase| is_second(factors, factor, phase))
                    .collect()
            };
            for one in 0..factors {
                let levels = column(one);
                let seconds = levels.iter().filter(|level| **level).count() as u64;
                assert_eq!(seconds, all / 2, "factor {one} of {factors}");
                assert!(!levels[0]);
                for other in 0..one {
                    let both = levels.iter().zip(column(other));
                    let both = both.filter(|(a, b)| **a && *b).count() as u64;
                    assert_eq!(both, all / 4, "factors {one} and {other} of {factors}");
                }
            }
        }
        assert_eq!((phases(1), phases(7), phases(8)), (2, 8, 16));
        // A replicate repeats the design.
        assert_eq!(is_second(5, 2, 3), is_second(5, 2, 11));
    }
}
