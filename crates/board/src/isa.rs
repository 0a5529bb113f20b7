//! Board extensions that a guest may use.
//!
//! An extension is offered where a vCPU really has it: VS-mode can use it, the state it adds is
//! saved with the vCPU, and the bit of `henvcfg` that admits it is one. An extension that is not in the
//! list below is not offered, so a new board's new extension is hidden until it is added here.

use alloc::string::String;
use alloc::vec::Vec;

use riscv::csr::environment;

/// Cache-block invalidation as it stands (`henvcfg`.CBIE = 11) and cleaning and flushing (CBCFE).
const CACHE_BLOCKS: u64 = environment::CBIE | environment::CBCFE;
/// `henvcfg`.CBZE: `cbo.zero`.
const ZERO_BLOCKS: u64 = environment::CBZE;
/// `henvcfg`.ADUE: hardware sets the accessed and dirty bits of VS-stage entries.
const ACCESSED_AND_DIRTY: u64 = environment::ADUE;
/// `henvcfg`.PMM = 10: pointer masking of 7 bits in VS-mode.
const POINTER_MASKING: u64 = 2 << environment::PMM_SHIFT;
/// `henvcfg`.PBMTE: page-based memory types in VS-stage entries.
const MEMORY_TYPES: u64 = environment::PBMTE;
/// `henvcfg`.STCE: `vstimecmp`.
const TIME_COMPARE: u64 = environment::STCE;

/// The V extension, which stands for all vector extensions where they are hidden.
pub const VECTORS: &str = "v";

/// Counters of events (Zihpm).
pub const COUNTERS: &str = "zihpm";
/// Accessed and dirty bits by page faults.
pub const SVADE: &str = "svade";
/// Accessed and dirty bits by hardware, where they are switched on.
pub const SVADU: &str = "svadu";
/// Pointer masking.
pub const SSNPM: &str = "ssnpm";

/// Landing pads.
pub const ZICFILP: &str = "zicfilp";
/// Shadow stacks.
pub const ZICFISS: &str = "zicfiss";
/// Double traps.
pub const SSDBLTRP: &str = "ssdbltrp";

/// Timers of the supervisor level.
pub const SSTC: &str = "sstc";

/// Every extension that may be offered, with the bits of `henvcfg` that it needs.
const OFFERED: &[(&str, u64)] = &[
    ("i", 0),
    ("m", 0),
    ("a", 0),
    ("f", 0),
    ("d", 0),
    ("c", 0),
    ("b", 0),
    ("zic64b", 0),
    ("zicbom", CACHE_BLOCKS),
    ("zicbop", 0),
    ("zicboz", ZERO_BLOCKS),
    ("ziccamoa", 0),
    ("ziccif", 0),
    ("zicclsm", 0),
    ("ziccrse", 0),
    (ZICFILP, environment::LPE),
    (ZICFISS, environment::SSE),
    ("zicntr", 0),
    ("zicond", 0),
    ("zicsr", 0),
    ("zifencei", 0),
    ("zihintntl", 0),
    ("zihintpause", 0),
    (COUNTERS, 0),
    ("zimop", 0),
    ("zmmul", 0),
    ("za64rs", 0),
    ("zaamo", 0),
    ("zabha", 0),
    ("zacas", 0),
    ("zalrsc", 0),
    ("zawrs", 0),
    ("zfa", 0),
    ("zfh", 0),
    ("zfhmin", 0),
    ("zca", 0),
    ("zcb", 0),
    ("zcd", 0),
    ("zcmop", 0),
    ("zba", 0),
    ("zbb", 0),
    ("zbc", 0),
    ("zbkb", 0),
    ("zbkc", 0),
    ("zbkx", 0),
    ("zbs", 0),
    ("zknd", 0),
    ("zkne", 0),
    ("zknh", 0),
    ("zksed", 0),
    ("zksh", 0),
    ("zkt", 0),
    (VECTORS, 0),
    ("zve32f", 0),
    ("zve32x", 0),
    ("zve64d", 0),
    ("zve64f", 0),
    ("zve64x", 0),
    ("zvfh", 0),
    ("zvfhmin", 0),
    ("zvbb", 0),
    ("zvbc", 0),
    ("zvkb", 0),
    ("zvkg", 0),
    ("zvkn", 0),
    ("zvknc", 0),
    ("zvkned", 0),
    ("zvkng", 0),
    ("zvknha", 0),
    ("zvknhb", 0),
    ("zvks", 0),
    ("zvksc", 0),
    ("zvksed", 0),
    ("zvksg", 0),
    ("zvksh", 0),
    ("zvkt", 0),
    ("zvl32b", 0),
    ("zvl64b", 0),
    ("zvl128b", 0),
    ("zvl256b", 0),
    ("zvl512b", 0),
    ("zvl1024b", 0),
    ("ssaia", 0),
    ("ssccptr", 0),
    ("sscofpmf", 0),
    ("sscounterenw", 0),
    (SSDBLTRP, environment::DTE),
    (SSNPM, POINTER_MASKING),
    (SSTC, TIME_COMPARE),
    ("sstvala", 0),
    ("sstvecd", 0),
    ("ssu64xl", 0),
    ("supm", POINTER_MASKING),
    (SVADE, 0),
    (SVADU, ACCESSED_AND_DIRTY),
    ("svinval", 0),
    ("svnapot", 0),
    ("svpbmt", MEMORY_TYPES),
    ("svvptc", 0),
];

fn requirement(name: &str) -> Option<u64> {
    OFFERED
        .iter()
        .find(|(offered, _)| *offered == name)
        .map(|&(_, bits)| bits)
}

/// The bits of `henvcfg` that the board's extensions call for. The hypervisor writes them, reads
/// back what the hart took (the field is WARL), and passes that to [`offered`].
pub fn environment_wanted<'a>(board: impl IntoIterator<Item = &'a str>) -> u64 {
    board
        .into_iter()
        .filter_map(requirement)
        .fold(0, |all, bits| all | bits)
}

/// Tests for the V extension, its subsets and the extensions that are built on it.
#[must_use]
pub fn needs_vectors(name: &str) -> bool {
    name == VECTORS || name.starts_with("zv")
}

/// Board's extensions that a guest may use, in the board's order, with `environment`
/// in `henvcfg`.
pub fn offered<'a>(board: impl IntoIterator<Item = &'a str>, environment: u64) -> Vec<&'a str> {
    board
        .into_iter()
        .filter(|name| requirement(name).is_some_and(|bits| environment & bits == bits))
        .collect()
}

/// The extensions of a `riscv,isa` string of older device trees: `rv64imafdch_zicsr_sstc` gives
/// `i`, `m`, …, `h`, `zicsr`, `sstc`. Nothing where it does not begin with `rv64`.
pub fn from_string(isa: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let Some(rest) = isa.strip_prefix("rv64") else {
        return names;
    };
    let mut parts = rest.split('_');
    if let Some(singles) = parts.next() {
        // A multi-letter name may follow the single letters without an underscore.
        let end = singles.find(['z', 's', 'x']).unwrap_or(singles.len());
        let (letters, tail) = singles.split_at_checked(end).unwrap_or((singles, ""));
        names.extend(letters.split_inclusive(|_: char| true));
        names.extend(Some(tail).filter(|tail| !tail.is_empty()));
    }
    names.extend(parts.filter(|part| !part.is_empty()));
    names
}

/// The `riscv,isa` string: the base, the single letters, then the others behind underscores.
pub fn string(base: &str, extensions: &[&str]) -> String {
    let mut text = String::from(base);
    for name in extensions
        .iter()
        .filter(|name| name.len() == 1 && !base.ends_with(**name))
    {
        text.push_str(name);
    }
    for name in extensions.iter().filter(|name| name.len() > 1) {
        text.push('_');
        text.push_str(name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::format;

    #[test]
    fn what_only_a_hypervisor_has_is_hidden() {
        let board = [
            "i", "h", "v", "smaia", "smnpm", "ssaia", "shtvala", "zihpm", "xvendor", "sstc",
        ];
        let guest = ["i", "v", "ssaia", "zihpm", "sstc"];
        assert_eq!(offered(board, u64::MAX), guest);
    }

    #[test]
    fn vector_extensions_go_together() {
        let named = ["v", "zvl256b", "zve64d", "zvfh", "zvkt"];
        assert!(named.into_iter().all(needs_vectors));
        assert_eq!(offered(named, 0), named);
        assert!(
            !["i", "zfh", "zvendor", "svadu"]
                .into_iter()
                .any(|name| { needs_vectors(name) && requirement(name).is_some() })
        );
    }

    #[test]
    fn extension_without_its_henvcfg_bit_is_hidden() {
        let board = ["i", "sstc", "svpbmt", "zicbom", "zicboz"];
        assert_eq!(offered(board, 0), ["i"]);
        let wanted = environment_wanted(board);
        assert_eq!(offered(board, wanted), board);
        // Sstc §2: STCE is bit 63; privileged architecture: PBMTE 62, CBZE 7, CBCFE 6, CBIE 5:4.
        assert_eq!(wanted, 1 << 63 | 1 << 62 | 0xf0);
        assert_eq!(
            offered(board, wanted & !(1 << 63)),
            ["i", "svpbmt", "zicbom", "zicboz"]
        );
        // Pointer masking: PMM = 10 ignores 7 bits.
        assert_eq!(environment_wanted(["ssnpm", "supm"]), 2 << 32);
        assert!(offered(["ssnpm", "supm"], 1 << 32).is_empty());
        // CFI: LPE is bit 2, SSE bit 3. Ssdbltrp: DTE is bit 59.
        let new = ["zicfilp", "zicfiss", "ssdbltrp"];
        assert_eq!(environment_wanted(new), 1 << 59 | 3 << 2);
        assert_eq!(offered(new, 1 << 3), ["zicfiss"]);
        // An implementation may offer CBIE = 01 (flush) alone, which is another contract.
        assert_eq!(
            offered(board, wanted & !(1 << 5)),
            ["i", "sstc", "svpbmt", "zicboz"]
        );
    }

    #[test]
    fn the_old_string_and_the_list_agree() {
        let names = ["i", "m", "a", "f", "d", "c", "zicsr", "zawrs", "sstc"];
        let text = string("rv64i", &names);
        assert_eq!(text, "rv64imafdc_zicsr_zawrs_sstc");
        assert_eq!(from_string(&text), names);
        assert_eq!(
            from_string("rv64imazicsr_sstc"),
            ["i", "m", "a", "zicsr", "sstc"]
        );
        assert!(from_string("rv32i").is_empty());
    }

    proptest! {
        #[test]
        fn any_string_is_taken_apart(text in ".{0,40}") {
            for name in from_string(&format!("rv64{text}")) {
                prop_assert!(!name.is_empty());
            }
        }
    }
}
