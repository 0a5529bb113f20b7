//! MSI page tables, and interrupt files in memory (section "Process to translate addresses of MSIs"; Advanced Interrupt Architecture 1.0,
//! chapter "IOMMU Support for MSIs to Virtual Machines").

use riscv::iommu::{VALID, capabilities, cause, message};
use riscv::page_table::{ACCESSED, DIRTY, READ, USER, WRITE};

use super::access::{Place, bits, load, store};
use super::context::{DeviceContext, mode, root};
use super::state::Iommu;
use crate::device::{AccessFault, Memory};

/// Permissions of a page that an MSI page table leads to.
pub const PERMISSIONS: u64 = VALID | READ | WRITE | USER | ACCESSED | DIRTY;
/// Bits of an entry for a page that must be clear: all but V, M and the PPN.
const PAGE_RESERVED: u64 = !(VALID | 3 << message::MODE_SHIFT | ((1 << 44) - 1) << 10);
/// Bits of an entry for a file in memory that must be clear: all but V, M and the file's address.
const FILE_RESERVED: u64 = !(VALID | 3 << message::MODE_SHIFT | ((1 << 47) - 1) << 7);
/// The same of its second doubleword: all but the notice's identity and PPN.
const NOTICE_RESERVED: u64 = !(0x3ff | ((1 << 44) - 1) << 10 | 1 << 60);
/// Largest interrupt identity of a file in memory.
const MAX_IDENTITY: u64 = 2047;

/// Bits of `value` where `mask` has ones, packed.
fn extract(value: u64, mask: u64) -> u64 {
    let (mut found, mut place) = (0, 0);
    for bit in (0..64).filter(|bit| mask >> bit & 1 != 0) {
        found |= (value >> bit & 1) << place;
        place += 1;
    }
    found
}

impl Iommu {
    /// Bits of page numbers of guest physical addresses.
    const fn page_bits(&self) -> u64 {
        let width = match self.registers.capabilities >> (8 + capabilities::GUEST_MODE_SHIFT) & 7 {
            4.. => 59,
            2.. => 50,
            _ => 41,
        };
        (1 << (width - 12)) - 1
    }

    /// Where a message at a guest physical address goes; none if no interrupt file is there. The errors are causes.
    pub(super) fn message(
        &mut self,
        address: u64,
        context: &DeviceContext,
        memory: &mut dyn Memory,
    ) -> Result<Option<Place>, u16> {
        if mode(context.messages) == 0 {
            return Ok(None);
        }
        let pages = self.page_bits();
        let (page, mask) = (address >> 12, context.mask & pages);
        if (page ^ context.pattern) & !context.mask & pages != 0 {
            return Ok(None);
        }
        let at = root(context.messages) | (extract(page, mask) * message::BYTES);
        let entry = self.load(at, memory).map_err(|_| cause::MESSAGE_ACCESS)?;
        let second = load(at + 8, memory).map_err(|_| cause::MESSAGE_ACCESS)?;
        if entry & VALID == 0 {
            return Err(cause::MESSAGE_INVALID);
        }
        let misconfigured = Err(cause::MESSAGE_MISCONFIGURED);
        if entry & message::CUSTOM != 0 {
            return misconfigured;
        }
        let has_files = self.registers.capabilities & capabilities::MSI_MRIF != 0;
        match bits(entry, 2, 1) {
            // The second doubleword is software's.
            message::PAGE if entry & PAGE_RESERVED == 0 => {
                let physical = bits(entry, 53, 10) << 12 | address & 0xfff;
                Ok(Some(Place::Physical(physical)))
            }
            message::MRIF
                if has_files && entry & FILE_RESERVED == 0 && second & NOTICE_RESERVED == 0 =>
            {
                Ok(Some(Place::File {
                    file: bits(entry, 53, 7) << 9,
                    notice: bits(second, 53, 10) << 12,
                    identity: (bits(second, 60, 60) << 10 | bits(second, 9, 0)) as u32,
                }))
            }
            _ => misconfigured,
        }
    }

    /// Stores a message into an interrupt file in memory, and sends the notice if the interrupt is enabled there.
    ///
    /// # Errors
    /// [`AccessFault`] if the file is not in memory, or the notice reaches nothing.
    pub(super) fn deliver(
        &mut self,
        (file, notice, identity): (u64, u64, u32),
        (offset, data): (u64, u32),
        memory: &mut dyn Memory,
    ) -> Result<(), AccessFault> {
        // Only the register for little-endian stores, which is a word, takes anything.
        let interrupt = u64::from(data);
        if offset != 0 || !(1..=MAX_IDENTITY).contains(&interrupt) {
            return Ok(());
        }
        let at = file + interrupt / 64 * 16;
        let bit = 1 << (interrupt % 64);
        let pending = self.load(at, memory)?;
        store(at, &(pending | bit).to_le_bytes(), memory)?;
        if self.load(at + 8, memory)? & bit != 0 {
            store(notice, &identity.to_le_bytes(), memory)?;
        }
        Ok(())
    }
}
