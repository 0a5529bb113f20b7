//! Methods that every build of the hypervisor has. The others are for repeating the papers, and need a build with its feature `papers`.

use super::row::{Row, Takes};
use super::rows::ROWS;
use super::settings::Settings;
use core::fmt;

/// Keys whose words are methods, with the words that every build has: the default, and the papers' best (paper 000 `wapd` and `rslp`,
/// paper 002 `self-wait`, paper 003 `one-shot`).
const ALWAYS: [(&str, &[&str]); 7] = [
    ("spin", &["none", "rslp", "wapd", "reservation"]),
    ("wait", &["host-interrupt", "self-wait", "active-wait"]),
    ("tlb-purge", &["last-host", "one-shot"]),
    ("translation", &["two-stage"]),
    ("migration", &["as-needed"]),
    ("purge", &["fence"]),
    ("remote-fences", &["precise"]),
];

/// A value that only a build with the papers' methods carries out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PapersMethod {
    /// Name of the key.
    pub key: &'static str,
    /// The word.
    pub word: &'static str,
}

impl PapersMethod {
    /// The value of a row, if it is such a method. The value is the place of a word.
    pub fn of(row: &'static Row, value: u64) -> Option<Self> {
        let Takes::Word(words) = row.takes else {
            return None;
        };
        let (_, always) = ALWAYS.iter().find(|(key, _)| *key == row.name)?;
        let word = words.get(usize::try_from(value).ok()?)?;
        (!always.contains(word)).then_some(Self {
            key: row.name,
            word,
        })
    }
}

impl fmt::Display for PapersMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, word } = self;
        write!(
            f,
            "{key} = \"{word}\" needs a hypervisor with the papers' methods"
        )
    }
}

impl Settings {
    /// First given value that is a method of the papers alone.
    #[inline(never)]
    pub fn papers_method(&self) -> Option<PapersMethod> {
        let mut rows = ROWS.iter().enumerate();
        rows.find_map(|(place, row)| PapersMethod::of(row, self.number(place)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{self, Scope, SpinMethod, VmTranslation, Without};
    use std::string::ToString;

    #[test]
    fn listed_words_are_words_of_their_key() {
        for (key, always) in ALWAYS {
            let row = ROWS.iter().find(|row| row.name == key).unwrap();
            let Takes::Word(words) = row.takes else {
                panic!("{key} takes no words");
            };
            assert!(always.iter().all(|word| words.contains(word)), "{key}");
        }
    }

    #[test]
    fn every_default_is_always_there() {
        for row in &ROWS {
            if let Without::Value(value) = row.without {
                assert_eq!(PapersMethod::of(row, value), None, "{}", row.name);
            }
        }
    }

    #[test]
    fn every_experiments_method_is_of_papers() {
        let experiments = |row: &&Row| row.is_in(Scope::Experiment) && row.property;
        for row in ROWS.iter().filter(experiments) {
            if let (Takes::Word(words), Without::Value(default)) = (row.takes, row.without) {
                for value in (0..words.len() as u64).filter(|value| *value != default) {
                    assert!(PapersMethod::of(row, value).is_some(), "{}", row.name);
                }
            }
        }
    }

    #[test]
    fn a_given_method_is_found() {
        let spin = |method| Settings::default().with(keys::SPIN, method);
        assert_eq!(spin(SpinMethod::Wapd).papers_method(), None);
        let found = spin(SpinMethod::Wopd).papers_method().unwrap();
        assert_eq!((found.key, found.word), ("spin", "wopd"));
        assert_eq!(
            found.to_string(),
            "spin = \"wopd\" needs a hypervisor with the papers' methods"
        );
        let shadow = Settings::default().with(keys::TRANSLATION, VmTranslation::Shadow);
        assert_eq!(shadow.papers_method().unwrap().word, "shadow");
        assert_eq!(Settings::default().papers_method(), None);
    }
}
