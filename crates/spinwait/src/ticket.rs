//! Decoding of the code behind a WRS.NTO: the ticket that the guest waits with.
//!
//! Linux's ticket lock is one word: the next ticket in the upper half, the owner's in the lower. A waiter loops over
//!
//! ```text
//! lr.w ... wrs.nto        # see `WrsLoop`
//! lw     rv, word         # after an AUIPC where the lock is the kernel's own
//! slli   rx, rv, 48       # the owner
//! srli   rx, rx, 48       # or both in one: zext.h
//! sext.w rv, rv           # not always
//! bne    rt, rx, again
//! ```
//!
//! so that rt has its ticket. As with the word, this is a hint.

use crate::parcel::{self, Parcel};
use crate::register::{Register, Width};

/// Code behind a WRS.NTO, halfword by halfword.
struct Code<'a> {
    rest: &'a [u16],
}

impl Code<'_> {
    fn peek(&self) -> Option<Parcel> {
        match *self.rest {
            [low, high, ..] if low & 3 == 3 => {
                Some(Parcel::Long(u32::from(high) << 16 | u32::from(low)))
            }
            [low, ..] if low & 3 != 3 => Some(Parcel::Short(u32::from(low))),
            _ => None,
        }
    }

    /// Consumes the next instruction if `accept` decodes it.
    fn take<T>(&mut self, accept: impl Fn(Parcel) -> Option<T>) -> Option<T> {
        let parcel = self.peek()?;
        let taken = accept(parcel)?;
        let length = match parcel {
            Parcel::Short(_) => 1,
            Parcel::Long(_) => 2,
        };
        self.rest = self.rest.get(length..)?;
        Some(taken)
    }
}

/// Accepts AUIPC.
fn is_auipc(parcel: Parcel) -> Option<()> {
    parcel::upper_immediate(parcel).map(|_| ())
}

/// Decodes the load of a word: destination.
fn word_load(parcel: Parcel) -> Option<Register> {
    let load = parcel::load(parcel)?;
    (load.width == Width::Word).then_some(load.to)
}

/// Accepts SEXT.W.
fn is_sign_extension(parcel: Parcel) -> Option<()> {
    parcel::sign_extend_word(parcel).map(|_| ())
}

/// Decodes BNE: compared registers.
fn compared(parcel: Parcel) -> Option<(Register, Register)> {
    match parcel {
        Parcel::Long(bits) if bits & 0x707f == 0x1063 => Some((
            Register::from_field(bits >> 15),
            Register::from_field(bits >> 20),
        )),
        _ => None,
    }
}

/// Halfwords of code behind the WRS.NTO that are decoded.
pub const CODE_LENGTH: usize = 12;

/// Register with the ticket of a guest that waits at a ticket lock and has the lock's word in `seen`; `None` for any other code. `code` starts
/// behind the WRS.NTO and may be shorter than 12 halfwords.
#[must_use]
pub fn ticket_register(code: &[u16], seen: Register) -> Option<Register> {
    let mut code = Code { rest: code };
    let _ = code.take(is_auipc);
    let load = code.take(word_load)?;
    if load != seen {
        return None;
    }
    let owner = match code.take(parcel::zero_extend_half) {
        Some((owner, source)) => (source == seen).then_some(owner)?,
        None => {
            let (high, source) = code.take(|parcel| parcel::shift_by_48(parcel, false))?;
            let (owner, middle) = code.take(|parcel| parcel::shift_by_48(parcel, true))?;
            (source == seen && middle == high).then_some(owner)?
        }
    };
    let _ = code.take(is_sign_extension);
    let (first, second) = code.take(compared)?;
    let ticket = if second == owner { first } else { second };
    let is_compared = (first == owner) != (second == owner);
    (is_compared && ticket != seen && ticket.number() != 0).then_some(ticket)
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;
    use proptest::prelude::*;

    fn i_type(immediate: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
        immediate << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
    }

    /// A loop with every choice that a compiler has.
    #[derive(Clone, Copy, Debug)]
    struct Loop {
        own_lock: bool,
        seen: u32,
        owner: u32,
        ticket: u32,
        short: bool,
        one_extension: bool,
        sign: bool,
        swapped: bool,
    }

    impl Loop {
        fn code(self) -> Vec<u16> {
            let mut code = Vec::new();
            let mut long = |bits: u32| code.extend([bits as u16, (bits >> 16) as u16]);
            if self.own_lock {
                long(0x1000 << 12 | self.seen << 7 | 0x17);
            }
            long(i_type(0x100, 9, 2, self.seen, 0x03));
            if self.one_extension {
                long(0x04 << 25 | self.seen << 15 | 4 << 12 | self.owner << 7 | 0x3b);
            } else {
                long(i_type(48, self.seen, 1, self.owner, 0x13));
                if self.short && (8..16).contains(&self.owner) {
                    // c.srli owner, 48
                    code.push((0b10_0100 << 10 | (self.owner - 8) << 7 | 0b10000 << 2 | 1) as u16);
                } else {
                    let bits = i_type(48, self.owner, 5, self.owner, 0x13);
                    code.extend([bits as u16, (bits >> 16) as u16]);
                }
            }
            if self.sign && self.short {
                // c.addiw seen, 0
                code.push((0b0010 << 12 | self.seen << 7 | 1) as u16);
            } else if self.sign {
                let bits = i_type(0, self.seen, 0, self.seen, 0x1b);
                code.extend([bits as u16, (bits >> 16) as u16]);
            }
            let (first, second) = if self.swapped {
                (self.owner, self.ticket)
            } else {
                (self.ticket, self.owner)
            };
            let bits = 0x7f << 25 | second << 20 | first << 15 | 1 << 12 | 0xe << 8 | 0x63;
            code.extend([bits as u16, (bits >> 16) as u16]);
            code
        }
    }

    fn any_loop() -> impl Strategy<Value = Loop> {
        let registers = prop::sample::subsequence((5u32..32).collect::<Vec<_>>(), 3).prop_shuffle();
        let choices = prop::array::uniform5(any::<bool>());
        (registers, choices).prop_map(|(registers, choices)| {
            let [own_lock, short, one_extension, sign, swapped] = choices;
            Loop {
                own_lock,
                seen: registers[0],
                owner: registers[1],
                ticket: registers[2],
                short,
                one_extension,
                sign,
                swapped,
            }
        })
    }

    proptest! {
        #[test]
        fn every_compiled_loop_is_decoded(form in any_loop()) {
            let code = form.code();
            prop_assert!(code.len() <= CODE_LENGTH);
            let seen = Register::from_field(form.seen);
            let want = Some(Register::from_field(form.ticket));
            prop_assert_eq!(ticket_register(&code, seen), want);
            // Nothing is decoded of another word or of a part.
            let other = Register::from_field(form.owner);
            prop_assert_eq!(ticket_register(&code, other), None);
            prop_assert_eq!(ticket_register(&code[..code.len() - 1], seen), None);
        }

        #[test]
        fn any_code_is_decoded_without_a_panic(code in prop::collection::vec(any::<u16>(), 0..CODE_LENGTH), seen in 0u32..32) {
            let seen = Register::from_field(seen);
            if let Some(ticket) = ticket_register(&code, seen) {
                prop_assert_ne!(ticket, seen);
                prop_assert_ne!(ticket.number(), 0);
            }
        }
    }

    /// Debian's kernel 6.12 at a lock in a structure, and at one of its own.
    #[test]
    fn loops_of_a_kernel_are_decoded() {
        let in_structure = [
            0x2783, 0x01c8, // lw a5, 28(a6)
            0x9693, 0x0307, // slli a3, a5, 48
            0x92c1, // srli a3, a3, 48
            0x2781, // sext.w a5, a5
            0x12e3, 0xfed7, // bne a4, a3, back
        ];
        let own = [
            0xb797, 0x01bc, // auipc a5, ..
            0xa783, 0x1507, // lw a5, ..(a5)
            0x9693, 0x0307, 0x92c1, // as above, without sext.w
            0x12e3, 0xfed7,
        ];
        let a4 = Some(Register::from_field(14));
        for code in [&in_structure[..], &own] {
            assert_eq!(ticket_register(code, Register::from_field(15)), a4);
        }
    }
}
