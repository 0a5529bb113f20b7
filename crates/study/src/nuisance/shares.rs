//! How much of the spread over the phases each factor makes.

use super::Factor;
use super::design;
use super::rank::rank_sum;
use crate::laboratory::verdict::holm;
use runner::table::Table;
use runner::table::number;
use serde::Serialize;

/// Most phases that the test takes: the exact test's work grows with their cube.
const MAX_PHASES: usize = 128;

/// One factor's part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// The factor.
    pub factor: String,
    /// Its two levels, in words.
    pub levels: [String; 2],
    /// By how much the mean at the second level is larger than at the first, as a part of the mean of all.
    pub effect: f64,
    /// Its part of the sum of squares.
    pub share: f64,
    /// The p-value of the rank-sum test that the factor makes no difference.
    pub p: f64,
    /// Set if the factor has an effect, decided for all factors together by Holm's procedure.
    pub matters: bool,
}

/// Where the spread of a measure over the phases comes from.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Variance {
    /// The measure.
    pub measure: String,
    /// Of which row, or beside which.
    pub of: String,
    /// Phases that it is from.
    pub phases: usize,
    /// Phases that the design has: with fewer, or with a part of a replicate, nothing can be said.
    pub design: usize,
    /// The standard deviation over the phases, as a part of the mean.
    pub spread: f64,
    /// Factor by factor; empty where nothing can be said.
    pub shares: Vec<Share>,
    /// The part of the random numbers of the seed alone, where the design is replicated.
    pub seed: Option<f64>,
    /// The part that is left: what factors do together, and, without a replicate, the seed.
    pub rest: f64,
}

impl Variance {
    /// Of one value for each phase, in the order of the phases. `None` is a phase without a value.
    pub fn new(measure: &str, of: &str, values: &[Option<f64>], factors: &[Factor]) -> Self {
        let design = design::phases(factors.len());
        let phases = values.len().min(MAX_PHASES.max(design));
        let mut variance = Self {
            measure: String::from(measure),
            of: String::from(of),
            phases,
            design,
            spread: 0.0,
            shares: Vec::new(),
            seed: None,
            rest: 1.0,
        };
        let values: Option<Vec<f64>> = values.iter().take(phases).copied().collect();
        let Some(values) = values.filter(|_| phases > 0 && phases.is_multiple_of(design)) else {
            return variance;
        };
        let mean = values.iter().sum::<f64>() / phases as f64;
        let total: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        // Values that are equal to the last digits have no spread to be divided.
        if mean == 0.0 || total <= (mean * 1e-12).powi(2) {
            return variance;
        }
        variance.spread = (total / (phases.max(2) - 1) as f64).sqrt() / mean.abs();
        variance.shares = factors
            .iter()
            .enumerate()
            .map(|(index, factor)| {
                let second = |phase: usize| design::is_second(factors.len(), index, phase as u64);
                let is_second: Vec<bool> = (0..phases).map(second).collect();
                let signed = values.iter().zip(&is_second);
                let contrast: f64 = signed
                    .map(|(value, second)| if *second { *value } else { -value })
                    .sum();
                Share {
                    factor: factor.name.clone(),
                    levels: factor.levels.clone(),
                    effect: 2.0 * contrast / phases as f64 / mean,
                    share: contrast.powi(2) / phases as f64 / total,
                    p: rank_sum(&values, &is_second),
                    matters: false,
                }
            })
            .collect();
        let p: Vec<f64> = variance.shares.iter().map(|share| share.p).collect();
        for index in holm(&p) {
            if let Some(share) = variance.shares.get_mut(index) {
                share.matters = true;
            }
        }
        let of_factors: f64 = variance.shares.iter().map(|share| share.share).sum();
        if phases > design {
            variance.seed = Some(within(&values, design) / total);
        }
        let told = of_factors + variance.seed.unwrap_or(0.0);
        variance.rest = (1.0 - told).max(0.0);
        variance
    }

    /// Its subject and size, in a line.
    pub fn head(&self) -> String {
        let Self {
            measure,
            of,
            phases,
            design,
            ..
        } = self;
        let head = format!("variance of {measure}, {of}");
        if !phases.is_multiple_of(*design) || *phases == 0 {
            return format!(
                "{head}: no verdict: {phases} seeds cannot tell the factors apart; use --seeds {design}, or a multiple"
            );
        }
        if self.shares.is_empty() {
            return format!("{head}: nothing varies over {phases} phases, or a run is missing");
        }
        format!(
            "{head}: {phases} phases, standard deviation {}",
            per_cent(self.spread)
        )
    }

    /// Explains the shares in a line.
    pub fn foot(&self) -> String {
        format!(
            "A factor that does nothing has a share of {} on average; what matters is decided for all {} together.",
            per_cent(1.0 / (self.phases.max(2) - 1) as f64),
            self.shares.len()
        )
    }

    /// As text.
    pub fn show(&self) -> String {
        let head = self.head() + "\n";
        self.table().map_or_else(
            || head.clone(),
            |table| format!("{head}{table}{}\n", self.foot()),
        )
    }

    /// Factor by factor, the largest share first. `None` where nothing can be said.
    pub fn table(&self) -> Option<Table> {
        if self.shares.is_empty() {
            return None;
        }
        let mut table = Table::new(["factor", "levels", "effect", "share", "p", ""]);
        let mut shares: Vec<&Share> = self.shares.iter().collect();
        shares.sort_by(|one, other| other.share.total_cmp(&one.share));
        for share in shares {
            let sign = if share.effect > 0.0 { "+" } else { "" };
            table.row([
                share.factor.clone(),
                share.levels.join(" | "),
                format!("{sign}{}", per_cent(share.effect)),
                per_cent(share.share),
                number(share.p),
                String::from(if share.matters { "matters" } else { "" }),
            ]);
        }
        let rest = match self.seed {
            Some(seed) => {
                table.row(["seed", "", "", &per_cent(seed)]);
                "what factors do together"
            }
            None => "seed, and what factors do together",
        };
        table.row([rest, "", "", &per_cent(self.rest)]);
        Some(table)
    }

    /// The names of the factors that make a difference.
    pub fn matter(&self) -> Vec<&str> {
        let shares = self.shares.iter().filter(|share| share.matters);
        shares.map(|share| share.factor.as_str()).collect()
    }
}

/// A part in per cent, as text.
fn per_cent(part: f64) -> String {
    format!("{} %", number(100.0 * part))
}

/// The sum of squares within the phases that have the same levels.
fn within(values: &[f64], design: usize) -> f64 {
    let replicates = (values.len() / design).max(1);
    (0..design)
        .map(|row| {
            let own = || values.iter().skip(row).step_by(design);
            let mean = own().sum::<f64>() / replicates as f64;
            own().map(|value| (value - mean).powi(2)).sum::<f64>()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use splitmix::SplitMix64;

    use super::*;

    fn factors(count: usize) -> Vec<Factor> {
        (0..count)
            .map(|index| Factor::named(&format!("factor {index}")))
            .collect()
    }

    /// A value for each phase: a constant, the effect of one factor, and noise.
    fn values(phases: usize, count: usize, effect: f64, unrest: f64) -> Vec<Option<f64>> {
        let mut random = SplitMix64::new(7);
        let mut value = |phase: usize| {
            let second = |factor| design::is_second(count, factor, phase as u64);
            let sign = |factor| if second(factor) { 1.0 } else { -1.0 };
            let noise = random.next() as f64 / u64::MAX as f64 - 0.5;
            Some(10.0 + effect * sign(1) + unrest * noise)
        };
        (0..phases).map(&mut value).collect()
    }

    #[test]
    fn spreading_factor_gets_its_share() {
        let factors = factors(20);
        let variance = Variance::new("throughput", "a", &values(32, 20, 1.0, 0.1), &factors);
        assert_eq!(variance.matter(), ["factor 1"]);
        let share = &variance.shares[1];
        // From 9 to 11 around 10: the contrast is a fifth.
        assert!((share.effect - 0.2).abs() < 0.01, "{share:?}");
        assert!(share.share > 0.99);
        let sum: f64 = variance.shares.iter().map(|share| share.share).sum();
        assert!((sum + variance.rest - 1.0).abs() < 1e-9);
        assert_eq!(variance.seed, None);
        let text = variance.show();
        assert!(
            text.contains("factor 1") && text.contains("matters"),
            "{text}"
        );
    }

    #[test]
    fn replicated_residual_belongs_to_seed() {
        let factors = factors(7);
        let variance = Variance::new("throughput", "a", &values(64, 7, 0.0, 1.0), &factors);
        assert_eq!(variance.matter(), [""; 0]);
        // Noise alone: 56 of the 63 degrees of freedom lie within the eight rows.
        let seed = variance.seed.unwrap();
        assert!((seed - 56.0 / 63.0).abs() < 0.08, "{seed}");
    }

    #[test]
    fn indistinguishable_factors_are_refused() {
        let factors = factors(20);
        let all = values(64, 20, 1.0, 0.1);
        for (phases, told) in [(12, "--seeds 32"), (48, "--seeds 32"), (0, "--seeds 32")] {
            let variance = Variance::new("throughput", "a", &all[..phases], &factors);
            assert!(variance.shares.is_empty() && variance.show().contains(told));
        }
        let mut lost = all[..32].to_vec();
        lost[5] = None;
        let equal = vec![Some(3.0); 32];
        for values in [lost, equal] {
            let variance = Variance::new("throughput", "a", &values, &factors);
            assert!(variance.show().contains("nothing varies"));
        }
    }
}
