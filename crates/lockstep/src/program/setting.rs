//! Setting of a program: its mode, the extensions that it may use, its memory.

use crate::layout;

/// The privilege mode that a program starts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// M-mode.
    Machine,
    /// HS-mode.
    Supervisor,
    /// U-mode.
    User,
    /// VS-mode.
    VirtualSupervisor,
    /// VU-mode.
    VirtualUser,
}

impl Mode {
    pub(super) const fn is_virtual(self) -> bool {
        matches!(self, Self::VirtualSupervisor | Self::VirtualUser)
    }

    pub(super) const fn is_user(self) -> bool {
        matches!(self, Self::User | Self::VirtualUser)
    }

    /// MPP.
    pub(super) const fn privilege(self) -> u64 {
        match self {
            Self::Machine => 3,
            Self::Supervisor | Self::VirtualSupervisor => 1,
            Self::User | Self::VirtualUser => 0,
        }
    }
}

/// Extensions that programs may use, so that other implementations are asked for what they have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// Interrupt files (IMSIC).
    pub interrupts: bool,
    /// PMP entries over data pages and page tables.
    pub protection: bool,
    /// Landing pads, shadow stacks and double traps.
    pub control_flow: bool,
    /// Pointer masking.
    pub masking: bool,
    /// Bits of a vector register, 0 for programs without vectors.
    pub vectors: u16,
    /// Fractions of a register with elements wider than LMUL x ELEN, which an implementation may refuse.
    pub wide_fractions: bool,
}

impl Features {
    /// The bits of mstateen0 that may be set: SE, ENVCFG, CSRIND and, with interrupt files, AIA and
    /// IMSIC.
    pub(super) const fn state_enable(self) -> u64 {
        let files = if self.interrupts { 0xc } else { 0 };
        (0xd0 | files) << 56
    }
}

/// The memory of a slot.
#[derive(Debug, Clone)]
pub struct Slot {
    /// Its physical address.
    pub base: u64,
    /// Contents.
    pub bytes: Vec<u8>,
}

impl Slot {
    pub(super) fn new(base: u64) -> Self {
        Self {
            base,
            bytes: vec![0; layout::SLOT as usize],
        }
    }

    pub(super) fn put(&mut self, offset: u64, bytes: &[u8]) {
        let start = offset as usize;
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
    }

    pub(super) fn put_word(&mut self, offset: u64, value: u64) {
        self.put(offset, &value.to_le_bytes());
    }

    pub(super) fn put_context(&mut self, offset: i32, index: usize, value: u64) {
        let at = layout::CONTEXT + u64::from(offset.cast_unsigned()) + 8 * index as u64;
        self.put_word(at, value);
    }
}
