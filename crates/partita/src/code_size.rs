//! Bytes of a program's code by crate and module, from the symbols of its ELF file.

mod owner;

use object::elf::FileHeader64;
use object::read::elf::ElfFile;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};
pub(crate) use owner::Owner;
use serde::Serialize;
use std::collections::BTreeMap;

/// Section of an ELF file with the code.
const CODE_SECTION: &str = ".text";
/// Row of the bytes that no symbol covers.
const UNNAMED: &str = "(padding and code without a symbol)";
/// Row of functions whose symbols name no crate: assembly and functions of C.
const UNMANGLED: &str = "(symbols without a crate)";

/// Bytes of code, by crate, module and function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeSize {
    /// Bytes of the section `.text`.
    pub text: u64,
    /// Crates, the largest first.
    pub crates: Vec<CrateSize>,
    /// Functions, the largest first.
    pub functions: Vec<FunctionSize>,
}

/// Code of one crate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CrateSize {
    /// Name of the crate.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Its modules, the largest first.
    pub modules: Vec<ModuleSize>,
}

/// Code of one module.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModuleSize {
    /// Path of the module with its crate.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// Code of one function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FunctionSize {
    /// Path of the function, with the types of its type parameters where the symbol has them.
    pub name: String,
    /// Bytes.
    pub bytes: u64,
}

/// Reasons why a file has no code that could be counted.
#[derive(Debug, thiserror::Error)]
pub enum CodeSizeError {
    /// The file is damaged or of another kind.
    #[error("not a 64-bit little-endian ELF file: {0}")]
    Elf(#[from] object::Error),
    /// The code cannot be found.
    #[error("the file has no section {CODE_SECTION}")]
    NoCode,
    /// The file was stripped.
    #[error("the file has no symbols of functions: it was stripped")]
    NoSymbols,
}

impl CodeSize {
    /// Counts the code of an ELF file. Modules below `depth` names of a path count as their parent; the crate is the first name.
    ///
    /// # Errors
    /// See [`CodeSizeError`].
    pub fn read(file: &[u8], depth: usize) -> Result<Self, CodeSizeError> {
        let elf = ElfFile::<FileHeader64<LittleEndian>>::parse(file)?;
        let section = (elf.section_by_name(CODE_SECTION)).ok_or(CodeSizeError::NoCode)?;
        // Functions whose code is the same may share it: one of them counts.
        let functions: BTreeMap<u64, (u64, &str)> = elf
            .symbols()
            .filter(|symbol| symbol.section_index() == Some(section.index()))
            .filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0)
            .filter_map(|symbol| Some((symbol.address(), (symbol.size(), symbol.name().ok()?))))
            .collect();
        if functions.is_empty() {
            return Err(CodeSizeError::NoSymbols);
        }
        Ok(Self::sum(section.size(), functions.values(), depth))
    }

    fn sum<'a>(
        text: u64,
        functions: impl Iterator<Item = &'a (u64, &'a str)>,
        depth: usize,
    ) -> Self {
        let mut modules: BTreeMap<(String, String), u64> = BTreeMap::new();
        let mut largest = Vec::new();
        let mut named = 0;
        for &(bytes, symbol) in functions {
            let name = format!("{:#}", rustc_demangle::demangle(symbol));
            let (owner, module) = match Owner::of(&name) {
                Some(owner) => (owner.crate_name().to_owned(), owner.module(depth)),
                None => (UNMANGLED.to_owned(), UNMANGLED.to_owned()),
            };
            *modules.entry((owner, module)).or_default() += bytes;
            named += bytes;
            largest.push(FunctionSize { name, bytes });
        }
        let rest = text.saturating_sub(named);
        if rest > 0 {
            modules.insert((UNNAMED.to_owned(), UNNAMED.to_owned()), rest);
        }
        largest.sort_by(|one, other| (other.bytes, &one.name).cmp(&(one.bytes, &other.name)));
        Self {
            text,
            crates: by_crate(modules),
            functions: largest,
        }
    }
}

fn by_crate(modules: BTreeMap<(String, String), u64>) -> Vec<CrateSize> {
    let mut crates: Vec<CrateSize> = Vec::new();
    for ((owner, name), bytes) in modules {
        let module = ModuleSize { name, bytes };
        match crates.last_mut() {
            Some(last) if last.name == owner => {
                last.bytes += bytes;
                last.modules.push(module);
            }
            _ => crates.push(CrateSize {
                name: owner,
                bytes,
                modules: vec![module],
            }),
        }
    }
    // Both sorts keep the order of names where the bytes are equal.
    for owner in &mut crates {
        owner
            .modules
            .sort_by_key(|module| std::cmp::Reverse(module.bytes));
    }
    crates.sort_by_key(|owner| std::cmp::Reverse(owner.bytes));
    crates
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(text: u64, functions: &[(u64, &str)]) -> CodeSize {
        CodeSize::sum(text, functions.iter(), 2)
    }

    #[test]
    fn code_is_counted_by_crate_and_module() {
        let size = sum(
            1000,
            &[
                (
                    100,
                    "_ZN10hypervisor3run5exits3sbi4call17h0123456789abcdefE",
                ),
                (200, "_ZN10hypervisor3run3run17h0123456789abcdefE"),
                (50, "_ZN10hypervisor2vm2Vm3new17h0123456789abcdefE"),
                (400, "_ZN4core5slice4sort4sort17h0123456789abcdefE"),
                (30, "memcpy"),
            ],
        );
        let rows: Vec<_> = (size.crates.iter())
            .map(|owner| (owner.name.as_str(), owner.bytes))
            .collect();
        assert_eq!(
            rows,
            [
                ("core", 400),
                ("hypervisor", 350),
                (UNNAMED, 220),
                (UNMANGLED, 30)
            ]
        );
        let modules: Vec<_> = (size.crates[1].modules.iter())
            .map(|module| (module.name.as_str(), module.bytes))
            .collect();
        assert_eq!(modules, [("hypervisor::run", 300), ("hypervisor::vm", 50)]);
    }

    #[test]
    fn rows_add_up_to_the_section() {
        let size = sum(500, &[(100, "_ZN1a1b17h0123456789abcdefE"), (80, "memcpy")]);
        let crates: u64 = size.crates.iter().map(|owner| owner.bytes).sum();
        let modules = size.crates.iter().flat_map(|owner| &owner.modules);
        assert_eq!(crates, size.text);
        assert_eq!(modules.map(|module| module.bytes).sum::<u64>(), size.text);
    }

    #[test]
    fn functions_are_listed_largest_first() {
        let size = sum(10, &[(3, "one"), (7, "two")]);
        let names = size.functions.iter().map(|function| function.name.as_str());
        assert_eq!(names.collect::<Vec<_>>(), ["two", "one"]);
    }

    #[test]
    fn foreign_and_damaged_files_are_refused() {
        for file in [&b""[..], b"no ELF file", b"\x7fELF"] {
            assert!(matches!(
                CodeSize::read(file, 2),
                Err(CodeSizeError::Elf(_))
            ));
        }
        let command = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        let cut = &command[..command.len() / 2];
        assert!(CodeSize::read(cut, 2).is_err());
    }
}
