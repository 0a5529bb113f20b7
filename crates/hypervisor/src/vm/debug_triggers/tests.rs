use std::vec::Vec;

use riscv::csr::trigger::{
    EXECUTE, GREATER_OR_EQUAL, HIT_BEFORE, LOAD, M, MATCH, MATCH_SHIFT, OUTSIDE, S, SIZE_SHIFT,
    STORE, TYPE_SHIFT, U, VS, VU,
};
use riscv::sbi::debug_triggers::{MAPPED, STATE_S, STATE_U};

use super::*;

const MAX: usize = 3;

fn installed(controls: &[u64]) -> DebugTriggers {
    let mut triggers = DebugTriggers::default();
    let configurations: Vec<_> = controls.iter().map(|control| [*control, 8, 0]).collect();
    triggers.install(&configurations, MAX).unwrap();
    triggers
}

fn on_hart(triggers: &DebugTriggers) -> Vec<[u64; 2]> {
    triggers.on_hart().collect()
}

#[test]
fn guest_modes_are_virtual_on_harts() {
    let size = 3 << SIZE_SHIFT;
    for (modes, virtual_modes) in [(S, VS), (U, VU), (S | U, VS | VU)] {
        let control = TYPE | modes | size | STORE;
        let triggers = installed(&[control]);
        assert_eq!(
            on_hart(&triggers),
            [[TYPE | virtual_modes | size | STORE, 8]]
        );
        // The guest reads what it has written.
        let read: Vec<_> = triggers.read(0, 1, MAX).unwrap().collect();
        let saved =
            [(S, STATE_S), (U, STATE_U)].map(|(mode, bit)| u64::from(modes & mode != 0) * bit);
        assert_eq!(read, [[MAPPED | saved[0] | saved[1], control, 8, 0]]);
    }
    // What can never fire needs no trigger of the hart.
    for control in [TYPE | S, TYPE | STORE] {
        let triggers = installed(&[control]);
        assert!(!triggers.can_fire() && on_hart(&triggers).is_empty());
    }
}

#[test]
fn configurations_beyond_the_offer_are_refused() {
    let whole = TYPE | S | LOAD;
    for (configuration, error) in [
        ([MATCH << TYPE_SHIFT | S | LOAD, 0, 0], TriggerError::Failed),
        ([0, 0, 0], TriggerError::Failed),
        ([whole | M, 0, 0], TriggerError::InvalidParameter),
        ([whole | OUTSIDE, 0, 0], TriggerError::InvalidParameter),
        ([whole | VS, 0, 0], TriggerError::NotSupported),
        ([whole | VU, 0, 0], TriggerError::NotSupported),
        ([whole, 0, 1], TriggerError::NotSupported),
        // A size of 48 bits, a chain, an action, data, a range.
        ([whole | 4 << SIZE_SHIFT, 0, 0], TriggerError::NotSupported),
        ([whole | 1 << 11, 0, 0], TriggerError::NotSupported),
        ([whole | 1 << 12, 0, 0], TriggerError::NotSupported),
        ([whole | 1 << 21, 0, 0], TriggerError::NotSupported),
        (
            [whole | GREATER_OR_EQUAL << MATCH_SHIFT, 0, 0],
            TriggerError::NotSupported,
        ),
    ] {
        let mut triggers = DebugTriggers::default();
        let refused = triggers.install(&[[whole, 0, 0], configuration], MAX);
        assert_eq!(
            refused,
            Err(Refused { error, place: 1 }),
            "{configuration:x?}"
        );
        assert_eq!(triggers, DebugTriggers::default(), "nothing has changed");
        let mut triggers = installed(&[whole, whole]);
        let before = triggers;
        let refused = triggers.update(&[(0, [whole | U, 0, 0]), (1, configuration)], MAX);
        assert_eq!(refused, Err(Refused { error, place: 1 }));
        assert_eq!(triggers, before);
    }
    // Bits that the hart reports are no part of a configuration.
    let triggers = installed(&[whole | HIT_BEFORE]);
    assert_eq!(on_hart(&triggers), [[TYPE | VS | LOAD, 8]]);
}

#[test]
fn free_numbers_are_given_in_order() {
    let control = TYPE | S | EXECUTE;
    let mut triggers = installed(&[control; 3]);
    let none = Refused {
        error: TriggerError::Failed,
        place: 0,
    };
    assert_eq!(triggers.install(&[[control, 0, 0]], MAX), Err(none));
    triggers.change((1, 1), MAX, Change::Uninstall).unwrap();
    let two = [[control, 0, 0]; 2];
    assert_eq!(
        triggers.install(&two, MAX),
        Err(Refused { place: 1, ..none })
    );
    assert_eq!(
        triggers.install(&two[..1], MAX).map(|numbers| numbers[0]),
        Ok(1)
    );
    // All that the hart may have, though fewer are offered.
    let mut all = DebugTriggers::default();
    let numbers = all.install(&[[control, 0, 0]; MAX_TRIGGERS], MAX_TRIGGERS);
    assert_eq!(numbers, Ok([0, 1, 2, 3, 4, 5, 6, 7]));
}

#[test]
fn disabled_triggers_keep_their_modes() {
    let control = TYPE | U | STORE;
    let mut triggers = installed(&[control, control]);
    triggers.change((0, 2), MAX, Change::Disable).unwrap();
    let read: Vec<_> = triggers.read(1, 1, MAX).unwrap().collect();
    assert_eq!(read, [[MAPPED | STATE_U, TYPE | STORE, 8, 0]]);
    assert_eq!(on_hart(&triggers).len(), 1);
    triggers.change((1, 1), MAX, Change::Enable).unwrap();
    assert_eq!(triggers, installed(&[control, control]));
    // An update of a disabled trigger enables it.
    triggers.change((0, 1), MAX, Change::Disable).unwrap();
    triggers.update(&[(0, [control, 8, 0])], MAX).unwrap();
    assert_eq!(triggers, installed(&[control, control]));
}

#[test]
fn numbers_of_no_triggers_are_refused() {
    let control = TYPE | S | LOAD;
    let mut triggers = installed(&[control]);
    let before = triggers;
    let invalid = Err(TriggerError::InvalidParameter);
    for set in [(0, 8), (3, 1), (u64::MAX, 3), (0, u64::MAX)] {
        for change in [Change::Uninstall, Change::Enable, Change::Disable] {
            assert_eq!(triggers.change(set, MAX, change), invalid, "{set:x?}");
        }
    }
    // The first of the two is installed.
    assert_eq!(triggers.change((0, 3), MAX, Change::Uninstall), invalid);
    assert_eq!(triggers, before);
    // As in OpenSBI.
    for change in [Change::Enable, Change::Disable] {
        assert_eq!(triggers.change((1, 3), MAX, change), Ok(()));
    }
    assert_eq!(triggers, before);
    for (index, error) in [
        (1, TriggerError::Failed),
        (3, TriggerError::InvalidParameter),
        (u64::MAX, TriggerError::InvalidParameter),
    ] {
        let refused = triggers.update(&[(index, [control, 0, 0])], MAX);
        assert_eq!(refused, Err(Refused { error, place: 0 }));
    }
    for (first, count) in [(3, 0), (0, 4), (1, 3), (u64::MAX, 1), (1, u64::MAX)] {
        let read = triggers.read(first, count, MAX).map(Iterator::count);
        assert_eq!(read, Err(TriggerError::BadRange), "{first:#x} {count:#x}");
    }
    assert_eq!(triggers.read(0, 3, MAX).map(Iterator::count), Ok(3));
}
