//! Loads and stores of every width at devices: the bus answers, or it refuses the access.
//!
//! An image accesses one address after the other in M-mode and notes the access faults. Stores store zero, which asks no device
//! for anything that a later access would see.

use machine::board::map;

use super::probe::{constant, finish};
use crate::assembler::{Code, addi, csrr, csrw, i, jalr, ld, r, s};
use crate::csr as number;
use crate::layout::{RAM, SLOTS, TOHOST};

/// Harts that the image expects: not a power of two, so that interrupt files have holes behind them.
pub const HARTS: u32 = 3;

/// An access that is tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Access {
    /// Physical address.
    pub address: u64,
    /// log2 of the width in bytes, 0 to 3.
    pub width: u8,
    /// A store, else a load.
    pub store: bool,
}

/// Answer of the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The access was carried out.
    Done,
    /// It raised an access fault.
    Refused,
}

/// Bytes of an access's record: address, then offset of its instruction in the table of instructions.
const RECORD: u64 = 16;
/// mcause before an access: no exception's.
const NONE: u8 = 0xfe;
/// Causes of access faults (privileged architecture, "Machine Cause Register").
const LOAD_ACCESS_FAULT: u8 = 5;
const STORE_ACCESS_FAULT: u8 = 7;

const ADDRESS: u32 = 10;
const VALUE: u32 = 11;
const NEXT: u32 = 12;
const END: u32 = 13;
const ANSWERS: u32 = 14;
const TABLE: u32 = 15;
const SCRATCH: u32 = 16;
const CAUSE: u32 = 17;

/// Aligned accesses to the board's windows: their first and last registers, the borders, and the holes behind.
#[must_use]
pub fn accesses() -> Vec<Access> {
    let guest_files = 7;
    let file_stride = map::IMSIC_PAGE << map::guest_index_bits(guest_files);
    let mut addresses: Vec<u64> = Vec::new();
    let mut around = |base: u64, offsets: &[u64]| {
        addresses.extend(offsets.iter().map(|offset| base + offset));
    };
    around(0, &[0, 0xff8, 0x1000, 0xfff8, 0x1_0000]);
    around(map::FINISHER.base, &[0, 4, 8, 0xff8]);
    around(map::CLOCK.base, &[0, 0x18, 0x20, 0x24, 0x28, 0xff8]);
    around(map::CLOCK.base + 0x1000, &[0]);
    around(map::MSWI.base, &[0, 8, 0x0c, 0x3ff8]);
    around(map::MTIMER.base, &[0, 0x18, 0x4000, 0x7ff0, 0x7ff8, 0x8000]);
    for domain in [map::APLIC_MACHINE, map::APLIC_SUPERVISOR] {
        around(domain.base, &[0, 8, 0x190, 0x1bc0, 0x1c00, 0x1d00]);
        around(domain.base, &[0x2000, 0x2008, 0x3000, 0x3190, 0x4000]);
        around(domain.base, &[0x7ff8, 0x8000, 0x1_0000]);
    }
    // Not the divisor latch nor the transmitter: bytes 2 to 7.
    around(map::UART.base, &[2, 4, 6, 7, 8, 0x10, 0xf8, 0x100]);
    for slot in 0..=map::VIRTIO_SLOTS as u64 {
        let base = map::VIRTIO.base + slot * map::VIRTIO_STRIDE;
        around(base, &[0, 8, 0x70, 0xf8, 0xfc, 0x100, 0x104]);
        around(base, &[0x1f8, 0x1fc, 0x200, 0x204, 0x800, 0xff8]);
    }
    for hart in 0..=u64::from(HARTS) {
        around(map::IMSIC_MACHINE.base + hart * map::IMSIC_PAGE, &[0, 8]);
        let files = map::IMSIC_SUPERVISOR.base + hart * file_stride;
        around(files, &[0, 4, 0xff8, 7 * map::IMSIC_PAGE]);
    }
    let forms = addresses.iter().flat_map(|&address| {
        (0..4).flat_map(move |width| {
            [false, true].map(|store| Access {
                address,
                width,
                store,
            })
        })
    });
    forms
        .filter(|access| access.address.is_multiple_of(1 << access.width))
        .collect()
}

/// The image that tries accesses. Their answers lie behind their records.
#[must_use]
pub fn image(accesses: &[Access]) -> Vec<u8> {
    let count = accesses.len() as u64;
    let mut code = Code::default();
    let (next, trap, end, table) = (code.label(), code.label(), code.label(), code.label());
    // One hart does it; the others wait.
    let (chosen, wait) = (code.label(), code.label());
    code.emit(csrr(SCRATCH, 0xf14));
    code.branch(0, SCRATCH, 0, chosen);
    code.place(wait);
    code.jump(wait);

    code.place(chosen);
    code.address(SCRATCH, trap);
    code.emit(csrw(number::MTVEC, SCRATCH));
    code.emit(csrw(number::MIE, 0));
    constant(&mut code, NEXT, SLOTS);
    constant(&mut code, END, SLOTS + count * RECORD);
    code.emit(addi(ANSWERS, END, 0));
    code.address(TABLE, table);

    code.place(next);
    code.branch(0, NEXT, END, end);
    code.emit(ld(ADDRESS, NEXT, 0));
    code.emit(ld(SCRATCH, NEXT, 8));
    code.emit(addi(NEXT, NEXT, RECORD as i32));
    code.emit(r(0, TABLE, SCRATCH, 0, SCRATCH, 0x33));
    code.emit(addi(VALUE, 0, 0));
    code.emit(addi(CAUSE, 0, 0));
    code.emit(jalr(1, SCRATCH, 0));
    code.emit(s(0, CAUSE, ANSWERS, 0, 0x23));
    code.emit(addi(ANSWERS, ANSWERS, 1));
    code.jump(next);

    // An exception returns to the caller of the access.
    code.place(trap);
    code.emit(csrr(CAUSE, number::MCAUSE));
    code.emit(jalr(0, 1, 0));

    // An instruction and a return for each width, loads before stores.
    code.place(table);
    for width in 0..4 {
        code.emit(i(0, ADDRESS, width, VALUE, 0x03));
        code.emit(jalr(0, 1, 0));
    }
    for width in 0..4 {
        code.emit(s(0, VALUE, ADDRESS, width, 0x23));
        code.emit(jalr(0, 1, 0));
    }
    code.place(end);
    finish(&mut code);

    let code = code.finish();
    let mut image: Vec<u8> = code.iter().flat_map(|word| word.to_le_bytes()).collect();
    assert!(image.len() < (TOHOST - RAM) as usize, "the program fits");
    image.resize((SLOTS - RAM) as usize, 0);
    for access in accesses {
        let instruction = u64::from(access.width) + if access.store { 4 } else { 0 };
        image.extend(access.address.to_le_bytes());
        image.extend((8 * instruction).to_le_bytes());
    }
    image.resize(image.len() + accesses.len(), NONE);
    image
}

/// The answers in what a run of [`image`] has left, from the first slot on; `None` where the run ended before.
#[must_use]
pub fn answers(left: &[u8], accesses: &[Access]) -> Option<Vec<Answer>> {
    let start = accesses.len() * RECORD as usize;
    let causes = left.get(start..start + accesses.len())?;
    let answer = |(access, &cause): (&Access, &u8)| match (access.store, cause) {
        (_, 0) => Some(Answer::Done),
        (false, LOAD_ACCESS_FAULT) | (true, STORE_ACCESS_FAULT) => Some(Answer::Refused),
        _ => None,
    };
    accesses.iter().zip(causes).map(answer).collect()
}
