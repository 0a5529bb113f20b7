//! Memory as others than harts reach it.

use super::Cycles;

/// An access that nothing answers: the hart raises an access-fault exception for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("nothing answers at this address with this width")]
pub struct AccessFault;

/// Physical RAM as a DMA master sees it.
///
/// The machine's implementation must treat a store like a store by another hart: it ends
/// reservations and discards decoded instructions that it overlaps.
pub trait Memory {
    /// Fills `buffer` from RAM at physical `address`.
    ///
    /// # Errors
    /// [`AccessFault`] unless all of the bytes are RAM; `buffer` is then unspecified.
    fn load(&mut self, address: u64, buffer: &mut [u8]) -> Result<(), AccessFault>;

    /// Copies `bytes` to RAM at physical `address`.
    ///
    /// # Errors
    /// [`AccessFault`] unless all of the bytes are RAM; nothing is written then.
    fn store(&mut self, address: u64, bytes: &[u8]) -> Result<(), AccessFault>;

    /// Tests whether `length` bytes at `address` are all RAM.
    fn contains(&self, address: u64, length: u64) -> bool;

    /// Translates the addresses of an access that is to come, where a device's addresses are translated: the time that this takes is
    /// known then.
    fn prepare(&mut self, _address: u64, _length: u64, _store: bool) {}

    /// Takes the time that translations have taken since this was last asked.
    fn take_time(&mut self) -> Cycles {
        Cycles(0)
    }
}
