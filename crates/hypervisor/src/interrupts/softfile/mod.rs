//! Interrupt file in memory, for a vCPU that has no guest file of a hart.
//!
//! It behaves as an IMSIC interrupt file of 63 identities does (AIA chapter 3): messages arrive by
//! `write_memory`, the vCPU's trapped accesses to `sireg` and
//! `stopei` go to [`read_indirect`](InterruptFile::read_indirect) and its neighbours, and
//! [`interrupt`](InterruptFile::interrupt) is what to set in `hvip`.VSEIP. Its whole state fits
//! into [`State`], the same that a guest file gives up when its vCPU leaves the hart.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

#[cfg(test)]
mod tests;

use riscv::imsic::{SETEIPNUM_BE, SETEIPNUM_LE, select};

/// Identities of a file, 1 to this. One 64-bit register holds their bits.
pub const IDENTITIES: u32 = 63;

/// The number of an external interrupt at a file: 1 to [`IDENTITIES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(u8);

impl Identity {
    /// Identity with this number; `None` if the file does not have it.
    pub const fn new(number: u32) -> Option<Self> {
        if number >= 1 && number <= IDENTITIES {
            Some(Self(number as u8))
        } else {
            None
        }
    }

    /// Its number, which is also its priority: the lowest goes first.
    pub const fn number(self) -> u32 {
        self.0 as u32
    }

    /// Its bit in `eip0` and `eie0`.
    pub const fn bit(self) -> u64 {
        1 << self.0
    }
}

/// The registers of a file, as they are saved and loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct State {
    /// `eip0`: a bit for each pending identity.
    pub pending: u64,
    /// `eie0`: a bit for each enabled identity.
    pub enabled: u64,
    /// `eidelivery`: whether the file interrupts its vCPU.
    pub delivery: bool,
    /// `eithreshold`: identities from here on do not interrupt; zero lets all through.
    pub threshold: u8,
}

/// The value of `siselect` selects no register: the access ends in an
/// illegal-instruction exception in the guest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no register behind siselect {0:#x}")]
pub struct NoRegister(pub u64);

/// All identities' bits; bit 0 belongs to none.
const ALL: u64 = !1;
/// Bits of `eithreshold`, enough for 0 to [`IDENTITIES`].
const THRESHOLD_BITS: u64 = 0x3f;

/// The message that a guest sends by a store of the 32-bit `value` at `offset` of a file's page. Numbers that no file of a guest
/// implements, and other offsets, are none (AIA §3.5).
#[must_use]
pub fn message(offset: u64, value: u32) -> Option<Identity> {
    match offset {
        SETEIPNUM_LE => Identity::new(value),
        SETEIPNUM_BE => Identity::new(value.swap_bytes()),
        _ => None,
    }
}

/// Register that a value of `siselect` selects.
#[derive(Clone, Copy)]
enum Register {
    Zero,
    Delivery,
    Threshold,
    Pending,
    Enabled,
}

fn register(select: u64) -> Result<Register, NoRegister> {
    let even = select & 1 == 0;
    match select {
        select::EIDELIVERY => Ok(Register::Delivery),
        select::EITHRESHOLD => Ok(Register::Threshold),
        // Reserved numbers between the two and the arrays (AIA §3.7).
        _ if (select::EIDELIVERY..select::EIP).contains(&select) => Ok(Register::Zero),
        select::EIP => Ok(Register::Pending),
        select::EIE => Ok(Register::Enabled),
        // With 64-bit registers the odd ones do not exist; the even ones beyond the identities
        // there are hold nothing.
        select::EIP..=select::EIE_LAST if even => Ok(Register::Zero),
        // The priorities of the major interrupts: read-only zeros, as AIA §5.4.1 allows. An access
        // traps even where the vCPU has a guest file, so it is answered here.
        select::IPRIO..=select::IPRIO_LAST if even => Ok(Register::Zero),
        _ => Err(NoRegister(select)),
    }
}

/// An interrupt file in memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptFile {
    state: State,
}

impl InterruptFile {
    /// A file with these registers. Bits that no file has are left out.
    pub fn restore(state: State) -> Self {
        Self {
            state: State {
                pending: state.pending & ALL,
                enabled: state.enabled & ALL,
                delivery: state.delivery,
                threshold: state.threshold & THRESHOLD_BITS as u8,
            },
        }
    }

    /// The registers, to be loaded into a guest file or put away.
    pub fn save(&self) -> State {
        self.state
    }

    /// The most urgent pending and enabled identity below the threshold (AIA §3.9). `eidelivery`
    /// has no say in it.
    pub fn top(&self) -> Option<Identity> {
        let ready = self.state.pending & self.state.enabled & ALL;
        let first = Identity::new(ready.trailing_zeros())?;
        let threshold = u32::from(self.state.threshold);
        (threshold == 0 || first.number() < threshold).then_some(first)
    }

    /// Returns true if the file interrupts its vCPU.
    pub fn interrupt(&self) -> bool {
        self.state.delivery && self.top().is_some()
    }

    /// The value of `stopei`: the top identity in bits 26:16 and, as its priority, in 10:0.
    pub fn top_register(&self) -> u64 {
        self.top().map_or(0, |identity| {
            u64::from(identity.number() << 16 | identity.number())
        })
    }

    /// Handles a write of any value to `stopei`: the top interrupt is claimed, that is, no longer
    /// pending. Returns the value of a read in the same instruction.
    pub fn claim(&mut self) -> u64 {
        let value = self.top_register();
        if let Some(identity) = self.top() {
            self.state.pending &= !identity.bit();
        }
        value
    }

    /// Reads `sireg` with `select` in `siselect`.
    ///
    /// # Errors
    /// Where the guest is to take an illegal-instruction exception.
    pub fn read_indirect(&self, select: u64) -> Result<u64, NoRegister> {
        Ok(match register(select)? {
            Register::Zero => 0,
            Register::Delivery => u64::from(self.state.delivery),
            Register::Threshold => u64::from(self.state.threshold),
            Register::Pending => self.state.pending,
            Register::Enabled => self.state.enabled,
        })
    }

    /// Writes `sireg` with `select` in `siselect`.
    ///
    /// # Errors
    /// Where the guest is to take an illegal-instruction exception.
    pub fn write_indirect(&mut self, select: u64, value: u64) -> Result<(), NoRegister> {
        match register(select)? {
            Register::Zero => {}
            // WARL. The third value, delivery from an APLIC, is not offered.
            Register::Delivery => self.state.delivery = value == 1,
            Register::Threshold => self.state.threshold = (value & THRESHOLD_BITS) as u8,
            Register::Pending => self.state.pending = value & ALL,
            Register::Enabled => self.state.enabled = value & ALL,
        }
        Ok(())
    }
}
