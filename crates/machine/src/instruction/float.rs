//! Decoding of the computational instructions of "F", "D", "Zfh" and "Zfa".

/// RTZ in the `rm` field.
const TOWARDS_ZERO: u8 = 1;

/// Floating-point operation, without its format.
#[allow(missing_docs)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum FloatKind {
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

const KINDS: [FloatKind; 37] = [
    FloatKind::Add,
    FloatKind::Subtract,
    FloatKind::Multiply,
    FloatKind::Divide,
    FloatKind::SquareRoot,
    FloatKind::MultiplyAdd,
    FloatKind::MultiplySubtract,
    FloatKind::NegatedMultiplySubtract,
    FloatKind::NegatedMultiplyAdd,
    FloatKind::SignInject,
    FloatKind::SignInjectNegated,
    FloatKind::SignInjectXor,
    FloatKind::Minimum,
    FloatKind::Maximum,
    FloatKind::LessOrEqual,
    FloatKind::Less,
    FloatKind::Equal,
    FloatKind::ToInt32,
    FloatKind::ToUnsigned32,
    FloatKind::ToInt64,
    FloatKind::ToUnsigned64,
    FloatKind::FromInt32,
    FloatKind::FromUnsigned32,
    FloatKind::FromInt64,
    FloatKind::FromUnsigned64,
    FloatKind::Convert,
    FloatKind::MoveToInteger,
    FloatKind::MoveFromInteger,
    FloatKind::Classify,
    FloatKind::LoadImmediate,
    FloatKind::MinimumOrNan,
    FloatKind::MaximumOrNan,
    FloatKind::Round,
    FloatKind::RoundInexact,
    FloatKind::ToInt32Modular,
    FloatKind::LessOrEqualQuiet,
    FloatKind::LessQuiet,
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
    /// Operation to compute.
    pub kind: FloatKind,
    /// The format of the operands, or of the result of a conversion.
    pub precision: Precision,
    /// The `rm` field; 7 is DYN. Meaningless where nothing is rounded.
    pub rounding: u8,
    /// The third source of a fused multiply-add; of [`FloatKind::Convert`] the source's format.
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
                .unwrap_or(FloatKind::Classify),
            precision: Precision::from_encoding((packed >> 8 & 3) as u32)
                .unwrap_or(Precision::Double),
            rounding: (packed >> 10 & 7) as u8,
            rs3: (packed >> 13 & 31) as u8,
        }
    }

    /// Tests whether it is a division or a square root.
    #[must_use]
    pub const fn divides(self) -> bool {
        matches!(self.kind, FloatKind::Divide | FloatKind::SquareRoot)
    }

    /// Tests whether rd is an integer register.
    #[must_use]
    pub const fn writes_integer(self) -> bool {
        matches!(
            self.kind,
            FloatKind::LessOrEqual
                | FloatKind::Less
                | FloatKind::Equal
                | FloatKind::ToInt32
                | FloatKind::ToUnsigned32
                | FloatKind::ToInt64
                | FloatKind::ToUnsigned64
                | FloatKind::MoveToInteger
                | FloatKind::Classify
                | FloatKind::ToInt32Modular
                | FloatKind::LessOrEqualQuiet
                | FloatKind::LessQuiet
        )
    }

    /// Tests whether the `rm` field is a rounding mode for this operation.
    #[must_use]
    pub const fn rounds(self) -> bool {
        !matches!(
            self.kind,
            FloatKind::SignInject
                | FloatKind::SignInjectNegated
                | FloatKind::SignInjectXor
                | FloatKind::Minimum
                | FloatKind::Maximum
                | FloatKind::LessOrEqual
                | FloatKind::Less
                | FloatKind::Equal
                | FloatKind::MoveToInteger
                | FloatKind::MoveFromInteger
                | FloatKind::Classify
                | FloatKind::LoadImmediate
                | FloatKind::MinimumOrNan
                | FloatKind::MaximumOrNan
                | FloatKind::ToInt32Modular
                | FloatKind::LessOrEqualQuiet
                | FloatKind::LessQuiet
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
        (0x43, _) => FloatKind::MultiplyAdd,
        (0x47, _) => FloatKind::MultiplySubtract,
        (0x4b, _) => FloatKind::NegatedMultiplySubtract,
        (0x4f, _) => FloatKind::NegatedMultiplyAdd,
        (_, 0x00) => FloatKind::Add,
        (_, 0x01) => FloatKind::Subtract,
        (_, 0x02) => FloatKind::Multiply,
        (_, 0x03) => FloatKind::Divide,
        (_, 0x0b) if rs2 == 0 => FloatKind::SquareRoot,
        (_, 0x04) => match rounding {
            0 => FloatKind::SignInject,
            1 => FloatKind::SignInjectNegated,
            2 => FloatKind::SignInjectXor,
            _ => return None,
        },
        (_, 0x05) => match rounding {
            0 => FloatKind::Minimum,
            1 => FloatKind::Maximum,
            2 => FloatKind::MinimumOrNan,
            3 => FloatKind::MaximumOrNan,
            _ => return None,
        },
        (_, 0x08) if rs2 == 4 => FloatKind::Round,
        (_, 0x08) if rs2 == 5 => FloatKind::RoundInexact,
        (_, 0x08) => {
            let from = Precision::from_encoding(rs2)?;
            if from == precision {
                return None;
            }
            rs3 = from as u8;
            FloatKind::Convert
        }
        (_, 0x14) => match rounding {
            0 => FloatKind::LessOrEqual,
            1 => FloatKind::Less,
            2 => FloatKind::Equal,
            4 => FloatKind::LessOrEqualQuiet,
            5 => FloatKind::LessQuiet,
            _ => return None,
        },
        (_, 0x18) => match rs2 {
            0 => FloatKind::ToInt32,
            1 => FloatKind::ToUnsigned32,
            2 => FloatKind::ToInt64,
            3 => FloatKind::ToUnsigned64,
            8 if rounding == TOWARDS_ZERO && matches!(precision, Precision::Double) => {
                FloatKind::ToInt32Modular
            }
            _ => return None,
        },
        (_, 0x1a) => match rs2 {
            0 => FloatKind::FromInt32,
            1 => FloatKind::FromUnsigned32,
            2 => FloatKind::FromInt64,
            3 => FloatKind::FromUnsigned64,
            _ => return None,
        },
        (_, 0x1c) if rs2 == 0 => match rounding {
            0 => FloatKind::MoveToInteger,
            1 => FloatKind::Classify,
            _ => return None,
        },
        (_, 0x1e) if rs2 == 0 && rounding == 0 => FloatKind::MoveFromInteger,
        (_, 0x1e) if rs2 == 1 && rounding == 0 => FloatKind::LoadImmediate,
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
    fn zfa_encodings_decode_as_specified() {
        for (raw, kind) in [
            (0xf010_0053_u32, FloatKind::LoadImmediate), // fli.s
            (0xf210_0053, FloatKind::LoadImmediate),     // fli.d
            (0x2a20_2053, FloatKind::MinimumOrNan),      // fminm.d f0, f0, f2
            (0x2a20_3053, FloatKind::MaximumOrNan),
            (0x4240_f053, FloatKind::Round), // fround.d, dynamic
            (0x4250_f053, FloatKind::RoundInexact),
            (0xc280_9053, FloatKind::ToInt32Modular),
            (0xa220_c053, FloatKind::LessOrEqualQuiet),
            (0xa220_d053, FloatKind::LessQuiet),
        ] {
            let decoded = decode_float(raw).map(|operation| operation.kind);
            assert_eq!(decoded, Some(kind), "{raw:#x}");
        }
        // FCVTMOD with another rounding mode or format.
        assert!(decode_float(0xc280_8053).is_none());
        assert!(decode_float(0xc080_9053).is_none());
    }
}
