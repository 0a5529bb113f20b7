//! Register groups as operands, and which may overlap: "Vector Operands".

use super::encoding::Reserved;
use super::vtype::Width;

/// A register group with the width of its elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Group {
    /// First register.
    pub register: u8,
    /// log2 of EMUL.
    multiplier: i8,
    /// EEW in bits: 1 of a mask.
    bits: u32,
}

impl Group {
    /// A group of elements. EMUL is checked by [`Group::check`].
    #[must_use]
    pub const fn new(register: u8, width: Width, multiplier: i8) -> Self {
        Self {
            register,
            multiplier,
            bits: width.bits(),
        }
    }

    /// A mask register.
    #[must_use]
    pub const fn mask(register: u8) -> Self {
        Self {
            register,
            multiplier: 0,
            bits: 1,
        }
    }

    /// A register whose first element is a scalar: one register, whatever LMUL is.
    #[must_use]
    pub const fn scalar(register: u8, width: Width) -> Self {
        Self::new(register, width, 0)
    }

    /// Registers that the group takes.
    const fn count(self) -> u8 {
        if self.multiplier > 0 {
            1 << self.multiplier
        } else {
            1
        }
    }

    const fn end(self) -> u8 {
        self.register + self.count()
    }

    /// Tests whether two groups have a register in common.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.register < other.end() && other.register < self.end()
    }

    /// Checks EMUL, and that the group begins at a multiple of it.
    ///
    /// # Errors
    /// [`Reserved`] otherwise.
    pub const fn check(self) -> Result<(), Reserved> {
        let is_multiplier = self.multiplier >= -3 && self.multiplier <= 3;
        if is_multiplier && self.register & (self.count() - 1) == 0 {
            Ok(())
        } else {
            Err(Reserved)
        }
    }

    /// Tests whether the group may be written while `source` is read: they have the same width; or the narrower destination is
    /// the lowest part of the source; or the source, a whole register at least, is the highest part of the destination.
    const fn may_replace(self, source: Self) -> bool {
        if !self.overlaps(source) || self.bits == source.bits {
            return true;
        }
        if self.bits < source.bits {
            self.register == source.register
        } else {
            source.multiplier >= 0 && self.end() == source.end() && source.bits > 1
        }
    }
}

/// Restriction of a destination beyond the general one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Overlap {
    /// None.
    General,
    /// The destination overlaps no source and no mask.
    Never,
}

/// Checks an instruction's groups. `mask` says that v0 masks elements, or is an operand as a mask.
///
/// # Errors
/// [`Reserved`]: a group is misaligned, the destination overlaps what it must not, or a register is read with two widths.
#[inline]
pub fn check(
    destination: Group,
    sources: &[Group],
    mask: bool,
    overlap: Overlap,
) -> Result<(), Reserved> {
    destination.check()?;
    check_sources(sources, mask)?;
    let v0 = Group::mask(0);
    let replaces_mask = mask && destination.overlaps(v0);
    let allowed = match overlap {
        Overlap::Never => {
            !replaces_mask && !sources.iter().any(|source| destination.overlaps(*source))
        }
        Overlap::General => {
            (!replaces_mask || destination.bits == 1)
                && sources
                    .iter()
                    .all(|source| destination.may_replace(*source))
        }
    };
    if allowed { Ok(()) } else { Err(Reserved) }
}

/// Checks groups that are only read.
///
/// # Errors
/// As [`check`].
#[inline]
pub fn check_sources(sources: &[Group], mask: bool) -> Result<(), Reserved> {
    for (index, one) in sources.iter().enumerate() {
        one.check()?;
        // v0 is in an aligned group that begins with it.
        let is_read_as_mask = mask && one.register == 0 && one.bits != 1;
        let is_read_otherwise = |other: &Group| other.bits != one.bits && other.overlaps(*one);
        if is_read_as_mask || sources.iter().take(index).any(is_read_otherwise) {
            return Err(Reserved);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn may(destination: Group, source: Group) -> bool {
        check(destination, &[source], false, Overlap::General).is_ok()
    }

    #[test]
    fn groups_begin_at_multiples() {
        for (register, multiplier, right) in
            [(4, 2, true), (6, 2, false), (7, -1, true), (0, 4, false)]
        {
            let group = Group::new(register, Width::BYTE, multiplier);
            assert_eq!(group.check().is_ok(), right, "v{register}, {multiplier}");
        }
    }

    #[test]
    fn widths_decide_which_overlaps_exist() {
        let group = Group::new;
        // Narrowing into the lowest part alone.
        assert!(may(group(4, Width::BYTE, 0), group(4, Width::HALF, 1)));
        assert!(!may(group(5, Width::BYTE, 0), group(4, Width::HALF, 1)));
        // Widening over the highest part alone, which is a whole register.
        assert!(may(group(4, Width::HALF, 1), group(5, Width::BYTE, 0)));
        assert!(!may(group(4, Width::HALF, 1), group(4, Width::BYTE, 0)));
        assert!(!may(group(4, Width::HALF, 0), group(4, Width::BYTE, -1)));
        let [bytes, other] = [4, 4].map(|register| group(register, Width::BYTE, 0));
        assert!(check(bytes, &[other], false, Overlap::Never).is_err());
    }

    #[test]
    fn masks_are_replaced_by_masks_alone() {
        let source = [Group::new(8, Width::BYTE, 0)];
        let v0 = Group::new(0, Width::BYTE, 0);
        assert!(check(v0, &source, true, Overlap::General).is_err());
        assert!(check(Group::mask(0), &source, true, Overlap::General).is_ok());
    }

    #[test]
    fn no_register_is_read_with_two_widths() {
        let [bytes, halves] = [Width::BYTE, Width::HALF].map(|width| Group::new(8, width, 0));
        assert!(check_sources(&[bytes, bytes], false).is_ok());
        assert!(check_sources(&[bytes, halves], false).is_err());
        assert!(check_sources(&[Group::new(0, Width::BYTE, 0)], true).is_err());
    }
}
