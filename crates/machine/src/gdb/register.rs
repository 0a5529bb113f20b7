//! Registers as gdb numbers them, and their description.

use std::fmt::Write;
use std::num::NonZeroUsize;

use gdbstub::arch::RegId;
use gdbstub_arch::riscv::reg::id::RiscvRegId;

use crate::base::VectorLength;
use crate::csr::number as csr;
use crate::vector::{REGISTERS, Width};

/// Number of v0: behind what gdb gives numbers to itself, integer and floating-point registers, CSRs and the privilege.
const FIRST_VECTOR: usize = 4162;
/// Number of the CSR 0.
const FIRST_CSR: u16 = 65;

/// Element types of a vector register, as gdb shows it.
const VIEWS: [(&str, &str, Width); 4] = [
    ("bytes", "uint8", Width::BYTE),
    ("shorts", "uint16", Width::HALF),
    ("words", "uint32", Width::WORD),
    ("longs", "uint64", Width::DOUBLE),
];
/// CSRs of the vector unit.
const UNIT: [(&str, u16); 7] = [
    ("vstart", csr::VSTART),
    ("vxsat", csr::VXSAT),
    ("vxrm", csr::VXRM),
    ("vcsr", csr::VCSR),
    ("vl", csr::VL),
    ("vtype", csr::VTYPE),
    ("vlenb", csr::VLENB),
];

/// A register by gdb's number.
#[derive(Debug, Clone, Copy)]
pub(super) enum Register {
    /// A register of 64 bits.
    Word(RiscvRegId<u64>),
    /// A vector register.
    Vector(u8),
}

impl RegId for Register {
    fn from_raw_id(id: usize) -> Option<(Self, Option<NonZeroUsize>)> {
        if let Some((word, size)) = RiscvRegId::from_raw_id(id) {
            return Some((Self::Word(word), size));
        }
        let vector = id
            .checked_sub(FIRST_VECTOR)
            .filter(|&vector| vector < REGISTERS)?;
        // How long it is depends on the machine.
        Some((Self::Vector(vector as u8), None))
    }
}

/// The description of the registers: those of every hart, and with a vector unit its registers and CSRs.
pub(super) fn description(length: VectorLength) -> String {
    const END: &str = "</target>";
    let common = include_str!("target.xml");
    let Some(common) = common
        .trim_end()
        .strip_suffix(END)
        .filter(|_| length.exists())
    else {
        return common.to_owned();
    };
    let mut text = format!("{common}<feature name=\"org.gnu.gdb.riscv.vector\">\n");
    // Writing to a string cannot fail.
    for (name, kind, width) in VIEWS {
        let count = length.bytes() / width.bytes();
        let _ = writeln!(
            text,
            "  <vector id=\"{name}\" type=\"{kind}\" count=\"{count}\"/>"
        );
    }
    text.push_str("  <union id=\"riscv_vector\">\n");
    for (name, ..) in VIEWS {
        let _ = writeln!(text, "    <field name=\"{name}\" type=\"{name}\"/>");
    }
    text.push_str("  </union>\n");
    for register in 0..REGISTERS {
        let (bits, number) = (length.bits(), FIRST_VECTOR + register);
        let _ = writeln!(
            text,
            "  <reg name=\"v{register}\" bitsize=\"{bits}\" type=\"riscv_vector\" regnum=\"{number}\"/>"
        );
    }
    for (name, number) in UNIT {
        let number = FIRST_CSR + number;
        let _ = writeln!(
            text,
            "  <reg name=\"{name}\" bitsize=\"64\" type=\"int\" regnum=\"{number}\"/>"
        );
    }
    text.push_str("</feature>\n");
    text.push_str(END);
    text
}
