//! Random programs of one to three instructions, biased to what a trap handler has to decode.

use riscv::csr::number::{
    CYCLE, INSTRET, SATP, SCAUSE, SCOUNTEREN, SCOUNTOVF, SENVCFG, SEPC, SIE, SIP, SIREG, SISELECT,
    SSCRATCH, SSTATUS, STIMECMP, STOPEI, STOPI, STVAL, STVEC, TIME,
};

use crate::instruction::{self, ACCESSES, PRIVILEGED};
use crate::random::Random;
use crate::sbi;
use riscv::instruction::SYSTEM;

/// The most instructions in a program.
pub const LONGEST: usize = 3;

/// A program: parcels of 16 bits, and whether it may go on for ever (then it is given a limit).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    parcels: [u16; 2 * LONGEST],
    length: usize,
    /// It waits, jumps or calls: without a limit it might not end.
    pub may_go_on: bool,
    /// It calls the environment.
    pub calls: bool,
}

impl Program {
    /// The parcels.
    #[must_use]
    pub fn parcels(&self) -> &[u16] {
        self.parcels.get(..self.length).unwrap_or(&self.parcels)
    }

    fn push(&mut self, word: u32) {
        let (parcels, count) = instruction::parcels(word);
        for parcel in parcels.into_iter().take(count) {
            if let Some(slot) = self.parcels.get_mut(self.length) {
                *slot = parcel;
                self.length += 1;
            }
        }
    }
}

/// Registers and memory that a program must leave alone, so that its runner gets the hart back.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Where the program's first instruction will lie.
    pub pc: u64,
    /// The runner's own code, to which no jump may lead.
    pub forbidden: (u64, u64),
    /// True if hypervisor registers and instructions work here: then they are left out, as this is the
    /// computer itself and nobody restores them.
    pub has_hypervisor_extension: bool,
}

/// A program for registers that hold `registers`.
pub fn program(random: &mut Random, registers: &[u64; 32], limits: &Limits) -> Program {
    let mut program = Program {
        parcels: [0; 2 * LONGEST],
        length: 0,
        may_go_on: false,
        calls: false,
    };
    // Register contents are known before the first instruction only, so what has to be judged by them
    // stands alone; longer programs are made of what is harmless with any.
    let length = if random.one_in(4) {
        2 + random.below(LONGEST as u64 - 1)
    } else {
        1
    };
    if length > 1 {
        for _ in 0..length {
            program.push(memory_access(random));
        }
        return program;
    }
    for _ in 0..64 {
        let word = candidate(random);
        if is_harmless(word, registers, limits) {
            program.push(word);
            program.may_go_on = may_go_on(word);
            program.calls = word == instruction::ECALL;
            return program;
        }
    }
    program.push(memory_access(random));
    program
}

/// The next instruction to consider.
fn candidate(random: &mut Random) -> u32 {
    let word = match random.below(10) {
        0..3 => system(random),
        3..5 => memory_access(random),
        5 => PRIVILEGED
            .get(random.below(PRIVILEGED.len() as u64) as usize)
            .map_or(0, |entry| entry.1),
        6 => instruction::ECALL,
        7 => (random.next() as u32) | 3,
        8 => {
            let half = random.next() as u32 & 0xffff;
            if half & 3 == 3 { half & !2 } else { half }
        }
        _ => (random.next() as u32) << 7 | major_opcode(random),
    };
    // Near misses of valid encodings.
    if random.one_in(8) {
        word ^ 1 << random.below(32)
    } else {
        word
    }
}

fn major_opcode(random: &mut Random) -> u32 {
    random.pick(&[
        0x03, 0x07, 0x0f, 0x13, 0x17, 0x1b, 0x23, 0x27, 0x2f, 0x33, 0x37, 0x43, 0x53, 0x63, 0x67,
        0x6f, 0x73,
    ])
}

/// A CSR instruction, or anything else under SYSTEM.
fn system(random: &mut Random) -> u32 {
    let number = match random.below(4) {
        0 => random.below(4096) as u32,
        1 => u32::from(random.pick(&[
            SSTATUS, SIE, STVEC, SCOUNTEREN, SENVCFG, SSCRATCH, SEPC, SCAUSE, STVAL, SIP, STIMECMP,
            SISELECT, SIREG, STOPEI, SATP, CYCLE, TIME, INSTRET, STOPI, SCOUNTOVF,
        ])),
        2 => 0x600 + random.below(0x100) as u32,
        _ => 0x200 + random.below(0x100) as u32,
    };
    number << 20 | (random.next() as u32 & 0xf_ff80) | SYSTEM
}

/// A load, store, AMO, LR or SC by a register that holds an address.
fn memory_access(random: &mut Random) -> u32 {
    let word = ACCESSES
        .get(random.below(ACCESSES.len() as u64) as usize)
        .map_or(0x13, |access| access.1);
    let base = random.below(32) as u32;
    let data = random.below(32) as u32;
    // Loads have rd at bit 7, the others rs2 at bit 20; AMOs both.
    match word & 0x7f {
        0x03 | 0x07 => {
            word & !(0x1f << 15 | 0x1f << 7)
                | base << 15
                | data << 7
                | (random.next() as u32 & 0xff) << 20
        }
        0x2f => {
            word & !(0x1f << 15 | 0x1f << 7)
                | base << 15
                | data << 7
                | (random.next() as u32 & 3) << 25
        }
        _ => {
            word & !(0x1f << 15 | 0x1f << 20 | 0x1f << 7)
                | base << 15
                | data << 20
                | (random.next() as u32 & 0x1f) << 7
        }
    }
}

/// Tests whether it may not end by itself: jumps, branches, waits, returns and calls.
fn may_go_on(word: u32) -> bool {
    if instruction::is_compressed(word) {
        let (quadrant, function) = (word & 3, word >> 13 & 7);
        // C.J, C.BEQZ, C.BNEZ; C.JR and C.JALR.
        return quadrant == 1 && function >= 5 || quadrant == 2 && function == 4;
    }
    match word & 0x7f {
        0x63 | 0x67 | 0x6f => true,
        SYSTEM => word >> 12 & 7 == 0,
        _ => false,
    }
}

/// Tests whether the runner gets the hart back whatever the instruction does with these registers.
fn is_harmless(word: u32, registers: &[u64; 32], limits: &Limits) -> bool {
    let register = |number: u32| registers.get(number as usize & 31).copied().unwrap_or(0);
    let rs1 = word >> 15 & 31;
    let base = if rs1 == 0 { 0 } else { register(rs1) };
    let is_forbidden = |target: u64| target >= limits.forbidden.0 && target < limits.forbidden.1;
    if instruction::is_compressed(word) {
        let is_jump_by_register = word & 3 == 2 && word >> 13 & 7 == 4 && word >> 2 & 31 == 0;
        return !(is_jump_by_register && is_forbidden(register(word >> 7 & 31) & !1));
    }
    match word & 0x7f {
        0x67 => !is_forbidden(base.wrapping_add((word.cast_signed() >> 20) as i64 as u64) & !1),
        0x6f => !is_forbidden(limits.pc.wrapping_add(jump_offset(word))),
        // CBO.INVAL may drop what the runner has just written (Zicbom).
        0x0f => !(word >> 12 & 7 == 2 && word >> 20 == 0),
        SYSTEM => is_harmless_system(word, rs1, base, registers, limits),
        _ => true,
    }
}

fn is_harmless_system(
    word: u32,
    rs1: u32,
    base: u64,
    registers: &[u64; 32],
    limits: &Limits,
) -> bool {
    let (function, number) = (word >> 12 & 7, word >> 20);
    match function {
        0 if word == instruction::ECALL => {
            !sbi::ends_run(registers[17], registers[16], registers[10])
        }
        // HFENCE, HINVAL: harmless. Hypervisor loads and stores (function 4) reach memory unprotected.
        0 => true,
        4 => !limits.has_hypervisor_extension,
        _ => {
            let writes = function & 3 == 1 || rs1 != 0;
            if !writes {
                return true;
            }
            if limits.has_hypervisor_extension && number >> 8 & 3 == 2 {
                return false;
            }
            if number != u32::from(SATP) {
                return true;
            }
            // Only a mode that is off or reserved leaves the code where it is: 8, 9, 10 are Sv39, 48, 57.
            let value = if function & 4 != 0 {
                u64::from(rs1)
            } else {
                base
            };
            function & 3 == 1 && !(8..=10).contains(&(value >> 60))
        }
    }
}

/// The offset of a JAL.
fn jump_offset(word: u32) -> u64 {
    let sign = (word.cast_signed() >> 31) as i64 as u64;
    sign << 20
        | u64::from(word >> 12 & 0xff) << 12
        | u64::from(word >> 20 & 1) << 11
        | u64::from(word >> 21 & 0x3ff) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        pc: 0x8030_2800,
        forbidden: (0x8030_0000, 0x8030_2000),
        has_hypervisor_extension: false,
    };

    #[test]
    fn the_same_seed_makes_the_same_programs() {
        let registers = core::array::from_fn(|index| index as u64 * 0x1000);
        let make = |seed| {
            let mut random = Random::new(seed);
            (0..1000)
                .map(|_| program(&mut random, &registers, &LIMITS))
                .collect::<Vec<_>>()
        };
        assert_eq!(make(7), make(7));
        assert_ne!(make(7), make(8));
    }

    #[test]
    fn jumps_into_the_runner_are_refused() {
        let mut registers = [0u64; 32];
        registers[5] = 0x8030_1000;
        let to_start = instruction::jump(0x8030_0000u64.wrapping_sub(LIMITS.pc));
        assert_eq!(
            jump_offset(to_start),
            0x8030_0000u64.wrapping_sub(LIMITS.pc)
        );
        assert!(!is_harmless(to_start, &registers, &LIMITS));
        // jalr x0, 0(x5); c.jr x5; jalr x0, -4(x6) with x6 = the first byte after.
        assert!(!is_harmless(5 << 15 | 0x67, &registers, &LIMITS));
        assert!(!is_harmless(0x8002 | 5 << 7, &registers, &LIMITS));
        registers[6] = 0x8030_2000;
        assert!(!is_harmless(0xffc3_0067, &registers, &LIMITS));
        assert!(is_harmless(0x0003_0067, &registers, &LIMITS));
    }

    #[test]
    fn translation_is_only_ever_turned_off() {
        let mut registers = [0u64; 32];
        registers[10] = 8 << 60;
        let write = instruction::csr_write(SATP, 10);
        assert!(!is_harmless(write, &registers, &LIMITS));
        registers[10] = 3 << 60;
        assert!(is_harmless(write, &registers, &LIMITS));
        // csrrs and csrrc on it change what is there, csrrs with x0 reads.
        assert!(!is_harmless(0x1805_2073, &registers, &LIMITS));
        assert!(is_harmless(0x1800_2573, &registers, &LIMITS));
    }

    #[test]
    fn calls_that_end_the_run_are_refused() {
        let mut registers = [0u64; 32];
        registers[17] = riscv::sbi::SRST;
        assert!(!is_harmless(instruction::ECALL, &registers, &LIMITS));
        registers[10] = 77;
        assert!(is_harmless(instruction::ECALL, &registers, &LIMITS));
    }

    #[test]
    fn what_may_go_on_is_told() {
        assert!(
            may_go_on(instruction::WFI) && may_go_on(instruction::jump(0)) && may_go_on(0xa001)
        );
        assert!(!may_go_on(0x0005_3583) && !may_go_on(0x0001));
    }
}
