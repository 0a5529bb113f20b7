//! The directory that leads to device contexts (section "Process to locate the Device-context").

use riscv::iommu::{PPN_MASK, PPN_SHIFT, VALID, capabilities, cause, ddtp};

use super::access::{bits, load};
use super::context::DeviceContext;
use super::state::Iommu;
use crate::device::Memory;

/// Bits that an entry above the contexts must have clear: all but V and the PPN.
const RESERVED: u64 = !(VALID | PPN_MASK << PPN_SHIFT);

impl Iommu {
    /// Section "Process to locate the Device-context". The errors are causes.
    pub(super) fn device_context(
        &mut self,
        device: u32,
        memory: &mut dyn Memory,
    ) -> Result<DeviceContext, u16> {
        let extended = self.registers.capabilities & capabilities::MSI_FLAT != 0;
        let id = u64::from(device);
        let indices = match extended {
            true => [bits(id, 5, 0), bits(id, 14, 6), bits(id, 23, 15)],
            false => [bits(id, 6, 0), bits(id, 15, 7), bits(id, 23, 16)],
        };
        let level = (self.registers.ddtp & ddtp::MODE).saturating_sub(ddtp::ONE_LEVEL) as usize;
        let above = indices.get(level + 1..).unwrap_or_default();
        if above.iter().any(|index| *index != 0) {
            return Err(cause::DISALLOWED);
        }
        if let Some(context) = self.caches.context(device) {
            return Ok(context);
        }
        let mut table = bits(self.registers.ddtp, 53, 10) << 12;
        for index in indices.get(1..=level).unwrap_or_default().iter().rev() {
            let entry = self.load(table + index * 8, memory);
            let entry = entry.map_err(|_| cause::DIRECTORY_ACCESS)?;
            if entry & VALID == 0 {
                return Err(cause::DIRECTORY_INVALID);
            }
            if entry & RESERVED != 0 {
                return Err(cause::DIRECTORY_MISCONFIGURED);
            }
            table = bits(entry, 53, 10) << 12;
        }
        let size = if extended { 64 } else { 32 };
        self.step(1);
        let mut words = [0; 8];
        for (word, offset) in words.iter_mut().zip((0..size).step_by(8)) {
            let address = table + indices[0] * size + offset;
            *word = load(address, memory).map_err(|_| cause::DIRECTORY_ACCESS)?;
        }
        let [
            control,
            second,
            attributes,
            first,
            messages,
            mask,
            pattern,
            reserved,
        ] = words;
        if control & VALID == 0 {
            return Err(cause::DIRECTORY_INVALID);
        }
        let context = DeviceContext {
            control,
            second,
            attributes,
            first,
            messages,
            mask,
            pattern,
        };
        if reserved != 0 || !context.is_sound(self.registers.capabilities) {
            return Err(cause::DIRECTORY_MISCONFIGURED);
        }
        self.caches.add_context(device, context);
        Ok(context)
    }
}
