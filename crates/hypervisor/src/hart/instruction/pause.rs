//! Which word a guest watches in a pause loop, read off the code behind its PAUSE.
//!
//! Where harts have no Zawrs, stock Linux waits for a word to change by
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
//! and so do the C library's and most other spin loops. At the trap the word's address and the value that was last seen there are what
//! they were at the branch, if nothing in between has written their registers. As with WRS.NTO this is a hint: a guest may have come to its
//! PAUSE by another way, and then the guess is wrong.

use super::code::{self, Parcel};
use crate::hart::decode::{Register, Width};

/// Instructions that are looked at between the PAUSE and the branch.
const MOST: usize = 12;

/// Where a watched word is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the address that the register holds, plus the offset.
    Register(Register, i64),
    /// At this guest-virtual address.
    Fixed(u64),
}

/// What a pause loop waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PauseLoop {
    /// Where the word is.
    pub place: Place,
    /// Holds the value that the guest saw there.
    pub seen: Register,
    /// How long the word is: four or eight bytes.
    pub width: Width,
    /// Holds the ticket, where the loop compares the word's lower half with it.
    pub ticket: Option<Register>,
}

/// A load that the loop has come to, and what was made of the value since.
#[derive(Clone, Copy)]
struct Watched {
    place: Place,
    seen: Register,
    width: Width,
    /// The value shifted left by 48 bits.
    high: Option<Register>,
    /// The value's lower half.
    owner: Option<Register>,
}

impl Watched {
    fn needs(&self, register: Register) -> bool {
        let base = matches!(self.place, Place::Register(base, _) if base == register);
        base || self.seen == register
    }

    /// Notes what an instruction makes of the value; false where it destroys what is needed.
    fn compute(&mut self, parcel: Parcel) -> bool {
        // SEXT.W of a word that LW loaded leaves it as it is.
        if code::sign_extended(parcel) == Some((self.seen, self.seen)) {
            return self.width == Width::Word;
        }
        let Some(written) = code::computed(parcel) else {
            return false;
        };
        if self.needs(written) {
            return false;
        }
        let of = |known: Option<Register>, (to, from): (Register, Register)| {
            (known == Some(from)).then_some(to)
        };
        let is_half = code::extended(parcel).and_then(|pair| of(Some(self.seen), pair));
        let is_owner = code::shifted(parcel, true).and_then(|pair| of(self.high, pair));
        let is_high = code::shifted(parcel, false).and_then(|pair| of(Some(self.seen), pair));
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
            place: self.place,
            seen: self.seen,
            width: self.width,
            ticket: ticket.filter(usable).filter(|_| self.width == Width::Word),
        }
    }
}

impl PauseLoop {
    /// Reads the loop around the PAUSE at the guest-virtual address `pause`; `None` where it is another one. `fetch` gives the
    /// halfword of code at an address, if there is one.
    pub fn decode(pause: u64, fetch: impl Fn(u64) -> Option<u16>) -> Option<Self> {
        let parcel = |at| code::fetch(at, &fetch);
        // An address, or where the jump leads that stands there.
        let landing = |at| match parcel(at).and_then(code::jump) {
            Some(offset) => at.wrapping_add_signed(offset),
            None => at,
        };
        // A DIV that stands before the PAUSE has been executed when it traps.
        let before = pause.wrapping_sub(super::LENGTH);
        let divided = parcel(before).and_then(code::divided_by_zero);
        let is_begin = |at| at == pause || divided.is_some() && at == before;
        let leads_back = |at| is_begin(at) || is_begin(landing(at));
        let mut at = landing(pause.wrapping_add(super::LENGTH));
        let mut relative: Option<(Register, u64)> = None;
        let mut watched: Option<Watched> = None;
        for _ in 0..MOST {
            let parcel = parcel(at)?;
            let next = at.wrapping_add(parcel.length());
            if let Some((compared, tells_equal, offset)) = code::branch(parcel) {
                let other = at.wrapping_add_signed(offset);
                let watched = watched?;
                // What the DIV wrote is no longer what it was at the branch.
                if divided.is_some_and(|written| {
                    watched.needs(written) || compared.0 == written || compared.1 == written
                }) {
                    return None;
                }
                return (leads_back(other) || leads_back(next))
                    .then(|| watched.finish(compared, tells_equal));
            }
            if let Some(load) = code::loaded(parcel) {
                // Of two words it cannot be told which one is waited for.
                if watched.is_some() {
                    return None;
                }
                let place = match relative {
                    Some((base, value)) if base == load.base => {
                        Place::Fixed(value.wrapping_add_signed(load.offset))
                    }
                    _ => Place::Register(load.base, load.offset),
                };
                if place == Place::Register(load.to, load.offset) || load.to.is_zero() {
                    return None;
                }
                watched = Some(Watched {
                    place,
                    seen: load.to,
                    width: load.width,
                    high: None,
                    owner: None,
                });
            } else if let Some((register, upper)) = code::upper_immediate(parcel) {
                if watched.is_some_and(|watched| watched.needs(register)) {
                    return None;
                }
                relative = Some((register, at.wrapping_add_signed(upper)));
            } else if !code::is_fence(parcel) && !watched.as_mut()?.compute(parcel) {
                return None;
            }
            at = next;
        }
        None
    }
}

#[cfg(test)]
mod tests;
