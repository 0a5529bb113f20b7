//! Publication of a paper, and how its cases are run here: `experiments/paper-NNN/published.toml`.

mod check;

use super::figures::{Bars, Curve, EventCost};
use crate::laboratory::verdict::COMPARABLE;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A paper's figures and the systems that repeat them.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Published {
    /// Its subject.
    pub title: String,
    /// Authors, year, where it appeared.
    pub source: String,
    /// The key that its methods are values of.
    pub vary: String,
    /// Keys of the machine's profile that make [`PROFILE`] the computer that the paper measured on. Other profiles are
    /// taken as they are.
    #[serde(default)]
    pub hardware: BTreeMap<String, Setting>,
    /// Changes to the system under which the paper's methods run, on any computer: rules of the paper's own scheduler.
    #[serde(default)]
    pub set: Vec<String>,
    /// Settings of the paper's scheduler, as keys of the system. On other profiles nothing is added.
    #[serde(default)]
    pub costs: BTreeMap<String, Setting>,
    /// The smallest effect that counts; without it, what the papers call comparable.
    #[serde(default)]
    pub smallest_effect: Option<SmallestEffect>,
    /// Methods that are more than a value of that key.
    #[serde(rename = "variant", default)]
    pub variants: Vec<Variant>,
    /// The cases of its tables.
    #[serde(rename = "case")]
    pub cases: Vec<Case>,
    /// Where there can be no effect.
    #[serde(rename = "negative", default)]
    pub negatives: Vec<Negative>,
    /// Effects that come in an order.
    #[serde(rename = "order", default)]
    pub orders: Vec<Order>,
    /// Curves of gain over loss, not judged.
    #[serde(rename = "gain", default)]
    pub gains: Vec<Gain>,
    /// A table of what events cost, beside what they cost elsewhere.
    #[serde(rename = "event", default)]
    pub events: Vec<EventCost>,
    /// Figures: a measure over another, from case to case.
    #[serde(rename = "curve", default)]
    pub curves: Vec<Curve>,
    /// Figures: how a whole is divided.
    #[serde(rename = "bars", default)]
    pub bars: Vec<Bars>,
}

/// The smallest effect of interest.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SmallestEffect {
    /// In per cent.
    pub per_cent: f64,
    /// Why that much.
    pub basis: String,
}

/// A value of a key, of a profile or of a system.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Setting {
    /// A switch.
    Switch(bool),
    /// A number.
    Number(i64),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Switch(switch) => write!(f, "{switch}"),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

/// Value of a word of a guest's command line.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(untagged)]
pub enum Word {
    /// A number.
    Number(u64),
    /// Another word.
    Text(String),
}

impl std::fmt::Display for Word {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// A method on other hardware than the paper's, or under other rules.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Variant {
    /// Its name among the methods.
    pub name: String,
    /// The method.
    pub value: String,
    /// Differences from the paper's hardware.
    #[serde(default)]
    pub hardware: BTreeMap<String, Setting>,
    /// Changes to the system, after those of the paper's methods.
    #[serde(default)]
    pub set: Vec<String>,
    /// The method that it is compared with; without it, the case's first.
    #[serde(default)]
    pub base: Option<String>,
}

/// A case of a table.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Case {
    /// The table's number; 0 for what the text alone says.
    pub table: u32,
    /// The case's name in it.
    pub name: String,
    /// Its description.
    pub title: String,
    /// The system file, beside this one.
    pub system: PathBuf,
    /// The methods, the first of which the others are compared with.
    pub methods: Vec<String>,
    /// Words of the guests' command lines that are set.
    #[serde(default)]
    pub parameters: BTreeMap<String, Word>,
    /// Words of the guests' command lines that short runs set.
    #[serde(default)]
    pub quick: BTreeMap<String, Word>,
    /// The fewest start phases that its methods are run with: a case whose runs are short and differ much needs more.
    #[serde(default)]
    pub phases: u32,
    /// The start phases of short runs, instead of `phases`; with 0 short runs leave the case out.
    #[serde(default)]
    pub quick_phases: Option<u32>,
    /// Runs the case only where it is named, by itself or by its table: such a case takes more time than all others together.
    #[serde(default)]
    pub by_name: bool,
    /// The most start phases: a case whose phases hardly differ, and of which little is judged, needs no more.
    #[serde(default)]
    pub max_phases: Option<u32>,
    /// Words for the native run, whose one system gets the work of all; without it there is no native run.
    pub native: Option<BTreeMap<String, Word>>,
    /// Runs the same guests under KVM on the machine too: what that comes to is shown, and not judged.
    #[serde(default)]
    pub kvm: bool,
    /// The most start phases of native runs and of those under KVM, which boot for each run; without it, as many as of the methods.
    #[serde(default)]
    pub beside_phases: Option<u32>,
    /// The most start phases of runs under KVM alone, which boot a whole host each.
    #[serde(default)]
    pub kvm_phases: Option<u32>,
    /// The part of the work that is measured, where a run is measured in its midst.
    #[serde(default)]
    pub part: Option<Part>,
    /// The part that is measured in short runs, where it is a shorter one.
    #[serde(default)]
    pub quick_part: Option<Part>,
    /// The methods of short runs, where those are fewer; native runs and those under KVM are made where they are named here.
    #[serde(default)]
    pub quick_methods: Vec<String>,
    /// Methods of which the wait with the most pause-loop exits of all start phases is drawn in a report.
    #[serde(default)]
    pub worst_waits: Vec<String>,
    /// Draws the pause-loop exits: how many a wait has, and whose absence they are due to.
    #[serde(default)]
    pub storms: bool,
    /// The published figures.
    #[serde(rename = "figure", default)]
    pub figures: Vec<Figure>,
    /// Claims of the text without figures.
    #[serde(rename = "claim", default)]
    pub claims: Vec<Claim>,
    /// The machine's profile, where the case belongs to another computer than [`PROFILE`]. A profile that the command names
    /// comes first.
    #[serde(default)]
    pub profile: Option<String>,
    /// Keys of the machine's profile that this case changes, whichever profile it is: what the case is about.
    #[serde(default)]
    pub hardware: BTreeMap<String, Setting>,
    /// A measure that is shown over another, phase by phase.
    #[serde(default)]
    pub against: Option<Against>,
    /// Counts the round trips through the hypervisor, by cause.
    #[serde(default, rename = "passages")]
    pub exit_latency: bool,
    /// The method beside which paper 003's model of the mean instruction time is shown for the others.
    #[serde(default)]
    pub model: Option<String>,
}

/// A part of the work, from a checkpoint taken in its midst.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Part {
    /// Text that all guests have shown when the checkpoint is taken.
    pub after: String,
    /// How long a run goes on with its method before anything is counted, in microseconds of machine time.
    pub settle_us: u64,
    /// How long all is counted.
    pub count_us: u64,
}

/// A measure over another.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Against {
    /// Measure that is drawn upwards.
    pub up: String,
    /// Measure that is drawn across.
    pub across: String,
}

/// One line of a table: a measure for each method.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Figure {
    /// The measure.
    pub measure: String,
    /// Its value by method.
    pub values: BTreeMap<String, f64>,
    /// Methods for which something of ours was chosen so that this value comes out: it is shown, and never judged.
    #[serde(default)]
    pub fitted: Vec<String>,
    /// If the values themselves are predicted, and not their ratios alone: how far from the paper's they may be, in per cent.
    #[serde(default)]
    pub absolute: Option<f64>,
    /// A remark: what is odd about it.
    pub note: Option<String>,
}

/// A relation that the text states.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Claim {
    /// In words.
    pub text: String,
    /// The measure.
    pub measure: String,
    /// The method that has more of it; without it, the measure of `less` is at most `at_most`.
    #[serde(default)]
    pub more: String,
    /// The method that has less; without it, the measure itself is more than `than`.
    #[serde(default)]
    pub less: String,
    /// Lower bound of the measure of `more`.
    #[serde(default)]
    pub than: Option<f64>,
    /// Upper bound of the measure of `less`.
    #[serde(default)]
    pub at_most: Option<f64>,
    /// How often what the one has goes into what the other has, at least: the claim is more > times x less. Below 1 it says how
    /// much more "less" may have at most.
    #[serde(default)]
    pub times: Option<f64>,
}

/// A comparison in which nothing can come out.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Negative {
    /// Its subject, and why there can be no effect.
    pub title: String,
    /// The system file.
    pub system: PathBuf,
    /// The methods.
    pub methods: Vec<String>,
    /// Words of the guests' command lines that are set.
    #[serde(default)]
    pub parameters: BTreeMap<String, Word>,
    /// Words of the guests' command lines that short runs set.
    #[serde(default)]
    pub quick: BTreeMap<String, Word>,
    /// As for a case.
    #[serde(default)]
    pub phases: u32,
    /// The measure.
    pub measure: String,
    /// The largest effect in per cent that counts as none.
    pub tolerance: f64,
    /// As for a case.
    #[serde(default)]
    pub profile: Option<String>,
}

/// Cases whose effects come in an order.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Order {
    /// In words.
    pub text: String,
    /// The measure.
    pub measure: String,
    /// The method whose effect it is.
    pub method: String,
    /// The cases, from the largest effect to the smallest.
    pub cases: Vec<String>,
}

/// Gain of a method in a measure over another method's other measures, in the cases of a table.
#[derive(Debug, Clone, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Gain {
    /// In words.
    pub title: String,
    /// The table; without it, all cases that compare these two methods.
    #[serde(default)]
    pub table: Option<u32>,
    /// The measure in which something is gained.
    pub measure: String,
    /// The method that gains.
    pub method: String,
    /// The one that loses, which must be what the method is compared with.
    pub base: String,
    /// Its loss: the sum of these measures.
    pub over: Vec<String>,
}

impl Gain {
    /// Returns whether cases of this table are in it.
    pub(super) fn is_of(&self, table: u32) -> bool {
        self.table.is_none_or(|own| own == table)
    }
}

/// Why a paper's figures cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PublishedError {
    /// The file cannot be read.
    #[error("{path}: {error}", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// The problem.
        error: std::io::Error,
    },
    /// The file is not as it should be.
    #[error("{path}: {message}", path = path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// The problem and its place.
        message: String,
    },
}

impl Published {
    /// Reads a paper's file.
    ///
    /// # Errors
    /// The file cannot be read, or contradicts itself: the message names what.
    pub fn read(path: &Path) -> Result<Self, PublishedError> {
        let text = std::fs::read_to_string(path).map_err(|error| PublishedError::File {
            path: path.to_owned(),
            error,
        })?;
        let content = |message| PublishedError::Content {
            path: path.to_owned(),
            message,
        };
        let published: Self = toml::from_str(&text).map_err(|error| content(error.to_string()))?;
        published.check().map_err(content)?;
        Ok(published)
    }

    /// The smallest effect of interest as a part of what it is compared with, and why it is that.
    pub fn smallest_effect(&self) -> (f64, String) {
        match &self.smallest_effect {
            Some(own) => (own.per_cent / 100.0, own.basis.clone()),
            None => (
                COMPARABLE,
                String::from("what the papers call comparable: paper 000, table 3, case 2"),
            ),
        }
    }

    /// The value of the varied key that a method is, and what its runs change in the system and, where it is the papers' own, in
    /// the profile. `None` for a method that differs from another in hardware alone, on another profile.
    pub fn method(&self, name: &str, own_profile: bool) -> Option<(String, Vec<String>)> {
        let variant = self.variants.iter().find(|variant| variant.name == name);
        let value = variant.map_or(name, |variant| &variant.value);
        let mut changes = self.set.clone();
        changes.extend(variant.iter().flat_map(|variant| variant.set.clone()));
        if !own_profile {
            let differs = variant.is_none_or(|variant| variant.hardware.is_empty());
            return differs.then(|| (String::from(value), changes));
        }
        let costs = self.costs.iter();
        changes.extend(costs.map(|(key, value)| format!("{key}={value}")));
        let mut hardware = self.hardware.clone();
        hardware.extend(variant.iter().flat_map(|variant| variant.hardware.clone()));
        let hardware = hardware.iter();
        changes.extend(hardware.map(|(key, value)| format!("profile.{key}={value}")));
        Some((String::from(value), changes))
    }

    /// The method that this one is compared with in a case.
    pub fn base<'a>(&'a self, case: &'a Case, method: &str) -> &'a str {
        let mut variants = self.variants.iter();
        let own = variants
            .find(|variant| variant.name == method)
            .and_then(|variant| variant.base.as_deref())
            .filter(|base| case.methods.iter().any(|method| method == base));
        own.unwrap_or_else(|| case.methods.first().map_or("", String::as_str))
    }

    /// Hardware of the paper's computer beyond [`PROFILE`], as words to follow that name.
    pub fn hardware_text(&self) -> String {
        let settings = self.hardware.iter().chain(&self.costs);
        let settings: Vec<_> = settings
            .map(|(key, value)| format!(" {key} = {value}"))
            .collect();
        match settings.is_empty() {
            true => String::new(),
            false => format!(" with{}", settings.join(",")),
        }
    }

    /// The other computers' profiles, each once.
    pub fn profiles(&self) -> std::collections::BTreeSet<&str> {
        let cases = self.cases.iter().map(|case| &case.profile);
        let negatives = self.negatives.iter().map(|negative| &negative.profile);
        let all = cases.chain(negatives);
        all.filter_map(|profile| profile.as_deref()).collect()
    }

    /// The numbers of the tables, in their order.
    pub fn tables(&self) -> Vec<u32> {
        let mut tables: Vec<u32> = self.cases.iter().map(|case| case.table).collect();
        tables.sort_unstable();
        tables.dedup();
        tables
    }
}

/// The profile of the computers that the papers measured on.
pub const PROFILE: &str = "mainframe-1994";

/// Name of the native run among the methods.
pub const NATIVE: &str = "native";

/// Name of the run under KVM among the methods.
pub const KVM: &str = "kvm";
