//! Types of keys' values, and their form in a store: one number.

use super::row::Without;

/// A type that a key's value can have.
pub trait Value: Copy {
    /// `Some(true)` for a type that can say that no value is given; `None` for a key whose value is no number.
    const OPTIONAL: Option<bool>;

    /// The value, from the number that was given, or else from the row's default.
    fn of(given: Option<u64>, without: Without) -> Self;

    /// The number that stands for it; `None` where nothing was given.
    fn number(self) -> Option<u64>;
}

/// Type of the keys whose values are no numbers: texts, files, lists and tables. Each has code of its own.
#[derive(Debug, Clone, Copy)]
pub struct Structure;

impl Value for Structure {
    const OPTIONAL: Option<bool> = None;

    fn of(_: Option<u64>, _: Without) -> Self {
        Self
    }

    fn number(self) -> Option<u64> {
        None
    }
}

/// Implements [`Value`] for a type and for its option, by a total function from numbers.
macro_rules! number {
    ($type:ty, $from:expr, $to:expr) => {
        impl $crate::keys::value::Value for $type {
            const OPTIONAL: Option<bool> = Some(false);

            fn of(given: Option<u64>, without: $crate::keys::row::Without) -> Self {
                $from($crate::keys::value::or_usual(given, without))
            }

            fn number(self) -> Option<u64> {
                Some($to(self))
            }
        }

        impl $crate::keys::value::Value for Option<$type> {
            const OPTIONAL: Option<bool> = Some(true);

            fn of(given: Option<u64>, _: $crate::keys::row::Without) -> Self {
                given.map($from)
            }

            fn number(self) -> Option<u64> {
                self.map($to)
            }
        }
    };
}
pub(super) use number;

number!(u64, |number: u64| number, |value: u64| value);
number!(
    u32,
    |number: u64| u32::try_from(number).unwrap_or(u32::MAX),
    |value: u32| u64::from(value)
);
number!(bool, |number: u64| number != 0, |value: bool| u64::from(
    value
));

/// The number that was given, or the default; 0 for a key that must be given, whose absence was a mistake before.
pub(super) fn or_usual(given: Option<u64>, without: Without) -> u64 {
    given.unwrap_or(match without {
        Without::Value(usual) => usual,
        Without::Required | Without::Follows(_) => 0,
    })
}

/// Checks a row's default against the type of its value: a plain type needs a value, an option must not have one.
pub(super) const fn agrees(optional: Option<bool>, without: Without) -> bool {
    match (optional, without) {
        (None, Without::Required | Without::Follows(_)) | (Some(_), Without::Required) => true,
        (Some(optional), Without::Value(_)) => !optional,
        (Some(optional), Without::Follows(_)) => optional,
        (None, Without::Value(_)) => false,
    }
}
