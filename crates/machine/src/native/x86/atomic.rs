//! AMOs of words and doublewords. Only one hart runs at a time: a load and a store with nothing in between are atomic.

use super::assembler::*;
use super::translate::Translator;
use crate::instruction::Instruction;

impl Translator<'_> {
    /// Translates an AMO; `false` if that is the interpreter's.
    pub(super) fn atomic(&mut self, i: Instruction, width: Width) -> bool {
        // funct5 of the encoding, of which the immediate operand holds a copy. Minima and maxima are rare.
        let operation = match i.immediate.cast_unsigned() >> 27 {
            0x00 => Some(op::ADD),
            0x01 => None,
            0x04 => Some(op::XOR),
            0x08 => Some(op::OR),
            0x0c => Some(op::AND),
            _ => return false,
        };
        if !self.has_room(|costs| costs.atomic) {
            return false;
        }
        let (size, load) = match width {
            Double => (4, op::MOVSXD),
            Quad => (8, op::MOV),
        };
        let base = self.get(i.rs1, None);
        let value = self.get(i.rs2, Some(base));
        // What is misaligned raises an exception.
        self.a.registers(Quad, op::MOV, RAX, base);
        self.a.test_low(size - 1);
        self.slow_if(condition::NOT_EQUAL);
        let access = Instruction { immediate: 0, ..i };
        self.translate_address(access, size.into(), true);
        self.cost(|costs| costs.atomic);
        let place = indexed(R14, RCX, 0, 0);
        self.a.memory(Quad, load, RAX, place);
        let new = match operation {
            None => value,
            Some(operation) => {
                self.a.registers(Quad, op::MOV, RDX, RAX);
                self.a.registers(Quad, operation, RDX, value);
                RDX
            }
        };
        self.a.memory(width, op::STORE, new, place);
        self.put(i.rd);
        true
    }
}
