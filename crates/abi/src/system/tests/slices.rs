//! Slices in descriptions good and bad.

use super::*;

const READ_ONLY: bool = true;

fn slice(disk: u32, first: u64, sectors: u64, read_only: bool) -> SliceDescription {
    SliceDescription {
        disk,
        first,
        sectors,
        read_only,
    }
}

fn having(vm: Properties, slices: &[SliceDescription]) -> Properties {
    let cells = slices.iter().flat_map(SliceDescription::cells).collect();
    with(vm, names::SLICES, Some(Value::Row(cells)))
}

fn disks(slots: &[u32]) -> Properties {
    let slots = Value::Row(slots.to_vec());
    with(root(), names::SHARED_DISKS, Some(slots))
}

#[test]
fn slices_are_read_as_they_were_written() {
    let large = slice(1, 5 << 32, 1 << 33, READ_ONLY);
    let blob = blob(
        &disks(&[5, 6]),
        &[
            having(vm("first", &[0]), &[slice(0, 8, 8, false), large]),
            having(vm("second", &[1]), &[large, slice(0, 16, 0, false)]),
        ],
    );
    let system = SystemDescription::parse(&blob).unwrap();
    assert_eq!(system.disks[..], [Slot(5), Slot(6)]);
    let slices_of = |vm: usize| system.vms[vm].slices.iter().collect::<Vec<_>>();
    assert_eq!(slices_of(0), [slice(0, 8, 8, false), large]);
    assert_eq!(slices_of(1), [large, slice(0, 16, 0, false)]);
}

#[test]
fn slices_that_cannot_be_are_refused() {
    let refused = |disks: &[u32], one: &[SliceDescription], two: &[SliceDescription]| {
        let vms = [
            having(vm("first", &[0]), one),
            having(vm("second", &[1]), two),
        ];
        refusal(&self::disks(disks), &vms).0
    };
    let mine = slice(0, 8, 8, false);
    assert_eq!(
        refused(&[6], &[slice(1, 0, 8, false)], &[]),
        Problem::NoSuchDevice
    );
    // Each of these has a sector of the other's, and one of both writes.
    for other in [
        mine,
        slice(0, 15, 1, false),
        slice(0, 0, 9, READ_ONLY),
        slice(0, 0, 0, READ_ONLY),
        slice(0, 15, 0, false),
    ] {
        assert_eq!(
            refused(&[6], &[mine], &[other]),
            Problem::Taken,
            "{other:?}"
        );
        assert_eq!(
            refused(&[6], &[mine, other], &[]),
            Problem::Taken,
            "{other:?}"
        );
    }
    // The disk is a device of a VM's own, too.
    assert_eq!(refused(&[1], &[mine], &[]), Problem::Taken);
    let many: Vec<_> = (0..MAX_SLICES as u64 + 1)
        .map(|place| slice(0, place, 1, false))
        .collect();
    assert_eq!(refused(&[6], &many, &[]), Problem::TooMany);
    // Its end is no number of 64 bits.
    let endless = slice(0, u64::MAX, 2, false);
    assert_eq!(refused(&[6], &[endless], &[]), Problem::BadSlice);
    let cut = with(
        vm("first", &[0]),
        names::SLICES,
        Some(Value::Row(mine.cells()[..5].to_vec())),
    );
    assert_eq!(refusal(&disks(&[6]), &[cut]).0, Problem::WrongType);
}

#[test]
fn neighbours_and_readers_do_not_collide() {
    let mine = slice(0, 8, 8, false);
    for other in [
        slice(0, 0, 8, false),
        slice(0, 16, 0, false),
        slice(1, 8, 8, false),
    ] {
        assert!(
            !mine.collides_with(&other) && !other.collides_with(&mine),
            "{other:?}"
        );
    }
    let whole = slice(0, 0, 0, READ_ONLY);
    assert!(!whole.collides_with(&whole));
}
