//! The values that a description gives for its keys.

use super::key::Key;
use super::rows::{COUNT, ROWS};
use super::value::Value;
use core::fmt;

/// Number of keys that the description carries as properties.
const PROPERTIES: usize = {
    let (mut place, mut count) = (0, 0);
    while place < COUNT {
        count += ROWS[place].property as usize;
        place += 1;
    }
    count
};

const _: () = assert!(PROPERTIES < u64::BITS as usize);

/// Place of each row among those that are properties.
const PLACES: [u8; COUNT] = {
    let mut places = [u8::MAX; COUNT];
    let (mut place, mut next) = (0, 0);
    while place < COUNT {
        if ROWS[place].property {
            places[place] = next;
            next += 1;
        }
        place += 1;
    }
    places
};

/// The values that a table of the description gives; the others are those of [`ROWS`].
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Bit N: the Nth property is given.
    given: u64,
    values: [u32; PROPERTIES],
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            given: 0,
            values: [0; PROPERTIES],
        }
    }
}

impl Settings {
    /// A key's value: the one that is given, or else the table's.
    pub fn get<T: Value>(&self, key: Key<T>) -> T {
        key.value(self.number(key.place()))
    }

    /// A key's value, if it is given.
    pub fn given<T: Value>(&self, key: Key<T>) -> Option<T> {
        let number = self.number(key.place())?;
        Some(key.value(Some(number)))
    }

    /// The number that is given for the row at `place`.
    pub fn number(&self, place: usize) -> Option<u64> {
        let place = usize::from(*PLACES.get(place)?);
        let value = *self.values.get(place)?;
        (self.given >> place & 1 != 0).then_some(value.into())
    }

    /// Gives a number to the row at `place`. False, and nothing changes, if it has one, or is no property.
    pub fn set(&mut self, place: usize, number: u32) -> bool {
        let place = PLACES
            .get(place)
            .map_or(usize::MAX, |place| usize::from(*place));
        let Some(value) = self.values.get_mut(place) else {
            return false;
        };
        if self.given >> place & 1 != 0 {
            return false;
        }
        *value = number;
        self.given |= 1 << place;
        true
    }

    /// Sets one key's value.
    #[must_use]
    pub fn with<T: Value>(mut self, key: Key<T>, value: T) -> Self {
        let number = value.number().and_then(|number| u32::try_from(number).ok());
        if let Some(number) = number {
            self.set(key.place(), number);
        }
        self
    }
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let given = ROWS.iter().enumerate();
        let given = given.filter_map(|(place, row)| Some((row.name, self.number(place)?)));
        f.debug_map().entries(given).finish()
    }
}
