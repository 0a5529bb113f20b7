//! HTIF: how a bare program talks to its host through one doubleword of memory, `tohost`.
//!
//! The convention of the riscv-tests: an odd value ends the program with code `value >> 1`;
//! device 1, command 1 puts a character; an even value of device 0 is the address of eight
//! doublewords with a system call, of which `write` is honoured.

use serde::{Deserialize, Serialize};

use crate::base::Memory;
use crate::board::Elf;
use crate::memory::PhysicalMemory;

/// Number of the `write` system call.
const WRITE: u64 = 64;
/// Longest text taken at a time.
const LONGEST: u64 = 1 << 16;

/// The host's end of the conversation.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct HostInterface {
    to_host: Option<u64>,
    from_host: Option<u64>,
    /// Range of the signature.
    pub signature: Option<(u64, u64)>,
    /// Output of the program that has not been taken yet.
    pub output: Vec<u8>,
}

impl HostInterface {
    pub const fn new(program: &Elf) -> Self {
        Self {
            to_host: program.tohost,
            from_host: program.fromhost,
            signature: program.signature,
            output: Vec::new(),
        }
    }

    /// Looks at what the program wrote; gives its exit code once it has ended.
    pub fn serve(&mut self, memory: &mut PhysicalMemory) -> Option<u64> {
        let address = self.to_host?;
        let value = memory.ram.read::<u64>(address)?;
        if value == 0 {
            return None;
        }
        memory.ram.write(address, 0_u64);
        let (device, command) = (value >> 56, value >> 48 & 0xff);
        match (device, command) {
            (0, 0) if value & 1 != 0 => return Some(value >> 1),
            (0, 0) => self.system_call(memory, value & 0xffff_ffff_ffff),
            (1, 1) => {
                self.output.push(value as u8);
                self.answer(memory, 1 << 56 | 1 << 48);
            }
            _ => {}
        }
        None
    }

    fn answer(&self, memory: &mut PhysicalMemory, value: u64) {
        if let Some(address) = self.from_host {
            // A program without a readable fromhost does not look at the answer.
            let _ = memory.store(address, &value.to_le_bytes());
        }
    }

    fn system_call(&mut self, memory: &mut PhysicalMemory, block: u64) {
        let argument = |index: u64| memory.ram.read::<u64>(block + 8 * index).unwrap_or(0);
        let (number, address, length) = (argument(0), argument(2), argument(3));
        let mut result = u64::MAX;
        if number == WRITE && length <= LONGEST {
            let mut text = vec![0; length as usize];
            if memory.load(address, &mut text).is_ok() {
                self.output.extend(text);
                result = length;
            }
        }
        // A block outside RAM gets no answer.
        let _ = memory.store(block, &result.to_le_bytes());
        self.answer(memory, 1);
    }
}
