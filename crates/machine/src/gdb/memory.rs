//! Memory as a hart sees it, without a trace of having looked.

use crate::base::Access;
use crate::base::Memory;
use crate::base::PAGE_BYTES;
use crate::hart::Hart;
use crate::machine::Machine;

impl Machine {
    /// The physical address that an address has for a hart's loads, if it is in RAM.
    ///
    /// A page that has never been accessed is not found where the walk would set its accessed bit.
    fn debugger_place(&mut self, hart: usize, address: u64) -> Option<u64> {
        let hart: &Hart = self.harts.get(hart)?;
        let memory = &mut self.system.memory;
        [Access::Load, Access::Fetch]
            .into_iter()
            .find_map(|access| hart.place_unseen(memory, access, address))
    }

    /// Calls `each` with the physical address and the piece of every page that `length` bytes from
    /// `address` on lie in; gives how many bytes were in RAM from the start on.
    fn debugger_pages(
        &mut self,
        hart: usize,
        address: u64,
        length: usize,
        mut each: impl FnMut(&mut Self, u64, std::ops::Range<usize>) -> Option<()>,
    ) -> usize {
        let mut done = 0;
        while done < length {
            let at = address.wrapping_add(done as u64);
            let page_left = (PAGE_BYTES - at % PAGE_BYTES) as usize;
            let piece = page_left.min(length - done);
            let moved = self
                .debugger_place(hart, at)
                .and_then(|physical| each(self, physical, done..done + piece));
            if moved.is_none() {
                break;
            }
            done += piece;
        }
        done
    }

    /// Reads memory with a hart's eyes; gives how many bytes could be read.
    pub(super) fn debugger_read(&mut self, hart: usize, address: u64, bytes: &mut [u8]) -> usize {
        let length = bytes.len();
        self.debugger_pages(hart, address, length, |machine, physical, range| {
            let piece = bytes.get_mut(range)?;
            machine.system.memory.load(physical, piece).ok()
        })
    }

    /// Writes memory with a hart's eyes, whatever the page allows; gives how many bytes could be
    /// written.
    pub(super) fn debugger_write(&mut self, hart: usize, address: u64, bytes: &[u8]) -> usize {
        self.debugger_pages(hart, address, bytes.len(), |machine, physical, range| {
            let piece = bytes.get(range)?;
            machine.system.memory.store(physical, piece).ok()
        })
    }
}
