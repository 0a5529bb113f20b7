//! The hypervisor's code, and which places of it a run has reached. No instrument is in the hypervisor: the machine keeps what it has decoded.

use machine::Machine;
use machine::instruction::{DISCARD, Instruction, Operation, decode, expand};
use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Section with the code.
const TEXT: &str = ".text";

/// Reason why a file's places cannot be told.
#[derive(Debug, thiserror::Error)]
pub enum CodeError {
    /// The file is no program.
    #[error("not a 64-bit little-endian ELF file: {0}")]
    Elf(#[from] object::Error),
    /// Nothing says where functions begin.
    #[error("the hypervisor's file has no section {TEXT} with symbols of functions")]
    NoFunctions,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Symbol, as in the file.
    pub symbol: String,
    /// Addresses.
    pub range: Range<u64>,
}

/// A place that jumps lead to: a function's first instruction, the target of a jump or branch, or the instruction behind a call. What is only
/// reached by going on from the instruction in front is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Address of the instruction.
    pub start: u64,
    /// Number of the function.
    pub function: usize,
}

/// The code of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// Functions in the order of their addresses.
    pub functions: Vec<Function>,
    /// Places in the order of their addresses.
    pub places: Vec<Place>,
    /// Targets of conditional branches, as numbers of places: each is a branch that can be taken.
    pub branches: Vec<usize>,
}

/// Places of a [`Code`] that were reached by a jump.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Covered(BTreeSet<u32>);

impl Code {
    /// Reads a program's places.
    ///
    /// # Errors
    /// [`CodeError`].
    pub fn read(file: &[u8]) -> Result<Self, CodeError> {
        let elf = ElfFile::<FileHeader64<LittleEndian>>::parse(file)?;
        let text = elf.section_by_name(TEXT).ok_or(CodeError::NoFunctions)?;
        // Functions whose code is the same may share it: one name stands for all.
        let functions: BTreeMap<u64, Function> = elf
            .symbols()
            .filter(|symbol| symbol.section_index() == Some(text.index()))
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter_map(|symbol| {
                let start = symbol.address();
                let function = Function {
                    symbol: String::from(symbol.name().ok()?),
                    range: start..start.checked_add(symbol.size())?,
                };
                Some((start, function))
            })
            .collect();
        if functions.is_empty() {
            return Err(CodeError::NoFunctions);
        }
        Ok(Self::of(
            functions.into_values().collect(),
            text.address(),
            text.data()?,
        ))
    }

    /// The places of functions in `text`, which stands at `base`.
    fn of(functions: Vec<Function>, base: u64, text: &[u8]) -> Self {
        let mut starts = BTreeSet::new();
        let mut branches = Vec::new();
        let mut instructions = BTreeMap::new();
        for (number, function) in functions.iter().enumerate() {
            starts.insert(function.range.start);
            let mut at = function.range.start;
            while at < function.range.end
                && let Some((instruction, length)) = instruction(base, text, at)
            {
                let operation = instruction.operation;
                if operation != Operation::Illegal {
                    instructions.insert(at, number);
                }
                if operation.is_relative() {
                    let target = at.wrapping_add_signed(instruction.immediate.into());
                    starts.insert(target);
                    if !operation.ends_block() {
                        branches.push(target);
                    }
                }
                let is_call = operation == Operation::Jal
                    || operation == Operation::Jalr && instruction.rd != DISCARD;
                at += length;
                if is_call {
                    starts.insert(at);
                }
            }
        }
        let places = starts.into_iter().filter_map(|start| {
            let function = *instructions.get(&start)?;
            Some(Place { start, function })
        });
        let places: Vec<Place> = places.collect();
        let number = |start: u64| {
            places
                .binary_search_by_key(&start, |place| place.start)
                .ok()
        };
        let branches = branches.into_iter().filter_map(number).collect();
        Self {
            functions,
            places,
            branches,
        }
    }

    /// Places that a machine has reached by a jump: decoded blocks begin there. Places that the machine has had to forget in between are left out,
    /// which it has no cause to in the runs of the farm; where instructions have costs, a block also begins at each line of the cache.
    pub fn covered(&self, machine: &Machine) -> Covered {
        let code = &machine.system().memory.code;
        let numbers = (0..).zip(&self.places);
        let reached = numbers.filter(|(_, place)| code.find(place.start).is_some());
        Covered(reached.map(|(number, _)| number).collect())
    }

    /// How many conditional branches were taken: their targets are reached.
    pub fn branches_taken(&self, covered: &Covered) -> usize {
        let targets = self.branches.iter();
        targets.filter(|target| covered.has(**target)).count()
    }
}

/// The instruction at an address, with its length.
fn instruction(base: u64, text: &[u8], at: u64) -> Option<(Instruction, u64)> {
    let bytes = text.get(usize::try_from(at.checked_sub(base)?).ok()?..)?;
    let low = u16::from_le_bytes(*bytes.first_chunk()?);
    if low & 3 == 3 {
        let word = u32::from_le_bytes(*bytes.first_chunk()?);
        return Some((decode(word, 4), 4));
    }
    let decoded = expand(low).map(|word| decode(word, 2));
    Some((decoded.unwrap_or(Instruction::bare(Operation::Illegal)), 2))
}

impl Covered {
    /// Tests whether the place with a number was reached.
    pub fn has(&self, place: usize) -> bool {
        u32::try_from(place).is_ok_and(|place| self.0.contains(&place))
    }

    /// Number of places.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Adds what another run has reached. Returns how many places are new.
    pub fn add(&mut self, other: &Self) -> usize {
        let before = self.count();
        self.0.extend(&other.0);
        self.count() - before
    }

    /// How many places another one lacks.
    pub fn beyond(&self, other: &Self) -> usize {
        self.0.difference(&other.0).count()
    }

    /// Places with these numbers, for tests.
    #[cfg(test)]
    pub(crate) fn of(places: &[u32]) -> Self {
        Self(places.iter().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOP: u32 = 0x13;
    const RET: u32 = 0x8067;
    /// beq x0, x0, +12
    const BRANCH: u32 = 0x0000_0663;
    /// jal ra, -12
    const CALL: u32 = 0xff5f_f0ef;
    const NOTHING: u32 = 0;

    fn code(words: &[u32], functions: &[Range<u64>]) -> Code {
        let text: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let function = |range: &Range<u64>| Function {
            symbol: String::from("f"),
            range: range.clone(),
        };
        Code::of(functions.iter().map(function).collect(), 0x1000, &text)
    }

    /// Places are the functions' beginnings, targets, and what stands behind a call. What follows a branch is none, nor are zeros.
    #[test]
    fn places_are_where_jumps_lead() {
        let words = [NOP, BRANCH, NOP, NOP, CALL, RET, NOTHING, NOP];
        let code = code(&words, &[0x1000..0x1018, 0x101c..0x1020]);
        let starts: Vec<u64> = code
            .places
            .iter()
            .map(|place| place.start - 0x1000)
            .collect();
        assert_eq!(starts, [0, 4, 0x10, 0x14, 0x1c]);
        let functions: Vec<usize> = code.places.iter().map(|place| place.function).collect();
        assert_eq!(functions, [0, 0, 0, 0, 1]);
        assert_eq!(code.branches, [2]);
        assert_eq!(code.branches_taken(&Covered::of(&[0, 1, 3])), 0);
        assert_eq!(code.branches_taken(&Covered::of(&[2])), 1);
    }

    /// c.nop, c.jalr a0, c.nop, and a NOP that spans two words.
    #[test]
    fn halves_of_words_are_instructions() {
        let text = std::slice::from_ref(&(0x1000..0x100c));
        let code = code(&[0x9502_0001, 0x0013_0001, 0x0000_0000], text);
        let starts: Vec<u64> = code.places.iter().map(|place| place.start).collect();
        assert_eq!(starts, [0x1000, 0x1004]);
    }

    #[test]
    fn places_add_up() {
        let mut all = Covered::of(&[1, 2]);
        let other = Covered::of(&[2, 3, 4]);
        assert_eq!(other.beyond(&all), 2);
        assert_eq!((all.add(&other), all.add(&other), all.count()), (2, 0, 4));
    }
}
