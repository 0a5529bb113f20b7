//! Words that a pause loop reads, for a sink of events.

use crate::base::{Access, Cause, Exception, Memory};
use crate::csr::field::envcfg;
use crate::hart::{Hart, Privilege};
use crate::instruction::{Instruction, Operation, decode, expand};
use crate::memory::{PhysicalMemory, walk};
use crate::system::System;
use crate::trace::locks::Holders;
use crate::trace::{Event, Happening, Place};
use crate::translation::WalkTrace;

/// The encoding of PAUSE.
const PAUSE: u64 = riscv::instruction::PAUSE as u64;
/// Instructions that are looked at behind a PAUSE.
const MAX_LOOP_INSTRUCTIONS: usize = 12;

impl Hart {
    /// The physical address of an address, if it has one for accesses of this kind, without a trace of having looked: a page that
    /// has never been accessed is not found where the walk would set its accessed bit.
    pub(crate) fn place_unseen(
        &self,
        memory: &mut PhysicalMemory,
        access: Access,
        address: u64,
    ) -> Option<u64> {
        let mut csrs = self.csrs.clone();
        csrs.menvcfg &= !envcfg::ADUE;
        csrs.henvcfg &= !envcfg::ADUE;
        let view = match access {
            Access::Fetch => self.fetch_view(),
            _ => self.data_view(),
        };
        let mut trace = WalkTrace::default();
        let found = walk(&csrs, memory, &mut trace, view, access, address).ok()?;
        memory.contains(found.physical, 1).then_some(found.physical)
    }

    /// Tells whoever listens of a PAUSE with V = 0 at `pc`, `count` instructions into its block, and of the word that its loop looks
    /// at, if that is asked for.
    #[cold]
    pub(super) fn note_pause(&mut self, system: &mut System, pc: u64, count: u8) {
        let mode = self.mode();
        if mode.virtualized {
            return;
        }
        let place = Place::Hart(self.id);
        let before = u64::from(count) - 1;
        let (cycles, retired) = (self.cycles + before, self.retired + before);
        if let Some(events) = &mut self.events {
            events.push(Event {
                place,
                cycles,
                retired,
                happening: Happening::Pause { mode, pc },
            });
        }
        if system.tells_bare_locks && mode.privilege == Privilege::Supervisor {
            self.note_loop(system, pc);
        }
    }

    /// Tells whoever listens of the word to which a ticket is about to be added, if nobody has told of it before, and from then on what
    /// becomes of it.
    #[cold]
    pub(super) fn note_ticket(&mut self, system: &mut System, physical: u64) {
        let mode = self.mode();
        if !mode.virtualized
            && mode.privilege == Privilege::Supervisor
            && self.events.is_some()
            && system.memory.observe(physical, Holders::WORD_BYTES)
        {
            self.note_word(system, physical, Holders::WORD_BYTES, false);
        }
    }

    /// Tells whoever listens of a pause loop that exits: which word it looks at, if its code tells, and from now on what becomes of
    /// that word.
    pub(super) fn note_pause_loop(&mut self, system: &mut System, exception: Exception) {
        let is_pause = exception.cause == Cause::VirtualInstruction && exception.value == PAUSE;
        if self.events.is_none() || !is_pause {
            return;
        }
        self.note_loop(system, self.pc);
    }

    /// The same of the loop around the PAUSE at `pc`.
    fn note_loop(&mut self, system: &mut System, pc: u64) {
        let word = self.word_of_pause_loop(&mut system.memory, pc);
        self.note(|hart| Happening::PauseLoop {
            mode: hart.mode(),
            pc,
            physical: word.map(|(physical, _)| physical),
        });
        if let Some((physical, size)) = word
            && system.memory.observe(physical, size)
        {
            self.note_word(system, physical, size, false);
        }
    }

    /// Follows the lock at the address in hlockholder from now on, for who asks who holds it.
    pub(crate) fn watch_lock(&mut self, system: &mut System) {
        let physical = self.extension.lock;
        // Whoever listens hears what the word holds, as at the first wait for it.
        if system.watch_lock(physical) {
            self.note_word(system, physical, Holders::WORD_BYTES, false);
        }
        system.holders.wait(physical, self.vmid());
    }

    /// The word that the loop around the PAUSE at `pc` loads: its physical address and its size. `None` where the way from
    /// the PAUSE to the next branch has not exactly one load, or one whose address is not known any more.
    fn word_of_pause_loop(&self, memory: &mut PhysicalMemory, pc: u64) -> Option<(u64, u64)> {
        let mut at = pc.wrapping_add(4);
        // Registers that an AUIPC on the way has set, and those that anything else has.
        let mut set: Option<(u8, u64)> = None;
        let mut written = 0_u64;
        let mut found = None;
        for _ in 0..MAX_LOOP_INSTRUCTIONS {
            let (instruction, length) = self.instruction_unseen(memory, at)?;
            let Instruction { rd, rs1, .. } = instruction;
            match instruction.operation {
                Operation::Jump => {
                    at = at.wrapping_add_signed(i64::from(instruction.immediate));
                    continue;
                }
                Operation::Beq
                | Operation::Bne
                | Operation::Blt
                | Operation::Bge
                | Operation::Bltu
                | Operation::Bgeu
                | Operation::Beqz
                | Operation::Bnez => break,
                Operation::Auipc => {
                    let value = at.wrapping_add_signed(i64::from(instruction.immediate));
                    set = Some((rd, value));
                }
                Operation::Lw | Operation::Lwu | Operation::Ld => {
                    if found.is_some() {
                        return None;
                    }
                    let base = match set {
                        Some((register, value)) if register == rs1 => value,
                        _ if written >> rs1 & 1 != 0 => return None,
                        _ => *self.x.get(usize::from(rs1))?,
                    };
                    let size = match instruction.operation {
                        Operation::Ld => 8,
                        _ => 4,
                    };
                    found = Some((
                        base.wrapping_add_signed(i64::from(instruction.immediate)),
                        size,
                    ));
                    // The next turn's address is another one.
                    if rd == rs1 && set.is_none_or(|(register, _)| register != rs1) {
                        return None;
                    }
                }
                operation if operation.ends_block() => return None,
                _ => {
                    if set.is_some_and(|(register, _)| register == rd) {
                        set = None;
                    }
                    written |= 1 << rd;
                }
            }
            at = at.wrapping_add(length);
        }
        let (address, size) = found?;
        if !address.is_multiple_of(size) {
            return None;
        }
        let physical = self.place_unseen(memory, Access::Load, address)?;
        Some((physical, size))
    }

    /// The instruction at an address as a fetch would give it, and its length.
    fn instruction_unseen(
        &self,
        memory: &mut PhysicalMemory,
        address: u64,
    ) -> Option<(Instruction, u64)> {
        let mut halfword = |address| {
            let physical = self.place_unseen(memory, Access::Fetch, address)?;
            memory.ram.read::<u16>(physical)
        };
        let low = halfword(address)?;
        if low & 3 != 3 {
            return Some((decode(expand(low)?, 2), 2));
        }
        let high = halfword(address.wrapping_add(2))?;
        let raw = u32::from(low) | u32::from(high) << 16;
        Some((decode(raw, 4), 4))
    }
}
