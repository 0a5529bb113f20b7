//! Programs in which harts wait for each other; they end with the cycles that one crossing takes.
//!
//! mhartid is in a0. Each ends with the code (cycles of hart 0) / (crossings).

use super::{
    Register, WFI, WRS_NTO, addi, andi, atomic, auipc, beq, bne, csrrs, divu, end_with, jal, ld,
    lui, sd, sub, sw, xor,
};

/// How the harts wait for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Crossing {
    /// Two harts store to one word in turn, and load it until it is their turn.
    PingPong,
    /// The same; a hart waits by WRS.NTO.
    WaitOnReservation,
    /// Hart 0 sends hart 1, which sleeps in WFI, a software interrupt; the answer is a store.
    Interrupt,
    /// Four harts take a ticket lock in turn.
    TicketLock,
}

pub const ALL: [Crossing; 4] = [
    Crossing::PingPong,
    Crossing::WaitOnReservation,
    Crossing::Interrupt,
    Crossing::TicketLock,
];

const HART: Register = 10;
const WORD: Register = 5;
const VALUE: Register = 6;
const LEFT: Register = 7;
const START: Register = 28;
const OTHER: Register = 29;
const ONE: Register = 30;
const MINE: Register = 31;
const OWNER: Register = 8;

impl Crossing {
    pub const fn harts(self) -> u32 {
        match self {
            Self::TicketLock => 4,
            _ => 2,
        }
    }

    pub const fn name(self) -> &'static str {
        match self {
            Self::PingPong => "ping-pong by loads",
            Self::WaitOnReservation => "ping-pong by WRS",
            Self::Interrupt => "interrupt and answer",
            Self::TicketLock => "ticket lock, 4 harts",
        }
    }

    /// The program, with a number of rounds below 2,048.
    pub fn program(self, rounds: i32) -> Vec<u32> {
        let mut words = vec![
            auipc(WORD, 1),
            addi(OWNER, WORD, 128),
            addi(LEFT, 0, rounds),
            addi(ONE, 0, 1),
            csrrs(START, 0xb00, 0), // mcycle
        ];
        let body = self.round();
        words.extend(&body);
        words.push(addi(LEFT, LEFT, -1));
        words.push(bne(LEFT, 0, -4 * (body.len() as i32 + 1)));
        words.push(bne(HART, 0, 0));
        words.extend([csrrs(OTHER, 0xb00, 0), sub(OTHER, OTHER, START)]);
        let crossings = match self {
            Self::TicketLock => 4 * rounds,
            Self::Interrupt => rounds,
            _ => 2 * rounds,
        };
        // A number that does not fit in one addition.
        words.extend([addi(VALUE, 0, crossings / 8), add_itself(VALUE)]);
        words.extend([
            add_itself(VALUE),
            add_itself(VALUE),
            divu(OTHER, OTHER, VALUE),
        ]);
        words.extend(end_with(OTHER, START, ONE));
        words
    }

    fn round(self) -> Vec<u32> {
        match self {
            Self::PingPong => vec![
                ld(VALUE, WORD, 0),
                xor(OTHER, VALUE, HART),
                andi(OTHER, OTHER, 1),
                bne(OTHER, 0, -12),
                addi(VALUE, VALUE, 1),
                sd(VALUE, WORD),
            ],
            Self::WaitOnReservation => vec![
                atomic(0x02, VALUE, WORD, 0), // lr.d
                xor(OTHER, VALUE, HART),
                andi(OTHER, OTHER, 1),
                beq(OTHER, 0, 12),
                WRS_NTO,
                jal(0, -20),
                addi(VALUE, VALUE, 1),
                sd(VALUE, WORD),
            ],
            Self::Interrupt => vec![
                lui(MINE, 0x2000), // the ACLINT's MSWI
                beq(HART, 0, 4 * 9),
                // Hart 1: mie.MSIE; mstatus.MIE is clear, so that nothing traps.
                addi(OTHER, 0, 8),
                csrrs(0, 0x304, OTHER),
                addi(MINE, MINE, 4),
                WFI,
                sw(0, MINE),
                addi(VALUE, VALUE, 1),
                sd(VALUE, WORD),
                jal(0, 4 * 6),
                // Hart 0.
                addi(MINE, MINE, 4),
                sw(ONE, MINE),
                addi(VALUE, VALUE, 1),
                ld(OTHER, WORD, 0),
                bne(OTHER, VALUE, -4),
            ],
            Self::TicketLock => vec![
                atomic(0, MINE, WORD, ONE), // amoadd.d
                ld(VALUE, OWNER, 0),
                bne(VALUE, MINE, -4),
                addi(VALUE, VALUE, 1),
                sd(VALUE, OWNER),
            ],
        }
    }
}

/// Four busy harts, each with its own 64 KiB and every 64 rounds a word that all of them count: for the speed
/// of the host. `rounds` is below 2,048; a round is 512 turns of a loop of nine instructions.
pub fn busy(rounds: i32) -> Vec<u32> {
    let (own, mask, random, address, inner) = (11, 12, 13, 14, 15);
    let mut words = vec![
        auipc(WORD, 1),
        addi(ONE, 0, 1),
        auipc(own, 16),
        super::slli(mask, HART, 18),
        super::add(own, own, mask),
        super::load_constant(mask, 0xfff8)[0],
        super::load_constant(mask, 0xfff8)[1],
        super::load_constant(random, 0x0019_660d)[0],
        super::load_constant(random, 0x0019_660d)[1],
        addi(VALUE, HART, 77),
        addi(LEFT, 0, rounds),
        // A round.
        addi(inner, 0, 512),
        super::mul(VALUE, VALUE, random),
        addi(VALUE, VALUE, 1013),
        super::srli(address, VALUE, 20),
        super::and(address, address, mask),
        super::add(address, address, own),
        ld(OTHER, address, 0),
        xor(OTHER, OTHER, VALUE),
        sd(OTHER, address),
        addi(inner, inner, -1),
        bne(inner, 0, -36),
        atomic(0, MINE, WORD, ONE),
        addi(LEFT, LEFT, -1),
        bne(LEFT, 0, -52),
        addi(OWNER, WORD, 128),
        atomic(0, MINE, OWNER, ONE),
        bne(HART, 0, 0),
        addi(VALUE, 0, 4),
        ld(OTHER, OWNER, 0),
        bne(OTHER, VALUE, -4),
    ];
    words.extend(end_with(VALUE, START, ONE));
    words
}

const fn add_itself(register: Register) -> u32 {
    super::add(register, register, register)
}
