//! Firmware features of a vCPU (RISC-V SBI specification 3.0, "SBI Firmware Features Extension").
//!
//! A vCPU may switch what its harts can do: hardware updates of A and D bits (henvcfg.ADUE, Svadu), pointer masking in VS-mode (henvcfg.PMM,
//! Ssnpm), landing pads (henvcfg.LPE, Zicfilp), shadow stacks (henvcfg.SSE, Zicfiss), double traps (henvcfg.DTE, Ssdbltrp), and exceptions of
//! misaligned accesses. All features that version 3.0 defines are local: each vCPU has values and locks of its own.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use riscv::csr::environment::{ADUE, DTE, LPE, PMM, PMM_SHIFT, SSE};
use riscv::sbi::firmware_features::{
    DOUBLE_TRAP, LANDING_PAD, LOCK, MISALIGNED_DELEGATION, POINTER_MASKING_PMLEN,
    PTE_AD_HW_UPDATING, SHADOW_STACK,
};

/// Exceptions of misaligned accesses go to the vCPU. The bit stands among those of henvcfg, where it is reserved, so that one comparison tells
/// whether anything is to be set when a vCPU comes to a hart. The register never gets it.
pub const MISALIGNED: u64 = 1 << 1;

/// Fields that a vCPU may switch.
const SWITCHED: u64 = MISALIGNED | LPE | SSE | PMM | DTE | ADUE;

/// Encodings of PMM that ignore 7 and 16 bits ("Pointer Masking", table of PMM).
const PMM_7: u64 = 2 << PMM_SHIFT;
const PMM_16: u64 = 3 << PMM_SHIFT;

/// Refusal of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeatureError {
    /// The feature is defined, and the vCPU does not have it.
    NotSupported,
    /// The value or a flag is invalid.
    InvalidParameter,
    /// The feature is reserved, or a platform's.
    Denied,
    /// The feature is locked.
    Locked,
}

/// Fields of henvcfg that a VM's vCPUs may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offer {
    /// Fields that all harts keep, and [`MISALIGNED`]. Of PMM, the upper bit stands for 7 bits and the lower one for 16.
    pub environment: u64,
    /// Set if hardware updates A and D bits from reset on, which cannot be switched then: the VM has Svadu without Svade.
    pub always_updates: bool,
}

/// A feature that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    /// A feature that is on or off, with its bit.
    Switch(u64),
    PointerMasking,
}

impl Offer {
    /// henvcfg at reset.
    #[must_use]
    pub const fn at_reset(self) -> u64 {
        let always = if self.always_updates { ADUE } else { 0 };
        self.environment & !(SWITCHED & !always)
    }

    /// Returns true if a vCPU can switch double traps on.
    #[must_use]
    pub const fn has_double_traps(self) -> bool {
        self.environment & DTE != 0
    }

    /// Returns true if a vCPU can switch anything.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.environment & SWITCHED & !self.at_reset() != 0
    }

    fn feature(self, number: u64) -> Result<Feature, FeatureError> {
        // The feature is a 32-bit parameter.
        let feature = match number & 0xffff_ffff {
            MISALIGNED_DELEGATION => Feature::Switch(MISALIGNED),
            LANDING_PAD => Feature::Switch(LPE),
            SHADOW_STACK => Feature::Switch(SSE),
            DOUBLE_TRAP => Feature::Switch(DTE),
            PTE_AD_HW_UPDATING => Feature::Switch(ADUE),
            POINTER_MASKING_PMLEN => Feature::PointerMasking,
            _ => return Err(FeatureError::Denied),
        };
        let switchable = self.environment & !self.at_reset();
        match feature.field() & switchable {
            0 => Err(FeatureError::NotSupported),
            _ => Ok(feature),
        }
    }
}

impl Feature {
    const fn field(self) -> u64 {
        match self {
            Self::Switch(bit) => bit,
            Self::PointerMasking => PMM,
        }
    }

    /// Encodes a value in the field.
    fn encode(self, value: u64, offer: Offer) -> Result<u64, FeatureError> {
        let has = |bit: u64| offer.environment & bit != 0;
        match (self, value) {
            (_, 0) => Ok(0),
            (Self::Switch(bit), 1) => Ok(bit),
            (Self::PointerMasking, 7) if has(PMM_7) => Ok(PMM_7),
            (Self::PointerMasking, 16) if has(PMM_16 & !PMM_7) => Ok(PMM_16),
            _ => Err(FeatureError::InvalidParameter),
        }
    }

    const fn decode(self, environment: u64) -> u64 {
        match (self, environment & self.field()) {
            (_, 0) => 0,
            (Self::Switch(_), _) => 1,
            (Self::PointerMasking, PMM_7) => 7,
            (Self::PointerMasking, PMM_16) => 16,
            (Self::PointerMasking, _) => 0,
        }
    }
}

/// Features of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareFeatures {
    /// henvcfg of the vCPU, and [`MISALIGNED`].
    environment: u64,
    /// Fields of it that are locked.
    locked: u64,
}

impl FirmwareFeatures {
    /// Features at reset.
    #[must_use]
    pub const fn at_reset(offer: Offer) -> Self {
        Self {
            environment: offer.at_reset(),
            locked: 0,
        }
    }

    /// henvcfg of the vCPU, and [`MISALIGNED`].
    #[must_use]
    #[inline]
    pub const fn environment(&self) -> u64 {
        self.environment
    }

    /// Returns true if the vCPU has a shadow stack pointer of its own.
    #[must_use]
    #[inline]
    pub const fn has_shadow_stack(&self) -> bool {
        self.environment & SSE != 0
    }

    /// Returns true if a trap in a trap handler that is not ready for it is a double trap.
    #[must_use]
    pub const fn has_double_traps(&self) -> bool {
        self.environment & DTE != 0
    }

    /// Value of a feature.
    ///
    /// # Errors
    /// [`FeatureError`].
    pub fn get(&self, feature: u64, offer: Offer) -> Result<u64, FeatureError> {
        let feature = offer.feature(feature)?;
        Ok(feature.decode(self.environment))
    }

    /// Sets a feature. henvcfg and cached translations follow.
    ///
    /// # Errors
    /// [`FeatureError`]; nothing has changed then.
    pub fn set(
        &mut self,
        [feature, value, flags]: [u64; 3],
        offer: Offer,
    ) -> Result<(), FeatureError> {
        let feature = offer.feature(feature)?;
        if flags & !LOCK != 0 {
            return Err(FeatureError::InvalidParameter);
        }
        let encoded = feature.encode(value, offer)?;
        if self.locked & feature.field() != 0 {
            return Err(FeatureError::Locked);
        }
        self.environment = self.environment & !feature.field() | encoded;
        if flags & LOCK != 0 {
            self.locked |= feature.field();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
