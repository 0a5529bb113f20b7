//! Figures of a run: values by measure.

use super::renamed;
use super::table::Measure;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::{Borrow, Cow};
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;

/// Name of a figure: a measure, or a member of a family. Names are ordered and compared by their texts.
#[derive(Debug, Clone)]
pub struct FigureName {
    measure: Measure,
    text: Cow<'static, str>,
}

impl FigureName {
    /// Name of a member of a family, such as `exits-per-second.wfi`.
    pub fn member(family: Measure, member: &str) -> Self {
        Self {
            measure: family,
            text: Cow::Owned(format!("{}{member}", family.name())),
        }
    }

    /// The name that `text` is, if there is such a measure.
    pub fn find(text: &str) -> Option<Self> {
        let measure = Measure::find(text)?;
        let text = Cow::Owned(String::from(text));
        Some(Self { measure, text })
    }

    /// Measure, or family.
    pub const fn measure(&self) -> Measure {
        self.measure
    }

    /// Text of the name.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl From<Measure> for FigureName {
    fn from(measure: Measure) -> Self {
        let text = Cow::Borrowed(measure.name());
        Self { measure, text }
    }
}

impl PartialEq for FigureName {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for FigureName {}

impl PartialOrd for FigureName {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for FigureName {
    fn cmp(&self, other: &Self) -> Ordering {
        self.text.cmp(&other.text)
    }
}

impl Borrow<str> for FigureName {
    fn borrow(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Serialize for FigureName {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

impl<'de> Deserialize<'de> for FigureName {
    /// Reads a name. Runs that were recorded before a measure had its present name keep their figures.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let present = renamed::present_name(&text).unwrap_or_else(|| text.clone());
        Self::find(&present).ok_or_else(|| D::Error::custom(format!("no measure {text:?}")))
    }
}

/// Figures of a run, sorted by name, so that every output has the same order.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Figures(BTreeMap<FigureName, f64>);

impl Figures {
    /// No figures.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds a figure that is known and finite: a figure whose parts are not known is left out, rather than shown as zero.
    pub fn put(&mut self, name: impl Into<FigureName>, value: Option<f64>) {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            self.0.insert(name.into(), value);
        }
    }

    /// Adds a figure of a member of a family, as [`Self::put`] does.
    pub fn put_member(&mut self, family: Measure, member: &str, value: Option<f64>) {
        self.put(FigureName::member(family, member), value);
    }

    /// Value of a measure.
    pub fn get(&self, measure: Measure) -> Option<f64> {
        self.named(measure.name())
    }

    /// Value of a figure by its name, which a user or a file gave.
    pub fn named(&self, name: &str) -> Option<f64> {
        self.0.get(name).copied()
    }

    /// Members of a family with their values.
    pub fn members(&self, family: Measure) -> impl Iterator<Item = (&str, f64)> {
        let of_family = self.iter().filter(move |(name, _)| name.measure == family);
        of_family
            .filter_map(move |(name, value)| Some((name.text.strip_prefix(family.name())?, value)))
    }

    /// All figures, in the order of names.
    pub fn iter(&self) -> impl Iterator<Item = (&FigureName, f64)> {
        self.0.iter().map(|(name, value)| (name, *value))
    }

    /// All names, in order.
    pub fn names(&self) -> impl Iterator<Item = &FigureName> {
        self.0.keys()
    }

    /// Returns whether there is no figure.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Extend<(FigureName, f64)> for Figures {
    fn extend<I: IntoIterator<Item = (FigureName, f64)>>(&mut self, figures: I) {
        for (name, value) in figures {
            self.put(name, Some(value));
        }
    }
}

impl FromIterator<(FigureName, f64)> for Figures {
    fn from_iter<I: IntoIterator<Item = (FigureName, f64)>>(figures: I) -> Self {
        let mut all = Self::new();
        all.extend(figures);
        all
    }
}

impl<const N: usize> From<[(Measure, f64); N]> for Figures {
    fn from(figures: [(Measure, f64); N]) -> Self {
        let named = figures.map(|(measure, value)| (FigureName::from(measure), value));
        named.into_iter().collect()
    }
}

impl IntoIterator for Figures {
    type Item = (FigureName, f64);
    type IntoIter = std::collections::btree_map::IntoIter<FigureName, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Figures {
    type Item = (&'a FigureName, &'a f64);
    type IntoIter = std::collections::btree_map::Iter<'a, FigureName, f64>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}
