//! Device contexts, and the directory that leads to them (chapter "Device-Directory-Table").

use riscv::iommu::{PPN_MASK, PPN_SHIFT, TC_DTF, VALID, capabilities, cause, control, ddtp};
use serde::{Deserialize, Serialize};

use super::{Iommu, Memory, bits};

/// Bits that an entry above the contexts must have clear: all but V and the PPN.
const RESERVED: u64 = !(VALID | PPN_MASK << PPN_SHIFT);
/// Bits of a page-table pointer between PPN and mode, where nothing stands.
const POINTER_RESERVED: u64 = 0xffff << 44;
/// Bits of `ta` besides PSCID.
const ATTRIBUTES_RESERVED: u64 = !(0xf_ffff << 12);
/// Bits of an MSI address mask or pattern that are no page number.
const PAGES_RESERVED: u64 = 0xfff << 52;

/// A valid device context, as it stands in memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceContext {
    /// `tc`.
    pub control: u64,
    /// `iohgatp`.
    pub second: u64,
    /// `ta`.
    attributes: u64,
    /// `fsc`.
    pub first: u64,
    /// `msiptp`.
    pub messages: u64,
    /// `msi_addr_mask`.
    pub mask: u64,
    /// `msi_addr_pattern`.
    pub pattern: u64,
}

/// Mode of a page-table pointer.
pub const fn mode(pointer: u64) -> u64 {
    pointer >> 60
}

/// Physical or guest physical address of a page-table pointer.
pub const fn root(pointer: u64) -> u64 {
    (pointer & PPN_MASK) << 12
}

impl DeviceContext {
    pub const fn has(&self, bit: u64) -> bool {
        self.control & bit != 0
    }

    /// Faults of translation are reported.
    pub const fn reports(&self) -> bool {
        !self.has(TC_DTF)
    }

    pub const fn pscid(&self) -> u32 {
        bits(self.attributes, 31, 12) as u32
    }

    /// GSCID, if the second stage translates.
    pub const fn gscid(&self) -> Option<u16> {
        match mode(self.second) {
            0 => None,
            _ => Some(bits(self.second, 59, 44) as u16),
        }
    }

    /// Section "Device-context configuration checks".
    fn is_sound(&self, capabilities: u64) -> bool {
        let has = |bit: u64| capabilities & bit != 0;
        let is_mode = |mode: u64, shift: u64| {
            mode == 0 || (8..=10).contains(&mode) && has(1 << (mode + shift))
        };
        let mode_of_first = mode(self.first);
        let first = match self.has(control::PROCESSES) {
            true => {
                mode_of_first == 0
                    || mode_of_first <= 3 && has(capabilities::PD8 << (mode_of_first - 1))
            }
            false => {
                is_mode(mode_of_first, capabilities::MODE_SHIFT)
                    && !self.has(control::DEFAULT_PROCESS)
            }
        };
        let updates = control::UPDATE | control::GUEST_UPDATE;
        let second = mode(self.second);
        first
            && self.control & (control::RESERVED | control::ATS | control::BIG_OR_NARROW) == 0
            && (has(capabilities::AMO_HWAD) || !self.has(updates))
            && self.attributes & ATTRIBUTES_RESERVED == 0
            && self.first & POINTER_RESERVED == 0
            && is_mode(second, capabilities::GUEST_MODE_SHIFT)
            && (second == 0 || self.second & 3 == 0)
            && self.messages & POINTER_RESERVED == 0
            && mode(self.messages) <= u64::from(second != 0)
            && (self.mask | self.pattern) & PAGES_RESERVED == 0
    }
}

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
            *word = super::load(address, memory).map_err(|_| cause::DIRECTORY_ACCESS)?;
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
