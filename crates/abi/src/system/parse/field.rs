//! A property as it is read.

use crate::keys::{Key, ROWS, Scope, Settings, Takes};
use crate::system::error::{Parsed, about, refused};
use crate::system::{
    HartId, HartSet, Hidden, MAX_HARTS, MAX_SLOTS, Problem, Slot, Subject, SystemError,
};
use crate::tree::Property;
use arrayvec::ArrayVec;

/// A property as it is read: whose it is, and the typed views of its value.
#[derive(Clone, Copy)]
pub(super) struct Field<'a> {
    pub(super) subject: Subject,
    pub(super) property: Property<'a>,
}

impl<'a> Field<'a> {
    pub(super) fn error(&self, problem: Problem) -> SystemError {
        about(self.subject, self.property.name, problem)
    }

    pub(super) fn refuse(&self, value: impl core::fmt::Display, problem: Problem) -> SystemError {
        refused(self.subject, self.property.name, value, problem)
    }

    pub(super) fn text(&self) -> Parsed<&'a str> {
        self.property
            .text()
            .ok_or_else(|| self.error(Problem::WrongType))
    }

    pub(super) fn path(&self) -> Parsed<&'a str> {
        match self.text()? {
            "" => Err(self.error(Problem::Missing)),
            path => Ok(path),
        }
    }

    /// A number within a key's limits.
    pub(super) fn number_of<T>(&self, key: Key<T>) -> Parsed<u32> {
        match key.row().takes {
            Takes::Number { min, max, .. } => self.number(min, max),
            _ => Err(self.error(Problem::WrongType)),
        }
    }

    /// A number from `min` to `max`, both allowed.
    pub(super) fn number(&self, min: u32, max: u32) -> Parsed<u32> {
        let number = self.property.number();
        let number = number.ok_or_else(|| self.error(Problem::WrongType))?;
        match (min..=max).contains(&number) {
            true => Ok(number),
            false => Err(self.refuse(number, Problem::OutOfRange { min, max })),
        }
    }

    pub(super) fn harts(&self) -> Parsed<HartSet> {
        let mut harts = HartSet::EMPTY;
        for hart in self
            .property
            .numbers()
            .ok_or_else(|| self.error(Problem::WrongType))?
        {
            if hart >= MAX_HARTS {
                let (min, max) = (0, MAX_HARTS - 1);
                return Err(self.refuse(hart, Problem::OutOfRange { min, max }));
            }
            if !harts.insert(HartId(hart)) {
                return Err(self.refuse(hart, Problem::Taken));
            }
        }
        Ok(harts)
    }

    pub(super) fn slots(&self) -> Parsed<ArrayVec<Slot, MAX_SLOTS>> {
        let mut slots = ArrayVec::new();
        for number in self
            .property
            .numbers()
            .ok_or_else(|| self.error(Problem::WrongType))?
        {
            let slot = u8::try_from(number)
                .ok()
                .filter(|slot| usize::from(*slot) < MAX_SLOTS);
            let (min, max) = (0, MAX_SLOTS as u32 - 1);
            let out = || self.refuse(number, Problem::OutOfRange { min, max });
            let slot = Slot(slot.ok_or_else(out)?);
            if slots.contains(&slot) {
                return Err(self.refuse(number, Problem::Taken));
            }
            let place = slots.partition_point(|other| *other < slot);
            slots
                .try_insert(place, slot)
                .map_err(|_| self.error(Problem::TooMany))?;
        }
        Ok(slots)
    }

    pub(super) fn hidden(&self) -> Parsed<Hidden> {
        Hidden::from_names(self.text()?).map_err(|name| self.refuse(name, Problem::UnknownWord))
    }

    /// Keeps the value of a property row of the table of keys, if it is one of these scopes.
    pub(super) fn setting(&self, settings: &mut Settings, scopes: [Scope; 2]) -> Parsed<()> {
        let mut rows = ROWS.iter().enumerate();
        let found = rows.find(|(_, row)| {
            let here = scopes.iter().any(|scope| row.is_in(*scope));
            row.property && here && row.name == self.property.name
        });
        let (place, row) = found.ok_or_else(|| self.error(Problem::UnknownProperty))?;
        let number = match row.takes {
            Takes::Word(words) => {
                let text = self.text()?;
                let word = words.iter().position(|word| *word == text);
                let word = word.and_then(|word| u32::try_from(word).ok());
                word.ok_or_else(|| self.refuse(text, Problem::UnknownWord))?
            }
            Takes::Number { min, max, .. } => self.number(min, max)?,
            Takes::Flag => self.number(0, 1)?,
            Takes::Time { min, max } => {
                let bound = |bound| u32::try_from(bound).unwrap_or(u32::MAX);
                self.number(bound(min), bound(max))?
            }
            _ => return Err(self.error(Problem::UnknownProperty)),
        };
        match settings.set(place, number) {
            true => Ok(()),
            false => Err(self.error(Problem::Repeated)),
        }
    }

    /// Keeps a value for a property that may stand once.
    pub(super) fn keep<T>(&self, place: &mut Option<T>, value: T) -> Parsed<()> {
        if place.is_some() {
            return Err(self.error(Problem::Repeated));
        }
        *place = Some(value);
        Ok(())
    }
}
