//! The exercises.

use super::hart::{
    A, B, C, D, MSWI, ONE, OWN, SHARED, TAKEN, WAIT, amo, keep, load_reserved, meet, value,
    wait_for, wait_for_interrupts,
};
use super::memory::{
    CELL, CELLS, DATA, DATA_PAGES, FUNCTIONS, Memory, VIEW, guest_leaf, leaf, virtual_leaf,
};
use crate::assembler::{Code, Register, addi, csr, jalr, ld, lui, r, s, sd};
use crate::csr as number;
use crate::layout::PAGE;
use crate::random::Random;

/// AMOs whose outcome does not depend on the order, by funct5.
const SUMS: [(&str, u32); 8] = [
    ("amoadd", 0x00),
    ("amoxor", 0x04),
    ("amoor", 0x08),
    ("amoand", 0x0c),
    ("amomin", 0x10),
    ("amomax", 0x14),
    ("amominu", 0x18),
    ("amomaxu", 0x1c),
];

/// How a leaf is changed.
#[derive(Debug, Clone, Copy)]
pub enum Change {
    /// It leads to another page.
    Page(u64),
    /// It leads nowhere.
    Invalid,
    /// Stores are no longer permitted.
    ReadOnly,
}

/// An exercise; `cell` is the offset of the cell that it works on.
#[derive(Debug, Clone, Copy)]
pub enum Exercise {
    /// AMOs to one cell.
    Sum {
        /// Which.
        operation: (&'static str, u32),
        /// How many.
        times: u64,
        cell: i32,
    },
    /// LR and SC until it is done.
    Reserve {
        /// How often.
        times: u64,
        /// True if the hart sleeps until a timer ends it before each.
        asleep: bool,
        cell: i32,
    },
    /// A lock, and two cells that are changed under it.
    Lock {
        /// How often.
        times: u64,
        /// True if the lock is taken with LR and SC.
        reserve: bool,
        cell: i32,
    },
    /// A value that each hart changes in turn, and not so that the order would not matter.
    Hand {
        /// How often round.
        rounds: u64,
        cell: i32,
    },
    /// An interprocessor interrupt that goes round.
    Interrupt {
        /// How often.
        rounds: u64,
        /// True if it is taken.
        with_handler: bool,
    },
    /// A function that one hart changes and all call.
    Code {
        /// Which.
        number: u64,
        /// Operand of the addition afterwards.
        immediate: i32,
        /// Operand of the addition in between, on the hart that changes the function. The function's page may then be
        /// one that nobody has executed before.
        between: Option<i32>,
        writer: u32,
        cell: i32,
    },
    /// A leaf that one hart changes and all use.
    Table {
        /// True if it is the G-stage's.
        guest: bool,
        page: u64,
        change: Change,
        /// True if the fence names the address.
        by_address: bool,
        writer: u32,
        cell: i32,
    },
}

impl Exercise {
    /// The exercise with this number, with what it needs in memory.
    pub fn new(number: usize, harts: u32, memory: &mut Memory, random: &mut Random) -> Self {
        // Two cells each, and none twice.
        let cell = (2 * number as u64 * CELL) as i32;
        let writer = random.field(harts);
        let rounds = 1 + random.below(20);
        match random.below(8) {
            0 => Self::Sum {
                operation: random.pick(&SUMS),
                times: 1 + random.below(12),
                cell,
            },
            1 => Self::Reserve {
                times: rounds,
                asleep: random.chance(50),
                cell,
            },
            2 => Self::Lock {
                times: rounds,
                reserve: random.chance(50),
                cell,
            },
            3 => Self::Hand { rounds, cell },
            4 => Self::Interrupt {
                rounds,
                with_handler: random.chance(50),
            },
            5 => {
                memory.put_function(number as u64, random.below(2048) as i32);
                Self::Code {
                    number: number as u64,
                    immediate: -(random.below(2048) as i32),
                    between: random.chance(50).then(|| random.below(2048) as i32),
                    writer,
                    cell,
                }
            }
            _ => Self::Table {
                guest: random.chance(50),
                page: random.below(DATA_PAGES),
                change: match random.below(4) {
                    0 => Change::Invalid,
                    1 => Change::ReadOnly,
                    _ => Change::Page(random.below(DATA_PAGES)),
                },
                by_address: random.chance(50),
                writer,
                cell,
            },
        }
    }

    /// One hart's part.
    pub fn emit(&self, code: &mut Code, hart: u32, harts: u32, random: &mut Random) {
        match *self {
            Self::Sum {
                operation: (_, funct5),
                times,
                cell,
            } => {
                code.emit(addi(B, SHARED, cell));
                for _ in 0..times {
                    value(code, A, random.value());
                    code.emit(amo(funct5, 0, A, B));
                }
                meet(code, harts, random);
                show(code, cell);
            }
            Self::Reserve {
                times,
                asleep,
                cell,
            } => {
                let sleeper = asleep.then_some(hart);
                reserve_and_add(code, times, sleeper, cell, random);
                meet(code, harts, random);
                show(code, cell);
            }
            Self::Lock {
                times,
                reserve,
                cell,
            } => lock(code, times, reserve, cell, harts, random),
            Self::Hand { rounds, cell } => hand(code, rounds, cell, hart, harts, random),
            Self::Interrupt {
                rounds,
                with_handler,
            } => interrupt(code, rounds, with_handler, hart, harts),
            Self::Code { .. } => self.change_code(code, hart, harts, random),
            Self::Table { .. } => self.change_table(code, hart, harts, random),
        }
    }

    /// A function that one hart changes and all call.
    fn change_code(&self, code: &mut Code, hart: u32, harts: u32, random: &mut Random) {
        let Self::Code {
            number,
            immediate,
            between,
            writer,
            cell,
        } = *self
        else {
            return;
        };
        let function = (FUNCTIONS + 16 * number) as u32;
        let change = |code: &mut Code, immediate: i32| {
            code.constant(A, function);
            code.constant(B, addi(10, 10, immediate));
            code.emit(s(0, B, A, 2, 0x23));
        };
        if between.is_none() {
            call(code, function);
        }
        meet(code, harts, random);
        tell(code, hart == writer, cell, random, |code| {
            if let Some(between) = between {
                change(code, between);
                code.emit(riscv::instruction::FENCE_I);
                call(code, function);
            }
            change(code, immediate);
        });
        code.emit(riscv::instruction::FENCE_I);
        call(code, function);
    }

    /// A leaf of a page table that one hart changes and all use.
    fn change_table(&self, code: &mut Code, hart: u32, harts: u32, random: &mut Random) {
        let Self::Table {
            guest,
            page,
            change,
            by_address,
            writer,
            cell,
        } = *self
        else {
            return;
        };
        // Not where harts store.
        let view = VIEW + page * PAGE + 8 * (4 + random.below(PAGE / 8 - 4));
        use_view(code, view, hart);
        meet(code, harts, random);
        tell(code, hart == writer, cell, random, |code| {
            let target = DATA + page * PAGE;
            let place = if guest {
                guest_leaf(target)
            } else {
                virtual_leaf(page)
            };
            let entry = match change {
                Change::Page(page) => leaf(page),
                Change::Invalid => leaf(page) & !1,
                Change::ReadOnly => leaf(page) & !4,
            };
            code.constant(A, place as u32);
            value(code, B, entry);
            code.emit(sd(B, A, 0));
        });
        let (funct7, operand) = if guest {
            (0x31, (DATA + page * PAGE) >> 2)
        } else {
            (0x11, VIEW + page * PAGE)
        };
        code.constant(A, operand as u32);
        let address = if by_address { A } else { 0 };
        code.emit(r(funct7, 0, address, 0, 0, 0x73));
        use_view(code, view, hart);
    }
}

/// Adds to a cell by LR and SC, `times` times; with a hart's number it sleeps in between.
fn reserve_and_add(
    code: &mut Code,
    times: u64,
    sleeper: Option<u32>,
    cell: i32,
    random: &mut Random,
) {
    value(code, A, random.value());
    code.emit(addi(B, SHARED, cell));
    repeat(code, times, |code| {
        if let Some(hart) = sleeper {
            sleep(code, hart);
        }
        let again = code.label();
        code.place(again);
        code.emit(load_reserved(C, B));
        code.emit(r(0, A, C, 0, C, 0x33));
        code.emit(r(0x03 << 2 | 1, C, B, 3, C, 0x2f));
        code.branch(1, C, 0, again);
    });
}

/// Does something `times` times; uses D.
fn repeat(code: &mut Code, times: u64, mut body: impl FnMut(&mut Code)) {
    code.emit(addi(D, 0, times as i32));
    let again = code.label();
    code.place(again);
    body(code);
    code.emit(addi(D, D, -1));
    code.branch(1, D, 0, again);
}

/// Sleeps until the hart's own timer of the ACLINT ends it, which is soon. Uses C and x29.
fn sleep(code: &mut Code, hart: u32) {
    const TIME: u32 = 0x200_bff8;
    const COMPARE: u32 = 0x200_4000;
    /// Ticks: an end that is past when WFI comes is as good.
    const SOON: i32 = 1;
    const TIMER: i32 = 1 << 7;
    let then: Register = 29;
    code.constant(C, TIME);
    code.emit(ld(then, C, 0));
    code.emit(addi(then, then, SOON));
    code.constant(C, COMPARE + 8 * hart);
    code.emit(sd(then, C, 0));
    code.emit(addi(then, 0, TIMER));
    code.emit(csr(2, 0, number::MIE, then));
    code.emit(WAIT);
    code.emit(csr(3, 0, number::MIE, then));
    code.emit(addi(then, 0, -1));
    code.emit(sd(then, C, 0));
}

/// Keeps what a cell holds.
fn show(code: &mut Code, cell: i32) {
    code.emit(ld(A, SHARED, cell));
    keep(code, A);
}

fn lock(code: &mut Code, times: u64, reserve: bool, cell: i32, harts: u32, random: &mut Random) {
    // The lock is the second cell: its random contents count as free, with bit 0 clear.
    let held: Register = 29;
    value(code, B, random.value());
    repeat(code, times, |code| {
        let again = code.label();
        code.emit(addi(A, SHARED, cell + 8));
        code.place(again);
        if reserve {
            code.emit(load_reserved(C, A));
            code.branch(1, C, 0, again);
            code.emit(r(0x03 << 2 | 1, ONE, A, 3, C, 0x2f));
        } else {
            code.emit(amo(1, C, ONE, A));
        }
        code.branch(1, C, 0, again);
        for place in [cell, cell + CELL as i32] {
            code.emit(ld(held, SHARED, place));
            code.emit(r(0, B, held, 0, held, 0x33));
            code.emit(sd(held, SHARED, place));
        }
        if reserve {
            code.emit(0x0310_000f);
            code.emit(sd(0, A, 0));
        } else {
            code.emit(amo(1, 0, 0, A));
        }
    });
    meet(code, harts, random);
    show(code, cell);
    show(code, cell + CELL as i32);
}

fn hand(code: &mut Code, rounds: u64, cell: i32, hart: u32, harts: u32, random: &mut Random) {
    // The turn stands beside the value and begins with zero.
    let turn: Register = 29;
    value(code, B, random.value() | 1);
    code.emit(addi(turn, 0, hart.cast_signed()));
    repeat(code, rounds, |code| {
        code.emit(addi(A, SHARED, cell + 8));
        wait_for(code, A, turn, random);
        code.emit(ld(C, SHARED, cell));
        code.emit(r(1, B, C, 0, C, 0x33));
        code.emit(r(0, B, C, 0, C, 0x33));
        code.emit(sd(C, SHARED, cell));
        code.emit(0x0310_000f);
        code.emit(addi(C, turn, 1));
        code.emit(sd(C, A, 0));
        code.emit(addi(turn, turn, harts.cast_signed()));
    });
    meet(code, harts, random);
    show(code, cell);
}

fn interrupt(code: &mut Code, rounds: u64, with_handler: bool, hart: u32, harts: u32) {
    let send = |code: &mut Code| {
        let next = (hart + 1) % harts;
        code.constant(B, MSWI + 4 * next);
        code.emit(s(0, ONE, B, 2, 0x23));
    };
    repeat(code, rounds, |code| {
        if hart == 0 {
            send(code);
        }
        code.emit(addi(A, TAKEN, 1));
        wait_for_interrupts(code, with_handler);
        if hart != 0 {
            send(code);
        }
    });
    keep(code, TAKEN);
}

/// Calls a function with the place of the next result, which is another for each hart.
fn call(code: &mut Code, function: u32) {
    code.constant(A, function);
    code.emit(addi(10, OWN, 0));
    code.emit(jalr(1, A, 0));
    keep(code, 10);
}

/// One hart changes something and tells the others, who wait for it.
fn tell(
    code: &mut Code,
    is_writer: bool,
    cell: i32,
    random: &mut Random,
    change: impl FnOnce(&mut Code),
) {
    if is_writer {
        change(code);
        code.emit(0x0ff0_000f);
        code.emit(addi(A, SHARED, cell + 8));
        code.emit(sd(ONE, A, 0));
    } else {
        code.emit(addi(A, SHARED, cell + 8));
        wait_for(code, A, ONE, random);
    }
}

/// Loads from and stores to a page through both stages; what traps is kept by the handler.
fn use_view(code: &mut Code, view: u64, hart: u32) {
    code.constant(A, view as u32);
    code.emit(lui(B, 0));
    code.emit(r(0x36, 0, A, 4, B, 0x73));
    keep(code, B);
    // Each hart stores to a place of its own, which nobody loads from.
    let place = (view & !(PAGE - 1)) + 8 * u64::from(hart);
    code.constant(A, place as u32);
    code.emit(addi(B, 0, hart.cast_signed()));
    code.emit(r(0x37, B, A, 4, 0, 0x73));
}

const _: () = assert!(CELLS.is_multiple_of(PAGE));
