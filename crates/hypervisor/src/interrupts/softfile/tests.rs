//! Against a file kept as a plain list of flags.

use proptest::prelude::*;

use super::*;

#[test]
fn identities_are_one_to_sixty_three() {
    assert_eq!(Identity::new(0), None);
    assert_eq!(Identity::new(64), None);
    assert_eq!(Identity::new(63).map(Identity::number), Some(63));
}

/// AIA §3.7: which values of `siselect` have a register, for 64-bit registers.
#[test]
fn every_selector() {
    for select in (0..0x200).chain([u64::MAX, 1 << 63]) {
        let mut file = InterruptFile::default();
        let exists = match select {
            0x30..=0x3f => select % 2 == 0,
            0x70..=0x7f => true,
            0x80..=0xff => select % 2 == 0,
            _ => false,
        };
        assert_eq!(file.read_indirect(select).is_ok(), exists, "{select:#x}");
        assert_eq!(
            file.write_indirect(select, u64::MAX).is_ok(),
            exists,
            "{select:#x}"
        );
        let kept = match select {
            0x70 => 0,
            0x72 => 63,
            0x80 | 0xc0 => !1,
            _ => 0,
        };
        if exists {
            assert_eq!(file.read_indirect(select), Ok(kept), "{select:#x}");
        }
    }
}

#[test]
fn messages_are_read_in_either_byte_order() {
    assert_eq!(message(0, 5), Identity::new(5));
    assert_eq!(message(4, 6 << 24), Identity::new(6));
    for (offset, value) in [(0, 0), (0, 64), (0, u32::MAX), (4, 6), (8, 7), (0xffc, 7)] {
        assert_eq!(message(offset, value), None, "{offset:#x}, {value:#x}");
    }
}

#[test]
fn claims_take_one_identity_in_priority_order() {
    let mut file = InterruptFile::default();
    file.write_indirect(0xc0, u64::MAX).unwrap();
    file.write_indirect(0x70, 1).unwrap();
    // eip0.
    let pending = [40, 3, 63]
        .iter()
        .fold(0, |bits, number| bits | 1 << number);
    file.write_indirect(0x80, pending).unwrap();
    let mut order = Vec::new();
    while file.interrupt() {
        order.push(file.claim());
    }
    assert_eq!(order, [3 << 16 | 3, 40 << 16 | 40, 63 << 16 | 63]);
    assert_eq!(file.claim(), 0, "nothing to claim");
}

#[test]
fn threshold_masks_itself_and_all_above() {
    let mut file = InterruptFile::restore(State {
        pending: 1 << 9 | 1 << 10,
        enabled: u64::MAX,
        delivery: true,
        threshold: 10,
    });
    assert_eq!(file.claim(), 9 << 16 | 9);
    assert!(!file.interrupt());
    file.write_indirect(0x72, 11).unwrap();
    assert!(file.interrupt());
    file.write_indirect(0x72, 0).unwrap();
    assert!(file.interrupt(), "zero lets all through");
    file.write_indirect(0x70, 0).unwrap();
    assert!(!file.interrupt());
    assert_eq!(
        file.top_register(),
        10 << 16 | 10,
        "stopei does not depend on eidelivery"
    );
}

proptest! {
    #[test]
    fn the_top_is_the_least_that_may(
        pending in any::<u64>(), enabled in any::<u64>(), threshold in 0u8..64,
    ) {
        let file = InterruptFile::restore(State { pending, enabled, delivery: true, threshold });
        let want = (1..64).find(|&number| {
            pending >> number & 1 == 1
                && enabled >> number & 1 == 1
                && (threshold == 0 || number < u32::from(threshold))
        });
        prop_assert_eq!(file.top().map(Identity::number), want);
        prop_assert_eq!(file.interrupt(), want.is_some());
        let mut claimed = file;
        claimed.claim();
        let left = want.map_or(pending & !1, |number| pending & !1 & !(1 << number));
        prop_assert_eq!(claimed.save().pending, left);
    }

    #[test]
    fn a_saved_file_is_the_same_file(
        pending in any::<u64>(), enabled in any::<u64>(), delivery in any::<bool>(),
        threshold in any::<u8>(),
    ) {
        let file = InterruptFile::restore(State { pending, enabled, delivery, threshold });
        prop_assert_eq!(InterruptFile::restore(file.save()), file);
        prop_assert_eq!(file.save().pending & 1, 0);
    }

    #[test]
    fn any_access(select in any::<u64>(), value in any::<u64>(), offset in any::<u64>()) {
        let mut file = InterruptFile::default();
        let _ = file.write_indirect(select & 0xff, value);
        let _ = file.write_indirect(select, value);
        let _ = message(offset, value as u32);
        file.claim();
        prop_assert!(file.save().threshold < 64);
    }
}
