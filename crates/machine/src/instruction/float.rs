//! Decoding of the computational instructions of "F", "D", "Zfh" and "Zfa".

/// RTZ in the `rm` field.
const TOWARDS_ZERO: u8 = 1;

/// What a floating-point instruction computes, apart from its format.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    Add,
    Subtract,
    Multiply,
    Divide,
    SquareRoot,
    /// rd = rs1 × rs2 + rs3
    MultiplyAdd,
    /// rd = rs1 × rs2 − rs3
    MultiplySubtract,
    /// rd = −(rs1 × rs2) + rs3
    NegatedMultiplySubtract,
    /// rd = −(rs1 × rs2) − rs3
    NegatedMultiplyAdd,
    SignInject,
    SignInjectNegated,
    SignInjectXor,
    Minimum,
    Maximum,
    LessOrEqual,
    Less,
    Equal,
    ToInt32,
    ToUnsigned32,
    ToInt64,
    ToUnsigned64,
    FromInt32,
    FromUnsigned32,
    FromInt64,
    FromUnsigned64,
    /// Between formats; the operation's is the destination's, [`FloatOperation::rs3`] the source's.
    Convert,
    MoveToInteger,
    MoveFromInteger,
    Classify,
    /// FLI: a constant, numbered by rs1.
    LoadImmediate,
    /// FMINM, which a NaN decides.
    MinimumOrNan,
    /// FMAXM, which a NaN decides.
    MaximumOrNan,
    /// FROUND.
    Round,
    /// FROUNDNX, which raises NX.
    RoundInexact,
    /// FCVTMOD.W.D.
    ToInt32Modular,
    /// FLEQ.
    LessOrEqualQuiet,
    /// FLTQ.
    LessQuiet,
}

const KINDS: [Kind; 37] = [
    Kind::Add,
    Kind::Subtract,
    Kind::Multiply,
    Kind::Divide,
    Kind::SquareRoot,
    Kind::MultiplyAdd,
    Kind::MultiplySubtract,
    Kind::NegatedMultiplySubtract,
    Kind::NegatedMultiplyAdd,
    Kind::SignInject,
    Kind::SignInjectNegated,
    Kind::SignInjectXor,
    Kind::Minimum,
    Kind::Maximum,
    Kind::LessOrEqual,
    Kind::Less,
    Kind::Equal,
    Kind::ToInt32,
    Kind::ToUnsigned32,
    Kind::ToInt64,
    Kind::ToUnsigned64,
    Kind::FromInt32,
    Kind::FromUnsigned32,
    Kind::FromInt64,
    Kind::FromUnsigned64,
    Kind::Convert,
    Kind::MoveToInteger,
    Kind::MoveFromInteger,
    Kind::Classify,
    Kind::LoadImmediate,
    Kind::MinimumOrNan,
    Kind::MaximumOrNan,
    Kind::Round,
    Kind::RoundInexact,
    Kind::ToInt32Modular,
    Kind::LessOrEqualQuiet,
    Kind::LessQuiet,
];

/// A format, numbered as the `fmt` field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Precision {
    /// S.
    Single = 0,
    /// D.
    Double = 1,
    /// H.
    Half = 2,
}

impl Precision {
    /// The format of an encoding; `None` for Q, which is not there.
    #[must_use]
    pub const fn from_encoding(encoding: u32) -> Option<Self> {
        match encoding {
            0 => Some(Self::Single),
            1 => Some(Self::Double),
            2 => Some(Self::Half),
            _ => None,
        }
    }
}

/// A floating-point instruction's operands beyond rd, rs1 and rs2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FloatOperation {
    /// What to compute.
    pub kind: Kind,
    /// The format of the operands, or of the result of a conversion.
    pub precision: Precision,
    /// The `rm` field; 7 is DYN. Meaningless where nothing is rounded.
    pub rounding: u8,
    /// The third source of a fused multiply-add; of [`Kind::Convert`] the source's format.
    pub rs3: u8,
}

impl FloatOperation {
    /// The operation as an instruction's immediate.
    #[must_use]
    pub const fn pack(self) -> i32 {
        self.kind as i32
            | (self.precision as i32) << 8
            | (self.rounding as i32) << 10
            | (self.rs3 as i32) << 13
    }

    /// The operation that [`Self::pack`] packed.
    #[must_use]
    pub fn unpack(packed: i32) -> Self {
        Self {
            kind: KINDS
                .get((packed & 0xff) as usize)
                .copied()
                .unwrap_or(Kind::Classify),
            precision: Precision::from_encoding((packed >> 8 & 3) as u32)
                .unwrap_or(Precision::Double),
            rounding: (packed >> 10 & 7) as u8,
            rs3: (packed >> 13 & 31) as u8,
        }
    }

    /// Whether it is a division or a square root.
    #[must_use]
    pub const fn divides(self) -> bool {
        matches!(self.kind, Kind::Divide | Kind::SquareRoot)
    }

    /// Whether rd is an integer register.
    #[must_use]
    pub const fn writes_integer(self) -> bool {
        matches!(
            self.kind,
            Kind::LessOrEqual
                | Kind::Less
                | Kind::Equal
                | Kind::ToInt32
                | Kind::ToUnsigned32
                | Kind::ToInt64
                | Kind::ToUnsigned64
                | Kind::MoveToInteger
                | Kind::Classify
                | Kind::ToInt32Modular
                | Kind::LessOrEqualQuiet
                | Kind::LessQuiet
        )
    }

    /// Whether the `rm` field is a rounding mode for this operation.
    #[must_use]
    pub const fn rounds(self) -> bool {
        !matches!(
            self.kind,
            Kind::SignInject
                | Kind::SignInjectNegated
                | Kind::SignInjectXor
                | Kind::Minimum
                | Kind::Maximum
                | Kind::LessOrEqual
                | Kind::Less
                | Kind::Equal
                | Kind::MoveToInteger
                | Kind::MoveFromInteger
                | Kind::Classify
                | Kind::LoadImmediate
                | Kind::MinimumOrNan
                | Kind::MaximumOrNan
                | Kind::ToInt32Modular
                | Kind::LessOrEqualQuiet
                | Kind::LessQuiet
        )
    }
}

/// Decodes the opcodes MADD, MSUB, NMSUB, NMADD and OP-FP; `None` if the encoding is reserved.
#[must_use]
pub fn decode_float(raw: u32) -> Option<FloatOperation> {
    let rounding = (raw >> 12 & 7) as u8;
    let rs2 = raw >> 20 & 31;
    let precision = Precision::from_encoding(raw >> 25 & 3)?;
    let mut rs3 = (raw >> 27) as u8;
    let kind = match (raw & 0x7f, raw >> 27) {
        (0x43, _) => Kind::MultiplyAdd,
        (0x47, _) => Kind::MultiplySubtract,
        (0x4b, _) => Kind::NegatedMultiplySubtract,
        (0x4f, _) => Kind::NegatedMultiplyAdd,
        (_, 0x00) => Kind::Add,
        (_, 0x01) => Kind::Subtract,
        (_, 0x02) => Kind::Multiply,
        (_, 0x03) => Kind::Divide,
        (_, 0x0b) if rs2 == 0 => Kind::SquareRoot,
        (_, 0x04) => match rounding {
            0 => Kind::SignInject,
            1 => Kind::SignInjectNegated,
            2 => Kind::SignInjectXor,
            _ => return None,
        },
        (_, 0x05) => match rounding {
            0 => Kind::Minimum,
            1 => Kind::Maximum,
            2 => Kind::MinimumOrNan,
            3 => Kind::MaximumOrNan,
            _ => return None,
        },
        (_, 0x08) if rs2 == 4 => Kind::Round,
        (_, 0x08) if rs2 == 5 => Kind::RoundInexact,
        (_, 0x08) => {
            let from = Precision::from_encoding(rs2)?;
            if from == precision {
                return None;
            }
            rs3 = from as u8;
            Kind::Convert
        }
        (_, 0x14) => match rounding {
            0 => Kind::LessOrEqual,
            1 => Kind::Less,
            2 => Kind::Equal,
            4 => Kind::LessOrEqualQuiet,
            5 => Kind::LessQuiet,
            _ => return None,
        },
        (_, 0x18) => match rs2 {
            0 => Kind::ToInt32,
            1 => Kind::ToUnsigned32,
            2 => Kind::ToInt64,
            3 => Kind::ToUnsigned64,
            8 if rounding == TOWARDS_ZERO && matches!(precision, Precision::Double) => {
                Kind::ToInt32Modular
            }
            _ => return None,
        },
        (_, 0x1a) => match rs2 {
            0 => Kind::FromInt32,
            1 => Kind::FromUnsigned32,
            2 => Kind::FromInt64,
            3 => Kind::FromUnsigned64,
            _ => return None,
        },
        (_, 0x1c) if rs2 == 0 => match rounding {
            0 => Kind::MoveToInteger,
            1 => Kind::Classify,
            _ => return None,
        },
        (_, 0x1e) if rs2 == 0 && rounding == 0 => Kind::MoveFromInteger,
        (_, 0x1e) if rs2 == 1 && rounding == 0 => Kind::LoadImmediate,
        _ => return None,
    };
    let operation = FloatOperation {
        kind,
        precision,
        rounding,
        rs3,
    };
    (!operation.rounds() || !matches!(rounding, 5 | 6)).then_some(operation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_keeps_every_field() {
        for (index, kind) in KINDS.into_iter().enumerate() {
            assert_eq!(kind as usize, index);
            let operation = FloatOperation {
                kind,
                precision: Precision::Half,
                rounding: 7,
                rs3: 31,
            };
            assert_eq!(FloatOperation::unpack(operation.pack()), operation);
        }
    }

    #[test]
    fn reserved_rounding_modes_are_refused() {
        let fadd_d = 0x0220_0053;
        assert!(decode_float(fadd_d).is_some());
        assert!(decode_float(fadd_d | 5 << 12).is_none());
        assert!(decode_float(fadd_d | 7 << 12).is_some());
    }

    #[test]
    fn instructions_of_zfa_are_those_of_its_encodings() {
        for (raw, kind) in [
            (0xf010_0053_u32, Kind::LoadImmediate), // fli.s
            (0xf210_0053, Kind::LoadImmediate),     // fli.d
            (0x2a20_2053, Kind::MinimumOrNan),      // fminm.d f0, f0, f2
            (0x2a20_3053, Kind::MaximumOrNan),
            (0x4240_f053, Kind::Round), // fround.d, dynamic
            (0x4250_f053, Kind::RoundInexact),
            (0xc280_9053, Kind::ToInt32Modular),
            (0xa220_c053, Kind::LessOrEqualQuiet),
            (0xa220_d053, Kind::LessQuiet),
        ] {
            let decoded = decode_float(raw).map(|operation| operation.kind);
            assert_eq!(decoded, Some(kind), "{raw:#x}");
        }
        // FCVTMOD with another rounding mode or format.
        assert!(decode_float(0xc280_8053).is_none());
        assert!(decode_float(0xc080_9053).is_none());
    }
}
