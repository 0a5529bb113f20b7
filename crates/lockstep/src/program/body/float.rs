//! F, D, Zfh and Zfa.

use super::item::{Item, destination, source};
use crate::assembler::r;
use crate::random::Random;

const FORMATS: [(&str, u32); 3] = [("s", 0), ("d", 1), ("h", 2)];

/// A floating-point instruction.
pub fn make(random: &mut Random) -> Item {
    let (format, number) = random.pick(&FORMATS);
    let rounding = random.pick(&[0, 1, 2, 3, 4, 7, 7, 7, 7, 5]);
    let (rd, rs1, rs2) = (random.field(32), random.field(32), random.field(32));
    let encode = |funct5: u32, rs2: u32, rs1: u32, rm: u32, rd: u32| {
        r(funct5 << 2 | number, rs2, rs1, rm, rd, 0x53)
    };
    let (text, word) = match random.below(18) {
        0..4 => {
            let (name, funct5) = random.pick(&[
                ("fadd", 0x00),
                ("fsub", 0x01),
                ("fmul", 0x02),
                ("fdiv", 0x03),
            ]);
            let text = format!("{name}.{format} f{rd}, f{rs1}, f{rs2}, rm {rounding}");
            (text, encode(funct5, rs2, rs1, rounding, rd))
        }
        4 => {
            let text = format!("fsqrt.{format} f{rd}, f{rs1}, rm {rounding}");
            (text, encode(0x0b, 0, rs1, rounding, rd))
        }
        5..7 => {
            let (name, opcode) = random.pick(&[
                ("fmadd", 0x43),
                ("fmsub", 0x47),
                ("fnmsub", 0x4b),
                ("fnmadd", 0x4f),
            ]);
            let rs3 = random.field(32);
            let text = format!("{name}.{format} f{rd}, f{rs1}, f{rs2}, f{rs3}, rm {rounding}");
            (text, r(rs3 << 2 | number, rs2, rs1, rounding, rd, opcode))
        }
        7..9 => {
            let (name, funct5, rm) = random.pick(&[
                ("fsgnj", 0x04, 0),
                ("fsgnjn", 0x04, 1),
                ("fsgnjx", 0x04, 2),
                ("fmin", 0x05, 0),
                ("fmax", 0x05, 1),
                ("fminm", 0x05, 2),
                ("fmaxm", 0x05, 3),
            ]);
            let text = format!("{name}.{format} f{rd}, f{rs1}, f{rs2}");
            (text, encode(funct5, rs2, rs1, rm, rd))
        }
        9..11 => {
            let (name, rm) =
                random.pick(&[("fle", 0), ("flt", 1), ("feq", 2), ("fleq", 4), ("fltq", 5)]);
            let rd = destination(random);
            let text = format!("{name}.{format} x{rd}, f{rs1}, f{rs2}");
            (text, encode(0x14, rs2, rs1, rm, rd))
        }
        11 => {
            let rd = destination(random);
            let integer = random.field(4);
            let text = format!("fcvt integer {integer} x{rd}, {format} f{rs1}, rm {rounding}");
            (text, encode(0x18, integer, rs1, rounding, rd))
        }
        12 => {
            let rs1 = source(random);
            let integer = random.field(4);
            let text = format!("fcvt {format} f{rd}, integer {integer} x{rs1}, rm {rounding}");
            (text, encode(0x1a, integer, rs1, rounding, rd))
        }
        13 => {
            let from = random.field(3);
            let text = format!("fcvt {format} f{rd}, format {from} f{rs1}, rm {rounding}");
            (text, encode(0x08, from, rs1, rounding, rd))
        }
        14 => {
            let rd = destination(random);
            let (name, rm) = random.pick(&[("fmv to x", 0), ("fclass", 1)]);
            let text = format!("{name} {format} x{rd}, f{rs1}");
            (text, encode(0x1c, 0, rs1, rm, rd))
        }
        15 => {
            let (name, rs2) = random.pick(&[("fround", 4), ("froundnx", 5)]);
            let text = format!("{name}.{format} f{rd}, f{rs1}, rm {rounding}");
            (text, encode(0x08, rs2, rs1, rounding, rd))
        }
        16 if random.chance(50) => {
            // Of doubles alone, with RTZ: everything else is reserved.
            let rd = destination(random);
            let rm = random.pick(&[1, 1, 1, 0]);
            let text = format!("fcvtmod.w.{format} x{rd}, f{rs1}, rm {rm}");
            (text, encode(0x18, 8, rs1, rm, rd))
        }
        16 => {
            let text = format!("fli.{format} f{rd}, number {rs1}");
            (text, encode(0x1e, 1, rs1, 0, rd))
        }
        _ => {
            let rs1 = source(random);
            let text = format!("fmv from x {format} f{rd}, x{rs1}");
            (text, encode(0x1e, 0, rs1, 0, rd))
        }
    };
    Item::words(text, &[word])
}
