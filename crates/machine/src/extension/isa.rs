//! Which instruction set a hart has.

use serde::{Deserialize, Serialize};

/// What the harts are, as the device tree tells it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isa {
    /// `riscv,isa-base`, such as `rv64i`.
    pub base: String,
    /// `riscv,isa-extensions`, in the order in which they are to be listed; single-letter ones
    /// first, in canonical order.
    pub extensions: Vec<String>,
    /// The largest translation mode, such as `riscv,sv48`.
    pub mmu: String,
    /// Size of the blocks of Zicbom, Zicbop and Zicboz in bytes; zero leaves the properties out.
    pub cache_block: u32,
}

impl Isa {
    /// The single string that `riscv,isa` holds: the base, the letters, then the rest.
    #[must_use]
    pub fn string(&self) -> String {
        let mut text = self.base.trim_end_matches('i').to_owned();
        for extension in &self.extensions {
            if extension.len() > 1 {
                text.push('_');
            }
            text.push_str(extension);
        }
        text
    }
}
