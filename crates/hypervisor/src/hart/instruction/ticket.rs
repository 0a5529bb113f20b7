//! Which ticket a guest waits for, read off the code behind its WRS.NTO.
//!
//! Linux's ticket lock is one word: the next ticket in the upper half, the owner's in the lower. Whoever waits goes
//! round
//!
//! ```text
//! lr.w ... wrs.nto        # see `WatchedWord`
//! lw     rv, word         # after an AUIPC where the lock is the kernel's own
//! slli   rx, rv, 48       # the owner
//! srli   rx, rx, 48       # or both in one: zext.h
//! sext.w rv, rv           # not always
//! bne    rt, rx, again
//! ```
//!
//! so that rt holds its ticket. As with the word, this is a hint.

use super::code::{self, Parcel};
use crate::hart::decode::{Register, Width};

/// The code behind a WRS.NTO.
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

    /// Steps over the next instruction if `accept` takes it.
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

/// AUIPC.
fn is_auipc(parcel: Parcel) -> Option<()> {
    code::upper_immediate(parcel).map(|_| ())
}

/// The load of a word: where to.
fn loaded(parcel: Parcel) -> Option<Register> {
    let load = code::loaded(parcel)?;
    (load.width == Width::Word).then_some(load.to)
}

/// SEXT.W.
fn is_sign_extension(parcel: Parcel) -> Option<()> {
    code::sign_extended(parcel).map(|_| ())
}

/// BNE: what is compared.
fn compared(parcel: Parcel) -> Option<(Register, Register)> {
    match parcel {
        Parcel::Long(bits) if bits & 0x707f == 0x1063 => Some((
            Register::from_field(bits >> 15),
            Register::from_field(bits >> 20),
        )),
        _ => None,
    }
}

/// Halfwords of code that are looked at, those behind the WRS.NTO.
pub const CODE_LENGTH: usize = 12;

/// The register that holds the ticket of a guest that waits on a ticket lock, whose word it last saw in `seen`; `None`
/// where the code is another. `code` starts behind the WRS.NTO and may be shorter than [`CODE_LENGTH`].
#[must_use]
pub fn register_of_ticket(code: &[u16], seen: Register) -> Option<Register> {
    let mut code = Code { rest: code };
    let _ = code.take(is_auipc);
    let load = code.take(loaded)?;
    if load != seen {
        return None;
    }
    let owner = match code.take(code::extended) {
        Some((owner, source)) => (source == seen).then_some(owner)?,
        None => {
            let (high, source) = code.take(|parcel| code::shifted(parcel, false))?;
            let (owner, middle) = code.take(|parcel| code::shifted(parcel, true))?;
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
    use super::*;
    use proptest::prelude::*;

    fn i_type(immediate: u32, rs1: u32, funct3: u32, rd: u32, opcode: u32) -> u32 {
        immediate << 20 | rs1 << 15 | funct3 << 12 | rd << 7 | opcode
    }

    /// The loop as a compiler may write it.
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
        fn the_loop_with_every_choice_that_a_compiler_has(form in any_loop()) {
            let code = form.code();
            prop_assert!(code.len() <= CODE_LENGTH);
            let seen = Register::from_field(form.seen);
            let want = Some(Register::from_field(form.ticket));
            prop_assert_eq!(register_of_ticket(&code, seen), want);
            // Of another word, or cut short, it tells nothing.
            let other = Register::from_field(form.owner);
            prop_assert_eq!(register_of_ticket(&code, other), None);
            prop_assert_eq!(register_of_ticket(&code[..code.len() - 1], seen), None);
        }

        #[test]
        fn any_code(code in prop::collection::vec(any::<u16>(), 0..CODE_LENGTH), seen in 0u32..32) {
            let seen = Register::from_field(seen);
            if let Some(ticket) = register_of_ticket(&code, seen) {
                prop_assert_ne!(ticket, seen);
                prop_assert_ne!(ticket.number(), 0);
            }
        }
    }

    /// A lock in a structure, and one of the kernel's own, as Debian's kernel 6.12 waits for them.
    #[test]
    fn two_loops_of_a_kernel() {
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
            assert_eq!(register_of_ticket(code, Register::from_field(15)), a4);
        }
    }
}
