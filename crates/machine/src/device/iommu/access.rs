//! Accesses of devices, what becomes of them, and accesses of the IOMMU itself.

use riscv::exception::{
    FETCH_ACCESS, FETCH_GUEST_PAGE, FETCH_PAGE, LOAD_ACCESS, LOAD_GUEST_PAGE, LOAD_PAGE,
    STORE_ACCESS, STORE_GUEST_PAGE, STORE_PAGE,
};

use crate::device::{AccessFault, Memory};

/// Bits of physical addresses.
pub const ADDRESS_BITS: u32 = 56;

/// Kind of an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A fetch of instructions.
    Execute,
    /// A read.
    Read,
    /// A write, or an atomic operation.
    Write,
}

/// Process that an access is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Process {
    /// `process_id`.
    pub id: u32,
    /// True for supervisor privilege.
    pub privileged: bool,
}

/// Access of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// `device_id`.
    pub device: u32,
    /// Process, if the device names one.
    pub process: Option<Process>,
    /// Kind.
    pub access: Access,
    /// Address that the device uses.
    pub address: u64,
}

/// Where an access goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// To a physical address.
    Physical(u64),
    /// To an interrupt file in memory: its address, and address and data of the notice.
    File {
        /// Address of the file.
        file: u64,
        /// Address of the notice.
        notice: u64,
        /// Interrupt identity of the notice.
        identity: u32,
    },
}

/// A translated access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Translation {
    /// Where it goes.
    pub place: Place,
    /// Bytes of the page for which the translation holds.
    pub bytes: u64,
}

/// Reason of a refusal: cause and `iotval2`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// Cause.
    pub cause: u16,
    /// `iotval2`.
    pub value: u64,
}

impl From<u16> for Refusal {
    fn from(cause: u16) -> Self {
        Self { cause, value: 0 }
    }
}

impl Refusal {
    pub fn guest_page(access: Access, value: u64) -> Self {
        let cause = match access {
            Access::Execute => FETCH_GUEST_PAGE,
            Access::Read => LOAD_GUEST_PAGE,
            Access::Write => STORE_GUEST_PAGE,
        };
        let cause = cause as u16;
        Self { cause, value }
    }

    pub fn page(access: Access) -> Self {
        let cause = match access {
            Access::Execute => FETCH_PAGE,
            Access::Read => LOAD_PAGE,
            Access::Write => STORE_PAGE,
        };
        (cause as u16).into()
    }

    pub fn access(access: Access) -> Self {
        let cause = match access {
            Access::Execute => FETCH_ACCESS,
            Access::Read => LOAD_ACCESS,
            Access::Write => STORE_ACCESS,
        };
        (cause as u16).into()
    }
}

pub fn load(address: u64, memory: &mut dyn Memory) -> Result<u64, AccessFault> {
    if address >> ADDRESS_BITS != 0 {
        return Err(AccessFault);
    }
    let mut bytes = [0; 8];
    memory.load(address, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

pub fn store(address: u64, bytes: &[u8], memory: &mut dyn Memory) -> Result<(), AccessFault> {
    if address >> ADDRESS_BITS != 0 {
        return Err(AccessFault);
    }
    memory.store(address, bytes)
}

/// Bits `first` to `last`.
pub const fn bits(value: u64, last: u32, first: u32) -> u64 {
    (value >> first) & (u64::MAX >> (63 - (last - first)))
}
