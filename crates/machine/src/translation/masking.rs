//! Pointer masking: privileged specification, "Pointer Masking Extensions".

/// How many upper bits of an address an access ignores.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    serde::Serialize,
    serde::Deserialize,
)]
pub enum Masking {
    /// PMLEN = 0.
    #[default]
    None,
    /// PMLEN = 7.
    Seven,
    /// PMLEN = 16.
    Sixteen,
}

impl Masking {
    /// Masking of a PMM field; the reserved encoding 1 does not occur in WARL fields.
    #[must_use]
    pub const fn from_field(field: u64) -> Self {
        match field & 3 {
            2 => Self::Seven,
            3 => Self::Sixteen,
            _ => Self::None,
        }
    }

    /// The address that an access is made to: a virtual address is sign-extended from the first bit
    /// that counts, a physical or guest-physical one zero-extended.
    #[must_use]
    pub const fn transform(self, address: u64, is_virtual: bool) -> u64 {
        let length = match self {
            Self::None => return address,
            Self::Seven => 7,
            Self::Sixteen => 16,
        };
        if is_virtual {
            ((address << length).cast_signed() >> length).cast_unsigned()
        } else {
            address << length >> length
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification, and its remark on physical addresses.
    #[test]
    fn the_example_of_the_specification() {
        let address = 0xabff_ffff_1234_5678;
        let transform = |is_virtual| Masking::Seven.transform(address, is_virtual);
        assert_eq!(transform(true), 0xffff_ffff_1234_5678);
        assert_eq!(transform(false), 0x01ff_ffff_1234_5678);
        assert_eq!(
            Masking::Sixteen.transform(address, true),
            0xffff_ffff_1234_5678
        );
        assert_eq!(Masking::Sixteen.transform(address, false), 0xffff_1234_5678);
        assert_eq!(Masking::None.transform(address, true), address);
    }
}
