//! What the code around a WRS.NTO or a PAUSE tells of the wait, as it was last understood.

use crate::hart::decode::{Register, Width};
use crate::hart::instruction::{LENGTH, PauseLoop, Place, WatchedWord, ticket};
use crate::hart::unprivileged;

/// The code of a wait, understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where the word is that is waited for.
    pub place: Place,
    /// The register that has what was seen there.
    pub seen: Register,
    /// How long the word is.
    pub width: Width,
    /// The register that has the ticket.
    pub ticket: Option<Register>,
}

impl Code {
    /// Reads the code in front of the WRS.NTO at `program_counter`, as the guest would.
    pub fn of_reservation(program_counter: u64) -> Option<Self> {
        let start = program_counter.wrapping_sub(WatchedWord::CODE_LENGTH as u64);
        let mut code = [0; WatchedWord::CODE_LENGTH];
        for (index, half) in code.as_chunks_mut::<2>().0.iter_mut().enumerate() {
            let at = start.wrapping_add(2 * index as u64);
            *half = unprivileged::fetch_halfword(at)?.to_le_bytes();
        }
        let word = WatchedWord::decode(code)?;
        let ticket = (word.width != Width::Double)
            .then(|| register_of_ticket(program_counter, word.seen))
            .flatten();
        Some(Self {
            place: Place::Register(word.address, 0),
            seen: word.seen,
            width: word.width,
            ticket,
        })
    }

    /// Reads the loop around the PAUSE at `program_counter`, as the guest would.
    pub fn of_pause(program_counter: u64) -> Option<Self> {
        let found = PauseLoop::decode(program_counter, unprivileged::fetch_halfword)?;
        Some(Self {
            place: found.place,
            seen: found.seen,
            width: found.width,
            ticket: found.ticket,
        })
    }
}

/// Where code is: its address, and for a program's code vsatp.
pub type CodeAddress = (u64, Option<u64>);

/// The code of a vCPU's last spin, so that it is read once. Where the guest has put other code there since, the hint is wrong, as it
/// is where the guest means something else by its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KnownCode(Option<(CodeAddress, Code)>);

impl KnownCode {
    /// That of the code at `address`.
    #[must_use]
    pub fn new(address: CodeAddress, code: Code) -> Self {
        Self(Some((address, code)))
    }

    /// What was found at `address`, if that was the last.
    #[must_use]
    pub fn at(self, address: CodeAddress) -> Option<Code> {
        let (known, code) = self.0?;
        (known == address).then_some(code)
    }
}

fn register_of_ticket(program_counter: u64, seen: Register) -> Option<Register> {
    let after = program_counter.wrapping_add(LENGTH);
    let mut code = [0; ticket::CODE_LENGTH];
    let mut length = 0;
    for (index, half) in code.iter_mut().enumerate() {
        let Some(bits) = unprivileged::fetch_halfword(after.wrapping_add(2 * index as u64)) else {
            break;
        };
        *half = bits;
        length = index + 1;
    }
    ticket::register_of_ticket(code.get(..length)?, seen)
}
