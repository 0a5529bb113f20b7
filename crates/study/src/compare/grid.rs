//! Variations, and their combinations.

use crate::laboratory::{Computer, Point};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A key that is varied, and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variation {
    /// The key by its dotted path, or `profile`.
    pub key: String,
    /// Its values as they are written.
    pub values: Vec<String>,
}

/// The key that stands for the machine's profile.
const PROFILE: &str = "profile";
/// The key that stands for the hypervisor's ELF file.
const HYPERVISOR: &str = "hypervisor";

/// Most points of one comparison: more is a mistake.
const MAX_POINTS: usize = 1_000_000;

/// Why a comparison cannot be set up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GridError {
    /// No `=`.
    #[error("--vary {0}: give KEY=VALUE,VALUE,..., such as spin=wopd,wapd")]
    NoValues(String),
    /// A value that is empty.
    #[error("--vary {0}: a value is empty")]
    EmptyValue(String),
    /// A value twice.
    #[error("--vary {key}: {value} is listed twice")]
    Twice {
        /// The key.
        key: String,
        /// The value.
        value: String,
    },
    /// A key twice.
    #[error("--vary {0}: this key is varied twice; list all of its values after one --vary")]
    KeyTwice(String),
    /// The profile on QEMU.
    #[error("--vary profile: profiles are the machine's; add --on machine")]
    ProfileOnQemu,
    /// Too many.
    #[error("{0} runs are too many; a comparison has at most {MAX_POINTS}")]
    TooMany(usize),
}

impl Variation {
    /// Reads `KEY=VALUE,VALUE,...`. A comma inside quotation marks or brackets belongs to its value.
    ///
    /// # Errors
    /// [`GridError`].
    pub fn parse(text: &str) -> Result<Self, GridError> {
        let (key, values) = text
            .split_once('=')
            .ok_or_else(|| GridError::NoValues(String::from(text)))?;
        let (key, values) = (key.trim(), split(values));
        if key.is_empty() {
            return Err(GridError::NoValues(String::from(text)));
        }
        if values.iter().any(String::is_empty) {
            return Err(GridError::EmptyValue(String::from(text)));
        }
        for (index, value) in values.iter().enumerate() {
            if values.iter().take(index).any(|other| other == value) {
                return Err(GridError::Twice {
                    key: String::from(key),
                    value: value.clone(),
                });
            }
        }
        Ok(Self {
            key: String::from(key),
            values,
        })
    }
}

/// Splits at the commas outside of quotation marks and brackets.
fn split(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let (mut depth, mut quoted) = (0usize, false);
    for character in text.chars() {
        match character {
            '"' => quoted = !quoted,
            '[' | '{' if !quoted => depth += 1,
            ']' | '}' if !quoted => depth = depth.saturating_sub(1),
            ',' if !quoted && depth == 0 => {
                values.push(String::new());
                continue;
            }
            _ => {}
        }
        if let Some(value) = values.last_mut() {
            value.push(character);
        }
    }
    let trim = |value: String| String::from(value.trim());
    values.into_iter().map(trim).collect()
}

/// One value for each key that is varied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Combination {
    /// Keys and values in the order of the command line.
    pub values: Vec<(String, String)>,
}

impl Combination {
    /// Its name in tables.
    pub fn label(&self) -> String {
        match &self.values[..] {
            [] => String::from("as it is"),
            values => {
                let parts = values.iter().map(|(key, value)| format!("{key}={value}"));
                parts.collect::<Vec<_>>().join(" ")
            }
        }
    }

    /// The combination with those of its keys that are wanted.
    pub fn only(&self, wanted: impl Fn(&str) -> bool) -> Self {
        let values = self.values.iter();
        let values = values.filter(|(key, _)| wanted(key));
        Self {
            values: values.cloned().collect(),
        }
    }

    /// The changes to the system that it makes.
    fn changes(&self) -> impl Iterator<Item = String> {
        self.values
            .iter()
            .filter(|(key, _)| key != PROFILE && key != HYPERVISOR)
            .map(|(key, value)| format!("{key}={value}"))
    }

    fn hypervisor(&self) -> Option<PathBuf> {
        let mut values = self.values.iter();
        let (_, file) = values.find(|(key, _)| key == HYPERVISOR)?;
        Some(PathBuf::from(file))
    }

    fn computer(&self, base: &Computer) -> Computer {
        match self.values.iter().find(|(key, _)| key == PROFILE) {
            Some((_, profile)) => Computer::Machine {
                profile: Some(profile.clone()),
            },
            None => base.clone(),
        }
    }
}

/// All combinations, each with all seeds.
#[derive(Debug, Clone)]
pub struct Grid {
    /// The combinations, the last key's values changing first; the first is what the others are compared with.
    pub combinations: Vec<Combination>,
    /// The start phases.
    pub seeds: Vec<u64>,
}

impl Grid {
    /// Every combination of the values, with `seeds` start phases.
    ///
    /// # Errors
    /// [`GridError`].
    pub fn new(
        variations: &[Variation],
        seeds: u32,
        computer: &Computer,
    ) -> Result<Self, GridError> {
        for (index, variation) in variations.iter().enumerate() {
            let before = variations.iter().take(index);
            if before.clone().any(|other| other.key == variation.key) {
                return Err(GridError::KeyTwice(variation.key.clone()));
            }
            if variation.key == PROFILE && *computer == Computer::Qemu {
                return Err(GridError::ProfileOnQemu);
            }
        }
        let sizes = variations.iter().map(|variation| variation.values.len());
        let count = sizes.fold(seeds as usize, usize::saturating_mul);
        if count > MAX_POINTS {
            return Err(GridError::TooMany(count));
        }
        let mut combinations = vec![Combination { values: Vec::new() }];
        for variation in variations {
            combinations = combinations
                .iter()
                .flat_map(|shorter| {
                    variation.values.iter().map(|value| {
                        let mut values = shorter.values.clone();
                        values.push((variation.key.clone(), value.clone()));
                        Combination { values }
                    })
                })
                .collect();
        }
        Ok(Self {
            combinations,
            seeds: (0..u64::from(seeds)).collect(),
        })
    }

    /// The points: for each combination all seeds, in order.
    pub fn points(&self, system: &Path, changes: &[String], computer: &Computer) -> Vec<Point> {
        let point = |combination: &Combination, seed| Point {
            exit_latency: false,
            system: system.to_owned(),
            changes: changes
                .iter()
                .cloned()
                .chain(combination.changes())
                .collect(),
            computer: combination.computer(computer),
            seed,
            native: false,
            kvm: false,
            hypervisor: combination.hypervisor(),
            start: None,
            window: None,
            shares: false,
            shift: None,
        };
        self.combinations
            .iter()
            .flat_map(|combination| self.seeds.iter().map(move |seed| point(combination, *seed)))
            .collect()
    }
}
