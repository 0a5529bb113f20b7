//! Decoding of the loop around a PAUSE: the one word that the guest watches.
//!
//! Without Zawrs, stock Linux waits for a change of a word by
//!
//! ```text
//! div    rd, rs, x0        # not always: it takes some time
//! pause
//! j      look              # not always
//! look:
//! lw     rv, word          # or ld; after an AUIPC where the word is the kernel's own
//! ...                      # at most some of SLLI, SRLI, ANDI, ZEXT.H, SEXT.W and FENCE
//! bne    rv, rt, back      # any branch of which one way leads to the PAUSE again, perhaps by a J or the DIV
//! ```
//!
//! and so do the C library and most other spin loops. At the trap, address and value are those of the branch if nothing in between has written
//! their registers. As with WRS.NTO this is a hint.

use crate::parcel::{self, Parcel, WAIT_LENGTH};
use crate::register::{Register, Width, WordAddress};

/// Instructions between the PAUSE and the branch at most.
const MAX_INSTRUCTIONS: usize = 12;

/// Registers of a loop that waits by PAUSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseLoop {
    /// Address of the word.
    pub address: WordAddress,
    /// Value that the guest saw.
    pub seen: Register,
    /// Width of the word: four or eight bytes.
    pub width: Width,
    /// Ticket, if the loop compares the word's lower half with it.
    pub ticket: Option<Register>,
}

/// Load of the loop, and the registers computed from it.
#[derive(Clone, Copy)]
struct Watched {
    address: WordAddress,
    seen: Register,
    width: Width,
    /// Value shifted left by 48 bits.
    high: Option<Register>,
    /// Lower half of the value.
    owner: Option<Register>,
}

impl Watched {
    fn needs(&self, register: Register) -> bool {
        let base = matches!(self.address, WordAddress::Register(base, _) if base == register);
        base || self.seen == register
    }

    /// Follows a computation; false if it destroys a register that is needed.
    fn compute(&mut self, parcel: Parcel) -> bool {
        // SEXT.W of a word that LW loaded leaves it as it is.
        if parcel::sign_extend_word(parcel) == Some((self.seen, self.seen)) {
            return self.width == Width::Word;
        }
        let Some(written) = parcel::simple_operation(parcel) else {
            return false;
        };
        if self.needs(written) {
            return false;
        }
        let of = |known: Option<Register>, (to, from): (Register, Register)| {
            (known == Some(from)).then_some(to)
        };
        let is_half = parcel::zero_extend_half(parcel).and_then(|pair| of(Some(self.seen), pair));
        let is_owner = parcel::shift_by_48(parcel, true).and_then(|pair| of(self.high, pair));
        let is_high = parcel::shift_by_48(parcel, false).and_then(|pair| of(Some(self.seen), pair));
        let forget = |known: Option<Register>| known.filter(|&register| register != written);
        self.high = is_high.or(forget(self.high));
        self.owner = is_half.or(is_owner).or(forget(self.owner));
        true
    }

    fn finish(self, compared: (Register, Register), tells_equal: bool) -> PauseLoop {
        let (first, second) = compared;
        let ticket = match self.owner {
            Some(owner) if tells_equal && first == owner && second != owner => Some(second),
            Some(owner) if tells_equal && second == owner && first != owner => Some(first),
            _ => None,
        };
        let usable = |ticket: &Register| !ticket.is_zero() && *ticket != self.seen;
        PauseLoop {
            address: self.address,
            seen: self.seen,
            width: self.width,
            ticket: ticket.filter(usable).filter(|_| self.width == Width::Word),
        }
    }
}

impl PauseLoop {
    /// Decodes the loop around the PAUSE at the guest-virtual address `pause`; `None` for any other code. `fetch` reads a halfword of code.
    pub fn decode(pause: u64, fetch: impl Fn(u64) -> Option<u16>) -> Option<Self> {
        let parcel = |at| parcel::fetch(at, &fetch);
        // Target of a jump at an address, or the address itself.
        let landing = |at| match parcel(at).and_then(parcel::jump) {
            Some(offset) => at.wrapping_add_signed(offset),
            None => at,
        };
        // A DIV before the PAUSE has been executed when the PAUSE traps.
        let before = pause.wrapping_sub(WAIT_LENGTH);
        let divided = parcel(before).and_then(parcel::divide_by_zero);
        let is_begin = |at| at == pause || divided.is_some() && at == before;
        let leads_back = |at| is_begin(at) || is_begin(landing(at));
        let mut at = landing(pause.wrapping_add(WAIT_LENGTH));
        let mut relative: Option<(Register, u64)> = None;
        let mut watched: Option<Watched> = None;
        for _ in 0..MAX_INSTRUCTIONS {
            let parcel = parcel(at)?;
            let next = at.wrapping_add(parcel.length());
            if let Some((compared, tells_equal, offset)) = parcel::branch(parcel) {
                let other = at.wrapping_add_signed(offset);
                let watched = watched?;
                // The DIV has overwritten a register since the branch.
                if divided.is_some_and(|written| {
                    watched.needs(written) || compared.0 == written || compared.1 == written
                }) {
                    return None;
                }
                return (leads_back(other) || leads_back(next))
                    .then(|| watched.finish(compared, tells_equal));
            }
            if let Some(load) = parcel::load(parcel) {
                // Two words: either could be the one.
                if watched.is_some() {
                    return None;
                }
                let address = match relative {
                    Some((base, value)) if base == load.base => {
                        WordAddress::Fixed(value.wrapping_add_signed(load.offset))
                    }
                    _ => WordAddress::Register(load.base, load.offset),
                };
                if address == WordAddress::Register(load.to, load.offset) || load.to.is_zero() {
                    return None;
                }
                watched = Some(Watched {
                    address,
                    seen: load.to,
                    width: load.width,
                    high: None,
                    owner: None,
                });
            } else if let Some((register, upper)) = parcel::upper_immediate(parcel) {
                if watched.is_some_and(|watched| watched.needs(register)) {
                    return None;
                }
                relative = Some((register, at.wrapping_add_signed(upper)));
            } else if !parcel::is_fence(parcel) && !watched.as_mut()?.compute(parcel) {
                return None;
            }
            at = next;
        }
        None
    }
}

#[cfg(test)]
mod tests;
