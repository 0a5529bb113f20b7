//! From a decoded block to machine code.
//!
//! Registers: RBP the hart, RBX the [frame](super::layout::Frame), R12 and R13 the tables of loads and stores, R14 RAM,
//! R15 the block's virtual address. RAX, RCX, RDX and R11 are free; the others hold integer registers of
//! the hart which are also up to date in memory, so that code can be left anywhere.

use super::assembler::*;
use super::exit::{Ends, OUTSIDE, answer, kind};
use super::layout::{frame, hart, limit, register};
use super::target::TARGETS_SHIFT;
use crate::base::{PAGE_BYTES, PAGE_SHIFT};
use crate::instruction::{CodeIndex, DISCARD, Instruction, Operation};
use crate::timing::Costs;
use crate::translation::FETCH_ENTRIES;

/// The registers that hold registers of the hart.
const KEEPERS: [Host; 5] = [RSI, RDI, R8, R9, R10];
/// The size of entries of the host TLB: log2 of 16 bytes.
const ENTRY_SHIFT: u32 = 4;
/// The size of a [`Target`](super::target::Target): log2 of 8 bytes.
const TARGET_SHIFT: u8 = 3;
/// Which registers of the hart are where.
#[derive(Debug, Clone, Copy, Default)]
struct Kept {
    guests: [Option<u8>; KEEPERS.len()],
    /// Next register to give way.
    next: usize,
}

/// Code that does not stand in the block's way.
#[derive(Debug)]
enum Aside {
    /// Leaves before an instruction, and comes back behind it.
    Slow {
        gaps: Vec<Gap>,
        at: CodeIndex,
        /// Where the next instruction is, and what it takes to be kept.
        next: u32,
        kept: Kept,
        /// True if the instruction ends its block: nothing comes back behind it.
        ends: bool,
    },
    /// Goes where a branch leads that is taken.
    Taken {
        gap: Gap,
        at: CodeIndex,
        instruction: Instruction,
    },
}

pub struct Translator<'a> {
    pub(super) a: &'a mut Assembler,
    /// Code that is rarely executed, kept apart so that the rest needs fewer of the host's cache lines and pages.
    rare: &'a mut Assembler,
    costs: Option<&'a Costs>,
    /// True if branches and jumps are the interpreter's.
    predicted: bool,
    ends: Ends,
    /// Physical address of RAM.
    pub(super) base: u64,
    pub(super) has_count_ones: bool,
    kept: Kept,
    /// Offset of the block in its page.
    page_offset: i64,
    /// The instruction that is being translated.
    at: CodeIndex,
    asides: Vec<Aside>,
    /// Jumps of the present instruction to its [`Aside::Slow`].
    slow: Vec<Gap>,
    places: Vec<(CodeIndex, u32)>,
}

impl<'a> Translator<'a> {
    pub fn new(
        (a, rare): (&'a mut Assembler, &'a mut Assembler),
        (costs, predicted): (Option<&'a Costs>, bool),
        ends: Ends,
        base: u64,
        has_count_ones: bool,
    ) -> Self {
        Self {
            a,
            rare,
            costs,
            predicted,
            ends,
            base,
            has_count_ones,
            kept: Kept::default(),
            page_offset: 0,
            at: 0,
            asides: Vec::new(),
            slow: Vec::new(),
            places: Vec::new(),
        }
    }

    /// Translates the block that begins with the decoded instruction `first` and stands at an address, in a
    /// physical line; says where decoded instructions can be entered, and how far behind its beginning the block
    /// can be from its own page.
    pub fn block(
        mut self,
        block: &[Instruction],
        first: CodeIndex,
        (address, line): (u64, u64),
    ) -> (Vec<(CodeIndex, u32)>, u32) {
        self.page_offset = (address & (PAGE_BYTES - 1)) as i64;
        let outside = self.a.here();
        let line_in_ram = line - (self.base >> crate::timing::LINE_SHIFT);
        self.leave(answer(kind::OUTSIDE, first, line_in_ram as u32));
        debug_assert_eq!(self.a.here(), outside + OUTSIDE);
        let entry = self.a.here();
        self.places.push((first, entry));
        if self.costs.is_some() {
            self.fetch_page(outside);
        }
        let inner = self.a.here() - entry;
        if self.costs.is_some() {
            self.fetch_line(outside, line);
        }
        for (&instruction, at) in block.iter().zip(first..) {
            self.at = at;
            if !self.instruction(instruction) {
                self.leave(answer(kind::BEFORE, at, 0));
                self.kept = Kept::default();
                if !instruction.operation.ends_block() {
                    self.places.push((at + 1, self.a.here()));
                }
            }
            if !self.slow.is_empty() {
                let gaps = std::mem::take(&mut self.slow);
                let (next, kept) = (self.a.here(), self.kept);
                self.asides.push(Aside::Slow {
                    gaps,
                    at,
                    next,
                    kept,
                    ends: instruction.operation.ends_block(),
                });
            }
        }
        for aside in std::mem::take(&mut self.asides) {
            self.aside(aside);
        }
        (self.places, inner)
    }

    fn leave(&mut self, answer: u64) {
        self.a.set_wide(RAX, answer);
        self.a.jump(self.ends.leave);
    }

    /// Leaves the instruction to the interpreter if a condition holds.
    pub(super) fn slow_if(&mut self, condition: u8) {
        let gap = self.a.jump_if_later(condition);
        self.slow.push(gap);
    }

    /// Leaves the instruction to the interpreter if a flag of the hart is not zero.
    fn leave_if_active(&mut self, flag: Place) {
        self.a.memory_immediate(digit::CMP, flag, 0);
        self.slow_if(condition::NOT_EQUAL);
    }

    fn aside(&mut self, aside: Aside) {
        match aside {
            Aside::Slow {
                gaps,
                at,
                next,
                kept,
                ends,
            } => {
                for gap in gaps {
                    self.a.fill(gap, self.rare.here());
                }
                self.rare.set_wide(RAX, answer(kind::BEFORE, at, 0));
                self.rare.jump(self.ends.leave);
                if ends {
                    return;
                }
                self.places.push((at + 1, self.rare.here()));
                for (host, guest) in KEEPERS.into_iter().zip(kept.guests) {
                    if let Some(guest) = guest {
                        self.rare.memory(Quad, op::MOV, host, register(guest));
                    }
                }
                self.rare.jump(next);
            }
            Aside::Taken {
                gap,
                at,
                instruction,
            } => {
                self.a.fill(gap, self.a.here());
                self.go(i64::from(instruction.immediate), instruction.count, at);
            }
        }
    }

    /// A register that holds a register of the hart; `other` keeps what it holds.
    pub(super) fn get(&mut self, guest: u8, other: Option<Host>) -> Host {
        if let Some(host) = self.find(guest) {
            return host;
        }
        let host = self.allot(guest, other);
        self.a.memory(Quad, op::MOV, host, register(guest));
        host
    }

    fn find(&self, guest: u8) -> Option<Host> {
        let place = self
            .kept
            .guests
            .iter()
            .position(|&kept| kept == Some(guest))?;
        KEEPERS.get(place).copied()
    }

    fn allot(&mut self, guest: u8, other: Option<Host>) -> Host {
        loop {
            let place = self.kept.next % KEEPERS.len();
            self.kept.next = place + 1;
            let host = KEEPERS[place];
            if Some(host) != other {
                self.kept.guests[place] = Some(guest);
                return host;
            }
        }
    }

    /// Makes RAX the value of a register of the hart.
    pub(super) fn put(&mut self, guest: u8) {
        if guest == DISCARD {
            return;
        }
        let host = match self.find(guest) {
            Some(host) => host,
            None => self.allot(guest, None),
        };
        self.a.memory(Quad, op::STORE, RAX, register(guest));
        self.a.registers(Quad, op::MOV, host, RAX);
    }

    /// Adds a cost to the hart's cycles in the timing mode; `None` if it has no room in an instruction.
    pub(super) fn cost(&mut self, cost: impl Fn(&Costs) -> u64) {
        if let Some(cost) = self.costs.map(cost)
            && cost != 0
        {
            // Costs of more than 2^31 cycles are refused before anything of the instruction is emitted.
            let cost = i32::try_from(cost).unwrap_or(i32::MAX);
            self.a.memory_immediate(digit::ADD, hart!(cycles), cost);
        }
    }

    /// Tests whether a cost has room in an instruction.
    pub(super) fn has_room(&self, cost: impl Fn(&Costs) -> u64) -> bool {
        self.costs
            .is_none_or(|costs| i32::try_from(cost(costs)).is_ok())
    }

    /// Accounts for instructions; the condition [`condition::ABOVE_EQUAL`] is true if the limit is reached.
    fn account(&mut self, count: u8) {
        let count = i32::from(count);
        self.a.memory_immediate(digit::ADD, hart!(retired), count);
        self.a.memory(Quad, op::MOV, RAX, hart!(cycles));
        self.a.immediate(Quad, digit::ADD, RAX, count);
        self.a.memory(Quad, op::STORE, RAX, hart!(cycles));
        self.a.memory(Quad, op::CMP, RAX, limit());
    }

    /// Leaves the block for the address at a displacement from its beginning.
    fn go(&mut self, displacement: i64, count: u8, from: CodeIndex) {
        // Displacements are those of branches and jumps: 21 bits and the offset of the instruction.
        self.a
            .memory(Quad, op::LEA, R15, at(R15, displacement as i32));
        self.account(count);
        let in_page = (self.page_offset + displacement) >> PAGE_SHIFT == 0;
        if !in_page {
            self.find_target();
            return;
        }
        self.stop_at_limit(from);
        let gap = self.a.jump_later();
        self.a.fill(gap, self.rare.here());
        let site = self.a.site(gap);
        self.rare.set_wide(RAX, answer(kind::BEHIND, from, site));
        self.rare.jump(self.ends.leave);
    }

    /// Leaves if the limit is reached: behind [`Self::account`]. What follows is where the hart goes on.
    fn stop_at_limit(&mut self, from: CodeIndex) {
        let limit = self.a.jump_if_later(condition::ABOVE_EQUAL);
        self.a.fill(limit, self.rare.here());
        self.rare
            .set_wide(RAX, answer(kind::LIMIT, from, self.a.here()));
        self.rare.jump(self.ends.leave);
    }

    /// Goes to R15, unless the limit is reached: behind [`Self::account`]. The hart's table of fetches has to know the
    /// page; blocks are found by where they are in RAM.
    fn find_target(&mut self) {
        self.stop_at_limit(0);
        self.a.registers(Double, op::MOV, RCX, R15);
        self.a
            .shift(Double, shift::SHR, RCX, (PAGE_SHIFT - ENTRY_SHIFT) as u8);
        let mask = (FETCH_ENTRIES as i32 - 1) << ENTRY_SHIFT;
        self.a.immediate(Double, digit::AND, RCX, mask);
        self.a.memory(Quad, op::ADD, RCX, frame!(fetches));
        self.a.registers(Quad, op::MOV, RDX, R15);
        self.a
            .immediate(Quad, digit::AND, RDX, -(PAGE_BYTES as i32));
        self.a.memory(Quad, op::OR, RDX, hart!(fetch_tag));
        self.a.memory(Quad, op::CMP, RDX, at(RCX, 0));
        self.a.jump_if(condition::NOT_EQUAL, self.ends.behind);
        self.a.memory(Quad, op::MOV, RCX, at(RCX, 8));
        self.a.registers(Quad, op::ADD, RCX, R15);
        // As `Native::lead` has it.
        self.a.registers(Quad, op::MOV, RDX, RCX);
        self.a.shift(Quad, shift::SHR, RDX, TARGETS_SHIFT as u8 + 1);
        self.a.shift(Double, shift::SHR, RCX, 1);
        let mask = (1 << TARGETS_SHIFT) - 1;
        self.a.immediate(Double, digit::AND, RCX, mask);
        self.a.memory(Quad, op::MOV, R11, frame!(targets));
        self.a
            .memory(Double, op::CMP, RDX, indexed(R11, RCX, TARGET_SHIFT, 0));
        self.a.jump_if(condition::NOT_EQUAL, self.ends.behind);
        self.a
            .memory(Double, op::MOV, RCX, indexed(R11, RCX, TARGET_SHIFT, 4));
        self.a.memory(Quad, op::ADD, RCX, frame!(code));
        self.a.jump_register(RCX);
    }

    /// Leaves in RCX where in RAM an access of the present instruction goes. RAX is lost.
    pub(super) fn translate_address(&mut self, i: Instruction, size: u64, store: bool) {
        let base = self.get(i.rs1, None);
        self.a.memory(Quad, op::LEA, RAX, at(base, i.immediate));
        let table = if store { R13 } else { R12 };
        self.page_place(RCX, RAX);
        self.a.memory(Quad, op::LEA, RDX, at(RAX, size as i32 - 1));
        self.a
            .immediate(Quad, digit::AND, RDX, -(PAGE_BYTES as i32));
        self.a.memory(Quad, op::OR, RDX, hart!(data_tag));
        self.a.memory(Quad, op::CMP, RDX, indexed(table, RCX, 1, 0));
        self.slow_if(condition::NOT_EQUAL);
        if self.costs.is_some() {
            self.a
                .memory(Quad, op::MOV, R11, frame!(filters.data_pages));
            self.a.memory(Quad, op::CMP, RDX, indexed(R11, RCX, 0, 0));
            self.slow_if(condition::NOT_EQUAL);
        }
        self.a.memory(Quad, op::MOV, RCX, indexed(table, RCX, 1, 8));
        self.a.registers(Quad, op::ADD, RCX, RAX);
        if self.costs.is_some() {
            self.data_line(size, store);
        }
    }

    fn load(&mut self, i: Instruction, size: u64) {
        self.translate_address(i, size, false);
        let place = indexed(R14, RCX, 0, 0);
        match i.operation {
            Operation::Lb => self.a.memory_0f(Quad, 0xbe, RAX, place),
            Operation::Lh => self.a.memory_0f(Quad, 0xbf, RAX, place),
            Operation::Lw => self.a.memory(Quad, op::MOVSXD, RAX, place),
            Operation::Lbu => self.a.memory_0f(Double, 0xb6, RAX, place),
            Operation::Lhu => self.a.memory_0f(Double, 0xb7, RAX, place),
            Operation::Lwu => self.a.memory(Double, op::MOV, RAX, place),
            _ => self.a.memory(Quad, op::MOV, RAX, place),
        }
        self.put(i.rd);
    }

    fn store(&mut self, i: Instruction, size: u64) {
        let base = self.get(i.rs1, None);
        let value = self.get(i.rs2, Some(base));
        self.translate_address(i, size, true);
        let place = indexed(R14, RCX, 0, 0);
        match size {
            8 => self.a.memory(Quad, op::STORE, value, place),
            4 => self.a.memory(Double, op::STORE, value, place),
            _ => self.a.store_small(size, value, place),
        }
    }

    fn branch(&mut self, i: Instruction, condition: u8) {
        let first = self.get(i.rs1, None);
        if matches!(i.operation, Operation::Beqz | Operation::Bnez) {
            self.a.registers(Quad, op::TEST, first, first);
        } else {
            let second = self.get(i.rs2, Some(first));
            self.a.registers(Quad, op::CMP, first, second);
        }
        let gap = self.a.jump_if_later(condition);
        let at = self.at;
        self.asides.push(Aside::Taken {
            gap,
            at,
            instruction: i,
        });
    }

    /// Puts the address behind a jump, which has its length in `rs2`, into its destination register.
    fn link(&mut self, i: Instruction) {
        if i.rd != DISCARD {
            let behind = i32::from(i.offset) + i32::from(i.rs2);
            self.a.memory(Quad, op::LEA, RAX, at(R15, behind));
            self.put(i.rd);
        }
    }

    /// Translates an instruction; `false` if that is the interpreter's.
    fn instruction(&mut self, i: Instruction) -> bool {
        use condition as c;
        if self.predicted && i.operation.transfers_control() {
            return false;
        }
        match i.operation {
            Operation::FallThrough | Operation::Jump => {
                self.go(i64::from(i.immediate), i.count, self.at);
            }
            Operation::Jal => {
                self.link(i);
                self.go(i64::from(i.immediate), i.count, self.at);
            }
            Operation::Jalr => {
                if !matches!(i.rs1, 1 | 5 | 7) {
                    self.leave_if_active(hart!(landing_pads));
                }
                let base = self.get(i.rs1, None);
                self.a.memory(Quad, op::LEA, RCX, at(base, i.immediate));
                self.a.immediate(Quad, digit::AND, RCX, -2);
                self.link(i);
                self.a.registers(Quad, op::MOV, R15, RCX);
                self.account(i.count);
                self.find_target();
            }
            Operation::Auipc => {
                let Some(offset) = i.immediate.checked_add(i32::from(i.offset)) else {
                    return false;
                };
                self.a.memory(Quad, op::LEA, RAX, at(R15, offset));
                self.put(i.rd);
            }
            Operation::Beq | Operation::Beqz => self.branch(i, c::EQUAL),
            Operation::Bne | Operation::Bnez => self.branch(i, c::NOT_EQUAL),
            Operation::Blt => self.branch(i, c::LESS),
            Operation::Bge => self.branch(i, c::GREATER_EQUAL),
            Operation::Bltu => self.branch(i, c::BELOW),
            Operation::Bgeu => self.branch(i, c::ABOVE_EQUAL),
            Operation::Lb | Operation::Lbu => self.load(i, 1),
            Operation::Lh | Operation::Lhu => self.load(i, 2),
            Operation::Lw | Operation::Lwu => self.load(i, 4),
            Operation::Ld => self.load(i, 8),
            Operation::Sb => self.store(i, 1),
            Operation::Sh => self.store(i, 2),
            Operation::Sw => self.store(i, 4),
            Operation::Sd => self.store(i, 8),
            Operation::AmoW => return self.atomic(i, Double),
            Operation::AmoD => return self.atomic(i, Quad),
            Operation::Nop => {}
            Operation::ShadowStack => {
                self.leave_if_active(hart!(shadow_stacks));
                if i.rd != DISCARD {
                    self.a.registers(Double, op::XOR, RAX, RAX);
                    self.put(i.rd);
                }
            }
            Operation::Fence if self.has_room(|costs| costs.fence) => {
                if self.costs.is_some() {
                    self.store_buffer();
                }
                self.cost(|costs| costs.fence);
            }
            _ => return self.arithmetic(i),
        }
        true
    }
}
