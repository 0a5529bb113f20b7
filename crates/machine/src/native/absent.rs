//! Hosts without a translator: nothing is ever translated.

use super::{FilterTables, Left, Site};
use crate::hart::Hart;
use crate::instruction::{CodeIndex, Instruction};
use crate::ram::Ram;
use crate::timing::Costs;

/// There is none.
#[derive(Debug)]
pub enum Native {}

impl Native {
    /// `None`.
    #[must_use]
    pub const fn new() -> Option<Box<Self>> {
        None
    }

    /// Never called.
    pub const fn prepare(&mut self, _costs: Option<&Costs>, _predicted: bool) {}

    /// Never called.
    pub const fn clear(&mut self) {}

    /// Never called.
    pub const fn forget(&mut self, _first: CodeIndex) {}

    /// Never called.
    pub const fn warm(
        &mut self,
        _all: &[Instruction],
        _first: CodeIndex,
        _at: (u64, u64),
        _base: u64,
    ) -> bool {
        false
    }

    /// Never called.
    pub const fn is_current(&self, _: Site) -> bool {
        false
    }

    /// Never called.
    pub const fn is_translated(&self, _first: CodeIndex) -> bool {
        false
    }

    /// Never called.
    pub const fn lead(&mut self, _first: CodeIndex, _offset: u64) {}

    /// Never called.
    pub const fn connect(&mut self, _site: Site, _to: CodeIndex) {}

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub const unsafe fn resume(
        &self,
        _: &mut Hart,
        _: &Ram,
        _: FilterTables,
        _: Site,
        _: u64,
    ) -> Option<Left> {
        None
    }

    /// Never called.
    ///
    /// # Safety
    /// None is needed.
    pub const unsafe fn run(
        &self,
        _: &mut Hart,
        _: &Ram,
        _: FilterTables,
        _: CodeIndex,
        _: u64,
    ) -> Option<Left> {
        None
    }
}
