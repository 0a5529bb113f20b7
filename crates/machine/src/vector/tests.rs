//! Groups that are computed sixteen bytes at a time come out as element by element, which instructions with a vstart are.

use super::*;
use crate::base::VectorLength;
use crate::float::{Flags, Rounding};

/// Registers of the three groups: far enough apart for groups of eight.
const VD: u32 = 8;
const VS2: u32 = 16;
const VS1: u32 = 24;

/// A unit whose registers hold a sequence that never repeats, with one element less than there is room for.
fn unit(length: VectorLength, vtype: u64) -> VectorUnit {
    let mut unit = VectorUnit::new(length);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    for register in 0..REGISTERS as u8 {
        for byte in unit.register_mut(register) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 32) as u8;
        }
    }
    let vtype = Vtype::from_bits(vtype, length);
    let most = vtype.max_elements(length) as u64;
    unit.configure(vtype, most.saturating_sub(1));
    unit
}

/// Executes an instruction from an element on; gives the registers and the flags.
fn executed(mut unit: VectorUnit, raw: u32, vstart: u16) -> Result<(VectorUnit, u8), Reserved> {
    unit.vstart = vstart;
    let mut issue = Issue {
        unit: &mut unit,
        encoding: Encoding(raw),
        integer: 3,
        second: 0,
        float: 0x3ff8_0000_0000_0000,
        rounding: Some(Rounding::NearestEven),
        float_on: true,
        flags: Flags::default(),
        is_checked: false,
    };
    issue.execute()?;
    let flags = issue.flags.0;
    Ok((unit, flags))
}

/// Bits that element 0 has in vd: one of a mask, up to 128 of another destination.
fn bits_of_first(raw: u32) -> u8 {
    let (funct3, funct6) = (raw >> 12 & 7, raw >> 26);
    match (funct3, funct6) {
        (0 | 3 | 4, 0x11 | 0x13 | 0x18..=0x1f) | (1 | 5, 0x18..=0x1f) => 1,
        (2, 0x18..=0x1f) => 1,
        _ => 128,
    }
}

/// Makes what element 0 may have changed the same.
fn without_first(mut unit: VectorUnit, raw: u32) -> VectorUnit {
    let register = unit.register_mut(VD as u8);
    if bits_of_first(raw) == 1 {
        register[0] &= !1;
    } else {
        register[..16].fill(0);
    }
    unit.vxsat = false;
    unit
}

#[test]
fn chunks_compute_what_elements_do() {
    let mut compared = 0;
    for bits in [128, 256, 1024] {
        let length = VectorLength::new(bits).expect("a length");
        for vtype in (0..32).filter(|vtype| Vtype::from_bits(*vtype, length).width().is_some()) {
            let unit = unit(length, vtype);
            for (funct6, funct3) in (0..64).flat_map(|six| (0..7).map(move |three| (six, three))) {
                for (masked, vs2) in [(1, VS2), (0, VS2), (1, VD), (0, VD)] {
                    let raw = funct6 << 26 | masked << 25 | vs2 << 20 | VS1 << 15;
                    let raw = raw | funct3 << 12 | VD << 7 | 0x57;
                    let whole = executed(unit.clone(), raw, 0);
                    let Ok((rest, flags)) = executed(unit.clone(), raw, 1) else {
                        continue;
                    };
                    let (whole, all) = whole.expect("an instruction that may begin at element 1");
                    let [whole, rest] = [whole, rest].map(|unit| without_first(unit, raw));
                    assert!(whole == rest, "{raw:#010x}, vtype {vtype:#x}, {bits} bits");
                    assert_eq!(flags & !all, 0, "flags of {raw:#010x}");
                    compared += 1;
                }
            }
        }
    }
    assert!(compared > 50_000, "{compared} instructions");
}
