//! The values that a table of a system file gives for its keys, each with its place in the text.

use crate::document::{Located, Origin};
use abi::keys::{Key, PapersMethod, ROWS, Row, Value};
use std::collections::BTreeMap;

/// The values that are given. A number stands for a number, microseconds, the place of a word, or true and false (1 and 0).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Settings {
    /// By the places of their rows.
    values: BTreeMap<usize, Located<u64>>,
}

impl Settings {
    /// Value of a key: the one that is given, or else the table's.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        key.value(self.values.get(&key.place()).map(|given| given.value))
    }

    /// Value of a key, if it is given.
    pub fn given<T: Value>(&self, key: Key<T>) -> Option<T> {
        let given = self.values.get(&key.place())?;
        Some(key.value(Some(given.value)))
    }

    /// Place of a key's value in the text, if it is given.
    pub fn origin<T>(&self, key: Key<T>) -> Option<&Origin> {
        self.values.get(&key.place()).map(|given| &given.origin)
    }

    /// Gives a value to the row at `place`.
    pub fn set(&mut self, place: usize, value: u64, origin: Origin) {
        self.values.insert(place, Located { value, origin });
    }

    /// Gives a value to a key that has none.
    pub fn set_missing<T: Value>(&mut self, key: Key<T>, value: T, origin: &Origin) {
        if let Some(value) = value.number() {
            let located = Located {
                value,
                origin: origin.clone(),
            };
            self.values.entry(key.place()).or_insert(located);
        }
    }

    /// Takes the values of another table.
    pub fn extend(&mut self, other: Self) {
        self.values.extend(other.values);
    }

    /// The given values that only a hypervisor with the papers' methods carries out, each with its row and its place in the text.
    pub fn papers_methods(&self) -> impl Iterator<Item = (&'static Row, PapersMethod, &Origin)> {
        self.values.iter().filter_map(|(place, given)| {
            let row = ROWS.get(*place)?;
            let method = PapersMethod::of(row, given.value)?;
            Some((row, method, &given.origin))
        })
    }

    /// The given values that the description carries.
    pub fn properties(&self) -> impl Iterator<Item = (&'static Row, u64)> {
        let given = self.values.iter();
        let given = given.filter_map(|(place, given)| Some((ROWS.get(*place)?, given.value)));
        given.filter(|(row, _)| row.property)
    }
}
