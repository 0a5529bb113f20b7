//! A key of the table, with the type of its value.

use super::row::{Row, Takes};
use super::value::Value;
use core::marker::PhantomData;

/// A key by its place in the table, with the type of its value.
#[derive(Debug)]
pub struct Key<T> {
    place: usize,
    row: &'static Row,
    value: PhantomData<fn() -> T>,
}

impl<T> Clone for Key<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Key<T> {}

impl<T> Key<T> {
    pub(super) const fn new(place: usize, row: &'static Row) -> Self {
        Self {
            place,
            row,
            value: PhantomData,
        }
    }

    /// Place in [`ROWS`](super::ROWS).
    pub const fn place(self) -> usize {
        self.place
    }

    /// The row.
    pub const fn row(self) -> &'static Row {
        self.row
    }

    /// Name in a file.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// Limits of a number or of a time; of a time in microseconds.
    pub const fn limits(self) -> core::ops::RangeInclusive<u64> {
        match self.row().takes {
            Takes::Number { min, max, .. } => min as u64..=max as u64,
            Takes::Time { min, max } => min..=max,
            Takes::Flag => 0..=1,
            _ => 0..=u64::MAX,
        }
    }
}

impl<T: Value> Key<T> {
    /// Value for what was given.
    pub fn value(self, given: Option<u64>) -> T {
        T::of(given, self.row.without)
    }
}
