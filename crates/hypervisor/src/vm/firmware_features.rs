//! Firmware features of a vCPU (RISC-V SBI specification 3.0, "SBI Firmware Features Extension").
//!
//! A vCPU may switch what its harts can do: hardware updates of A and D bits (henvcfg.ADUE, Svadu) and pointer masking in VS-mode
//! (henvcfg.PMM, Ssnpm). All features that version 3.0 defines are local: each vCPU has values and locks of its own.
#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

use riscv::csr::environment::{ADUE, PMM, PMM_SHIFT};
use riscv::sbi::firmware_features::{
    LOCK, MISALIGNED_DELEGATION, POINTER_MASKING_PMLEN, PTE_AD_HW_UPDATING,
};

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
    /// Fields that all harts keep. Of PMM, the upper bit stands for 7 bits and the lower one for 16.
    pub environment: u64,
    /// Set if hardware updates A and D bits from reset on, which cannot be switched then: the VM has Svadu without Svade.
    pub always_updates: bool,
}

/// A feature that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    Updates,
    PointerMasking,
}

impl Offer {
    /// henvcfg at reset.
    #[must_use]
    pub const fn at_reset(self) -> u64 {
        let switched = if self.always_updates { PMM } else { PMM | ADUE };
        self.environment & !switched
    }

    /// Returns true if a vCPU can switch anything.
    #[must_use]
    pub const fn is_any(self) -> bool {
        self.environment & (PMM | ADUE) & !self.at_reset() != 0
    }

    fn feature(self, number: u64) -> Result<Feature, FeatureError> {
        // The feature is a 32-bit parameter.
        match number & 0xffff_ffff {
            PTE_AD_HW_UPDATING if self.environment & ADUE != 0 && !self.always_updates => {
                Ok(Feature::Updates)
            }
            POINTER_MASKING_PMLEN if self.environment & PMM != 0 => Ok(Feature::PointerMasking),
            MISALIGNED_DELEGATION..=POINTER_MASKING_PMLEN => Err(FeatureError::NotSupported),
            _ => Err(FeatureError::Denied),
        }
    }
}

impl Feature {
    const fn field(self) -> u64 {
        match self {
            Self::Updates => ADUE,
            Self::PointerMasking => PMM,
        }
    }

    /// Encodes a value in the field.
    fn encode(self, value: u64, offer: Offer) -> Result<u64, FeatureError> {
        let has = |bit: u64| offer.environment & bit != 0;
        match (self, value) {
            (_, 0) => Ok(0),
            (Self::Updates, 1) => Ok(ADUE),
            (Self::PointerMasking, 7) if has(PMM_7) => Ok(PMM_7),
            (Self::PointerMasking, 16) if has(PMM_16 & !PMM_7) => Ok(PMM_16),
            _ => Err(FeatureError::InvalidParameter),
        }
    }

    const fn decode(self, environment: u64) -> u64 {
        match (self, environment & self.field()) {
            (Self::Updates, ADUE) => 1,
            (Self::PointerMasking, PMM_7) => 7,
            (Self::PointerMasking, PMM_16) => 16,
            _ => 0,
        }
    }
}

/// Features of a vCPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirmwareFeatures {
    /// henvcfg of the vCPU.
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

    /// henvcfg of the vCPU.
    #[must_use]
    #[inline]
    pub const fn environment(&self) -> u64 {
        self.environment
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
