//! Where translated code asks the filters of the timing models.

use super::assembler::*;
use super::layout::{frame, hart};
use super::translate::Translator;
use crate::base::{PAGE_BYTES, PAGE_SHIFT};
use crate::timing::{LINE_PLACES, LINE_SHIFT, LineFilter, PAGE_PLACES};
use crate::translation::DATA_ENTRIES;

/// The size of places of filters of pages: log2 of 8 bytes.
const PAGE_NAME_SHIFT: u32 = 3;
/// The same of filters of lines: log2 of 4 bytes.
const LINE_NUMBER_SHIFT: u8 = 2;

// One offset leads to a page's place in the host TLB and in the filter.
const _: () = assert!(DATA_ENTRIES == PAGE_PLACES);

impl Translator<'_> {
    /// Asks the filter for the block's page.
    pub(super) fn fetch_page(&mut self, outside: u32) {
        self.page_place(RCX, R15);
        self.a.registers(Quad, op::MOV, RAX, R15);
        self.a
            .immediate(Quad, digit::AND, RAX, -(PAGE_BYTES as i32));
        self.a.memory(Quad, op::OR, RAX, hart!(fetch_tag));
        self.a
            .memory(Quad, op::MOV, RDX, frame!(filters.code_pages));
        self.a.memory(Quad, op::CMP, RAX, indexed(RDX, RCX, 0, 0));
        self.a.jump_if(condition::NOT_EQUAL, outside);
    }

    /// Asks the filter for the block's line.
    pub(super) fn fetch_line(&mut self, outside: u32, line: u64) {
        let place = LineFilter::index(line) << LINE_NUMBER_SHIFT;
        self.a.memory(Quad, op::MOV, RAX, frame!(filters.fetches));
        self.a.memory(Double, op::MOV, RAX, at(RAX, place as i32));
        let line = (line as u32).cast_signed();
        self.a.immediate(Double, digit::CMP, RAX, line);
        self.a.jump_if(condition::NOT_EQUAL, outside);
    }

    /// Asks whether the store buffer is empty.
    pub(super) fn store_buffer(&mut self) {
        self.a
            .memory(Quad, op::MOV, RAX, frame!(filters.stores_done));
        self.a.memory(Quad, op::MOV, RAX, at(RAX, 0));
        self.a.memory(Quad, op::CMP, RAX, hart!(cycles));
        self.slow_if(condition::ABOVE);
    }

    /// Makes a register the offset of an address's place in a filter of pages: half of that in the host TLB.
    pub(super) fn page_place(&mut self, to: Host, address: Host) {
        let mask = (PAGE_PLACES as i32 - 1) << PAGE_NAME_SHIFT;
        self.a.registers(Double, op::MOV, to, address);
        self.a
            .shift(Double, shift::SHR, to, (PAGE_SHIFT - PAGE_NAME_SHIFT) as u8);
        self.a.immediate(Double, digit::AND, to, mask);
    }

    /// Asks the filter for the line of the address in RAX, which is at the offset in RCX.
    pub(super) fn data_line(&mut self, size: u64, store: bool) {
        if size > 1 {
            // What is misaligned may be in two lines.
            self.a.test_low(size as u8 - 1);
            self.slow_if(condition::NOT_EQUAL);
        }
        self.a.registers(Quad, op::MOV, RDX, RCX);
        self.a.shift(Quad, shift::SHR, RDX, LINE_SHIFT as u8);
        let base = (self.base >> LINE_SHIFT) as u32;
        self.a
            .immediate(Double, digit::ADD, RDX, base.cast_signed());
        self.a.registers(Double, op::MOV, R11, RDX);
        let mask = LINE_PLACES as i32 - 1;
        self.a.immediate(Double, digit::AND, R11, mask);
        let table = if store {
            frame!(filters.stores)
        } else {
            frame!(filters.loads)
        };
        self.a.memory(Quad, op::MOV, RAX, table);
        let place = indexed(RAX, R11, LINE_NUMBER_SHIFT, 0);
        self.a.memory(Double, op::CMP, RDX, place);
        self.slow_if(condition::NOT_EQUAL);
    }
}
