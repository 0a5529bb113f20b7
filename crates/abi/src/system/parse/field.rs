//! A property as it is read.

use super::{Parsed, about, refused};
use crate::system::{
    HartId, HartSet, Hidden, MAX_HARTS, MAX_SLOTS, PAUSE_LOOP, PauseLoops, Problem, Slot, Subject,
    SystemError, names,
};
use crate::tree::Property;
use arrayvec::ArrayVec;

/// A property as it is read: whose it is, and the typed views of its value.
#[derive(Clone, Copy)]
pub(in crate::system) struct Field<'a> {
    pub(super) subject: Subject,
    pub(in crate::system) property: Property<'a>,
}

impl<'a> Field<'a> {
    pub(in crate::system) fn error(&self, problem: Problem) -> SystemError {
        about(self.subject, self.property.name, problem)
    }

    pub(in crate::system) fn refuse(
        &self,
        value: impl core::fmt::Display,
        problem: Problem,
    ) -> SystemError {
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

    pub(super) fn word<T>(&self, from_name: impl Fn(&str) -> Option<T>) -> Parsed<T> {
        let text = self.text()?;
        from_name(text).ok_or_else(|| self.refuse(text, Problem::UnknownWord))
    }

    pub(super) fn number(&self, range: core::ops::RangeInclusive<u32>) -> Parsed<u32> {
        let number = self
            .property
            .number()
            .ok_or_else(|| self.error(Problem::WrongType))?;
        if !range.contains(&number) {
            return Err(self.refuse(number, Problem::OutOfRange));
        }
        Ok(number)
    }

    pub(super) fn harts(&self) -> Parsed<HartSet> {
        let mut harts = HartSet::EMPTY;
        for hart in self
            .property
            .numbers()
            .ok_or_else(|| self.error(Problem::WrongType))?
        {
            if hart >= MAX_HARTS {
                return Err(self.refuse(hart, Problem::OutOfRange));
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
            let slot = Slot(slot.ok_or_else(|| self.refuse(number, Problem::OutOfRange))?);
            if slots.contains(&slot) {
                return Err(self.refuse(number, Problem::Taken));
            }
            slots
                .try_push(slot)
                .map_err(|_| self.error(Problem::TooMany))?;
        }
        slots.sort_unstable();
        Ok(slots)
    }

    pub(super) fn hidden(&self) -> Parsed<Hidden> {
        Hidden::from_names(self.text()?).map_err(|name| self.refuse(name, Problem::UnknownWord))
    }

    /// Keeps one of the parameters of pause loops, if it is one.
    pub(super) fn pause_loop(&self, loops: &mut PauseLoops) -> Parsed<()> {
        let place = match self.property.name {
            names::PLE_GAP => &mut loops.gap,
            names::PLE_WINDOW => &mut loops.window,
            names::PLE_WINDOW_MOST => &mut loops.window_most,
            _ => return Err(self.error(Problem::UnknownProperty)),
        };
        self.keep(place, self.number(PAUSE_LOOP)?)
    }

    /// Keeps that a property without a value is there.
    pub(super) fn mark(&self, place: &mut Option<()>) -> Parsed<()> {
        if !self.property.value.is_empty() {
            return Err(self.error(Problem::WrongType));
        }
        self.keep(place, ())
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
