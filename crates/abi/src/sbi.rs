//! The SBI extension that Partita offers to its guests.
//!
//! The SBI specification (chapter "Vendor-Specific SBI Extension Space") gives extension ids
//! `0x09000000` to `0x09FFFFFF` to vendors, the low bits being those of `mvendorid`. Partita has no
//! JEDEC number, so guests read an `mvendorid` of zero ("non-commercial implementation") and the
//! extension is the first of the space. A caller must therefore ask twice before it uses the extension: the Base
//! extension's `sbi_probe_extension`, then [`Function::Version`], whose value carries [`SIGNATURE`].
//!
//! Calls follow the binary encoding of the SBI: extension id in a7, function id in a6, arguments in
//! a0 and up, error in a0 and value in a1. Every function may be called by any vCPU at any time.

/// The extension id.
pub const EXTENSION: usize = 0x0900_0000;

/// Upper half of the value that [`Function::Version`] returns: "PART" in ASCII.
pub const SIGNATURE: u64 = 0x5041_5254;

/// Lower half of that value: the version of this interface.
pub const VERSION: u64 = 4;

/// The value that [`Function::Version`] returns.
pub const VERSION_VALUE: u64 = SIGNATURE << 32 | VERSION;

/// Length and alignment in bytes of a communication area.
pub const COMMUNICATION_AREA_SIZE: u64 = 4096;

/// Contents of a communication area, which the hypervisor writes: 32-bit little-endian words, at these offsets in bytes. The
/// rest of the area is left alone. The words are written one by one, while other vCPUs of the guest run. A guest that needs
/// them to agree reads [`SEQUENCE`](communication_area::SEQUENCE) before and after them, with fences between: they agree if it was the same even
/// number both times.
pub mod communication_area {
    /// The flag *f*: an [`AllocationForm`](super::AllocationForm). While it is 1, each vCPU has a hart to itself, and
    /// spinning beats calling.
    pub const FLAG: u64 = 0;
    /// Number of harts that are dedicated to the VM; 0 for a VM that shares.
    pub const DEDICATED_HARTS: u64 = 4;
    /// Changes of the form since the VM was started.
    pub const CHANGES: u64 = 8;
    /// Odd while the other words change, and even when they agree.
    pub const SEQUENCE: u64 = 12;
}

/// The major interrupt that tells a vCPU that the form of its VM's allocation has changed, where the computer lets the
/// hypervisor inject it (hvien and hvip; the Advanced Interrupt Architecture designates 24 to 31 for custom use). It is
/// bit 24 of sie and sip; a guest that does not enable it never sees it. It stays pending until the guest clears the
/// bit in sip. Changes that follow each other may be told once.
pub const NOTIFICATION_INTERRUPT: u32 = 24;

/// The extension's functions, by their function id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub enum Function {
    /// No arguments. The value is [`VERSION_VALUE`].
    Version = 0,
    /// The calling vCPU spins on something that another vCPU of its VM must do, and asks to be
    /// suspended. a0: the guest's physical address of the 32-bit word that it watches, or all ones if it
    /// will not say; a1: the value last seen there; a2: for a ticket lock, what the lower 16 bits of the word must be
    /// for the spin to be over, all ones where any change may end it. All are hints. Returns when the vCPU is next
    /// dispatched.
    Spin = 1,
    /// Gives the VM one communication area. a0: its guest-physical address, a multiple of
    /// [`COMMUNICATION_AREA_SIZE`] in the VM's memory; all ones takes it away. The hypervisor fills it in at once, and
    /// again whenever the form of allocation changes: see [`communication_area`].
    /// Fails with `SBI_ERR_INVALID_ADDRESS`, or with `SBI_ERR_FAILED` if no frame is free for the page of a demand-paged VM.
    SetCommunicationArea = 2,
    /// No arguments. The value is an [`AllocationForm`] in bits 7..0 and, for dedicated harts, the
    /// number of them in bits 31..8. It is the form now; it may change while the VM runs.
    Allocation = 3,
    /// Adds a line to the hypervisor's log: a0 is a key and a1 a value that mean something to the person who reads
    /// the log. A VM that calls too often loses lines, never time of others.
    Report = 4,
    /// The guest is alive: a0 is a count that the caller raises at each call.
    Heartbeat = 5,
    /// The guest does not need some pages of its memory now, and gives their frames back. a0: the first one's guest-physical address, a
    /// multiple of 4096; a1: how many bytes, a multiple of 4096, all of them the VM's memory. The value is how many bytes have been seen to, from
    /// a0 on; the guest calls again for the rest. A page that an operation of a device reaches, or whose word a vCPU waits for, is left as
    /// it is. What was in the others is lost: at its next touch each is a page of zeros. Fails with `SBI_ERR_INVALID_ADDRESS`,
    /// `SBI_ERR_INVALID_PARAMETER`, and with `SBI_ERR_NOT_SUPPORTED` where the VM's placement is not `paged`.
    ReturnPages = 6,
}

impl Function {
    /// Every function, in the order of their ids.
    pub const ALL: [Self; 7] = [
        Self::Version,
        Self::Spin,
        Self::SetCommunicationArea,
        Self::Allocation,
        Self::Report,
        Self::Heartbeat,
        Self::ReturnPages,
    ];

    /// The function with this id, `None` if there is none (`SBI_ERR_NOT_SUPPORTED`).
    pub fn from_id(id: usize) -> Option<Self> {
        Self::ALL.get(id).copied()
    }

    /// The function id, for a6.
    pub fn id(self) -> usize {
        self as usize
    }
}

/// Form of a VM's allocation of harts, as [`Function::Allocation`] tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum AllocationForm {
    /// Its vCPUs take turns with others on shared harts: a guest that spins wastes another vCPU's time.
    Shared = 0,
    /// Each of its vCPUs has a hart to itself: spinning is right.
    Dedicated = 1,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_and_their_ids_agree() {
        for function in Function::ALL {
            assert_eq!(Function::from_id(function.id()), Some(function));
        }
        assert_eq!(Function::from_id(Function::ALL.len()), None);
        assert_eq!(Function::from_id(usize::MAX), None);
    }

    #[test]
    fn the_extension_is_in_the_vendor_space() {
        assert!((0x0900_0000..=0x09ff_ffff).contains(&EXTENSION));
    }
}
