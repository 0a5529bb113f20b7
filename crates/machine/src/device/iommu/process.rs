//! The directory that leads to process contexts (section "Process to locate the Process-context").

use riscv::iommu::{VALID, capabilities, cause, process};

use super::access::{Access, Refusal, bits, load};
use super::context::{DeviceContext, ProcessContext, mode, root};
use super::entry::Trouble;
use super::state::Iommu;
use crate::device::Memory;

/// Bits that an entry above the contexts must have clear.
const RESERVED: u64 = !(VALID | ((1 << 44) - 1) << 10);

impl Iommu {
    /// Section "Process to locate the Process-context".
    pub(super) fn process_context(
        &mut self,
        (device, id): (u32, u32),
        context: &DeviceContext,
        access: Access,
        memory: &mut dyn Memory,
    ) -> Result<ProcessContext, Refusal> {
        if let Some(found) = self.caches.process(device, id) {
            return Ok(found);
        }
        let id64 = u64::from(id);
        let indices = [bits(id64, 7, 0), bits(id64, 16, 8), bits(id64, 19, 17)];
        let mut level = mode(context.first) as usize;
        let mut table = root(context.first);
        loop {
            level -= 1;
            let size = if level == 0 { 16 } else { 8 };
            let guest = table + indices.get(level).copied().unwrap_or(0) * size;
            let found = self.second_stage(guest, Access::Read, false, context, memory);
            let at = match found {
                Ok(leaf) => leaf.physical,
                Err(Trouble::Page) => return Err(Refusal::guest_page(access, guest & !3 | 1)),
                Err(Trouble::Access) => return Err(cause::PROCESS_ACCESS.into()),
            };
            let entry = self.load(at, memory).map_err(|_| cause::PROCESS_ACCESS)?;
            if level > 0 {
                if entry & VALID == 0 {
                    return Err(cause::PROCESS_INVALID.into());
                }
                if entry & RESERVED != 0 {
                    return Err(cause::PROCESS_MISCONFIGURED.into());
                }
                table = bits(entry, 53, 10) << 12;
                continue;
            }
            let first = load(at + 8, memory).map_err(|_| cause::PROCESS_ACCESS)?;
            if entry & VALID == 0 {
                return Err(cause::PROCESS_INVALID.into());
            }
            let first_mode = mode(first);
            let bit = first_mode + capabilities::MODE_SHIFT;
            let has_mode =
                (8..=10).contains(&first_mode) && self.registers.capabilities >> bit & 1 != 0;
            let is_sound = entry & process::RESERVED == 0
                && bits(first, 59, 44) == 0
                && (first_mode == 0 || has_mode);
            if !is_sound {
                return Err(cause::PROCESS_MISCONFIGURED.into());
            }
            let found = ProcessContext {
                attributes: entry,
                first,
            };
            self.caches.add_process(device, id, found);
            return Ok(found);
        }
    }
}
