//! Wilcoxon's rank-sum test, exact, with ties.

/// The probability, if the group makes no difference, that the ranks of the second group sum up at least as far from their mean as they
/// do (F. Wilcoxon, Individual Comparisons by Ranking Methods, 1945). It counts all ways to choose the group: the work grows with the
/// cube of the number of values.
pub(super) fn rank_sum(values: &[f64], is_second: &[bool]) -> f64 {
    let ranks = doubled_ranks(values);
    let chosen: Vec<usize> = ranks
        .iter()
        .zip(is_second)
        .filter(|(_, second)| **second)
        .map(|(rank, _)| *rank)
        .collect();
    let (size, sum) = (chosen.len(), chosen.iter().sum::<usize>());
    let total: usize = ranks.iter().sum();
    // ways[k][s]: how many choices of k values have ranks that sum up to s.
    let mut ways = vec![vec![0.0_f64; total + 1]; size + 1];
    if let Some(none) = ways.first_mut().and_then(|sums| sums.first_mut()) {
        *none = 1.0;
    }
    for rank in &ranks {
        for k in (1..=size).rev() {
            let (fewer, more) = ways.split_at_mut(k);
            let (Some(fewer), Some(more)) = (fewer.last(), more.first_mut()) else {
                continue;
            };
            for (from, ways) in fewer.iter().enumerate() {
                if let Some(place) = more.get_mut(from + rank) {
                    *place += ways;
                }
            }
        }
    }
    let sums = ways.last().map_or(&[][..], Vec::as_slice);
    // The mean of the sum is total * size / count: compared in whole numbers.
    let distance = |sum: usize| (sum * ranks.len()).abs_diff(total * size);
    let all: f64 = sums.iter().sum();
    let far = sums.iter().enumerate();
    let far: f64 = far
        .filter(|(other, _)| distance(*other) >= distance(sum))
        .map(|(_, ways)| ways)
        .sum();
    if all > 0.0 { (far / all).min(1.0) } else { 1.0 }
}

/// Twice the rank of each value, so that the mean rank of values that are equal is a whole number.
fn doubled_ranks(values: &[f64]) -> Vec<usize> {
    let rank = |value: &f64| {
        let below = values.iter().filter(|other| other.total_cmp(value).is_lt());
        let equal = values.iter().filter(|other| other.total_cmp(value).is_eq());
        2 * below.count() + equal.count() + 1
    };
    values.iter().map(rank).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reference of the test: every choice in turn.
    fn tried(values: &[f64], is_second: &[bool]) -> f64 {
        let ranks = doubled_ranks(values);
        let size = is_second.iter().filter(|second| **second).count() as u32;
        let mean = ranks.iter().sum::<usize>() as f64 * f64::from(size) / ranks.len() as f64;
        let distance = |choice: u32| {
            let chosen = ranks.iter().enumerate();
            let chosen = chosen.filter(|(index, _)| choice >> index & 1 == 1);
            (chosen.map(|(_, rank)| *rank).sum::<usize>() as f64 - mean).abs()
        };
        let bits = is_second.iter().enumerate();
        let own = bits.fold(0, |bits, (index, second)| {
            bits | u32::from(*second) << index
        });
        let choices = (0..1_u32 << values.len()).filter(|choice| choice.count_ones() == size);
        let choices: Vec<u32> = choices.collect();
        let far = choices
            .iter()
            .filter(|choice| distance(**choice) >= distance(own) - 1e-9);
        far.count() as f64 / choices.len() as f64
    }

    #[test]
    fn every_choice_is_counted_once() {
        let cases: [(&[f64], u32); 4] = [
            (&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], 0b1111_0000),
            (&[3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0], 0b1010_1010),
            (&[1.0, 1.0, 1.0, 2.0, 2.0, 7.0], 0b11_0100),
            (&[5.0; 6], 0b10_1010),
        ];
        for (values, choice) in cases {
            let is_second: Vec<bool> = (0..values.len())
                .map(|index| choice >> index & 1 == 1)
                .collect();
            let p = rank_sum(values, &is_second);
            assert!((p - tried(values, &is_second)).abs() < 1e-12, "{values:?}");
        }
        // Eight values apart in two groups of four: 2 of 70 choices are as extreme.
        let apart = rank_sum(
            cases[0].0,
            &[false, false, false, false, true, true, true, true],
        );
        assert!((apart - 2.0 / 70.0).abs() < 1e-12);
        // Values that are all equal tell nothing.
        assert_eq!(rank_sum(&[5.0; 4], &[true, false, true, false]), 1.0);
    }
}
