//! From values to places on a picture, and the round values to write beside it.

/// A linear scale.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale on which `values` fit, widened to round values, drawn between `from` and `to`. Values that are not
    /// finite are ignored. With `zero` the scale begins or ends there.
    pub fn new(values: impl IntoIterator<Item = f64>, zero: bool, from: f64, to: f64) -> Self {
        let finite = values.into_iter().filter(|value| value.is_finite());
        let start = zero.then_some(0.0);
        let (low, high) = finite
            .chain(start)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        let (low, high) = match (low, high) {
            (low, high) if low > high => (0.0, 1.0),
            (low, high) if low == high => {
                let margin = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
                (low - margin, high + margin)
            }
            both => both,
        };
        let step = step(high - low);
        Self {
            low: (low / step).floor() * step,
            high: (high / step).ceil() * step,
            from,
            to,
        }
    }

    /// A scale from `low` to `high` and no further, drawn between `from` and `to`.
    pub fn exact(low: f64, high: f64, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + 1.0 };
        Self {
            low,
            high,
            from,
            to,
        }
    }

    /// Where a value lies.
    pub fn at(&self, value: f64) -> f64 {
        let part = (value - self.low) / (self.high - self.low);
        self.from + part.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values to mark, with their texts.
    pub fn marks(&self) -> Vec<(f64, String)> {
        let step = step(self.high - self.low);
        let first = (self.low / step - 1e-9).ceil() * step;
        let count = ((self.high - first) / step + 1e-9).floor() as usize;
        let digits = usize::try_from(-step.log10().floor() as i32)
            .unwrap_or(0)
            .min(9);
        (0..=count.min(20))
            .map(|index| {
                let value = first + index as f64 * step;
                // Not "-0".
                let value = if value.abs() < step / 1e6 { 0.0 } else { value };
                (value, format!("{value:.digits$}"))
            })
            .collect()
    }
}

/// A round distance that divides `range` into four to ten parts.
fn step(range: f64) -> f64 {
    let rough = range / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let part = rough / power;
    let factor = if part < 1.5 {
        1.0
    } else if part < 3.5 {
        2.0
    } else if part < 7.5 {
        5.0
    } else {
        10.0
    };
    factor * power
}
