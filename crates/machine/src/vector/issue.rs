//! An instruction with its operands, and loops over elements that the groups of instructions share.

use super::encoding::{Encoding, Reserved, category};
use super::group::{Group, Overlap, check, check_sources};
use super::operand::{Operands, Which};
use super::unit::VectorUnit;
use super::vtype::Width;
use crate::float::{Flags, Rounding};

/// A vector instruction that computes, with what it reads besides vector registers.
#[derive(Debug)]
pub struct Issue<'a> {
    /// The unit.
    pub unit: &'a mut VectorUnit,
    /// The instruction.
    pub encoding: Encoding,
    /// `x[rs1]`.
    pub integer: u64,
    /// `x[rs2]`, of VSETVL.
    pub second: u64,
    /// `f[rs1]`.
    pub float: u64,
    /// frm; `None` of a reserved mode.
    pub rounding: Option<Rounding>,
    /// False while FS is Off.
    pub float_on: bool,
    /// Flags that are raised.
    pub flags: Flags,
    /// True if the register groups are known to be legal: [`super::Known`].
    pub is_checked: bool,
}

/// Result outside the vector unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Output {
    /// None.
    Vector,
    /// Value of an integer register.
    Integer(u64),
    /// Value of a floating-point register.
    Float(u64),
}

/// The second operand of an instruction: vs1, or the same value for every element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Second {
    Vector(u8),
    Scalar(u64),
}

/// Which immediates an instruction takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Immediate {
    Signed,
    Unsigned,
}

/// Outcome of an instruction: its result, or that its encoding is reserved.
pub(super) type Checked = Result<Output, Reserved>;

impl Issue<'_> {
    /// SEW.
    pub(super) fn width(&self) -> Result<Width, Reserved> {
        self.unit.vtype().width().ok_or(Reserved)
    }

    /// log2 of LMUL.
    pub(super) const fn multiplier(&self) -> i8 {
        self.unit.vtype().multiplier()
    }

    /// A group of SEW and LMUL.
    pub(super) fn group(&self, register: u8) -> Result<Group, Reserved> {
        Ok(Group::new(register, self.width()?, self.multiplier()))
    }

    /// A group of twice SEW and twice LMUL.
    pub(super) fn wide_group(&self, register: u8) -> Result<Group, Reserved> {
        let wide = self.width()?.twice().ok_or(Reserved)?;
        Ok(Group::new(register, wide, self.multiplier() + 1))
    }

    /// Twice SEW.
    pub(super) fn wide(&self) -> Result<Width, Reserved> {
        self.width()?.twice().ok_or(Reserved)
    }

    /// vd as a group.
    pub(super) fn destination(&self) -> Result<Group, Reserved> {
        self.group(self.encoding.vd())
    }

    /// Elements of the body from vstart on.
    pub(super) fn body(&self) -> std::ops::Range<usize> {
        usize::from(self.unit.vstart)..self.unit.vl()
    }

    /// Tests whether the mask lets an element take part.
    #[inline]
    pub(super) fn is_active(&self, index: usize) -> bool {
        !self.encoding.is_masked() || self.unit.mask_bit(0, index)
    }

    /// Refuses an instruction that begins elsewhere than at element 0.
    pub(super) const fn check_start(&self) -> Result<(), Reserved> {
        if self.unit.vstart == 0 {
            Ok(())
        } else {
            Err(Reserved)
        }
    }

    /// Refuses a masked instruction.
    pub(super) const fn unmasked(&self) -> Result<(), Reserved> {
        if self.encoding.is_masked() {
            Err(Reserved)
        } else {
            Ok(())
        }
    }

    /// The second operand, by the kind of operands.
    pub(super) const fn second(&self, immediate: Immediate) -> Second {
        match self.encoding.funct3() {
            category::INTEGER_SCALAR | category::MASK_SCALAR => Second::Scalar(self.integer),
            category::INTEGER_IMMEDIATE => Second::Scalar(match immediate {
                Immediate::Signed => self.encoding.immediate().cast_unsigned(),
                Immediate::Unsigned => self.encoding.vs1() as u64,
            }),
            _ => Second::Vector(self.encoding.vs1()),
        }
    }

    /// Element of the second operand, zero-extended.
    #[inline]
    pub(super) fn second_element(&self, second: Second, index: usize, width: Width) -> u64 {
        match second {
            Second::Vector(register) => self.unit.element(register, index, width),
            Second::Scalar(value) => width.truncate(value),
        }
    }

    /// Groups of vs2 and, if it is a vector, of the second operand, which have SEW.
    pub(super) fn sources(&self, second: Second) -> Result<Sources, Reserved> {
        let mut sources = Sources::default();
        sources.push(self.group(self.encoding.vs2())?);
        if let Second::Vector(register) = second {
            sources.push(self.group(register)?);
        }
        Ok(sources)
    }

    /// Checks an instruction with a destination.
    #[inline]
    pub(super) fn check(&self, destination: Group, sources: &Sources) -> Result<(), Reserved> {
        let masked = self.encoding.is_masked();
        self.check_all(destination, sources.as_slice(), masked, Overlap::General)
    }

    /// As [`check`], unless the groups are known to be legal.
    #[inline]
    pub(super) fn check_all(
        &self,
        destination: Group,
        sources: &[Group],
        mask: bool,
        overlap: Overlap,
    ) -> Result<(), Reserved> {
        if self.is_checked {
            return Ok(());
        }
        check(destination, sources, mask, overlap)
    }

    /// As [`check_sources`], unless the groups are known to be legal.
    #[inline]
    pub(super) fn check_read(&self, sources: &[Group], mask: bool) -> Result<(), Reserved> {
        if self.is_checked {
            return Ok(());
        }
        check_sources(sources, mask)
    }

    /// Ends an instruction: the next one begins at element 0.
    pub(super) const fn done(&mut self) -> Checked {
        self.unit.vstart = 0;
        Ok(Output::Vector)
    }

    /// `vd[i] = f(...)` of the active elements, all of SEW.
    #[inline]
    pub(super) fn each(&mut self, immediate: Immediate, f: impl FnMut(Operands) -> u64) -> Checked {
        let second = self.second(immediate);
        if !self.is_checked {
            self.check(self.destination()?, &self.sources(second)?)?;
        }
        self.compute(second, Which::Active, f)?;
        self.done()
    }

    /// `vd[i] = f(vs2[i], second[i])`, all of SEW.
    #[inline]
    pub(super) fn map(&mut self, immediate: Immediate, f: impl Fn(u64, u64) -> u64) -> Checked {
        self.each(immediate, |operands| f(operands.a, operands.b))
    }

    /// `vd.mask[i] = f(...)`.
    #[inline]
    pub(super) fn each_to_mask(
        &mut self,
        immediate: Immediate,
        which: Which,
        f: impl FnMut(Operands) -> bool,
    ) -> Checked {
        let second = self.second(immediate);
        if !self.is_checked {
            let sources = self.sources(second)?;
            self.check(Group::mask(self.encoding.vd()), &sources)?;
        }
        self.test(second, which, f)?;
        self.done()
    }
}

/// Source groups of an instruction, at most three.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sources {
    groups: [Group; 3],
    count: usize,
}

impl Default for Sources {
    fn default() -> Self {
        Self {
            groups: [Group::mask(0); 3],
            count: 0,
        }
    }
}

impl Sources {
    /// Groups of a list.
    pub fn of(groups: &[Group]) -> Self {
        let mut sources = Self::default();
        groups.iter().for_each(|group| sources.push(*group));
        sources
    }

    /// Adds a group.
    pub fn push(&mut self, group: Group) {
        if let Some(place) = self.groups.get_mut(self.count) {
            *place = group;
            self.count += 1;
        }
    }

    fn as_slice(&self) -> &[Group] {
        self.groups.get(..self.count).unwrap_or_default()
    }
}
