//! Contexts of devices and of processes (chapters "Device-Directory-Table" and "Process-Directory-Table").

use riscv::iommu::{PPN_MASK, TC_DTF, capabilities, control};
use serde::{Deserialize, Serialize};

use super::access::bits;

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
    pub attributes: u64,
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
    pub fn is_sound(&self, capabilities: u64) -> bool {
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

/// A valid process context.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessContext {
    /// `ta`.
    pub attributes: u64,
    /// `fsc`.
    pub first: u64,
}

impl ProcessContext {
    pub const fn has(&self, bit: u64) -> bool {
        self.attributes & bit != 0
    }

    pub const fn pscid(&self) -> u32 {
        bits(self.attributes, 31, 12) as u32
    }
}
