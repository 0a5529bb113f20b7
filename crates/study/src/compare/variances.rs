//! Which share of a comparison's spread each nuisance factor makes.

use super::Comparison;
use crate::laboratory::Entry;
use crate::nuisance::{Factor, Variance};
use runner::measures::Measure;

impl Comparison {
    /// For each of these measures, or each of the usual ones, where the spread of its ratios comes from; where one combination
    /// stands alone, that of its values. `entries` are those that the comparison is from. Without factors there is nothing to tell.
    pub fn variances(
        &self,
        entries: &[Entry],
        wanted: &[String],
        factors: &[Factor],
    ) -> Vec<Variance> {
        if factors.is_empty() {
            return Vec::new();
        }
        let names: Vec<&str> = match wanted {
            [] => {
                let all = self.measures().into_iter();
                all.filter(|name| Measure::is_usual(name)).collect()
            }
            wanted => wanted.iter().map(String::as_str).collect(),
        };
        let groups: Vec<&[Entry]> = entries.chunks(self.seeds.max(1)).collect();
        let Some(base) = groups.first() else {
            return Vec::new();
        };
        let value = |entry: &Entry, name: &str| entry.outcome.figures()?.named(name);
        let mut all = Vec::new();
        for name in names {
            if let [only] = &groups[..] {
                let values: Vec<Option<f64>> =
                    only.iter().map(|entry| value(entry, name)).collect();
                all.push(Variance::new(name, "the values", &values, factors));
            }
            for (row, own) in self.rows.iter().zip(&groups).skip(1) {
                let pairs = own.iter().zip(*base);
                let ratios: Vec<Option<f64>> = pairs
                    .map(|(own, base)| {
                        let base = value(base, name).filter(|base| *base != 0.0)?;
                        Some(value(own, name)? / base)
                    })
                    .collect();
                let of = format!("the ratios of {}", row.combination.label());
                all.push(Variance::new(name, &of, &ratios, factors));
            }
        }
        all
    }
}
