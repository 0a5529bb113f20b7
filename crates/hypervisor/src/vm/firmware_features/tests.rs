use super::*;
use riscv::csr::environment::{CBZE, STCE};

/// Harts with all that can be switched, and two fields that cannot.
const ALL: Offer = Offer {
    environment: SWITCHED | STCE | CBZE,
    always_updates: false,
};

#[test]
fn features_are_off_at_reset() {
    let features = FirmwareFeatures::at_reset(ALL);
    assert_eq!(features.environment(), STCE | CBZE);
    for feature in MISALIGNED_DELEGATION..=POINTER_MASKING_PMLEN {
        assert_eq!(features.get(feature, ALL), Ok(0));
    }
    assert!(!features.has_shadow_stack() && !features.has_double_traps());
}

#[test]
fn values_reach_their_fields_alone() {
    let mut features = FirmwareFeatures::at_reset(ALL);
    // Privileged architecture: ADUE is bit 61. Pointer masking: PMM is 33:32, 10 for 7 bits and 11 for 16.
    for (feature, value, bits) in [
        (4, 1, 1 << 61),
        (5, 7, 1 << 61 | 2 << 32),
        (5, 16, 1 << 61 | 3 << 32),
        (4, 0, 3 << 32),
        (5, 0, 0),
        // CFI: LPE is bit 2, SSE bit 3. Ssdbltrp: DTE is bit 59.
        (1, 1, 1 << 2),
        (2, 1, 3 << 2),
        (3, 1, 1 << 59 | 3 << 2),
        (1, 0, 1 << 59 | 1 << 3),
        (0, 1, 1 << 59 | 1 << 3 | MISALIGNED),
    ] {
        assert_eq!(features.set([feature, value, 0], ALL), Ok(()));
        assert_eq!(features.get(feature, ALL), Ok(value));
        assert_eq!(features.environment(), STCE | CBZE | bits);
    }
    // A feature has 32 bits.
    assert_eq!(features.set([1 << 32 | 4, 1, 0], ALL), Ok(()));
    assert_eq!(features.get(u64::MAX << 32 | 4, ALL), Ok(1));
}

#[test]
fn wrong_calls_change_nothing() {
    use FeatureError::{Denied, InvalidParameter};
    let mut features = FirmwareFeatures::at_reset(ALL);
    let before = features;
    for (call, error) in [
        ([PTE_AD_HW_UPDATING, 2, 0], InvalidParameter),
        ([PTE_AD_HW_UPDATING, 1 << 32, 0], InvalidParameter),
        ([PTE_AD_HW_UPDATING, 1, 2], InvalidParameter),
        ([PTE_AD_HW_UPDATING, 1, 1 << 32 | 1], InvalidParameter),
        ([POINTER_MASKING_PMLEN, 1, 0], InvalidParameter),
        ([POINTER_MASKING_PMLEN, 8, 0], InvalidParameter),
        ([POINTER_MASKING_PMLEN, u64::MAX, 0], InvalidParameter),
        ([MISALIGNED_DELEGATION, 2, 0], InvalidParameter),
        ([MISALIGNED_DELEGATION, 0, 1 << 32], InvalidParameter),
        ([LANDING_PAD, 1, u64::MAX], InvalidParameter),
        ([SHADOW_STACK, 2, 0], InvalidParameter),
        ([DOUBLE_TRAP, u64::MAX, 0], InvalidParameter),
        ([6, 1, 0], Denied),
        ([0x3fff_ffff, 0, 0], Denied),
        ([0x4000_0000, 0, 0], Denied),
        ([0x8000_0000, 0, 0], Denied),
        ([0xffff_ffff, 0, 0], Denied),
    ] {
        assert_eq!(features.set(call, ALL), Err(error), "{call:x?}");
        if error != InvalidParameter {
            assert_eq!(features.get(call[0], ALL), Err(error));
        }
        assert_eq!(features, before);
    }
}

#[test]
fn locks_last_until_reset() {
    let mut features = FirmwareFeatures::at_reset(ALL);
    features.set([PTE_AD_HW_UPDATING, 1, LOCK], ALL).unwrap();
    for value in [0, 1] {
        for flags in [0, LOCK] {
            let answer = features.set([PTE_AD_HW_UPDATING, value, flags], ALL);
            assert_eq!(answer, Err(FeatureError::Locked));
        }
    }
    assert_eq!(features.get(PTE_AD_HW_UPDATING, ALL), Ok(1));
    features.set([POINTER_MASKING_PMLEN, 7, 0], ALL).unwrap();
    for feature in MISALIGNED_DELEGATION..=DOUBLE_TRAP {
        features.set([feature, 0, LOCK], ALL).unwrap();
        let answer = features.set([feature, 1, 0], ALL);
        assert_eq!(answer, Err(FeatureError::Locked));
        assert_eq!(features.get(feature, ALL), Ok(0));
    }
    features = FirmwareFeatures::at_reset(ALL);
    assert_eq!(features.set([PTE_AD_HW_UPDATING, 0, 0], ALL), Ok(()));
}

#[test]
fn missing_hardware_is_not_offered() {
    let none = Offer {
        environment: STCE,
        always_updates: false,
    };
    let mut features = FirmwareFeatures::at_reset(none);
    for feature in MISALIGNED_DELEGATION..=POINTER_MASKING_PMLEN {
        let error = Err(FeatureError::NotSupported);
        assert_eq!(features.get(feature, none), error);
        assert_eq!(features.set([feature, 0, 0], none), error.map(|_| ()));
    }
    // A hart that ignores 7 bits and not 16.
    let seven = Offer {
        environment: PMM_7,
        always_updates: false,
    };
    let mut features = FirmwareFeatures::at_reset(seven);
    assert_eq!(features.set([POINTER_MASKING_PMLEN, 7, 0], seven), Ok(()));
    let answer = features.set([POINTER_MASKING_PMLEN, 16, 0], seven);
    assert_eq!(answer, Err(FeatureError::InvalidParameter));
}

#[test]
fn svadu_alone_updates_from_reset_on() {
    let offer = Offer {
        always_updates: true,
        ..ALL
    };
    let features = FirmwareFeatures::at_reset(offer);
    assert_eq!(features.environment(), ADUE | STCE | CBZE);
    let error = Err(FeatureError::NotSupported);
    assert_eq!(features.get(PTE_AD_HW_UPDATING, offer), error);
}
