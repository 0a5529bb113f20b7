//! Configuration space of a function, and its capabilities.

use riscv::pci::{base_address, capability, command, header, status};
use serde::{Deserialize, Serialize};

/// Bytes that hold something; the extended part has no capabilities and reads as zero.
const BYTES: usize = 256;
/// Where the first capability stands.
const FIRST_CAPABILITY: usize = 0x40;
/// Base address registers.
pub const BARS: usize = 6;

/// Names of a function.
#[derive(Debug, Clone, Copy)]
pub struct Identity {
    /// Vendor.
    pub vendor: u16,
    /// Device.
    pub device: u16,
    /// Class in the upper three bytes, revision in the lowest.
    pub class: u32,
    /// Id of the subsystem; its vendor is the function's.
    pub subsystem: u16,
}

/// Configuration space of a function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Configuration {
    bytes: Vec<u8>,
    /// Bits that software writes.
    writable: Vec<u8>,
    /// Bytes of the registers behind each base address register.
    sizes: [u64; BARS],
    /// Where the next capability goes, and the byte that is to lead to it.
    next: usize,
    link: usize,
}

impl Configuration {
    pub fn new(identity: &Identity) -> Self {
        let mut new = Self {
            bytes: vec![0; BYTES],
            writable: vec![0; BYTES],
            sizes: [0; BARS],
            next: FIRST_CAPABILITY,
            link: header::CAPABILITIES,
        };
        let names = u32::from(identity.vendor) | u32::from(identity.device) << 16;
        let subsystem = u32::from(identity.vendor) | u32::from(identity.subsystem) << 16;
        new.put(header::VENDOR, &names.to_le_bytes());
        new.put(header::REVISION, &identity.class.to_le_bytes());
        new.put(header::SUBSYSTEM, &subsystem.to_le_bytes());
        let commands = command::MEMORY | command::MASTER | command::INTERRUPT_DISABLE;
        new.allow(header::COMMAND, &commands.to_le_bytes());
        new.allow(header::INTERRUPT_LINE, &[0xff]);
        new
    }

    /// Puts bytes that software only reads.
    pub fn put(&mut self, at: usize, bytes: &[u8]) {
        for (to, from) in self.bytes.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    }

    /// Lets software write these bits.
    pub fn allow(&mut self, at: usize, bits: &[u8]) {
        for (to, from) in self.writable.iter_mut().skip(at).zip(bits) {
            *to |= *from;
        }
    }

    /// Adds registers of `size` bytes, a power of two, behind a base address register; with a 64-bit address they take the next one too.
    pub fn add_registers(&mut self, bar: usize, size: u64, is_wide: bool) {
        let at = header::BASE_ADDRESS + bar * 4;
        let flags = match is_wide {
            true => base_address::WIDE | base_address::PREFETCHABLE,
            false => 0,
        };
        let mask = !(size - 1) & !u64::from(base_address::FLAGS);
        self.put(at, &flags.to_le_bytes());
        match is_wide {
            true => self.allow(at, &mask.to_le_bytes()),
            false => self.allow(at, &(mask as u32).to_le_bytes()),
        }
        if let Some(own) = self.sizes.get_mut(bar) {
            *own = size;
        }
    }

    /// Adds a capability: what follows id and link. Returns where it stands.
    pub fn add_capability(&mut self, id: u8, body: &[u8]) -> usize {
        let at = self.next;
        self.put(self.link, &[at as u8]);
        self.put(at, &[id, 0]);
        self.put(at + 2, body);
        self.link = at + 1;
        self.next = (at + 2 + body.len()).next_multiple_of(4);
        self.put(header::STATUS, &status::CAPABILITIES.to_le_bytes());
        at
    }

    /// Adds the capability of PCI Express, of an endpoint without a link.
    pub fn add_express(&mut self) {
        let mut body = [0; 0x3a];
        let kind = 2 | riscv::pci::INTEGRATED_ENDPOINT << 4;
        body[..2].copy_from_slice(&kind.to_le_bytes());
        // Errors are reported by role.
        body[2..6].copy_from_slice(&(1_u32 << 15).to_le_bytes());
        self.add_capability(capability::EXPRESS, &body);
    }

    pub fn read(&self, offset: usize, size: u8) -> u32 {
        (0..usize::from(size)).fold(0, |value, index| {
            let byte = self.bytes.get(offset + index).copied().unwrap_or(0);
            value | u32::from(byte) << (8 * index)
        })
    }

    pub fn write(&mut self, offset: usize, size: u8, value: u32) {
        let bytes = self.bytes.iter_mut().zip(&self.writable).skip(offset);
        for ((byte, mask), new) in bytes.take(size.into()).zip(value.to_le_bytes()) {
            *byte = *byte & !mask | new & mask;
        }
    }

    pub fn has(&self, bit: u16) -> bool {
        self.read(header::COMMAND, 2) as u16 & bit != 0
    }

    /// The base address register behind which an address lies, and the offset there. Nothing is there before software allows it.
    pub fn find(&self, address: u64) -> Option<(usize, u64)> {
        if !self.has(command::MEMORY) {
            return None;
        }
        let offset = |(bar, size): (usize, &u64)| {
            let at = header::BASE_ADDRESS + bar * 4;
            let low = self.read(at, 4);
            let high = match low & base_address::WIDE {
                0 => 0,
                _ => self.read(at + 4, 4),
            };
            let base = u64::from(low & !base_address::FLAGS) | u64::from(high) << 32;
            let offset = address.checked_sub(base)?;
            (offset < *size).then_some((bar, offset))
        };
        self.sizes.iter().enumerate().find_map(offset)
    }
}
