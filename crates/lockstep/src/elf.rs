//! The image as an ELF file, with the symbols that bare-metal programs are known by.

use crate::layout;

/// A string table with its names' places.
const NAMES: &[u8] = b"\0.symtab\0.strtab\0tohost\0fromhost\0begin_signature\0end_signature\0";
const SYMTAB: u32 = 1;
const STRTAB: u32 = 9;
const TOHOST: u32 = 17;
const FROMHOST: u32 = 24;
const BEGIN: u32 = 33;
const END: u32 = 49;

const HEADER: u64 = 64;
const PROGRAM_HEADER: u64 = 56;
const SYMBOL: u64 = 24;

struct Writer(Vec<u8>);

impl Writer {
    fn half(&mut self, value: u16) {
        self.0.extend(value.to_le_bytes());
    }
    fn word(&mut self, value: u32) {
        self.0.extend(value.to_le_bytes());
    }
    fn long(&mut self, value: u64) {
        self.0.extend(value.to_le_bytes());
    }
    fn symbol(&mut self, name: u32, address: u64) {
        self.word(name);
        // STB_GLOBAL, STT_NOTYPE; default visibility; SHN_ABS.
        self.half(0x10);
        self.half(0xfff1);
        self.long(address);
        self.long(0);
    }
    fn section(&mut self, name: u32, kind: u32, offset: u64, size: u64, rest: [u64; 2]) {
        self.word(name);
        self.word(kind);
        self.long(0);
        self.long(0);
        self.long(offset);
        self.long(size);
        // sh_link and sh_info: the string table; the first global symbol.
        let symbols = kind == 2;
        self.word(if symbols { 2 } else { 0 });
        self.word(u32::from(symbols));
        for value in rest {
            self.long(value);
        }
    }
}

/// An ELF file that puts `image` at the start of RAM and starts there.
#[must_use]
pub fn write(image: &[u8]) -> Vec<u8> {
    let mut file = Writer(Vec::with_capacity(image.len() + 0x400));
    let start = HEADER + PROGRAM_HEADER;
    let symbols = start + image.len() as u64;
    let count = 5;
    let names = symbols + count * SYMBOL;
    let sections = names + NAMES.len() as u64;

    // 64-bit, little-endian, version 1; an executable for RISC-V.
    file.0.extend(b"\x7fELF\x02\x01\x01");
    file.0.extend([0; 9]);
    file.half(2);
    file.half(243);
    file.word(1);
    file.long(layout::RAM);
    file.long(HEADER);
    file.long(sections);
    file.word(0);
    file.half(HEADER as u16);
    file.half(PROGRAM_HEADER as u16);
    file.half(1);
    file.half(64);
    file.half(3);
    file.half(2);

    // One segment, readable, writable and executable.
    file.word(1);
    file.word(7);
    file.long(start);
    file.long(layout::RAM);
    file.long(layout::RAM);
    file.long(image.len() as u64);
    file.long(image.len() as u64);
    file.long(layout::PAGE);

    file.0.extend(image);
    file.0.extend([0; SYMBOL as usize]);
    file.symbol(TOHOST, layout::TOHOST);
    file.symbol(FROMHOST, layout::TOHOST + 64);
    file.symbol(BEGIN, layout::SLOTS);
    file.symbol(END, layout::RAM + image.len() as u64);
    file.0.extend(NAMES);
    file.0.extend([0; 64]);
    file.section(SYMTAB, 2, symbols, count * SYMBOL, [8, SYMBOL]);
    file.section(STRTAB, 3, names, NAMES.len() as u64, [1, 0]);
    file.0
}
