//! Loops around a WRS.NTO or a PAUSE, decoded: where the word, its last value and the ticket are.

use crate::parcel::WAIT_LENGTH;
use crate::pause::PauseLoop;
use crate::register::{Register, Width, WordAddress};
use crate::ticket;
use crate::wrs::WrsLoop;

/// A decoded loop that waits for one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpinLoop {
    /// Address of the word.
    pub address: WordAddress,
    /// Register with the value that the guest saw.
    pub seen: Register,
    /// Width of the word.
    pub width: Width,
    /// Register with the ticket.
    pub ticket: Option<Register>,
}

/// Operands of a loop: its registers' values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operands {
    /// Guest-virtual address of the word.
    pub address: u64,
    /// Value that the guest saw, as its load gives it.
    pub seen: u64,
    /// Set for a word of 64 bits.
    pub wide: bool,
    /// The guest's ticket.
    pub ticket: Option<u16>,
}

impl SpinLoop {
    /// Decodes the code around the WRS.NTO at `program_counter`; `fetch` reads a halfword of code.
    pub fn around_wrs(program_counter: u64, fetch: impl Fn(u64) -> Option<u16>) -> Option<Self> {
        let start = program_counter.wrapping_sub(WrsLoop::CODE_LENGTH as u64);
        let mut code = [0; WrsLoop::CODE_LENGTH];
        for (index, half) in code.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let at = start.wrapping_add(2 * index as u64);
            *half = fetch(at)?.to_le_bytes();
        }
        let word = WrsLoop::decode(code)?;
        let ticket = (word.width != Width::Double)
            .then(|| ticket_after(program_counter, word.seen, &fetch))
            .flatten();
        Some(Self {
            address: WordAddress::Register(word.address, 0),
            seen: word.seen,
            width: word.width,
            ticket,
        })
    }

    /// Decodes the loop around the PAUSE at `program_counter`; `fetch` reads a halfword of code.
    pub fn around_pause(program_counter: u64, fetch: impl Fn(u64) -> Option<u16>) -> Option<Self> {
        let found = PauseLoop::decode(program_counter, fetch)?;
        Some(Self {
            address: found.address,
            seen: found.seen,
            width: found.width,
            ticket: found.ticket,
        })
    }

    /// Operands by the values of registers.
    pub fn operands(self, register: impl Fn(Register) -> u64) -> Operands {
        let wide = self.width == Width::Double;
        let seen = register(self.seen);
        Operands {
            address: match self.address {
                WordAddress::Register(base, offset) => register(base).wrapping_add_signed(offset),
                WordAddress::Fixed(address) => address,
            },
            seen: match wide {
                true => seen,
                false => Width::Word.extend(seen, true),
            },
            wide,
            ticket: self.ticket.map(|ticket| register(ticket) as u16),
        }
    }
}

/// Address of code, with vsatp for a program's code.
pub type CodeAddress = (u64, Option<u64>);

/// Loop of a vCPU's last spin, so that it is decoded once. If the guest has put other code there since, the hint is wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownLoop(Option<(CodeAddress, SpinLoop)>);

impl KnownLoop {
    /// Remembers the loop at `address`.
    #[must_use]
    pub const fn new(address: CodeAddress, found: SpinLoop) -> Self {
        Self(Some((address, found)))
    }

    /// Loop at `address`, if it was the last.
    #[must_use]
    pub fn at(self, address: CodeAddress) -> Option<SpinLoop> {
        let (known, found) = self.0?;
        (known == address).then_some(found)
    }
}

fn ticket_after(
    program_counter: u64,
    seen: Register,
    fetch: impl Fn(u64) -> Option<u16>,
) -> Option<Register> {
    let after = program_counter.wrapping_add(WAIT_LENGTH);
    let mut code = [0; ticket::CODE_LENGTH];
    let mut length = 0;
    for (index, half) in code.iter_mut().enumerate() {
        let Some(bits) = fetch(after.wrapping_add(2 * index as u64)) else {
            break;
        };
        *half = bits;
        length = index + 1;
    }
    ticket::ticket_register(code.get(..length)?, seen)
}
