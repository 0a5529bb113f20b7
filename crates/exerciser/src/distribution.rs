//! Distributions of times: count, smallest, largest, mean, and quantiles to within 1/8. Values in one bucket are taken as spread evenly
//! over it, so that quantiles of distributions that differ little differ too.

use core::fmt;

/// Sub-buckets for each power of two: quantiles are right to within one in eight.
const STEPS: usize = 8;
const BUCKETS: usize = 64 * STEPS;

/// A distribution of non-negative whole numbers; the unit is the caller's.
#[derive(Debug, Clone)]
pub struct Distribution {
    buckets: [u32; BUCKETS],
    count: u64,
    sum: u64,
    smallest: u64,
    largest: u64,
}

impl Default for Distribution {
    fn default() -> Self {
        Self::new()
    }
}

impl Distribution {
    /// A distribution of nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            buckets: [0; BUCKETS],
            count: 0,
            sum: 0,
            smallest: u64::MAX,
            largest: 0,
        }
    }

    fn bucket_of(value: u64) -> usize {
        if value < STEPS as u64 {
            return value as usize;
        }
        let power = 63 - value.leading_zeros() as usize;
        let step = (value >> (power - 3)) as usize & (STEPS - 1);
        (power - 2) * STEPS + step
    }

    /// The largest value that falls in a bucket.
    fn top_of(bucket: usize) -> u64 {
        if bucket < STEPS {
            return bucket as u64;
        }
        let power = bucket / STEPS + 2;
        let step = (bucket % STEPS) as u64;
        let unit = 1u64 << (power - 3);
        (1u64 << power)
            .saturating_add(step * unit)
            .saturating_add(unit - 1)
    }

    /// Adds one value.
    pub fn add(&mut self, value: u64) {
        if let Some(bucket) = self.buckets.get_mut(Self::bucket_of(value)) {
            *bucket = bucket.saturating_add(1);
        }
        self.count = self.count.saturating_add(1);
        self.sum = self.sum.saturating_add(value);
        self.smallest = self.smallest.min(value);
        self.largest = self.largest.max(value);
    }

    /// Adds all of another's values.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *mine = mine.saturating_add(*theirs);
        }
        self.count = self.count.saturating_add(other.count);
        self.sum = self.sum.saturating_add(other.sum);
        self.smallest = self.smallest.min(other.smallest);
        self.largest = self.largest.max(other.largest);
    }

    /// How many values were added.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// The sum of all values, saturating.
    #[must_use]
    pub const fn sum(&self) -> u64 {
        self.sum
    }

    /// The largest value; 0 where there is none.
    #[must_use]
    pub const fn largest(&self) -> u64 {
        self.largest
    }

    /// The smallest value; 0 where there is none.
    #[must_use]
    pub const fn smallest(&self) -> u64 {
        if self.count == 0 { 0 } else { self.smallest }
    }

    /// The mean, rounded down; 0 where there is no value.
    #[must_use]
    pub const fn mean(&self) -> u64 {
        match self.sum.checked_div(self.count) {
            Some(mean) => mean,
            None => 0,
        }
    }

    /// A value that at least `percent` of 100 values do not exceed, to within one in eight.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> u64 {
        self.quantile(percent, 100)
    }

    /// A value that at least `part` of `whole` values do not exceed, to within one in eight.
    fn quantile(&self, part: u64, whole: u64) -> u64 {
        let wanted = self.count.saturating_mul(part).div_ceil(whole).max(1);
        let mut seen = 0u64;
        for (bucket, &count) in self.buckets.iter().enumerate() {
            let count = u64::from(count);
            if seen + count >= wanted {
                let below = bucket.checked_sub(1).map(Self::top_of);
                let below = below.unwrap_or(0);
                // No value lies outside of these.
                let width = Self::top_of(bucket).min(self.largest) - below;
                // The rank is at least one and at most the count.
                let into = u128::from(width) * u128::from(wanted - seen) / u128::from(count);
                let into = u64::try_from(into).unwrap_or(width);
                return (below + into).max(self.smallest());
            }
            seen += count;
        }
        self.largest
    }
}

impl fmt::Display for Distribution {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "count={} min={} mean={} p50={} p99={} p99.9={} max={}",
            self.count,
            self.smallest(),
            self.mean(),
            self.percentile(50),
            self.percentile(99),
            self.quantile(999, 1000),
            self.largest
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_one_in_eight() {
        let mut distribution = Distribution::new();
        for value in 1..=1000 {
            distribution.add(value);
        }
        assert_eq!((distribution.count(), distribution.sum()), (1000, 500_500));
        assert_eq!((distribution.smallest(), distribution.largest()), (1, 1000));
        for (percent, exact) in [(1, 10), (50, 500), (90, 900), (99, 990)] {
            let found = distribution.percentile(percent);
            assert!(found.abs_diff(exact) <= exact / 8, "{percent}: {found}");
        }
        // These values are spread evenly, as is assumed within a bucket.
        assert_eq!(
            (distribution.percentile(50), distribution.percentile(99)),
            (500, 990)
        );
        let found = distribution.quantile(999, 1000);
        assert!((999..=1000).contains(&found), "99.9: {found}");
    }

    #[test]
    fn values_stay_below_their_buckets_top() {
        for shift in 0..64 {
            for value in [1u64 << shift, (1u64 << shift) + 1, u64::MAX >> (63 - shift)] {
                let bucket = Distribution::bucket_of(value);
                assert!(Distribution::top_of(bucket) >= value);
                assert!(bucket == 0 || Distribution::top_of(bucket - 1) < value);
            }
        }
    }

    #[test]
    fn merged_distributions_equal_the_whole() {
        let (mut left, mut right, mut all) = Default::default();
        for value in [3u64, 900, 17, 0, u64::MAX] {
            let side: &mut Distribution = if value % 2 == 0 {
                &mut left
            } else {
                &mut right
            };
            side.add(value);
            Distribution::add(&mut all, value);
        }
        left.merge(&right);
        assert_eq!(left.to_string(), all.to_string());
    }
}
