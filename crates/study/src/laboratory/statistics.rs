//! Medians, their intervals, and paired ratios: no assumption about the distribution, no randomness.

use serde::{Deserialize, Serialize};

/// How sure an interval is to be, where there are values enough.
pub const CONFIDENCE: f64 = 0.95;

/// A median and what is known of it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// How many values.
    pub count: usize,
    /// Their median: the middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The interval's lower end.
    pub low: f64,
    /// The interval's upper end.
    pub high: f64,
    /// The probability that the interval holds the true median: at least [`CONFIDENCE`] from six values on; below
    /// that the interval is from the smallest to the largest value, and this says how little that means.
    pub confidence: f64,
}

/// Condenses values; `None` if there is none, or one is no number.
///
/// The interval lies between two of the sorted values: for `n` independent values the true median lies between the
/// `k`-th smallest and the `k`-th largest with probability 1 - 2 P(B < k), B binomial with `n` and 1/2. The largest `k`
/// that reaches [`CONFIDENCE`] is taken.
pub fn summarise(values: &[f64]) -> Option<Summary> {
    if values.is_empty() || values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len();
    let (rank, confidence) = rank(count);
    let at = |index: usize| sorted.get(index).copied().unwrap_or(f64::NAN);
    Some(Summary {
        count,
        median: (at((count - 1) / 2) + at(count / 2)) / 2.0,
        low: at(rank - 1),
        high: at(count - rank),
        confidence,
    })
}

/// The ratios of pairs. Pairs whose second value is zero have no ratio and are left out.
pub fn ratios(pairs: &[(f64, f64)]) -> Vec<f64> {
    let with_base = pairs.iter().filter(|(_, base)| *base != 0.0);
    with_base.map(|(value, base)| value / base).collect()
}

/// Median and interval of the ratios, start phase by start phase.
pub fn paired_ratio(pairs: &[(f64, f64)]) -> Option<Summary> {
    summarise(&ratios(pairs))
}

/// The `k` of [`summarise`] and the probability that it gives.
fn rank(count: usize) -> (usize, f64) {
    let half = 0.5_f64.ln() * count as f64;
    // ln of the binomial coefficients, one from the other.
    let mut coefficient = 0.0_f64;
    let mut below = 0.0;
    let mut best = (1, 1.0 - 2.0 * half.exp());
    for k in 1..=count.div_ceil(2) {
        below += (coefficient + half).exp();
        let confidence = 1.0 - 2.0 * below;
        if confidence < CONFIDENCE {
            break;
        }
        best = (k, confidence);
        coefficient += ((count - k + 1) as f64).ln() - (k as f64).ln();
    }
    (best.0, best.1.max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// P(B < k) by counting all outcomes of `count` coins.
    fn counted(count: u32, k: u32) -> f64 {
        let all = 1u32 << count;
        let fewer = (0..all).filter(|coins| coins.count_ones() < k).count();
        fewer as f64 / f64::from(all)
    }

    #[test]
    fn intervals_are_as_sure_as_they_say() {
        for count in 1..=16 {
            let (rank, confidence) = rank(count as usize);
            let said = 1.0 - 2.0 * counted(count, rank as u32);
            assert!((confidence - said.max(0.0)).abs() < 1e-12, "{count}");
            let wider = 1.0 - 2.0 * counted(count, rank as u32 + 1);
            assert!(wider < CONFIDENCE, "{count}: a narrower one would do");
            assert_eq!(confidence >= CONFIDENCE, count >= 6, "{count}");
        }
    }

    #[test]
    fn the_textbook_ranks() {
        // Tables of distribution-free intervals for the median: 10 values 2nd to 9th, 20 values 6th to 15th,
        // 100 values 40th to 61st.
        for (count, expected) in [(10, 2), (20, 6), (100, 40)] {
            assert_eq!(rank(count).0, expected);
        }
        let (most, sure) = rank(100_000);
        assert!(most > 49_000 && (CONFIDENCE..CONFIDENCE + 0.01).contains(&sure));
    }

    #[test]
    fn a_median_of_two_lies_between_them() {
        let summary = summarise(&[3.0, 1.0]).unwrap();
        assert_eq!((summary.low, summary.median, summary.high), (1.0, 2.0, 3.0));
        assert_eq!(summarise(&[]), None);
        assert_eq!(summarise(&[f64::NAN]), None);
    }

    #[test]
    fn ratios_are_taken_pair_by_pair() {
        let pairs = [(2.0, 1.0), (40.0, 20.0), (600.0, 300.0), (7.0, 0.0)];
        let summary = paired_ratio(&pairs).unwrap();
        assert_eq!((summary.count, summary.median), (3, 2.0));
    }

    proptest! {
        #[test]
        fn the_order_of_values_does_not_matter(mut values in prop::collection::vec(-1e9..1e9, 1..60)) {
            let summary = summarise(&values);
            values.reverse();
            prop_assert_eq!(summary, summarise(&values));
            let summary = summary.unwrap();
            prop_assert!(summary.low <= summary.median && summary.median <= summary.high);
        }
    }
}
